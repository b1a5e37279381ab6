"""Commands on a panel run."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from small_panels import panel_table

from femts.cli import main

RUN = "train --dataset panel.csv --panel --model {} --horizon 7 --seq-len 14 --max-steps 4 --device cpu --out {}"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("panel")
    table = panel_table()
    table.to_csv(folder / "panel.csv", index=False)
    table.query("unique_id == 'long'")[["ds", "y"]].to_csv(folder / "one.csv", index=False)
    sizes = "--set model.n_layers=1 --set model.d_model=16 --set model.n_heads=2"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(RUN.format("fem_sm", "run").split() + sizes.split()) == 0
        assert main("train --dataset one.csv --model naive --horizon 7 --seq-len 14 --out single".split()) == 0
    return folder


@pytest.fixture(autouse=True)
def in_place(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("evaluate run --horizon 7,9", "mean "),
        (
            "evaluate run --by series --level 80 --csv",
            "windows,mse,mae,mase,rmsse,wape,bias,skill,coverage-80",
        ),
        ("calibrate run --level 70", "levels up to 99.9 for 7 steps, from 33 windows"),
        ("backtest run panel.csv --n-windows 2 -o windows.csv", "windows.csv: 42 rows, 2 forecasts of 3 series"),
        ("backtest run panel.csv --n-windows 1 --by series", "long    seasonal_naive"),
        ("predict run panel.csv --series long,tiny --level 80 --plot f.png -o f.csv", "f.csv: 7 steps of 2 series"),
        ("explain run panel.csv --series tiny --plot e.png -o e.csv", "e.csv: 2 segments of 1 series in 1 layer"),
        ("audit run", "future rows           passed"),
        ("report run -o page.html", "page.html: 0."),
    ],
)
def test_command_output(line: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line.split()) == 0, capsys.readouterr().err
    assert says in capsys.readouterr().out


def test_scores_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("evaluate run --by series --level 80 --json".split()) == 0
    read = json.loads(capsys.readouterr().out)
    assert {row["series"] for row in read["scores"]} == {"long", "short", "young"}


def test_refitted_run_explains_its_scores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(tmp_path / "run")
    note = (
        "note: the model was refit on all 390 rows of 4 series; scores, on 81 rows at their ends, are from the "
        "model in scored/, trained on 258 rows"
    )
    assert main([*RUN.format("ridge", run).split(), "--refit"]) == 0
    assert note in capsys.readouterr().err
    for line in ("evaluate {} --by series", "report {}", "audit {}"):
        assert main(line.format(run).split()) == 0
        assert note in capsys.readouterr().err
    assert main(f"calibrate {run} --horizon 9".split()) == 0
    assert main(f"predict {run} panel.csv --horizon 9 --level 80 -o {tmp_path / 'f.csv'}".split()) == 0
    assert main(f"evaluate {run} --horizon 9 --level 80".split()) == 0
    capsys.readouterr()
    assert main(f"backtest {run} panel.csv --n-windows 1".split()) == 0
    assert (
        "are from the model that was scored, because the one refitted on all rows has seen" in capsys.readouterr().err
    )
    assert main(f"backtest {run}/scored panel.csv --n-windows 1 --by series".split()) == 0
    assert "flatter" not in capsys.readouterr().err


def test_series_option(tmp_path: Path) -> None:
    assert main(f"predict run panel.csv --series tiny -o {tmp_path / 'f.csv'}".split()) == 0
    assert set(pd.read_csv(tmp_path / "f.csv")["unique_id"]) == {"tiny"}


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("evaluate run --by step,series", "grouped by series together with step or channel"),
        ("predict run panel.csv --series none", "The history has no series 'none'"),
        ("predict single one.csv --series long", "Option --series requires a panel"),
        ("explain run panel.csv --plot none.png", "shows one series of a panel; select it with --series"),
        ("export run", "This run was trained on a panel; select one series, such as --series 'long'"),
        ("export run --series lonk", "Series 'lonk' was not in the training data; did you mean 'long'?"),
        ("backtest single one.csv --by series", "Option --by of a backtest supports only 'series'"),
        ("report run --dataset one.csv", "not what this model was trained on"),
    ],
)
def test_invalid_panel_requests_are_refused(line: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(Path().rglob("*"))
    assert main(line.split()) == 2
    said = capsys.readouterr()
    assert says in said.err and said.err.count("\n") == 1 and not said.out
    assert sorted(Path().rglob("*")) == before
