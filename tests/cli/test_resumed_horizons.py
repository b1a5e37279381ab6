"""`femts train --horizon N,N --resume`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from femts.cli import main
from femts.data.synthetic import synthetic_frame
from femts.training.select import run as select
from femts.training.select.candidates import Candidate

EACH = "train --horizon 12,24 --seq-len 48 --out each"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a table, a part of it, and a different table of the same name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(select, "shortlist", lambda *_: (Candidate("naive"), Candidate("ridge")))
    table = synthetic_frame(500).iloc[:, :3]
    table.to_csv("m.csv", index=False)
    table[:400].to_csv("m400.csv", index=False)
    (tmp_path / "other").mkdir()
    table.assign(s0=table["s0"] + 1).to_csv("other/m.csv", index=False)
    return tmp_path


def files(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Content and modification time of each file."""
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("first", "then", "message"),
    [
        ("ridge --dataset m.csv", "ridge --dataset other/m.csv", "data 'm' changed since"),
        ("ridge --dataset m.csv", "auto --dataset m.csv", "was started with model.name=ridge, not auto"),
        ("ridge --dataset m.csv", "ridge --dataset m.csv --refit", "was started with --no-refit, not --refit"),
        ("auto --dataset m.csv", "auto --dataset other/m.csv", "data 'm' changed since"),
    ],
    ids=str,
)
@pytest.mark.parametrize("horizons", ["36,24"])
def test_resume_with_other_settings_or_data_is_refused(
    place: Path, capsys: pytest.CaptureFixture[str], first: str, then: str, message: str, horizons: str
) -> None:
    assert main([*EACH.split(), "--model", *first.split()]) == 0
    before = files(place / "each")
    capsys.readouterr()
    assert main([*EACH.replace("12,24", horizons).split(), "--resume", "--model", *then.split()]) == 2
    said = capsys.readouterr()
    assert message in said.err and not said.out
    assert files(place / "each") == before and not (place / "each" / "36").exists()


@pytest.mark.parametrize("model", ["ridge --refit", "auto"])
def test_resume_keeps_finished_horizons(place: Path, capsys: pytest.CaptureFixture[str], model: str) -> None:
    command: list[Any] = [*EACH.split(), "--dataset", "m.csv", "--model", *model.split()]
    assert main(command) == 0
    before, said = files(place / "each" / "24"), capsys.readouterr().out
    os.rename("m.csv", "other/m.csv")
    command[command.index("m.csv")] = "other/m.csv"  # the same file elsewhere is the same
    assert main([*command, "--resume", "--time-limit", "1h"]) == 0
    assert capsys.readouterr().out == said
    command[command.index("12,24")] = "36,24"
    assert main([*command, "--resume"]) == 0
    assert files(place / "each" / "24") == before
    assert (place / "each" / "36" / "metrics.json").is_file()


@pytest.mark.parametrize(("model", "out"), [("ridge", ""), ("auto", "--out each")])
def test_resume_starts_or_reports_a_run(place: Path, capsys: pytest.CaptureFixture[str], model: str, out: str) -> None:
    command = f"train --dataset m.csv --model {model} --horizon 12 --max-steps 2 --resume {out}".split()
    assert main(command) == 0
    first = capsys.readouterr()
    assert main(command) == 0
    again = capsys.readouterr()
    assert again.out == first.out and "is already finished" in again.err
    assert main([*command, "--seed", "7"]) == 2
    assert "started with training.seed=42, not 7" in capsys.readouterr().err


def test_horizon_killed_before_its_config_starts_over(place: Path) -> None:
    assert main([*EACH.replace("12,24", "12").split(), "--model", "naive", "--dataset", "m.csv"]) == 0
    (place / "each").rename(place / "12")
    (place / "each" / "24").mkdir(parents=True)
    (place / "12").rename(place / "each" / "12")
    assert main([*EACH.split(), "--resume", "--model", "naive", "--dataset", "m.csv"]) == 0
    assert (place / "each" / "24" / "metrics.json").is_file()
