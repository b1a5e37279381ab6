"""Python processes of their own, for what kills, forks or must be heard alone."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from forks import Forked


@pytest.fixture
def python(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a script in a subprocess, in an empty folder."""
    place = tmp_path / "elsewhere"
    place.mkdir()

    def run(code: str, *args: object) -> subprocess.CompletedProcess[str]:
        script = tmp_path / "script.py"
        script.write_text(code)
        return Forked([script, *args], place).completed()

    return run
