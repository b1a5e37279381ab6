"""Paired comparison of models."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pages import cells_in_this_process
from small_grid import COMMAND, record, small_grid

import femts
from femts.cli import main
from femts.errors import UsageError
from femts.experiments import summary
from femts.experiments.cell import Cell
from femts.experiments.grid import Grid, make_grid
from femts.experiments.results import Store
from femts.experiments.runner import Engine, run_cells
from femts.experiments.summary import FEW_SERIES, FEW_WINDOWS, SEEDS_ALONE, make_scores, parse_pairs
from femts.experiments.tables import to_csv, to_text

SPLIT = {"train": [0, 70], "val": [70, 80], "test": [80, 1080]}
PAIR = ("fem_sm", "sm")


def cells(seeds: tuple[int, ...] = (1, 2)) -> list[Cell]:
    return make_grid(Grid(("ETTh1",), PAIR, (96,), seeds, "paper", (None,), {}))


def errors(middle: float, spread: float = 0.01) -> dict[str, list[float]]:
    noise = np.random.default_rng(0).normal(0, spread, 200)
    return {"96": [float(f"{value:.5g}") for value in middle + noise - noise.mean()]}


def make_pairs(
    pairs: list[tuple[str, str]], of: list[Cell], store: Store, roll_out: tuple[int, ...] = ()
) -> pd.DataFrame:
    return summary.make_pairs(pairs, make_scores(of, store, roll_out))


def single_pair(pairs: pd.DataFrame) -> Any:
    (row,) = pairs.itertuples()
    return row


def fill(store: Store, changes: Any = None) -> None:
    """Records of both models, the first lower by 0.1; `changes` replaces fields of a cell's record."""
    for cell in cells():
        mse = (0.3 if cell.model == "fem_sm" else 0.4) + cell.seed / 100
        scores = {"mse": mse, "mae": 0.5, "windows": 4000}
        more = {"test": scores, "window_errors": errors(mse, 0.01 * cell.seed), **(changes or (lambda _: {}))(cell)}
        store.finish(cell, record(cell, mse, seq_len=1024, **more))


def test_differences_of_trained_cells_are_exact(tmp_path: Path) -> None:
    store, grid = Store(tmp_path), small_grid(("naive", "dlinear"))
    with cells_in_this_process():
        run_cells(grid, store, Engine(jobs=1, device="cpu"))
    pairs = list(make_pairs([("dlinear", "naive"), ("naive", "naive")], grid, store).itertuples())
    records = {(cell.model, cell.pred_len): store.record(cell) or {} for cell in grid}
    assert [(pair.first, pair.pred_len) for pair in pairs] == [(m, p) for m in ("dlinear", "naive") for p in (12, 24)]
    for pair in pairs:
        first, second = (records[model, pair.pred_len] for model in (pair.first, pair.second))
        assert pair.difference == first["test"]["mse"] - second["test"]["mse"]
        assert (pair.first_mse, pair.second_mse) == (first["test"]["mse"], second["test"]["mse"]) and pair.seeds == (
            42,
        )
        assert (pair.first_seconds, pair.second_seconds) == (first["seconds"], second["seconds"])
        by_window = first["window_errors"][str(pair.pred_len)]
        assert len(by_window) == 200 and np.mean(by_window) == pytest.approx(first["test"]["mse"], rel=1e-2)
        assert pair.low <= pair.difference <= pair.high
    for itself in pairs[2:]:
        assert (itself.difference, itself.low, itself.high, itself.seeds_lower, itself.windows_lower) == (0,) * 5


def test_pair_uses_common_seeds(tmp_path: Path) -> None:
    store = Store(tmp_path)
    fill(store)
    store.record_path(cells()[-1]).unlink()
    pair = single_pair(make_pairs([PAIR], cells(), store))
    assert pair.seeds == (1,) and pd.isna(pair.difference_sd)
    fill(store)
    pair = single_pair(make_pairs([PAIR], cells(), store))
    assert pair.seeds == (1, 2) and pair.difference == pytest.approx(-0.1) and pair.difference_sd == pytest.approx(0)
    assert pair.seeds_lower == 2 and pair.windows_lower == 1
    assert (pair.low, pair.high) == pytest.approx((-0.1, -0.1)), "both err alike at every window"


