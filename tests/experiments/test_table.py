"""The table of hand-made records: means, deviations, the best, what is published, and what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_grid import record
from small_tables import small_table

from femts.experiments.grid import Grid, make_grid
from femts.experiments.published import published
from femts.experiments.store import Store
from femts.experiments.table import make_entries
from femts.experiments.table_text import as_csv, as_text

CELLS = make_grid(Grid(("ETTh1",), ("fem_sm", "patchtst", "naive"), (96, 192, 336, 720), (1, 2), "paper", (None,), {}))


def scores(mse: float) -> dict[str, float]:
    return {"mse": mse, "mae": 0.5, "windows": 9}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Everything of `fem_sm`, one seed of `patchtst` without its last horizon, and a crash of `naive`."""
    store = Store(tmp_path)
    for cell in CELLS:
        if cell.model == "fem_sm":
            store.finish(
                cell,
                record(cell, cell.pred_len / 1000 + cell.seed / 100, seq_len=2048 if cell.pred_len == 192 else 1024),
            )
        elif cell.model == "patchtst" and cell.seed == 1 and cell.pred_len < 720:
            store.finish(cell, record(cell, 0.1))
        elif cell.model == "naive" and (cell.seed, cell.pred_len) == (2, 96):
            store.fail(cell, "ValueError: no")
    return store


def test_entries_are_means_over_seeds_and_over_horizons(store: Store) -> None:
    entries = {(e.model, e.pred_len): e for e in make_entries(CELLS, store)}
    first, mean = entries["fem_sm", 96], entries["fem_sm", None]
    assert (first.seeds, first.seq_len) == ((1, 2), 1024)
    assert first.mse == pytest.approx(0.111) and first.mse_sd == pytest.approx(0.01 / 2**0.5)
    assert mean.mse == pytest.approx((96 + 192 + 336 + 720) / 4000 + 0.015) and mean.published_mse == 0.419
    assert entries["patchtst", 96].mse_sd is None and entries["patchtst", 96].published_mse == 0.370
    assert entries["patchtst", None].mse is None, "a mean needs every horizon"
    assert entries["naive", 96].failures == {2: "ValueError: no"}


def test_text_marks_the_best_and_shows_what_is_missing(store: Store) -> None:
    lines = as_text(make_entries(CELLS, store)).splitlines()
    assert lines[0].split() == ["ETTh1", "fem_sm", "patchtst", "naive"]
    assert lines[1].split() == ["96", "0.111+-0.007", "0.100", "(1", "of", "2", "seeds)*", "-"]
    assert lines[5].split() == ["mean", "0.351+-0.007", "-", "-"]
    assert lines[6].split() == ["published", "0.419", "0.413", "-"]
    assert lines[7].split() == ["gap", "-16.2%", "-", "-"]
    assert lines[-1] == "failed: ETTh1 naive 96 seed 2: ValueError: no"
    assert (
        "| 96 | 0.111+-0.007 | **0.100 (1 of 2 seeds)** | - |"
        in as_text(make_entries(CELLS, store), markdown=True).splitlines()
    )


def test_csv_has_the_columns_of_the_interface(store: Store) -> None:
    lines = as_csv(make_entries(CELLS, store)).splitlines()
    names = (
        "dataset,model,pred_len,seq_len,seeds,mse,mse_sd,mae,published_mse,naive_mse,skill,mase,windows,missing,chosen"
    )
    assert lines[0] == names
    assert lines[1].startswith("ETTh1,fem_sm,96,1024,1 2,0.11")
    assert lines[5].startswith("ETTh1,fem_sm,mean,,1 2,0.35") and lines[5].endswith(",0.5,0.419,,,,36,0,")
    assert lines[9] == "ETTh1,patchtst,720,,,,,,0.447,,,,0,0,"


