"""A mean in its run folder: it is the same when loaded, and commands take it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from small_means import MIXED, small_members
from small_tables import small_table

import femts
from femts.cli import main

TABLE = small_table(160)


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mean") / "past.csv"
    TABLE.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def made(past: Path) -> femts.Forecaster:
    mean: femts.Forecaster = femts.mean_of(small_members(femts.load_dataset(past)))
    mean.calibrate()
    return mean


@pytest.fixture(scope="module")
def run(made: femts.Forecaster, past: Path) -> Path:
    made.save(past.parent / "run")
    return past.parent / "run"


def test_saved_mean_is_bit_identical(made: femts.Forecaster, run: Path, tmp_path: Path) -> None:
    loaded = femts.load(run)
    pd.testing.assert_frame_equal(
        loaded.predict(TABLE, 9, level=None), made.predict(TABLE, 9, level=None), check_exact=True
    )
    pd.testing.assert_frame_equal(loaded.predict(TABLE, level=[80]), made.predict(TABLE, level=[80]), check_exact=True)
    assert loaded.config == made.config and loaded.metrics == made.metrics
    assert "  members:\n  - model: " in (run / "config.yaml").read_text()
    for place, member in enumerate(loaded.members):
        assert member.config == made.members[place].config
        member.save(tmp_path / str(place))
        again = femts.load(tmp_path / str(place))
        pd.testing.assert_frame_equal(again.predict(TABLE), member.predict(TABLE), check_exact=True)


def test_commands_take_a_mean(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    past, table = str(run.parent / "past.csv"), str(tmp_path / "next.csv")
    for words in (
        ["evaluate", str(run), "--dataset", past],
        ["predict", str(run), past, "-o", table, "--level", "80", "--plot", str(tmp_path / "next.png")],
        ["calibrate", str(run), "--dataset", past],
        ["audit", str(run)],
        ["report", str(run), "--out", str(tmp_path / "page.html")],
        ["backtest", str(run), past, "--windows", "2", "--step", "6", "--refit", "-o", str(tmp_path / "back.csv")],
    ):
        assert main(words) == 0, capsys.readouterr().err
    assert "<dt>Member fem_sm</dt>" in (tmp_path / "page.html").read_text()
    capsys.readouterr()
    why = tmp_path / "why.csv"
    assert main(["explain", str(run), past, "-o", str(why), "--plot", str(tmp_path / "why.png")]) == 0
    said = capsys.readouterr()
    assert f"'fem_sm', one of those whose mean the run is: {', '.join(MIXED)}" in said.out + said.err
    rows = why.read_text()
    assert main(["explain", str(run), past, "-o", str(why), "--member", "fem_sm"]) == 0
    assert why.read_text() == rows
    for name, text in (("ridge", "'ridge' chooses no past segments"), ("fem_smm", "no member 'fem_smm'; did you mean")):
        capsys.readouterr()
        assert main(["explain", str(run), past, "--member", name]) == 2
        assert text in capsys.readouterr().err


def test_mean_without_an_explainable_member_is_refused(
    past: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    members = small_members(femts.load_dataset(past), ("ridge", "naive"))
    femts.mean_of(members).save(tmp_path / "run")
    members[0].save(tmp_path / "ridge")
    assert main(["explain", str(tmp_path / "run"), str(past)]) == 2
    assert "None of ridge, naive, whose mean this is, chooses past segments" in capsys.readouterr().err
    assert main(["explain", str(tmp_path / "ridge"), str(past), "--member", "ridge"]) == 2
    assert "Model 'ridge' is no mean and has no members; leave out --member." in capsys.readouterr().err
