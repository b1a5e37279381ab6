"""Benchmark tables from Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from bad_files import state_of
from pages import cells_in_this_process
from small_grid import record
from small_tables import small_table

import femts
from femts.cli.reading_options import ReadingOptions
from femts.errors import UsageError
from femts.experiments import run
from femts.experiments.cell import Cell
from femts.experiments.grid import Grid, make_grid
from femts.experiments.results import Record, Store

FORMS: list[tuple[Any, dict[str, Any]]] = [  # of Python and of the command line
    ({"target": "load"}, {"target": "load"}),
    ({"na": -9999}, {"na": "-9999"}),
    ({"na": [np.float32(-1)]}, {"na": "-1"}),
    ({"split": "0.6,0.2,0.2"}, {"split": ".6,.2,.2"}),
    ({"min": "-5", "max": 1000}, {"min": "-5", "max": "1000"}),
    ({"test_rows": np.int64(100)}, {"test_rows": "100"}),
    ({"test_from": pd.Timestamp("2024-01-09")}, {"test_from": "2024-01-09 00:00:00"}),
    ({"calendar": np.bool_(True)}, {"calendar": True}),
    ({"columns": None, "panel": None, "min": None}, {}),
]


@pytest.fixture
def requested_cells(monkeypatch: pytest.MonkeyPatch) -> list[Cell]:
    """Cells that a table would run."""
    cells: list[Cell] = []
    monkeypatch.setattr(run, "run_cells", lambda every, *_: cells.extend(every))
    return cells


def roundtripped(cell: Cell) -> Cell:
    """The cell after a JSON round trip, as in `femts verify`."""
    return Cell(**json.loads(json.dumps(cell.to_dict())))


def test_reading_arguments_match_the_command_line(requested_cells: list[Cell], tmp_path: Path) -> None:
    mine = str(tmp_path / "mine.csv")
    small_table().to_csv(mine, index=False)
    for reading, options in FORMS:
        requested_cells.clear()
        femts.table(mine, "naive", 12, seq_lens=24, results=tmp_path / "results", **reading)
        (cell,) = make_grid(
            Grid((mine,), ("naive",), (12,), seq_lens=(24,), reading=ReadingOptions(**options).reading())
        )
        assert requested_cells == [cell] and roundtripped(requested_cells[0]) == cell
        data = {**record(cell, 0.5)["data"], "sha256": (cell.own or {})["sha256"]}
        Record.model_validate(record(requested_cells[0], 0.5, seq_len=24, data=data))


def test_result_paths_are_stable(requested_cells: list[Cell], tmp_path: Path) -> None:
    rows = [f"{day},{hour}" for hour, day in enumerate(pd.date_range("2024-01-01", periods=200, freq="h"))]
    (tmp_path / "mine.csv").write_text("when,load\n" + "\n".join(rows) + "\n")
    reading: Any = {"columns": {"time": "when"}, "na": [-9999.0], "min": 0.0, "split": [0.6, 0.2, 0.2], "panel": False}
    femts.table(tmp_path / "mine.csv", "naive", 12, seq_lens=24, results=tmp_path / "results", **reading)
    assert requested_cells[0].path == "seasons-seq_len=24/mine-4d3323a8/naive-12-seed42"


def test_numpy_settings_are_converted(requested_cells: list[Cell], tmp_path: Path) -> None:
    settings = {"training.betas": (0.9, 0.99), "training.max_steps": np.int64(5)}
    choices = {"training.lr": [np.float32(0.5), 0.25]}
    femts.table("synthetic", "dlinear", 96, settings=settings, param_grid=choices, results=tmp_path)
    plain = {"training.betas": [0.9, 0.99], "training.max_steps": 5}
    assert [cell.settings for cell in requested_cells] == [{**plain, "training.lr": lr} for lr in (0.5, 0.25)]
    assert [roundtripped(cell).path for cell in requested_cells] == [cell.path for cell in requested_cells]


def test_trained_cells_are_in_the_table(tmp_path: Path) -> None:
    settings = {"training.betas": (0.9, 0.99), "training.max_steps": np.int64(5)}
    requested_cells: dict[str, Any] = {"settings": settings, "seq_lens": 24, "results": tmp_path, "device": "cpu"}
    with cells_in_this_process():
        made = femts.table("synthetic", "dlinear", 12, target="s0", **requested_cells)
    assert made["mse"].notna().all() and made["seeds"].tolist() == [(42,)]
    pd.testing.assert_frame_equal(
        made, femts.table("synthetic", "dlinear", 12, target="s0", train=False, **requested_cells)
    )


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("call", [femts.table, lambda *_, **more: femts.pairs("naive:ridge", "synthetic", 12, **more)])
def test_damaged_record_is_refused(call: Any, train: bool, tmp_path: Path) -> None:
    (cell,) = make_grid(Grid(("synthetic",), ("naive",), (12,), seq_lens=(24,)))
    path = Store(tmp_path).record_path(cell)
    path.parent.mkdir(parents=True)
    path.write_text("{")
    with pytest.raises(UsageError, match=r"naive-12-seed42\.json is damaged|is not JSON"):
        call("synthetic", "naive", 12, seq_lens=24, results=tmp_path, train=train)


def test_empty_or_invalid_arguments_are_refused(tmp_path: Path) -> None:
    cases: list[tuple[Any, ...]] = [
        ({"seeds": []}, "Argument 'seeds' is empty; pass at least one value"),
        ({"pred_lens": []}, "Argument 'pred_lens' is empty"),
        ({"seq_lens": ()}, "Argument 'seq_lens' is empty"),
        ({"param_grid": {"training.lr": []}}, r"Argument 'param_grid\['training.lr'\]' is empty"),
        ({"protocol": 5, "seq_lens": 96}, "Argument 'protocol' is '5'; pass a name as a string"),
        ({"protocol": "../up", "seq_lens": 96}, "Unknown protocol '../up'"),
        ({"psat_covariates": "OT"}, "of a table; did you mean 'past_covariates'"),
    ]
    for given, says in cases:
        with pytest.raises(UsageError, match=says):
            femts.table("synthetic", "naive", results=tmp_path / "deep" / "results", **given)
    for names, says in (
        ([pd.DataFrame()], "Argument 'datasets' contains a DataFrame; pass a name, or a list of names"),
        (["synthetic", 5], "Argument 'datasets' contains '5'"),
        (5, "Argument 'datasets' is '5'"),
        ([], "Argument 'datasets' is empty"),
    ):
        with pytest.raises(UsageError, match=says):
            femts.table(names, "naive", results=tmp_path / "deep" / "results")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="Argument 'pairs' is empty; give two models"):
        femts.pairs([], results=tmp_path / "results")
    assert not state_of(tmp_path)


def test_unfair_comparisons_are_refused(requested_cells: list[Cell]) -> None:
    with pytest.raises(UsageError, match="No model of 96 steps is scored recursively at 100"):
        femts.table("synthetic", "ridge", 96, seq_lens=48, roll_out=[100])
    with pytest.raises(UsageError, match="Pair 'ridge:auto_theta' is not scored on the same windows"):
        femts.pairs([("ridge", "auto_theta")], "synthetic", 24, seq_lens=48)
    assert not requested_cells