def test_validation_chooses_settings_for_each_model_and_seed_and_says_so(store: Store) -> None:
    cells = make_grid(
        Grid(("ETTh1",), ("dlinear",), (96,), (1, 2), "paper", (512,), {}, choices={"training.lr": ("1e-3", "5e-3")})
    )
    for cell, val, test in zip(cells, (0.2, 0.1, 0.1, 0.2), (0.3, 0.4, 0.5, 0.6), strict=True):
        lr = float(cell.settings.get("training.lr", 1e-3))
        store.finish(cell, record(cell, test, training={"lr": lr}, val=scores(val)))
    entries = make_entries(cells, store)
    assert entries[0].mse == pytest.approx((0.4 + 0.5) / 2)
    assert as_text(entries).splitlines()[-1] == (
        "chosen: ETTh1 dlinear 96 seed 1: training.lr 0.005; seed 2: training.lr 0.001"
    )
    assert "chosen" not in as_text(entries, markdown=True)
    assert as_csv(entries).splitlines()[1].endswith(",seed 1: training.lr 0.005; seed 2: training.lr 0.001")


def test_nothing_is_published_on_data_of_ones_own(tmp_path: Path) -> None:
    mine = tmp_path / "ETTh1.csv"
    small_table(2000).to_csv(mine, index=False)

    def known(dataset: str) -> float | None:
        cells = make_grid(Grid((dataset,), ("patchtst",), (96,), (1,), "paper", (48,), {}))
        return make_entries(cells, Store(tmp_path))[0].published_mse

    assert known("ETTh1") == 0.370
    assert known(str(mine)) is None


def test_validation_chooses_the_look_back(store: Store) -> None:
    cells = make_grid(Grid(("ETTh1",), ("sm",), (96,), (1,), "paper", (512, 1024), {}))
    for cell, val, test in zip(cells, (0.2, 0.1), (0.3, 0.4), strict=True):
        store.finish(cell, record(cell, test, val=scores(val)))
    (entry,) = make_entries(cells, store)
    assert (entry.mse, entry.seq_len) == (0.4, 1024), "the test has no say"


def test_rolled_out_models_count_where_validation_prefers_them(store: Store) -> None:
    cell = CELLS[0]
    rolled = {
        "192": {
            "val": scores(0.001),
            "test": scores(0.9),
        },  # on validation better than the direct model's .202, on test worse
        "336": {"val": scores(0.9), "test": scores(0.001)},
    }
    store.finish(cell, record(cell, 0.1, rolled=rolled))
    entries = {(e.model, e.pred_len): e for e in make_entries(CELLS, store, roll_out=(192, 336))}
    assert entries["fem_sm", 192].rolled and entries["fem_sm", 192].mse == pytest.approx((0.9 + 0.212) / 2)
    assert not entries["fem_sm", 336].rolled and entries["fem_sm", 336].mse == pytest.approx(0.351)
    assert entries["fem_sm", None].rolled
    assert not any(e.rolled for e in make_entries(CELLS, store)), "only where it is asked for"
    alone = make_entries([cell], store, roll_out=(192,))
    assert [(e.pred_len, e.mse) for e in alone] == [(96, 0.1), (192, 0.9), (None, pytest.approx(0.5))]
    assert as_text(alone).splitlines()[2].split() == ["192", "0.900", "r"]


def test_a_direct_model_competes_by_the_windows_of_the_rolled_out_ones(tmp_path: Path) -> None:
    store = Store(tmp_path)
    short, direct = make_grid(Grid(("ETTh1",), ("sm",), (96, 192), (1,), "paper", (None,), {}))
    store.finish(short, record(short, 0.1, rolled={"192": {"val": scores(0.3), "test": scores(0.5)}}))
    own = {"192": {"val": scores(0.4), "test": scores(0.6)}}
    store.finish(direct, record(direct, 0.6, val=scores(0.2), rolled=own))
    (entry,) = (e for e in make_entries([short, direct], store, roll_out=(192,)) if e.pred_len == 192)
    assert entry.rolled and entry.mse == 0.5, "over all windows the direct model would be lower"


def test_published_numbers_are_those_of_the_literature() -> None:
    assert published("ETTh1", "fem_aft", None) == 0.414
    assert published("Weather", "gla", None) is None, "a lost cell is not guessed"
    assert published("ETTh1", "patchtst", 720) == 0.447
    assert published("ETTh1", "naive", None) is None and published("synthetic", "fem_sm", None) is None
