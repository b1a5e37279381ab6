"""Python processes of their own, for what kills, forks or must be heard alone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def python(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a script in a subprocess, in an empty folder."""
    root = Path(__file__).resolve().parents[2]
    place = tmp_path / "elsewhere"
    place.mkdir()

    def run(code: str, *args: object, timeout: float = 240) -> subprocess.CompletedProcess[str]:
        script = tmp_path / "script.py"
        script.write_text(code)
        paths = os.pathsep.join([str(root / "tests" / "support"), str(root), os.environ.get("PYTHONPATH", "")])
        return subprocess.run(
            [sys.executable, str(script), *map(str, args)],
            cwd=place,
            env={**os.environ, "PYTHONPATH": paths},
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    return run
