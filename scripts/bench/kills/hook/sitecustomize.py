"""Kills this process at one of its changes of the file system.

A process imports this module by itself if its folder is in PYTHONPATH; it imports nothing of femts.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from typing import Any

ROLE, FOLDER, TURN, COUNT = "KILL_ROLE", "KILL_FOLDER", "KILL_TURN", "KILL_COUNT"
CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.truncate")
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


def install(role: str) -> None:
    """Count the changes in the folder `KILL_FOLDER`, each before it is made, in the file `KILL_COUNT`, and die at number
    `KILL_TURN`; does nothing in processes of another role than `KILL_ROLE`."""
    if os.environ.get(ROLE) != role:
        return
    folder, turn = os.environ[FOLDER], int(os.environ[TURN])
    counter = os.open(os.environ[COUNT], os.O_WRONLY | os.O_CREAT, 0o666)
    seen = 0

    def change() -> None:
        nonlocal seen
        seen += 1
        os.pwrite(counter, str(seen).encode(), 0)
        if seen == turn:
            os.kill(os.getpid(), signal.SIGKILL)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & WRITES and _within(path, folder):
                change()
        elif event in CHANGES and any(_within(each, folder) for each in arguments[:2]):
            change()

    connect = sqlite3.connect

    def connected(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **options)
        connection.set_trace_callback(lambda sql: None if sql.lstrip().startswith(("SELECT", "PRAGMA")) else change())
        return connection

    sqlite3.connect = connected  # type: ignore[assignment]  # SQLite writes without Python
    sys.addaudithook(hook)


def _within(path: object, folder: str) -> bool:
    """Return whether `path` may be in `folder`; relative ones are given with an open folder, as by `shutil.rmtree`."""
    if not isinstance(path, str | bytes | os.PathLike):
        return False
    text = os.fsdecode(path)
    return text.startswith((folder, "/proc/self/fd")) or not os.path.isabs(text)


if "femts.experiments.runner" in sys.orig_argv:
    install("cell")
