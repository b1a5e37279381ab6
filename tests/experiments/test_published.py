"""Comparison with published scores."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd
import pytest
from small_grid import record

from femts.cli import main
from femts.data.protocols import HORIZONS
from femts.errors import UsageError
from femts.experiments.cell import Cell
from femts.experiments.grid import Grid, make_grid
from femts.experiments.results import Store
from femts.experiments.summary import (
    ALL,
    check_published,
    make_published,
    make_scores,
    make_table,
    publications,
    published_mse,
)
from femts.experiments.tables import to_csv, to_text

CELLS = make_grid(Grid(("ETTh1", "ETTm2"), ("ridge", "fem_sm", "sm"), HORIZONS, (1, 2)))
OF_ETTH2 = make_grid(Grid(("ETTh2",), ("ridge",), HORIZONS, (1, 2)))


def means(
    folder: Path, mses: Mapping[tuple[str, str], tuple[float, ...]], longer: int = 0, cells: Sequence[Cell] = CELLS
) -> pd.DataFrame:
    """Means of records with equal errors at all horizons; `longer` is the horizon with a longer look-back."""
    store = Store(folder)
    for cell in cells:
        own = mses.get((cell.dataset, cell.model), ())
        if cell.seed <= len(own):
            store.finish(cell, record(cell, own[cell.seed - 1], seq_len=2048 if cell.pred_len == longer else 1024))
    return make_published(make_table(make_scores(cells, store)))


def rows(made: pd.DataFrame) -> tuple[dict[str, str], dict[str, str]]:
    """Lines of both tables by their first cell."""
    beside, stand = to_text(made, form="md").split("\n\n")
    first, second = ({line.split(" | ")[0].strip("| "): line for line in x.splitlines()} for x in (beside, stand))
    return first, second


def test_literature_table_is_complete() -> None:
    known = publications()
    assert set(known["scored"]) == {ALL, "drop_last", "as quoted", "unknown"}
    assert (known[["source", "look_back"]] != "").all(None) and known["mse"].between(0.1, 0.5).all()
    assert not known.duplicated(["model", "dataset"]).any()
    assert known[known["scored"] == ALL].groupby("dataset")["mse"].min().to_dict() == {
        **{"ETTh1": 0.388, "ETTh2": 0.324, "ETTm1": 0.321, "ETTm2": 0.237, "Weather": 0.208, "Solar": 0.175}
    }


def test_published_mse_lookup() -> None:
    assert published_mse("ETTh1", "fem_aft", None) == 0.414 and published_mse("ETTh1", "patchtst", 720) == 0.447
    assert published_mse("Weather", "gla", None) is None, "a lost cell is not guessed"
    assert published_mse("ETTh1", "naive", None) is None and published_mse("synthetic", "fem_sm", None) is None


def test_comparison_uses_published_precision(tmp_path: Path) -> None:
    mses = {("ETTh1", "ridge"): (0.3879, 0.3879), ("ETTh1", "fem_sm"): (0.3, 0.4), ("ETTm2", "ridge"): (0.2374, 0.2374)}
    _, stand = rows(means(tmp_path, mses))
    assert stand["ETTh1"] == "| ETTh1 | 0.388 | LightGTS-mini (zero-shot) | fem_sm -9.8% | ridge -0.0% | none |"
    assert stand["ETTm2"] == "| ETTm2 | 0.237 | SearchCast (ridge) | none | ridge +0.2% | none |"


def test_other_scoring_conventions_are_listed_separately(tmp_path: Path) -> None:
    _, stand = rows(means(tmp_path, {("ETTh2", "ridge"): (0.323, 0.323)}, cells=OF_ETTH2))
    assert stand["ETTh2"].endswith("| ridge -0.3% | none | 0.299 drop_last, 0.316 as quoted, 0.284 unknown |")


def test_lowest_score_is_marked_and_missing_cells_are_listed(tmp_path: Path) -> None:
    made = means(tmp_path, {("ETTh1", "ridge"): (0.39, 0.38), ("ETTh1", "fem_sm"): (0.45,)}, longer=336)
    beside, _ = rows(made)
    assert beside["ridge"] == "| ridge | **0.385+-0.007** | - | all | 1024 to 2048 | records of femts |"
    assert beside["fem_sm"].startswith("| fem_sm | 0.450 (1 of 2 seeds) | - | all | ")
    assert beside["SAMoVAR"].startswith("| SAMoVAR | 0.401 | 0.240 | all | 1024 to 4096 | ")
    assert beside["xPatch (search)"].startswith("| xPatch (search) | 0.391 | 0.242 | drop_last | searched | ")
    assert beside["xLSTM-Mixer"].startswith("| xLSTM-Mixer | 0.397 (secondary) | 0.248 (secondary) | unknown | ")
    alone = to_text(made.assign(asked=made["seeds"]), form="md")
    assert "| fem_sm | 0.450 (one seed) | - |" in alone, "of one seed there is no deviation"
    text = to_text(made)
    assert text.count("*") == 2 and "0.385+-0.007*" in text and "0.237*" in text


def test_csv_holds_full_precision(tmp_path: Path) -> None:
    made = list(csv.DictReader(io.StringIO(to_csv(means(tmp_path, {("ETTh1", "ridge"): (0.39, 0.38)})))))
    assert ",".join(made[0]) == "dataset,model,mse,mse_sd,seeds,scored,look_back,source,secondary,seen"
    assert (made[0]["model"], float(made[0]["mse"]), made[0]["seeds"]) == ("ridge", pytest.approx(0.385), "1 2")
    theirs = [row for row in made if row["source"] != made[0]["source"]]
    assert len(theirs) == publications()["dataset"].isin(["ETTh1", "ETTm2"]).sum()
    assert {row["secondary"] for row in theirs} == {"True", "False"}


def test_published_rows_without_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(f"table --models ridge --horizons all --published --show --results {tmp_path}".split()) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[:2] == ["ridge", "-"] and lines[-1].split()[:2] == ["ETTh1", "0.388"]
    of_etth1 = publications()["dataset"] == "ETTh1"
    assert len(lines) == 2 + of_etth1.sum() + 3


def test_incomparable_publications_are_refused() -> None:
    check_published(CELLS)
    with pytest.raises(UsageError, match=r"over 96, 192, 336, 720 steps, not over 96, 192; give pred_lens='all'"):
        check_published([cell for cell in CELLS if cell.pred_len == 96], (192,))
    with pytest.raises(UsageError, match="known for 'synthetic'"):
        check_published(make_grid(Grid(("synthetic",), ("ridge",), HORIZONS, (1,))))
    with pytest.raises(UsageError, match="Model 'auto_theta' scores only a subset of the windows"):
        check_published(make_grid(Grid(("ETTh1",), ("auto_theta",), HORIZONS, (1,))))
