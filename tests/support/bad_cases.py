"""Command lines that must end with one sentence, and the check that they do."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from bad_files import state_of

from femts.cli import main
from femts.cli.wording import _spellings

ABSENT_DEVICE = "mps" if torch.cuda.is_available() else "cuda"
TRAIN = "train --dataset synthetic --model naive"
OWN = "train --model naive --horizon 12 --seq-len 24 --dataset"


@dataclass(frozen=True)
class Case:
    """A command line, the expected message and the exit status."""

    args: str
    says: str
    status: int = 2


def check_case(case: Case, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Run a case in `place`: one printable sentence on stderr, empty stdout, and nothing written."""
    monkeypatch.chdir(place)
    monkeypatch.delenv("FEMTS_DATA", raising=False)
    before = state_of(place)
    status = main(shlex.split(case.args))
    out, err = capsys.readouterr()
    assert status == case.status, err
    assert re.search(case.says, err), err
    assert err.startswith("femts: ")
    assert err.count("\n") == 1 and err.removesuffix("\n").isprintable(), err
    assert len(err) < 1600
    check_options(case.args, err)
    assert out == ""
    assert state_of(place) == before


def check_options(args: str, message: str) -> None:
    """The options that `message` names beyond those in `args` are options of the command, unless it names another one
    for them, as in `--panel of femts train`."""
    own = _spellings().get(shlex.split(args)[0])
    if not own:  # a group of commands, or no command
        return
    for option, of in re.findall(r"(?<![\w-])(--[a-z][a-z-]*)(?:[^;,.]* of femts (\w+))?", message):
        has = _spellings()[of] if of else own
        assert option in has or option in args or "femts " in message.partition(option)[0][7:], f"{option}: {message}"
