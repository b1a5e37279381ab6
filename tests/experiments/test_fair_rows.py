"""Rows of a table: what stands in one was scored alike and chosen by validation, or says what is missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from small_grid import record
from small_tables import small_table

from femts.cli import main
from femts.errors import UsageError
from femts.experiments.grid import Cell, Grid, make_grid
from femts.experiments.pairs import check_windows, parse_pairs
from femts.experiments.roll_out import check_roll_out
from femts.experiments.standing import check_published
from femts.experiments.standing_text import as_text as beside_published
from femts.experiments.store import Store
from femts.experiments.table import make_entries
from femts.experiments.table_text import as_text


def cells(*models: str, seq_lens: tuple[int, ...] = (512,), **axes: Any) -> list[Cell]:
    return make_grid(Grid(("ETTh1",), models, **{"pred_lens": (96,), "seeds": (1,), **axes}, seq_lens=seq_lens))


def scores(mse: float, windows: int = 9) -> dict[str, Any]:
    return {"mse": mse, "mae": 0.5, "windows": windows}


def naive(mse: float, season: int) -> dict[str, Any]:
    return {"season": season, "mse": mse, "mae": 0.5, "skill": 0.1, "mase": 0.8}


def rows(store: Store, of: list[Cell], roll_out: tuple[int, ...] = ()) -> dict[str, str]:
    lines = as_text(make_entries(of, store, roll_out)).splitlines()
    return {line.split()[0]: " ".join(line.split()[1:]) for line in lines if line}


def test_of_equal_validation_errors_the_first_asked_is_taken_whatever_the_test_says(tmp_path: Path) -> None:
    store, of = Store(tmp_path), cells("sm", seq_lens=(512, 1024))
    for cell, test in zip(of, (0.6, 0.4), strict=True):
        store.finish(cell, record(cell, test, val=scores(0.2)))
    assert rows(store, of)["96"] == "0.600"


def test_choices_that_are_not_made_yet_are_said(tmp_path: Path) -> None:
    store, of = Store(tmp_path), cells("sm", "gla", seq_lens=(512, 1024, 2048))
    for cell in of:
        if cell.seq_len == 512 or cell.model == "gla":
            store.finish(cell, record(cell, 0.4))
    assert rows(store, of)["96"] == "0.400 (1 of 3 choices)* 0.400*"
    assert [entry.missing for entry in make_entries(of, store)] == [2, 0]


def test_a_longer_model_that_is_not_trained_yet_is_said_where_shorter_ones_are_rolled_out(tmp_path: Path) -> None:
    store, of = Store(tmp_path), cells("sm", "dlinear", pred_lens=(96, 192))
    for cell in of:
        if cell.pred_len == 96:
            rolled = {} if cell.model == "dlinear" else {"192": {"val": scores(0.2), "test": scores(0.3)}}
            store.finish(cell, record(cell, 0.4, rolled=rolled))
    made = rows(store, of, (192,))
    assert made["96"] == "0.400* 0.400*" and made["192"] == "0.300 r (1 of 2 choices) -"


def test_which_model_validation_takes_at_a_horizon_that_several_reach_is_said(tmp_path: Path) -> None:
    store, (short, long) = Store(tmp_path), cells("sm", pred_lens=(96, 192))
    store.finish(short, record(short, 0.4, rolled={"192": {"val": scores(0.2), "test": scores(0.3)}}))
    rolled = {"192": {"val": scores(0.1), "test": scores(0.6)}}  # its own, on the windows that both are validated on
    store.finish(long, record(long, 0.5, rolled=rolled))
    of_96, of_192, _ = make_entries([short, long], store, (192,))
    assert of_96.chosen == {} and (of_192.mse, of_192.chosen) == (0.6, {1: "pred_len 192"})


def test_a_setting_that_is_younger_than_a_record_is_at_its_default_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, of = Store(tmp_path), cells("sm", seq_lens=(512,), choices={"model.patch_len": ("none", "32")})
    store.finish(of[0], record(of[0], 0.4))
    words = "table --datasets ETTh1 --models sm --pred-lens 96 --seq-len 512 --choose model.patch_len=none,32 --show"
    assert main([*words.split(), "--seeds", "1", "--results", str(tmp_path)]) == 0
    assert "seed 1: model.patch_len None" in capsys.readouterr().out


@pytest.mark.parametrize(("part", "setting", "old"), [("model", "dropout", 0.7), ("training", "lr", 0.5)])
def test_a_record_by_a_default_that_has_changed_since_is_none_of_the_cell(
    part: str, setting: str, old: float, tmp_path: Path
) -> None:
    store, (cell,) = Store(tmp_path), cells("sm")
    made = record(cell, 0.4)
    made["config"][part][setting] = old
    path = store.record_path(cell)
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(made))
    assert f"config.{part}.{setting} is {old}, not " in str(store.damage(cell))
    assert rows(store, [cell])["96"] == "-"


def test_a_cell_of_fewer_windows_says_so_and_is_never_the_best(tmp_path: Path) -> None:
    store, of = Store(tmp_path), cells("sm", "gla", "ridge")
    for cell, test in zip(of, (scores(0.1, 4), scores(0.3), scores(0.4)), strict=True):
        store.finish(cell, record(cell, 0.4, test=test))
    assert rows(store, of)["96"] == "0.100 (4 windows) 0.300* 0.400"


@pytest.mark.parametrize("models", [("naive", "sm"), ("sm", "naive")])
def test_beside_all_stands_a_naive_forecast_that_could_look_a_season_back(
    models: tuple[str, str], tmp_path: Path
) -> None:
    store, of = Store(tmp_path), cells(*models)
    for cell in of:
        short = cell.model == "naive"
        store.finish(cell, record(cell, 0.8 if short else 0.2, naive=naive(0.8, 1) if short else naive(0.4, 24)))
    made = {entry.model: entry for entry in make_entries(of, store)}
    assert made["naive"].skill == -1.0 and made["sm"].skill == 0.5
    assert rows(store, of)["96"].split()[-1] == "0.400"


def test_a_naive_forecast_of_other_windows_is_none_beside_it(tmp_path: Path) -> None:
    store, of = Store(tmp_path), cells("naive", "sm")
    for cell in of:
        short = cell.model == "naive"
        beside, test = (naive(0.8, 1), scores(0.8, 4)) if short else (naive(0.4, 24), scores(0.2))
        store.finish(cell, record(cell, 0.2, test=test, naive=beside))
    assert [entry.skill for entry in make_entries(of, store)] == [None, 0.5]


def test_the_look_back_beside_published_means_is_that_of_all_horizons_and_seeds(tmp_path: Path) -> None:
    store, of = Store(tmp_path), make_grid(Grid(("ETTh1",), ("sm",), (96, 192, 336, 720), (1, 2)))
    for cell in of:
        store.finish(cell, record(cell, 0.4, seq_len=2048 if (cell.pred_len, cell.seed) == (336, 2) else 1024))
    line = next(line for line in beside_published(make_entries(of, store)).splitlines() if line.startswith("sm"))
    assert "1024 to 2048" in line


@pytest.mark.parametrize(
    ("pred_lens", "roll_out", "says"),
    [
        ((48,), (100,), "No model of 48 steps is rolled out to 100; give '--roll-out' horizons of 96, 192, 336, 720"),
        ((192,), (96, 336), "No model of 192 steps is rolled out to 96"),
        ((48, 96), (96,), "Models of 48 and of 96 steps are validated on other windows at 96 steps"),
    ],
)
def test_horizons_that_no_record_has_or_has_on_other_windows_are_refused(
    pred_lens: tuple[int, ...], roll_out: tuple[int, ...], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        check_roll_out(cells("sm", pred_lens=pred_lens), roll_out)


def test_models_of_several_horizons_are_not_rolled_out_side_by_side_where_a_file_is_short(tmp_path: Path) -> None:
    small_table(2400).to_csv(tmp_path / "mine.csv", index=False)
    axes: dict[str, Any] = {"pred_lens": (96, 192), "seq_lens": (48,)}
    mine = str(tmp_path / "mine.csv")
    with pytest.raises(UsageError, match="parts of mine depend on the horizon"):
        check_roll_out(make_grid(Grid((mine,), ("ridge",), **axes)), (192,))
    check_roll_out(make_grid(Grid((mine,), ("ridge",), **axes, reading={"split": [0.6, 0.2, 0.2]})), (192,))
    check_roll_out(make_grid(Grid((mine,), ("ridge",), (96,), seq_lens=(48,))), (192,))


def test_a_model_that_scores_some_windows_is_not_laid_beside_published_means() -> None:
    with pytest.raises(UsageError, match="Model 'auto_theta' scores some windows alone"):
        check_published(cells("sm", "auto_theta", pred_lens=(96, 192, 336, 720)))


@pytest.mark.parametrize(
    ("pairs", "says"),
    [
        ("fem_sm:sm,sm:sm", "Pair 'sm:sm' is one model beside itself"),
        ("sm:ridge,ridge:auto_theta", "Pair 'ridge:auto_theta' is not scored on the same windows"),
    ],
)
def test_models_that_cannot_be_a_pair_are_refused_before_they_are_trained(pairs: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        check_windows(parse_pairs(pairs))