def test_old_records_are_compared_by_seed_only_with_a_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = Store(tmp_path)
    fill(store, lambda cell: {"window_errors": {}} if cell.seed == 2 else {})
    pair = single_pair(make_pairs([PAIR], cells(), store))
    assert pair.difference == pytest.approx(-0.1) and pair.seeds_lower == 2
    assert pd.isna(pair.low) and pd.isna(pair.windows_lower) and pair.why == SEEDS_ALONE
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.json")}
    command = f"table --datasets ETTh1 --pairs fem_sm:sm --horizons 96 --seeds 1,2 --device cpu --results {tmp_path}"
    assert main(command.split()) == 0, "finished cells stay finished"
    out, err = capsys.readouterr()
    assert "seeds alone" in out and "1 of 1 difference is by seeds alone" in err
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*.json")}


def test_few_windows_have_no_interval(tmp_path: Path) -> None:
    fill(Store(tmp_path), lambda _: {"test": {"mse": 0.3, "mae": 0.5, "windows": 500}})
    pair = single_pair(make_pairs([PAIR], cells(), Store(tmp_path)))
    assert pd.isna(pair.low) and pair.why == FEW_WINDOWS


def test_panel_pairs_resample_series(tmp_path: Path) -> None:
    def by_series(cell: Cell, series: int = 40) -> dict[str, Any]:
        middle = 0.3 if cell.model == "fem_sm" else 0.4
        spread = np.random.default_rng([cell.seed, cell.model == "sm"]).normal(middle, 0.1, series)
        return {"window_errors": {}, "series_errors": {"96": [float(f"{abs(value):.5g}") for value in spread]}}

    store = Store(tmp_path)
    fill(store, by_series)
    pair = single_pair(make_pairs([PAIR], cells(), store))
    errors_of = {(c.model, c.seed): np.array((store.record(c) or {})["series_errors"]["96"]) for c in cells()}
    difference = sum(errors_of["fem_sm", seed] - errors_of["sm", seed] for seed in (1, 2)) / 2
    half = 1.96 * difference.std() / np.sqrt(40)
    assert (pair.low, pair.high) == pytest.approx((-0.1 - half, -0.1 + half), abs=0.2 * half)
    assert pair.windows_lower == (difference < 0).mean() and pair.why == ""
    fill(store, lambda cell: by_series(cell, 2))
    pair = single_pair(make_pairs([PAIR], cells(), store))
    assert pd.isna(pair.low) and pair.why == FEW_SERIES


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"test": {"mse": 0.3, "mae": 0.5, "windows": 24}}, "a number of windows of 24 and 4000"),
        ({"data": {"sha256": "0" * 64, "split": SPLIT}}, r"the split .*1080.* and .*"),
        ({"data": {"sha256": "1" * 64, "split": SPLIT}}, "data of hash 1{64} and 0{64}"),
    ],
)
def test_pairs_must_score_the_same_windows(
    change: dict[str, Any], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(Store(tmp_path), lambda cell: change if cell.model == "fem_sm" else {})
    words = (
        rf"Models 'fem_sm' and 'sm' cannot be paired on ETTh1 at 96 steps, seed 1: they scored {says}; pair models that"
    )
    with pytest.raises(UsageError, match=words):
        make_pairs([PAIR], cells(), Store(tmp_path))
    command = f"table --datasets ETTh1 --pairs fem_sm:sm --horizons 96 --seeds 1,2 --show --results {tmp_path}"
    assert main(command.split()) == 2
    assert capsys.readouterr().out == ""


def test_pairs_at_recursive_horizons(tmp_path: Path) -> None:
    def rolled(cell: Cell) -> dict[str, Any]:
        scores = {"mse": 0.5 + cell.seed / 10, "mae": 0.5, "windows": 3000}
        more = {"rolled": {"192": {"val": scores, "test": scores}}}
        return {**more, "window_errors": {**errors(0.3), "192": errors(scores["mse"])["96"]}}

    fill(Store(tmp_path), rolled)
    near, far = make_pairs([PAIR], cells(), Store(tmp_path), (192,)).itertuples()
    assert (near.pred_len, far.pred_len, far.difference, far.low, far.high) == (96, 192, 0, 0, 0)


def test_text_and_csv_agree(tmp_path: Path) -> None:
    fill(Store(tmp_path))
    pairs = make_pairs([PAIR, ("sm", "fem_sm")], cells(), Store(tmp_path))
    lines = [re.split(r" {2,}", line.strip()) for line in to_text(pairs).splitlines()]
    assert lines[0] == ["ETTh1", "fem_sm", "sm", "difference", "95 %", "seeds lower", "windows lower", "seconds"]
    assert lines[1][:4] == ["96", "0.315", "0.415", "-0.1000+-0.0000"] and lines[1][5:] == ["2 of 2", "100%", "1 / 1"]
    assert [line[1:] for line in lines[-2:]] == [["fem_sm", "sm", *"11110"], ["sm", "fem_sm", *"10101"]]
    assert "| 96 | 0.315 | 0.415 | -0.1000+-0.0000 | -0.1000 to -0.1000 | 2 of 2 | 100% | 1 / 1 |" in to_text(
        pairs, "md"
    )
    header, first, _ = to_csv(pairs).splitlines()
    row = dict(zip(header.split(","), first.split(","), strict=True))
    assert (row["first"], row["second"], row["seeds"], row["seeds_lower"]) == ("fem_sm", "sm", "1 2", "2")
    assert float(row["difference"]) == pairs["difference"][0] and float(row["low"]) == pairs["low"][0]


def test_pairs_are_parsed_and_missing_cells_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert parse_pairs("sm:gla, aft:sm,sm:gla") == (("sm", "gla"), ("aft", "sm"))
    for text in ("sm", "sm:gla:aft", ":sm", "sm:", "", "sm:gla,"):
        with pytest.raises(UsageError, match="FIRST:SECOND"):
            parse_pairs(text)
    options = [part for part in COMMAND if part not in ("--models", "naive,dlinear")]
    assert main([*options, "--pairs", "dlinear:naive", "--show", "--results", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert out.count("not measured") == 2 and "4 of 4 cells are unfinished" in err
    Store(tmp_path).fail(small_grid(("dlinear",))[0], "no luck")
    assert main([*options, "--pairs", "dlinear:naive", "--show", "--format", "csv", "--results", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert (
        out.splitlines()[1] == "synthetic,dlinear,naive,12" + "," * 8 + "not measured,,,,," and "failed: no luck" in err
    )


@pytest.mark.parametrize("written", [[PAIR], "fem_sm:sm"])
def test_pairs_function_matches_the_command(written: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(Store(tmp_path))
    frame = femts.pairs(written, "ETTh1", 96, seeds=[1, 2], results=tmp_path, train=False)
    pair = single_pair(make_pairs([PAIR], cells(), Store(tmp_path)))
    row = frame.iloc[0]
    assert len(frame) == 1 and row["seeds"] == (1, 2) and (row["first"], row["second"]) == PAIR
    assert (row["difference"], row["low"], row["high"]) == (pair.difference, pair.low, pair.high)
    command = f"table --pairs fem_sm:sm --horizons 96 --seeds 1,2 --show --format csv --results {tmp_path}"
    assert main(command.split()) == 0
    header, line = capsys.readouterr().out.splitlines()
    assert header.split(",") == list(frame.columns)
    assert line.split(",")[4:8] == ["1 2", str(pair.first_mse), str(pair.second_mse), str(pair.difference)]


def test_invalid_pairs_are_refused_before_training(tmp_path: Path) -> None:
    cases: list[tuple[Any, ...]] = [
        ("fem_sm", "Pair 'fem_sm' is not a pair of models; write FIRST:SECOND"),
        ([("fem_sm",)], "Pair 'fem_sm' is not a pair"),
        ([3], "Pair '3' is not a pair"),
        ([("fem_sm", "smm")], "Unknown model 'smm'"),
        ("fem_sm:sm,sm:sm", "Pair 'sm:sm' names the same model twice"),
        ("sm:ridge,ridge:auto_theta", "Pair 'ridge:auto_theta' is not scored on the same windows"),
    ]
    for written, says in cases:
        with pytest.raises(UsageError, match=says):
            femts.pairs(written, results=tmp_path / "new")
        assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("call", [femts.table, lambda *given, **more: femts.pairs("naive:ridge", *given[:1], **more)])
def test_invalid_roll_out_is_refused(call: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Argument 'roll_out' takes a whole number of at least 1, not '0'"):
        call("synthetic", "naive", roll_out=0, results=tmp_path / "new")
    assert not (tmp_path / "new").exists()
