"""A copy of femts to put files in, and its commands, which are processes as those of a user."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


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
        done = subprocess.run(
            [sys.executable, "-m", "femts", *map(str, args)],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(self.folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout
