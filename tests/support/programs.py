"""A program `femts` for shell scripts, each call of which is a process of `forks`."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from multiprocessing.connection import Client, Listener
from pathlib import Path
from tempfile import TemporaryDirectory

from forks import Forked

_PROGRAM = f"""\
#!{sys.executable} -IS
import os, sys
from multiprocessing.connection import Client

with Client(os.path.join(os.path.dirname(__file__), "calls")) as server:
    server.send((sys.argv[1:], os.getcwd()))
    status, out, err = server.recv()
sys.stdout.write(out)
sys.stderr.write(err)
sys.exit(status)
"""


@contextlib.contextmanager
def forked_femts() -> Iterator[Path]:
    """The folder of the program, to be put on the path."""
    with TemporaryDirectory() as made, Listener(f"{made}/calls") as calls:
        program = Path(made, "femts")
        program.write_text(_PROGRAM)
        program.chmod(0o755)
        answers = threading.Thread(target=_answer, args=(calls,))
        answers.start()
        try:
            yield program.parent
        finally:
            with Client(calls.address) as last:
                last.send(None)
            answers.join()


def _answer(calls: Listener) -> None:
    while True:
        with calls.accept() as call:
            said = call.recv()
            if said is None:
                return
            words, folder = said
            done = Forked(["-m", "femts", *words], Path(folder)).completed()
            call.send((done.returncode, done.stdout, done.stderr))
