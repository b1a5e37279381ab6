"""Commands as processes of their own, which die at a given change of the file system."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from scripts.bench.kills.hook import sitecustomize
from scripts.bench.kills.hook.sitecustomize import COUNT, FOLDER, ROLE, TURN

HOOK = Path(sitecustomize.__file__).parent
WAIT = 120.0  # seconds for the child processes of a killed process to end


@dataclass(frozen=True)
class Ended:
    """How a command ended.

    Attributes:
        status: exit status; negative for a signal.
        said: what it printed on stderr.
        changes: number of changes of the file system before it ended.
        orphaned: seconds for which its child processes went on.
    """

    status: int
    said: str
    changes: int
    orphaned: float = 0.0

    @property
    def refused(self) -> bool:
        """Whether it ended with one sentence."""
        lines = [line for line in self.said.splitlines() if not line.startswith(("note: ", "warning: "))]
        return (
            self.status in (1, 2) and bool(lines) and lines[-1].startswith("femts: ") and "Traceback" not in self.said
        )


def run(argv: Sequence[str], folder: Path, turn: int = 0, role: str = "main") -> Ended:
    """Run `femts ARGV` in `folder`, and kill the process of `role`, `main` or `cell`, at its change number `turn`."""

    def command() -> int:
        from femts.cli import main

        return main(list(argv))

    return call(command, folder, turn, role)


def call(command: Callable[[], int], folder: Path, turn: int = 0, role: str = "main") -> Ended:
    """As `run`, for a function that returns an exit status, called in a fork of this process."""
    said, count = folder.with_suffix(".said"), folder.with_suffix(".count")
    count.unlink(missing_ok=True)
    child = os.fork()  # femts need not be imported again, which would take longer than most commands
    if not child:
        status = 70
        try:
            os.chdir(folder)
            for stream, path in ((1, os.devnull), (2, str(said))):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666), stream)
            os.environ |= {ROLE: role, FOLDER: str(folder), TURN: str(turn), COUNT: str(count)}
            sys.path.insert(0, str(HOOK))
            sitecustomize.install("main")
            status = command()
        except SystemExit as error:
            status = int(error.code or 0)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    _, code = os.waitpid(child, 0)
    began = time.monotonic()
    while _orphans(folder):
        if time.monotonic() > began + WAIT:
            raise AssertionError(f"Child processes of the command in {folder} go on.")
        time.sleep(0.05)
    orphaned = time.monotonic() - began
    changes = int(count.read_text() or 0) if count.exists() else 0
    return Ended(os.waitstatus_to_exitcode(code), said.read_text(), changes, orphaned)


def import_for(command: Sequence[str], folder: Path) -> None:
    """Import here what a command imports, so that its forks need not."""
    listed = folder.with_suffix(".modules")

    def listing() -> int:
        from femts.cli import main

        status = main(list(command))
        listed.write_text("\n".join(sys.modules))
        return status

    call(listing, folder)
    for name in listed.read_text().splitlines():
        if not name.startswith("_") and name not in sys.modules:
            with contextlib.suppress(Exception):
                import_module(name)


def _orphans(folder: Path) -> list[int]:
    mark, found = f"{FOLDER}={folder}".encode(), list[int]()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or is somebody else's
            if mark in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
    return found


def was_killed(ended: Ended) -> bool:
    """Return whether a command was killed, itself or one of its cells."""
    return ended.status == -signal.SIGKILL or "killed by signal 9" in ended.said
