"""A copy of femts to put files in, and its commands, each of which is a process of `forks` that imports the copy."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from forks import Forked

ROOT = Path(__file__).resolve().parents[2]

_COMMAND = """
import os, sys

os.dup2(1, 2)  # messages stay in order
for name in [name for name in sys.modules if name.partition(".")[0] == "femts"]:  # not those of the copy
    del sys.modules[name]

from pages import cells_in_this_process
from femts.cli import main

with cells_in_this_process():
    sys.exit(main(sys.argv[1:]))
"""


@dataclass(frozen=True)
class Checkout:
    """A copy of femts.

    Attributes:
        folder: the one that has the folder `femts`; commands run in it.
    """

    folder: Path

    @classmethod
    def make(cls, folder: Path) -> Checkout:
        """Copy this femts into `folder`."""
        shutil.copytree(ROOT / "femts", folder / "femts")  # with its compiled files, which are valid there, too
        return cls(folder)

    def add(self, path: str, text: str) -> None:
        """Put a file at `path`, seen from the folder `femts`."""
        (self.folder / "femts" / path).write_text(text)

    def run(self, *args: str | Path) -> str:
        """Run `femts ARGS`, and return what it prints; AssertionError with that where it fails."""
        status, said = self.status_of(*args)
        assert status == 0, said
        return said

    def status_of(self, *args: str | Path) -> tuple[int, str]:
        """Run `femts ARGS`, and return its exit status and what it prints."""
        done = Forked(["-c", _COMMAND, *args], self.folder, {**os.environ, "PYTHONPATH": str(self.folder)}).completed()
        return done.returncode, done.stdout
