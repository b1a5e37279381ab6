"""`python -m scripts.bench.cold`: commands in new processes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from scripts.bench.cold import main, timed


def test_a_row_for_each_command(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--turns", "1", "--commands", "help"])
    command, median, longest, memory = capsys.readouterr().out.splitlines()[-1].split()
    assert command == "help" and 0 < float(median) == float(longest) and float(memory) > 10


def test_failed_commands_are_not_timed(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        timed(["predict", "nothing"], tmp_path)
