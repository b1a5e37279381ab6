"""Our means beside published ones: exact counts on hand-made records, and protocols that are never called best."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from small_grid import record

from femts.cli import main
from femts.data.protocols import HORIZONS
from femts.errors import UsageError
from femts.experiments.grid import Grid, make_grid
from femts.experiments.literature import ALL, AS_QUOTED, DATASETS, DROP_LAST, PUBLICATIONS, UNKNOWN
from femts.experiments.standing import at_digits_of, check_published, make_standings
from femts.experiments.standing_text import COLUMNS, as_csv, as_text
from femts.experiments.store import Store
from femts.experiments.table import Entry, make_entries

CELLS = make_grid(Grid(("ETTh1", "ETTm2"), ("ridge", "fem_sm", "sm"), HORIZONS, (1, 2)))


def entries(folder: Path, mses: Mapping[tuple[str, str], tuple[float, ...]]) -> list[Entry]:
    """Entries of records with the same error at all horizons, by data set and model one for each seed."""
    store = Store(folder)
    for cell in CELLS:
        own = mses.get((cell.dataset, cell.model), ())
        if cell.seed <= len(own):
            store.finish(cell, record(cell, own[cell.seed - 1]))
    return make_entries(CELLS, store)


def test_every_row_says_what_was_scored_and_has_means_of_the_data_sets() -> None:
    for row in PUBLICATIONS:
        assert row.scored in (ALL, DROP_LAST, AS_QUOTED, UNKNOWN) and row.source and row.look_back
        assert row.means and set(row.means) <= set(DATASETS) and set(row.secondary) <= set(DATASETS)
        assert all(0.1 < mean < 0.5 for mean in row.means.values())
    assert len({row.model for row in PUBLICATIONS}) == len(PUBLICATIONS)


def test_the_lowest_of_all_windows_are_those_of_the_literature() -> None:
    lowest = {d: min(row.means[d] for row in PUBLICATIONS if row.scored == ALL and d in row.means) for d in DATASETS}
    assert lowest == {
        **{"ETTh1": 0.397, "ETTh2": 0.324, "ETTm1": 0.338},
        **{"ETTm2": 0.240, "Weather": 0.214, "Solar": 0.181},
    }


def test_ours_are_below_or_level_in_the_digits_that_are_published(tmp_path: Path) -> None:
    mses = {("ETTh1", "ridge"): (0.3969, 0.3969), ("ETTh1", "fem_sm"): (0.3, 0.4), ("ETTm2", "ridge"): (0.2404, 0.2404)}
    first, second = make_standings(entries(tmp_path, mses))
    assert (first.lowest, [row.model for row in first.leaders]) == (0.397, ["TimeBase (linear)"])
    assert [entry.model for entry in first.below] == ["fem_sm"] and [entry.model for entry in first.level] == ["ridge"]
    assert second.below == () and [entry.model for entry in second.level] == ["ridge"]
    assert at_digits_of(0.21449, 0.2145) == 0.2145 and at_digits_of(0.2396, 0.24) == 0.240


def test_windows_that_are_skipped_or_unknown_are_lower_elsewhere_and_never_the_lowest(tmp_path: Path) -> None:
    (first, _) = make_standings(entries(tmp_path, {("ETTh1", "ridge"): (0.396, 0.396)}))
    assert {row.scored for row in first.leaders} == {ALL}
    assert {row.model: row.scored for row in first.elsewhere} == {
        "xPatch (search)": DROP_LAST,
        "TTM 1M (zero-shot)": UNKNOWN,
        "Sundial-L (zero-shot)": AS_QUOTED,
    }


def test_the_tables_mark_the_lowest_of_all_windows_alone(tmp_path: Path) -> None:
    made = entries(tmp_path, {("ETTh1", "ridge"): (0.39, 0.38), ("ETTh1", "fem_sm"): (0.45,)})
    beside, stand = as_text(made, markdown=True).split("\n\n")
    rows = {line.split(" | ")[0].strip("| "): line for line in beside.splitlines()}
    assert rows["ridge"].startswith("| ridge | **0.385+-0.007** | - | all | ")
    assert rows["fem_sm"].startswith("| fem_sm | 0.450 (1 of 2 seeds) | - | all | ")
    assert rows["SAMoVAR"].startswith("| SAMoVAR | 0.401 | **0.240** | all | 1024 to 4096 | ")
    assert rows["xPatch (search)"].startswith("| xPatch (search) | 0.391 | 0.242 | drop_last | searched | ")
    assert rows["xLSTM-Mixer"].startswith("| xLSTM-Mixer | 0.397 (secondary) | 0.248 (secondary) | unknown | ")
    assert beside.count("**") == 4 and "sm" in rows
    assert stand.splitlines()[2] == "| ETTh1 | 0.397 | TimeBase (linear) | ridge -3.0% | none | none |"
    assert stand.splitlines()[3] == "| ETTm2 | 0.240 | SAMoVAR | none | none | none |"
    alone = as_text([replace(entry, asked=entry.seeds) for entry in made], markdown=True)
    assert "| fem_sm | 0.450 (one seed) | - |" in alone, "of one seed there is no deviation"
    text = as_text(made)
    assert text.count("*") == 2 and "0.385+-0.007*" in text and "0.240*" in text


def test_the_csv_has_ours_and_theirs_in_full(tmp_path: Path) -> None:
    made = entries(tmp_path, {("ETTh1", "ridge"): (0.39, 0.38)})
    rows = list(csv.DictReader(io.StringIO(as_csv(made))))
    assert tuple(rows[0]) == COLUMNS
    assert (rows[0]["model"], float(rows[0]["mse"]), rows[0]["seeds"]) == ("ridge", pytest.approx(0.385), "1 2")
    theirs = [row for row in rows if row["source"] != rows[0]["source"]]
    assert len(theirs) == sum(name in row.means for row in PUBLICATIONS for name in ("ETTh1", "ETTm2"))
    assert {row["secondary"] for row in theirs} == {"True", "False"}


def test_no_records_give_the_published_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = f"table --models ridge --pred-lens all --published --show --results {tmp_path}"
    assert main(command.split()) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[:2] == ["ridge", "-"]
    assert lines[-1].split()[:2] == ["ETTh1", "0.397"] and len(lines) == 2 + len(PUBLICATIONS) + 3


def test_other_horizons_and_data_have_nothing_to_lie_beside() -> None:
    check_published(CELLS)
    with pytest.raises(UsageError, match=r"over 96, 192, 336, 720 steps, not over 96, 192; give '--pred-lens all'"):
        check_published([cell for cell in CELLS if cell.pred_len == 96], (192,))
    with pytest.raises(UsageError, match="published on 'synthetic'"):
        check_published(make_grid(Grid(("synthetic",), ("ridge",), HORIZONS, (1,))))
