"""The progress line on terminals and in notebooks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from types import ModuleType, SimpleNamespace

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


def test_terminal_progress_line_is_cleared() -> None:
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


def test_no_progress_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_line() as show:
        show(0.5, "step 1")
    assert capsys.readouterr() == ("", "")


class Output:
    """Output of a notebook cell."""

    def __init__(self) -> None:
        self.drawn: list[str] = []

    def update(self, text: str) -> None:
        self.drawn.append(text)


def test_notebook_progress_line_is_cleared(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    output, ipython, display = Output(), ModuleType("IPython"), ModuleType("IPython.display")
    vars(ipython)["get_ipython"] = lambda: SimpleNamespace(kernel=object())
    vars(display).update(Pretty=str, display=lambda text, display_id: output)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr("femts.progress._EVERY", 0.0)
    with progress_line() as show:
        show(0.25, "step 1")
        show(0.5, "step 2")
    assert re.search(r" 25% -?.* left  step 1$", output.drawn[0]) and re.search(
        r" 50% .* left  step 2$", output.drawn[1]
    )
    assert output.drawn[2:] == [""]
    assert capsys.readouterr() == ("", "")
