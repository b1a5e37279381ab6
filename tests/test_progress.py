"""The line of progress is on a terminal and nowhere else."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from femts.progress import progress_line

SCRIPT = """
import sys, time
from femts.progress import progress_line
with progress_line() as show:
    for part in range(1, 12):
        show(part / 20, f"step {part}")
        time.sleep(0.1)
    print("a score")
    print("a note", file=sys.stderr)
assert "rich" in sys.modules
"""


def test_a_terminal_shows_how_far_it_is_and_the_time_left_and_keeps_nothing() -> None:
    ours, theirs = os.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "90"}
    process = subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, stderr=theirs, env=environment)
    os.close(theirs)
    drawn = b""
    while piece := _read(ours):
        drawn += piece
    os.close(ours)
    assert process.communicate()[0] == b"a score\n"
    assert process.returncode == 0
    text = re.sub(r"\x1b\[[\d;]*m", "", drawn.decode())
    assert re.search(r" 55% 0:00:0\d left  step 11", text)
    assert "a note\r\n" in text
    assert text.endswith("\x1b[2K")  # the last thing is the line cleared


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # the other end is closed
        return b""


def test_elsewhere_nothing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_line() as show:
        show(0.5, "step 1")
    assert capsys.readouterr() == ("", "")
