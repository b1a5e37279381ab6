"""Outputs that would overwrite an input or a run are refused."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

import pytest
from bad_files import state_of

from femts.cli import main

CASES = {
    "the input": (
        "predict run past.csv -o past.csv",
        r"Output past.csv would replace the history past.csv; name another",
    ),
    "the input by a link": (
        "predict run past.csv -o linked.csv",
        r"Output linked.csv would replace the history past.csv",
    ),
    "the picture": ("predict run past.csv -o a.png --plot a.png", r"--out and --plot both name a.png; name two files"),
    "a file of the run": ("predict run past.csv -o run/metrics.json", r"would replace metrics.json of the run run"),
    "a report over weights": ("report run -o run/model.safetensors", r"would replace model.safetensors of the run"),
    "a page on standard output": (
        "report run -o -",
        "Option --out requires a file, not standard output; give the path of a file.",
    ),
    "the data of a backtest": ("backtest run past.csv -o past.csv", r"would replace the data past.csv"),
}


@pytest.mark.parametrize(("command", "says"), CASES.values(), ids=CASES.keys())
def test_output_over_an_input_is_refused(
    own: Path,
    tmp_path: Path,
    command: str,
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shutil.copytree(own / "run", tmp_path / "run")
    shutil.copy(own / "past.csv", tmp_path)
    (tmp_path / "sub").mkdir()
    (tmp_path / "linked.csv").symlink_to("past.csv")
    monkeypatch.chdir(tmp_path)
    before = state_of(tmp_path)
    assert main(command.split()) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert says in err
    assert state_of(tmp_path) == before


def test_device_may_be_named_twice(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", str(own / "run"), str(own / "past.csv"), "-o", "/dev/null"]) == 0
    assert "/dev/null: " in capsys.readouterr().out


def test_dash_is_stdout(own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["predict", str(own / "run"), str(own / "past.csv")]
    assert main(command) == 0
    usual = capsys.readouterr().out
    with contextlib.chdir(tmp_path):
        assert main([*command, "-o", "-"]) == 0
    assert capsys.readouterr().out == usual and not list(tmp_path.iterdir())
