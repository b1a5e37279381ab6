"""Aggregation of records into a table."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from small_grid import record
from small_tables import small_table

from femts.cli import main
from femts.errors import UsageError
from femts.experiments.cell import Cell
from femts.experiments.grid import Grid, check_roll_out, make_grid
from femts.experiments.results import Store
from femts.experiments.summary import make_scores, make_table
from femts.experiments.tables import to_csv, to_text, worse_than_naive


def cells(*models: str, seq_lens: tuple[int, ...] = (512,), **axes: Any) -> list[Cell]:
    return make_grid(Grid(("ETTh1",), models, **{"pred_lens": (96,), "seeds": (1,), **axes}, seq_lens=seq_lens))


def scores(mse: float, windows: int = 9) -> dict[str, Any]:
    return {"mse": mse, "mae": 0.5, "windows": windows}


def naive(mse: float, season: int = 24) -> dict[str, Any]:
    return {"season": season, "mse": mse, "mae": 0.5, "skill": 0.1, "mase": 0.8}


def table(of: list[Cell], store: Store, roll_out: tuple[int, ...] = ()) -> pd.DataFrame:
    return make_table(make_scores(of, store, roll_out))


def by_key(frame: pd.DataFrame) -> dict[tuple[str, Any], Any]:
    """Rows by model and horizon."""
    return {(row.model, "mean" if pd.isna(row.pred_len) else row.pred_len): row for row in frame.itertuples()}


def lines(frame: pd.DataFrame) -> dict[str, str]:
    """Text rows by their first word."""
    words = [line.split() for line in to_text(frame).splitlines() if line]
    return {first: " ".join(rest) for first, *rest in words}


@pytest.fixture
def partial_results(tmp_path: Path) -> tuple[list[Cell], Store]:
    """All of `fem_sm`, one seed of `patchtst` without its last horizon, and a failure of `naive`."""
    store, of = (
        Store(tmp_path),
        make_grid(Grid(("ETTh1",), ("fem_sm", "patchtst", "naive"), (96, 192, 336, 720), (1, 2))),
    )
    for cell in of:
        if cell.model == "fem_sm":
            seq_len = 2048 if cell.pred_len == 192 else 1024
            store.finish(cell, record(cell, cell.pred_len / 1000 + cell.seed / 100, seq_len=seq_len))
        elif cell.model == "patchtst" and cell.seed == 1 and cell.pred_len < 720:
            store.finish(cell, record(cell, 0.1))
        elif cell.model == "naive" and (cell.seed, cell.pred_len) == (2, 96):
            store.fail(cell, "ValueError: no")
    return of, store


def test_rows_average_seeds_and_horizons(partial_results: Any) -> None:
    rows = by_key(table(*partial_results))
    first, mean = rows["fem_sm", 96], rows["fem_sm", "mean"]
    assert (first.seeds, first.seq_len) == ((1, 2), 1024)
    assert first.mse == pytest.approx(0.111) and first.mse_sd == pytest.approx(0.01 / 2**0.5)
    assert mean.mse == pytest.approx((96 + 192 + 336 + 720) / 4000 + 0.015) and mean.published_mse == 0.419
    assert pd.isna(rows["patchtst", 96].mse_sd) and rows["patchtst", 96].published_mse == 0.370
    assert pd.isna(rows["patchtst", "mean"].mse), "a mean needs every horizon"
    assert rows["naive", 96].failures == {2: "ValueError: no"}


def test_text_table_marks_lowest_and_missing(partial_results: Any) -> None:
    made = lines(table(*partial_results))
    assert made["ETTh1"] == "fem_sm patchtst naive"
    assert made["96"] == "0.111+-0.007 0.100 (1 of 2 seeds)* -"
    assert made["mean"] == "0.351+-0.007 - -" and made["published"] == "0.419 0.413 -" and made["gap"] == "-16.2% - -"
    assert made["failed:"] == "ETTh1 naive 96 seed 2: ValueError: no"
    assert "| 96 | 0.111+-0.007 | **0.100 (1 of 2 seeds)** | - |" in to_text(table(*partial_results), form="md")
    latex = to_text(table(*partial_results), form="latex")
    assert "\\begin{tabular}{lrrr}\n\\toprule\nETTh1 & fem\\_sm & patchtst & naive \\\\\n\\midrule\n" in latex
    assert "\n96 & 0.111$\\pm$0.007 & \\textbf{0.100 (1 of 2 seeds)} & - \\\\\n" in latex
    assert "\ngap & -16.2\\% & - & - \\\\\n" in latex and latex.endswith(
        "\n% failed: ETTh1 naive 96 seed 2: ValueError: no"
    )


def test_csv_columns(partial_results: Any) -> None:
    made = to_csv(table(*partial_results)).splitlines()
    assert made[0] == (
        "dataset,model,pred_len,seq_len,seeds,mse,mse_sd,mae,published_mse,naive_mse,skill,mase,wape,bias,windows,"
        "missing,chosen,seen"
    )
    assert made[1].startswith("ETTh1,fem_sm,96,1024,1 2,0.11")
    assert made[5].startswith("ETTh1,fem_sm,mean,,1 2,0.35") and made[5].endswith(",0.5,0.419,,,,,,36,0,,False")
    assert made[9] == "ETTh1,patchtst,720,,,,,,0.447,,,,,,0,0,,False"
    assert "\n'=cmd,fem_sm" in to_csv(table(*partial_results).assign(dataset="=cmd")), "no formula of a spreadsheet"


@pytest.mark.parametrize(("first", "chosen"), [(0.2, 1024), (0.1, 512)], ids=["the lowest", "the first of equals"])
def test_look_back_is_selected_on_validation(first: float, chosen: int, tmp_path: Path) -> None:
    store, of = Store(tmp_path), cells("sm", seq_lens=(512, 1024))
    for cell, val, test in zip(of, (first, 0.1), (0.3, 0.4), strict=True):
        store.finish(cell, record(cell, test, val=scores(val)))
    (row,) = table(of, store).itertuples()
    assert row.seq_len == chosen and row.chosen == {1: f"seq_len {chosen}"}


def test_settings_are_selected_per_seed_and_reported(tmp_path: Path) -> None:
    store, of = Store(tmp_path), cells("dlinear", seeds=(1, 2), param_grid={"training.lr": ("1e-3", "5e-3")})
    for cell, val, test in zip(of, (0.2, 0.1, 0.1, 0.2), (0.3, 0.4, 0.5, 0.6), strict=True):
        lr = float(cell.settings.get("training.lr", 1e-3))
        store.finish(cell, record(cell, test, training={"lr": lr}, val=scores(val)))
    made = table(of, store)
    assert made["mse"][0] == pytest.approx((0.4 + 0.5) / 2)
    words = "seed 1: training.lr 0.005; seed 2: training.lr 0.001"
    assert lines(made)["chosen:"] == f"ETTh1 dlinear 96 {words}" and "chosen" not in to_text(made, form="md")
    assert next(csv.DictReader(io.StringIO(to_csv(made))))["chosen"] == words


def test_untrained_choices_are_listed(tmp_path: Path) -> None:
    store, of = Store(tmp_path), cells("sm", "gla", seq_lens=(512, 1024, 2048))
    for cell in of:
        if cell.seq_len == 512 or cell.model == "gla":
            store.finish(cell, record(cell, 0.4))
    assert lines(table(of, store))["96"] == "0.400 (1 of 3 choices)* 0.400*"
    assert list(table(of, store)["missing"]) == [2, 0]


def test_records_older_than_a_setting_use_its_default(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store, of = Store(tmp_path), cells("sm", param_grid={"model.patch_len": ("none", "32")})
    store.finish(of[0], record(of[0], 0.4))
    words = "table --datasets ETTh1 --models sm --horizons 96 --seq-len 512 --param-grid model.patch_len=none,32 --show"
    assert main([*words.split(), "--seeds", "1", "--results", str(tmp_path)]) == 0
    assert "seed 1: model.patch_len None" in capsys.readouterr().out


@pytest.mark.parametrize(("part", "setting", "old"), [("model", "dropout", 0.7), ("training", "lr", 0.5)])
def test_records_of_changed_defaults_are_not_used(part: str, setting: str, old: float, tmp_path: Path) -> None:
    store, (cell,) = Store(tmp_path), cells("sm")
    made = record(cell, 0.4)
    made["config"][part][setting] = old
    store.record_path(cell).parent.mkdir(parents=True)
    store.record_path(cell).write_text(json.dumps(made))
    assert f"config.{part}.{setting} is {old}, not " in str(store.damage(cell))
    assert lines(table([cell], store))["96"] == "-"


def test_recursive_scores_are_used_if_validation_prefers_them(partial_results: Any) -> None:
    of, store = partial_results
    rolled = {  # at 192 better on validation than the direct model's .202 and worse on test, at 336 the other way round
        "192": {"val": scores(0.001), "test": scores(0.9)},
        "336": {"val": scores(0.9), "test": scores(0.001)},
    }
    store.finish(of[0], record(of[0], 0.1, rolled=rolled))
    rows = by_key(table(of, store, (192, 336)))
    assert rows["fem_sm", 192].rolled and rows["fem_sm", 192].mse == pytest.approx((0.9 + 0.212) / 2)
    assert not rows["fem_sm", 336].rolled and rows["fem_sm", 336].mse == pytest.approx(0.351)
    assert not table(of, store)["rolled"].any(), "only where it is asked for"
    alone = table(of[:1], store, (192,))
    assert list(alone["mse"]) == [0.1, 0.9, pytest.approx(0.5)] and lines(alone)["192"] == "0.900 r"


def test_direct_and_recursive_models_share_windows(tmp_path: Path) -> None:
    store, (short, direct) = Store(tmp_path), cells("sm", pred_lens=(96, 192))
    store.finish(short, record(short, 0.1, rolled={"192": {"val": scores(0.3), "test": scores(0.5)}}))
    assert lines(table([short, direct], store, (192,)))["192"] == "0.500 r (1 of 2 choices)"
    own = {"192": {"val": scores(0.4), "test": scores(0.6)}}
    store.finish(direct, record(direct, 0.6, val=scores(0.2), rolled=own))
    row = by_key(table([short, direct], store, (192,)))["sm", 192]
    assert (row.mse, row.chosen) == (0.5, {1: "pred_len 96"}), "over all windows the direct model would be lower"


@pytest.mark.parametrize(
    ("pred_lens", "roll_out", "says"),
    [
        (
            (48,),
            (100,),
            "No model of 48 steps is scored recursively at 100; give roll_out horizons of 96, 192, 336, 720",
        ),
        ((192,), (96, 336), "No model of 192 steps is scored recursively at 96"),
        ((48, 96), (96,), "Models of 48 and of 96 steps are validated on different windows at 96 steps"),
    ],
)
def test_incomparable_roll_out_horizons_are_refused(
    pred_lens: tuple[int, ...], roll_out: tuple[int, ...], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        check_roll_out(cells("sm", pred_lens=pred_lens), roll_out)


def test_roll_out_of_short_files_needs_a_fixed_split(tmp_path: Path) -> None:
    mine = str(tmp_path / "mine.csv")
    small_table(2400).to_csv(mine, index=False)
    axes: dict[str, Any] = {"pred_lens": (96, 192), "seq_lens": (48,)}
    with pytest.raises(UsageError, match="split of mine depends on the horizon"):
        check_roll_out(make_grid(Grid((mine,), ("ridge",), **axes)), (192,))
    check_roll_out(make_grid(Grid((mine,), ("ridge",), **axes, reading={"split": [0.6, 0.2, 0.2]})), (192,))
    check_roll_out(make_grid(Grid((mine,), ("ridge",), (96,), seq_lens=(48,))), (192,))


def test_score_on_fewer_windows_is_marked(tmp_path: Path) -> None:
    store, of = Store(tmp_path), cells("sm", "gla", "ridge")
    for cell, test in zip(of, (scores(0.1, 4), scores(0.3), scores(0.4)), strict=True):
        store.finish(cell, record(cell, 0.4, test=test))
    assert lines(table(of, store))["96"] == "0.100 (4 windows) 0.300* 0.400"


def test_naive_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store, of = Store(tmp_path), cells("fem_sm", pred_lens=(96, 192))
    for cell in of:
        store.finish(cell, record(cell, 0.4 if cell.pred_len == 96 else 0.6, naive=naive(0.5)))
    made = table(of, store)
    assert list(made["naive_mse"]) == [0.5, 0.5, 0.5] and list(made["skill"]) == pytest.approx([0.2, -0.2, 0.0])
    assert lines(made) == {
        **{"ETTh1": "fem_sm seasonal_naive", "96": "0.400 0.500", "192": "0.600 0.500", "mean": "0.500 0.500"},
        **{"skill": "0.0% -", "mase": "0.80 -"},
    }
    warning = "ETTh1 fem_sm is worse than the seasonal naive forecast by its squared error at 192 steps"
    assert worse_than_naive(made) == [warning]
    words = f"table --models fem_sm --horizons 96,192 --seeds 1 --seq-len 512 --show --results {tmp_path}"
    assert main(words.split()) == 0
    assert capsys.readouterr().err.startswith(f"warning: {warning[:80]}")


def test_wape_and_bias_rows(tmp_path: Path) -> None:
    store, of = Store(tmp_path), cells("fem_sm", "sm", pred_lens=(96, 192))
    for cell in of:
        more = {"wape": cell.pred_len / 960, "bias": -0.04} if cell.model == "fem_sm" else {}
        store.finish(cell, record(cell, 0.4, test={**scores(0.4), **more}))
    made = lines(table(of, store))
    assert (made["wape"], made["bias"]) == ("15.0% -", "-4.0% -"), "means over the horizons"
    assert "wape" not in lines(table(of[1::2], store))


def test_older_records_are_compared_with_naive_cells(tmp_path: Path) -> None:
    store, of = Store(tmp_path), cells("fem_sm", "seasonal_naive", pred_lens=(96, 192))
    for cell in of:
        store.finish(cell, record(cell, 0.4 if cell.model == "fem_sm" else 0.5))
    assert lines(table(of, store))["skill"] == "20.0% 0.0%"
    assert "skill" not in lines(table(of[1::2], store)), "over itself it has none"


@pytest.mark.parametrize("models", [("naive", "sm"), ("sm", "naive")])
def test_naive_with_the_longest_season_is_used(models: tuple[str, str], tmp_path: Path) -> None:
    store, of = Store(tmp_path), cells(*models)
    for cell in of:
        short = cell.model == "naive"
        store.finish(cell, record(cell, 0.8 if short else 0.2, naive=naive(0.8, 1) if short else naive(0.4)))
    rows = by_key(table(of, store))
    assert rows["naive", 96].skill == -1.0 and rows["sm", 96].skill == 0.5
    assert lines(table(of, store))["96"].split()[-1] == "0.400"


def test_naive_on_other_windows_is_not_compared(tmp_path: Path) -> None:
    store, (short, whole) = Store(tmp_path), cells("naive", "sm")
    store.finish(short, record(short, 0.2, test=scores(0.8, 4), naive=naive(0.8, 1)))
    store.finish(whole, record(whole, 0.2, naive=naive(0.4)))
    skill = table([short, whole], store)["skill"]
    assert pd.isna(skill[0]) and skill[1] == 0.5


def test_published_scores_apply_to_catalogue_data_only(tmp_path: Path) -> None:
    mine = tmp_path / "ETTh1.csv"
    small_table(2000).to_csv(mine, index=False)
    of = [make_grid(Grid((name,), ("patchtst",), (96,), (1,), "paper", (48,))) for name in ("ETTh1", str(mine))]
    theirs, own = (table(each, Store(tmp_path))["published_mse"][0] for each in of)
    assert theirs == 0.370 and pd.isna(own)
