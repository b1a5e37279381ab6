"""The seasonal naive forecast beside the models of a table, from their records or from its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from small_grid import record

from femts.cli import main
from femts.config.rules import Misfit
from femts.experiments.grid import Cell, Grid, make_grid
from femts.experiments.record_rules import check_record
from femts.experiments.store import Store
from femts.experiments.table import make_entries
from femts.experiments.table_text import as_csv, as_text, worse_than_naive
from femts.experiments.verify import SCOPE


def naive(mse: float) -> dict[str, Any]:
    return {"season": 24, "mse": mse, "mae": 0.5, "skill": 0.1, "mase": 0.8}


def cells(*models: str) -> list[Cell]:
    return make_grid(Grid(("ETTh1",), models, (96, 192), (1,), "paper", (None,), {}))


def test_records_say_how_the_naive_forecast_does(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for cell in cells("fem_sm"):
        store.finish(cell, record(cell, 0.4 if cell.pred_len == 96 else 0.6, naive=naive(0.5)))
    entries = make_entries(cells("fem_sm"), store)
    assert [entry.naive_mse for entry in entries] == [0.5, 0.5, 0.5]
    assert [entry.skill for entry in entries] == pytest.approx([0.2, -0.2, 0.0])
    lines = [line.split() for line in as_text(entries).splitlines()]
    assert lines[0] == ["ETTh1", "fem_sm", "seasonal_naive"]
    assert lines[1:4] == [["96", "0.400", "0.500"], ["192", "0.600", "0.500"], ["mean", "0.500", "0.500"]]
    assert lines[4:6] == [["skill", "0.0%", "-"], ["mase", "0.80", "-"]]
    assert as_csv(entries).splitlines()[2].endswith(",0.5,-0.19999999999999996,0.8,9,0,")
    assert worse_than_naive(entries) == [
        "ETTh1 fem_sm is worse than the seasonal naive forecast by its squared error at 192 steps"
    ]


def test_older_records_are_beside_the_cells_of_that_model(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for cell in cells("fem_sm", "seasonal_naive"):
        store.finish(cell, record(cell, 0.4 if cell.model == "fem_sm" else 0.5))
    lines = [line.split() for line in as_text(make_entries(cells("fem_sm", "seasonal_naive"), store)).splitlines()]
    assert lines[0] == ["ETTh1", "fem_sm", "seasonal_naive"]
    assert lines[-1] == ["skill", "20.0%", "0.0%"]
    alone = as_text(make_entries(cells("seasonal_naive"), store))
    assert "skill" not in alone, "over itself it has none"


def test_a_record_may_say_nothing_of_the_naive_forecast_but_nothing_wrong() -> None:
    (cell, _) = cells("fem_sm")
    check_record(record(cell, 0.4))
    check_record(record(cell, 0.4, naive=naive(0.5)))
    for wrong in (naive(-0.5), {**naive(0.5), "season": 0}, {"season": 1}, {**naive(0.5), "more": 1}):
        with pytest.raises(Misfit):
            check_record(record(cell, 0.4, naive=wrong))


def test_a_record_that_says_nothing_of_it_is_verified_and_one_that_lies_is_not() -> None:
    now = {"test": {"mse": 0.4}, "naive": naive(0.5), "rolled": {"192": {"naive": naive(0.5)}}}
    assert SCOPE.deviations({"test": {"mse": 0.4}, "rolled": {"192": {}}}, now, elsewhere=False) == ()
    (lie,) = SCOPE.deviations({**now, "naive": naive(0.6)}, now, elsewhere=False)
    assert lie == "naive.mse 0.5, recorded 0.6"


def test_the_command_says_first_what_is_worse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = Store(tmp_path)
    for cell in cells("fem_sm"):
        store.finish(cell, record(cell, 0.6, naive=naive(0.5)))
    words = f"table --datasets ETTh1 --models fem_sm --pred-lens 96,192 --seeds 1 --show --results {tmp_path}"
    assert main(words.split()) == 0
    said = capsys.readouterr().err
    assert said.startswith("warning: ETTh1 fem_sm is worse than the seasonal naive forecast by its squared error at 96")
