"""Intervals and detailed scores of a trained forecaster."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numbers_of import numbers_of
from small_panels import panel_forecaster, panel_table

import femts
from femts.data.dataset import Dataset
from femts.data.loading import load_dataset
from femts.data.synthetic import synthetic_frame
from femts.errors import AccuracyWarning, UsageError
from femts.evaluation.constants import GRID
from femts.forecaster.forecaster import Forecaster
from femts.training.train import train

L, P = 48, 24


@pytest.fixture(scope="module")
def data() -> Dataset:
    return load_dataset(synthetic_frame(1500), min="none")


@pytest.fixture(scope="module")
def folder(data: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "run"
    train(data, "ridge", P, seq_len=L, out=out, settings={"model.longest": P})
    return out


@pytest.fixture
def history() -> pd.DataFrame:
    return synthetic_frame(200)


def errors_of(forecaster: Forecaster, data: Dataset, part: str, steps: int = P) -> np.ndarray:
    """Absolute raw errors (n, steps, C) from `predict_array`."""
    start, stop = data.split.part(part)[0]
    origins = range(start, stop - steps + 1)
    forecast = forecaster.predict_array(np.stack([data.values[o - L : o] for o in origins]), steps)
    return np.abs(forecast - np.stack([data.values[o : o + steps] for o in origins]))


def test_intervals_are_quantiles_of_validation_errors(
    forecaster: Forecaster, data: Dataset, history: pd.DataFrame
) -> None:
    table = forecaster.predict(history, level=[80, 95])
    plain = forecaster.predict(history)
    assert list(table)[:6] == ["date", "s0", "s0-lo-80", "s0-hi-80", "s0-lo-95", "s0-hi-95"]
    pd.testing.assert_frame_equal(table[list(plain)], plain)
    rising = np.sort(errors_of(forecaster, data, "val"), axis=0)
    for level, rank in ((80, -(-80 * (len(rising) + 1) // 100)), (95, -(-95 * (len(rising) + 1) // 100))):
        for c, name in enumerate(forecaster.columns):
            low, high = table[f"{name}-lo-{level}"], table[f"{name}-hi-{level}"]
            np.testing.assert_allclose((low + high) / 2, plain[name], rtol=1e-12)
            np.testing.assert_allclose((high - low) / 2, rising[rank - 1, :, c], rtol=1e-4)


def test_shorter_horizon_has_the_first_intervals(forecaster: Forecaster, history: pd.DataFrame) -> None:
    whole = forecaster.predict(history, level=[90])
    pd.testing.assert_frame_equal(forecaster.predict(history, 5, level=[90]), whole.head(5), rtol=1e-6)


def test_intervals_roundtrip(
    forecaster: Forecaster, folder: Path, data: Dataset, history: pd.DataFrame, tmp_path: Path
) -> None:
    trained = train(data, "ridge", P, seq_len=L, settings={"model.longest": P})
    forecaster.save(tmp_path / "copy")
    copy = femts.load(tmp_path / "copy")
    expected = trained.predict(history, level=[50, 99])
    for one in (forecaster, copy):
        pd.testing.assert_frame_equal(one.predict(history, level=[50, 99]), expected)
    name = "intervals.safetensors"
    assert (tmp_path / "copy" / name).read_bytes() == (folder / name).read_bytes()


def test_training_reports_coverage(forecaster: Forecaster, folder: Path, data: Dataset) -> None:
    reported = json.loads((folder / "metrics.json").read_text())["intervals"]
    assert reported["windows"] == data.split.windows("val", L, P)[0, 3]
    scaled = forecaster.scores(level=[80, 95], dataset=data).iloc[0]
    assert scaled["units"] == "scaled" and list(reported["test"]) == ["80", "95"]
    for level in ("80", "95"):
        assert reported["test"][level]["coverage"] == pytest.approx(scaled[f"coverage-{level}"], rel=1e-9)
        assert reported["test"][level]["width"] == pytest.approx(scaled[f"width-{level}"], rel=1e-9)


def test_coverage_matches_the_intervals(forecaster: Forecaster, data: Dataset, history: pd.DataFrame) -> None:
    table = forecaster.coverage("test", [95], dataset=data)
    assert list(table) == ["level", "step", "channel", "coverage", "width", "units"]
    assert set(table["units"]) == {"raw"} and len(table) == P * len(forecaster.columns)
    bounds = forecaster.predict(history, level=[95])
    inside = errors_of(forecaster, data, "test")
    for c, name in enumerate(forecaster.columns):
        width = (bounds[f"{name}-hi-95"] - bounds[f"{name}-lo-95"]).to_numpy()
        mine = table[table["channel"] == name]
        assert mine["step"].tolist() == list(range(1, P + 1))
        np.testing.assert_allclose(mine["width"], width, rtol=1e-9)
        np.testing.assert_allclose(mine["coverage"], (inside[:, :, c] <= width / 2).mean(0), atol=2 / len(inside))
    grouped = forecaster.scores(by="channel", level=[95], dataset=data).query("units == 'raw'")
    np.testing.assert_allclose(table.groupby("channel")["coverage"].mean(), grouped["coverage-95"])


def test_scores_agree_with_evaluate(forecaster: Forecaster, data: Dataset) -> None:
    for part, steps in (("test", None), ("val", 2 * P)):
        plain = numbers_of(forecaster.evaluate(part, steps, dataset=data))
        assert list(plain) == ["mse", "mae", "windows", "wape", "bias", "mase", "skill", "season"]
        assert plain.pop("season") == data.season
        scaled, raw = (row for _, row in forecaster.scores(part, steps, dataset=data).iterrows())
        units = {**dict.fromkeys(plain, scaled), "wape": raw, "bias": raw}
        assert {name: row[name] for name, row in units.items()} == pytest.approx(plain, rel=1e-6)
        assert raw["mae"] == pytest.approx(errors_of(forecaster, data, part, steps or P).mean(), rel=1e-5)


def test_several_horizons_in_one_call(forecaster: Forecaster, data: Dataset) -> None:
    several = forecaster.evaluate(pred_len=[2 * P, P, P], dataset=data)
    assert list(several) == [2 * P, P]
    for steps, scores in several.items():
        one = forecaster.evaluate(pred_len=steps, dataset=data)
        assert numbers_of(scores) == pytest.approx(numbers_of(one), rel=1e-6) and scores["verdict"] == one["verdict"]
    frame = forecaster.scores(pred_len=[P, 2 * P], by="channel", dataset=data)
    alone = forecaster.scores(pred_len=2 * P, by="channel", dataset=data)
    of_it = frame[frame["pred_len"] == 2 * P].drop(columns="pred_len").reset_index(drop=True)
    pd.testing.assert_frame_equal(of_it, alone)
    for call in (forecaster.evaluate, forecaster.scores):
        with pytest.raises(UsageError, match="No horizon was given"):
            call(pred_len=[], dataset=data)
        with pytest.raises(UsageError, match="horizon of 0"):
            call(pred_len=[P, 0], dataset=data)


def test_calibrate_for_more_steps_and_levels(forecaster: Forecaster, data: Dataset, history: pd.DataFrame) -> None:
    with pytest.raises(UsageError, match=rf"calibrated for {P} steps, not for 50; .*--horizon 50"):
        forecaster.predict(history, 50, level=[80])
    forecaster = forecaster.calibrate(50, [85], dataset=data)
    made = forecaster.intervals
    assert made is not None and made.windows == data.split.windows("val", L, 50)[0, 3]
    assert made.levels == tuple(sorted({*GRID, 85} - {99.9})) and not made.few
    table = forecaster.predict(history, 50, level=[85])
    rising = np.sort(errors_of(forecaster, data, "val", 50)[:, -1, 0])
    expected = rising[-(-85 * (len(rising) + 1) // 100) - 1]
    assert table["s0-hi-85"].iloc[-1] - table["s0"].iloc[-1] == pytest.approx(expected, rel=1e-4)
    again = forecaster.calibrate(dataset=data).intervals
    assert again is not None and again.steps == 50, "what was calibrated before"


def test_calibrate_keeps_earlier_levels_and_steps(forecaster: Forecaster, data: Dataset) -> None:
    forecaster = forecaster.calibrate(50, [70], dataset=data).calibrate(level=[85], dataset=data)
    made, again = forecaster.intervals, forecaster.calibrate(P, dataset=data).intervals
    assert made is not None and again is not None and again.levels == made.levels
    assert ({70, 85} <= set(made.levels), made.steps) == (True, 50)
    with pytest.raises(UsageError, match=rf"calibrated for {P - 1} steps, .* use pred_len={P} or more\.$"):
        forecaster.calibrate(P - 1, dataset=data)


def test_high_levels_need_enough_windows(data: Dataset) -> None:
    small = load_dataset(synthetic_frame(600))
    run = train(small, "naive", 1, seq_len=L)
    assert run.intervals is not None and (run.intervals.windows, run.intervals.levels) == (60, GRID[:-2])
    assert list(run.metrics["intervals"]["test"]) == ["80", "95"]
    with pytest.raises(UsageError, match="not calibrated, because 60 validation windows are too few; use at most 98"):
        run.predict(small.frame(), level=[99])
    with pytest.raises(UsageError, match=r"Level 99 cannot be calibrated on 60 .* at most 98"):
        run.calibrate(level=[99])


def test_few_overlapping_windows_support_every_level(data: Dataset) -> None:
    small = load_dataset(synthetic_frame(600))
    run = train(small, "naive", 50, seq_len=L)
    assert run.intervals is not None and run.intervals.few
    assert (run.intervals.windows, run.intervals.disjoint, run.intervals.levels) == (51, 2, GRID)
    assert run.metrics["intervals"]["disjoint"] == 2
    widths = run.predict(small.frame(), level=[80, 95])
    for level in (80, 95):
        for name in small.columns:
            assert (widths[f"{name}-hi-{level}"] - widths[f"{name}-lo-{level}"]).diff().iloc[1:].min() > -1e-6
    further = run.calibrate(level=[97.5]).intervals
    assert further is not None and further.levels == tuple(sorted([*GRID, 97.5]))


def test_predict_without_intervals_is_refused(forecaster: Forecaster, history: pd.DataFrame) -> None:
    forecaster = replace(forecaster, intervals=None)
    with pytest.raises(UsageError, match="no intervals; create them with `femts calibrate RUN`"):
        forecaster.predict(history, level=[80])
    assert len(forecaster.predict(history)) == P


def test_subset_of_series_scores_equally() -> None:
    table = panel_table()
    table["y"] *= table["unique_id"].map({name: 10.0**n for n, name in enumerate(table["unique_id"].unique())})
    made = panel_forecaster("ridge", table)
    names = [name for name in made.series if name != made.series[0]][::-1]
    some = load_dataset(pd.concat([table[table["unique_id"] == name] for name in names]), panel=True)
    whole, part = (made.scores(dataset=each, by="series", level=[80]).set_index("series") for each in (None, some))
    pd.testing.assert_frame_equal(part, whole.loc[part.index], rtol=1e-6)
    once = made.evaluate(dataset=some), made.evaluate(dataset=load_dataset(table, panel=True))
    assert once[0]["mse"] < 10 * once[1]["mse"], "in the scaled units of each series"


def test_rows_seen_in_training_are_left_out_of_other_data() -> None:
    frame = synthetic_frame(500)
    made = femts.train(frame, "ridge", 12, seq_len=24, refit=True)
    for rows, part, kind in (
        (slice(0, 490), "test", "validation"),
        (slice(0, 490), "val", "training"),
        (slice(0, 600), "test", ""),
        (slice(0, 600), "val", ""),
        (slice(200, 600), "test", ""),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", AccuracyWarning)
            made.evaluate(part, dataset=synthetic_frame(600)[rows])
            made.scores(part, [6, 12], dataset=synthetic_frame(600)[rows])
        words = [str(each.message) for each in caught]
        assert len(words) == 2 * bool(kind), (rows, part)
        assert all(
            each.startswith(f"The {part} split of 'frame' has ") and f"rows that were used for {kind}" in each
            for each in words
        )
    with pytest.raises(
        UsageError, match=r"^All rows of the test split of 'frame' were used for training, .* later rows"
    ):
        made.evaluate("test", dataset=synthetic_frame(600)[:300])
    val = synthetic_frame(600)[:490]
    with pytest.warns(AccuracyWarning, match="has 7 rows that were used for training, which are left out"):
        scored = made.evaluate("val", dataset=val)
    assert scored["windows"] == 392 - 350 - 12 + 1, "from the end of the training rows on"
    with warnings.catch_warnings(action="error"):
        made.evaluate("test")
        made.importance(windows=8, repeats=1)


def test_short_series_of_a_panel_are_not_scored_on_their_training_rows() -> None:
    table = panel_table()
    made = panel_forecaster("naive", table)
    data = made.training_data()
    short = [name for name, (start, stop) in zip(data.series, data.split.test, strict=True) if start == stop]
    assert short, "no series is used for training alone"
    alone = load_dataset(table[table["unique_id"].isin(short)], panel=True)
    with pytest.raises(UsageError, match=r"were used for training|^No series of"):
        made.evaluate(dataset=alone)
