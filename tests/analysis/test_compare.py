"""Comparisons equal the loop that users would write by hand, and see no row after a cutoff."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from small_panels import panel_table
from torch import Tensor

import femts
from femts.analysis.compare import Comparison
from femts.cli import main
from femts.data.cutoffs import rolling_cutoffs, rows_before
from femts.data.synthetic import synthetic_frame
from femts.errors import UsageError
from femts.evaluation.metric import METRICS, Metric, register_metric
from femts.evaluation.values import Values

P, WINDOWS, SEASON = 12, 7, 24
FRAME = synthetic_frame(400).iloc[:, :3]
COLUMNS = ["s0", "s1"]
SETTINGS = {"model.longest": P}
FIRST = len(FRAME) - WINDOWS * P


def compared(frame: Any = FRAME, models: Any = "ridge", horizon: int = P, **options: Any) -> Comparison:
    usual: dict[str, Any] = {"n_windows": WINDOWS, "seq_len": 48, "settings": SETTINGS, "device": "cpu"}
    with warnings.catch_warnings(action="ignore"):
        return femts.compare(frame, models, horizon, **(usual | options))


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return compared(models=["ridge", "dlinear"], settings={"training.max_steps": 5})


def values(comparison: Comparison, model: str, window: int, name: str = "forecast") -> np.ndarray:
    rows = comparison.forecasts.query("model == @model and window == @window")
    return rows[name].to_numpy().reshape(P, len(COLUMNS))


def test_cutoffs_by_hand() -> None:
    lengths = np.array([30, 17, 4])
    before = rows_before(lengths, 3, 5, 4)
    assert before.tolist() == [[n - 4 - (3 - w) * 5 for w in (1, 2, 3)] for n in (30, 17, 4)]
    first, _, last = rolling_cutoffs(lengths, 3, 5, 4, 5)
    assert (first.window, first.series.tolist(), first.rows.tolist()) == (1, [0], [16])
    assert (last.window, last.series.tolist(), last.rows.tolist()) == (3, [0, 1], [26, 13])
    assert not len(rolling_cutoffs(lengths, 1, 1, 40)[0].series)


def test_forecasts_are_those_of_a_loop_by_hand(comparison: Comparison) -> None:
    with warnings.catch_warnings(action="ignore"):
        made = femts.train(
            FRAME[:FIRST], "ridge", P, seq_len=48, refit=True, settings={"training.max_steps": 5}, device="cpu"
        )
    for window in (1, WINDOWS):
        stop = FIRST + (window - 1) * P
        wanted = made.predict(FRAME[:stop], quantiles=[0.1])
        np.testing.assert_allclose(values(comparison, "ridge", window), wanted[COLUMNS], rtol=1e-12)
        bounds = wanted[[f"{name}-q-10" for name in COLUMNS]]
        np.testing.assert_allclose(values(comparison, "ridge", window, "q-10"), bounds, rtol=1e-12)
        np.testing.assert_array_equal(values(comparison, "ridge", window, "actual"), FRAME[COLUMNS][stop : stop + P])


def test_naive_forecasts_by_hand(comparison: Comparison) -> None:
    for window in (1, 3):
        past = FRAME[COLUMNS].to_numpy()[: FIRST + (window - 1) * P]
        np.testing.assert_array_equal(values(comparison, "seasonal_naive", window), past[-SEASON:][:P])
        np.testing.assert_array_equal(values(comparison, "naive", window), np.tile(past[-1], (P, 1)))
        np.testing.assert_allclose(values(comparison, "mean", window), np.tile(past[-48:].mean(0), (P, 1)))
        slope = (past[-1] - past[-48]) / 47
        np.testing.assert_allclose(values(comparison, "drift", window)[-1], past[-1] + P * slope)


def test_scores_by_hand(comparison: Comparison) -> None:
    table, actual = comparison.table.set_index("model"), FRAME[COLUMNS].to_numpy()
    assert set(table.index) == {"ridge", "dlinear", "seasonal_naive", "naive", "drift", "mean"}
    assert list(comparison.table["mase"]) == sorted(comparison.table["mase"])
    each = pd.DataFrame(index=range(1, WINDOWS + 1), columns=table.index, dtype=float)
    for model in table.index:
        mase, rmsse, wape = [], [], []
        for window in each.index:
            stop = FIRST + (window - 1) * P
            error = np.abs(values(comparison, model, window) - actual[stop : stop + P])
            change = np.abs(actual[SEASON:stop] - actual[: stop - SEASON])
            mase.append((error.mean(0) / change.mean(0)).mean())
            rmsse.append(np.sqrt((error**2).mean(0) / (change**2).mean(0)).mean())
            wape.append((error.sum(0) / np.abs(actual[stop : stop + P]).sum(0)).mean())
        each[model] = mase
        for name, one in (("mase", mase), ("rmsse", rmsse), ("wape", wape)):
            assert table.loc[model, name] == pytest.approx(np.mean(one), rel=1e-9), (model, name)
    naive = table.loc[["naive", "drift", "mean", "seasonal_naive"]]
    np.testing.assert_allclose(naive[["sql", "wql"]], naive[["mase", "wape"]])  # a point is a distribution, too
    np.testing.assert_allclose(table["skill"], 1 - table["mase"] / table.loc["seasonal_naive", "mase"])
    wins = {one: np.mean([each[one] < each[other] for other in each if other != one]) for one in each}
    assert table["win_rate"].to_dict() == pytest.approx(wins)
    best = comparison.table["model"][0]
    assert table["difference"].to_dict() == pytest.approx((each.mean() - each[best].mean()).to_dict(), abs=1e-12)
    others = table.drop(best)
    assert np.isnan(table.loc[best, "low"]) and ((others["low"] < others["difference"]).all())
    assert (others["difference"] < others["high"]).all() and comparison.units == "windows"
    assert (table.loc[["ridge", "dlinear"], ["train_seconds", "predict_seconds"]] > 0).all(axis=None)


@pytest.fixture
def hits_and_misses() -> Iterator[None]:
    """Two metrics of one's own that add up to 1: `hits`, of which greater is better, and `misses`."""

    class Misses(Metric):
        """Share of values with an absolute error of at least 0.1."""

        def terms(self, values: Values) -> tuple[Tensor, None]:
            return (values.error.abs() >= 0.1).double().where(~values.error.isnan(), torch.nan), None

    class Hits(Misses):
        """Share of the other values."""

        greater_is_better = True

        def finish(self, ratio: np.ndarray) -> np.ndarray:
            return 1 - ratio

    register_metric("hits")(Hits)
    register_metric("misses")(Misses)
    yield
    del METRICS["hits"], METRICS["misses"]


def test_metric_of_which_greater_is_better(hits_and_misses: None) -> None:
    models: dict[str, Any] = {"models": ["ridge", "dlinear"], "settings": {"training.max_steps": 5}}
    hits, misses = (compared(metric=name, **models).table for name in ("hits", "misses"))
    assert hits["hits"].is_monotonic_decreasing and misses["misses"].is_monotonic_increasing
    assert list(hits["model"]) == list(misses["model"]) and hits["hits"].nunique() > 3
    np.testing.assert_allclose(hits["win_rate"], misses["win_rate"])
    np.testing.assert_allclose(hits["difference"], -misses["difference"], atol=1e-12)
    assert (hits["difference"] <= 0).all() and (hits["high"].dropna() >= hits["low"].dropna()).all()
    np.testing.assert_allclose(hits[["low", "high"]], -misses[["high", "low"]], atol=1e-12)
    naive = hits.set_index("model").loc["seasonal_naive", "hits"]
    np.testing.assert_allclose(hits["skill"], hits["hits"] / naive - 1)


def test_metric_of_which_greater_is_better_selects_no_checkpoints(hits_and_misses: None) -> None:
    for refused in (femts.train, femts.tune):
        with pytest.raises(
            UsageError, match=r"'hits' cannot select checkpoints, .* better the higher .*misses"
        ) as error:
            refused(FRAME, "dlinear", P, settings={"training.metric": "hits"})
        assert error.value.argument == "training.metric"


@pytest.mark.parametrize("refit", [False, True])
def test_rows_after_a_cutoff_do_not_matter(refit: bool) -> None:
    made, window = [], 4
    for change in (0.0, 1e3):
        frame = FRAME.copy()
        frame.loc[FIRST + (window - 1) * P :, COLUMNS] += change * np.random.default_rng(0).random((4 * P, 2))
        made.append(compared(frame, refit=refit))
    for model in ("ridge", "seasonal_naive", "naive", "drift", "mean"):
        for each in (1, window):
            np.testing.assert_array_equal(values(made[0], model, each), values(made[1], model, each))
        assert (values(made[0], model, window + 2) != values(made[1], model, window + 2)).any()


def test_refit_trains_at_each_cutoff(comparison: Comparison) -> None:
    again, once = compared(refit=True), compared()
    np.testing.assert_array_equal(values(again, "ridge", 1), values(once, "ridge", 1))
    assert (values(again, "ridge", 2) != values(once, "ridge", 2)).all()
    np.testing.assert_array_equal(values(again, "mean", 2), values(once, "mean", 2))


def test_intervals_need_six_windows_a_horizon_apart() -> None:
    assert compared(n_windows=5).table["low"].isna().all()
    assert compared(n_windows=6).table["low"].notna().sum() == 4
    assert compared(n_windows=11, step_size=P // 2).table["low"].isna().all(), "blocks are two horizons long"


def test_panel_is_resampled_over_series() -> None:
    long = pd.concat([panel_table().query("unique_id == 'long'").assign(unique_id=f"s{k}", y=lambda t, k=k: (
        t["y"] * (1 + k) + np.random.default_rng(k).normal(size=len(t)))) for k in range(9)])  # fmt: skip
    made = compared(long, horizon=7, n_windows=3, seq_len=14, settings={})
    assert made.units == "series" and made.table["low"].notna().sum() == 4
    assert set(made.forecasts["series"]) == {f"s{k}" for k in range(9)}
    by_windows = compared(long, horizon=7, n_windows=3, seq_len=14, settings={}, metric="wape")
    assert by_windows.units == "windows" and by_windows.table["low"].isna().all()
    assert by_windows.table["wape"].is_monotonic_increasing


def test_short_and_young_series_take_part_where_they_can() -> None:
    made = compared(panel_table(), horizon=7, n_windows=3, seq_len=14, settings={})
    series = made.forecasts.query("model == 'naive'").groupby("window")["series"].unique()
    assert [list(each) for each in series] == [["long", "short"], *[["long", "short", "young"]] * 2]
    assert made.table["mase"].notna().all()


def test_values_without_a_forecast_count_for_no_model() -> None:
    frame = FRAME.assign(s1=FRAME["s1"].where(FRAME.index < 200))
    frame.loc[390:, "s1"] = 1.0  # a column that ended before any look-back
    made, alone = compared(frame), compared(FRAME[["date", "s0"]])
    scores = made.table.set_index("model")["mase"]
    assert scores.loc["naive"] == pytest.approx(alone.table.set_index("model").loc["naive", "mase"])
    assert scores.notna().all()


def test_a_column_that_repeats_exactly_has_no_ratio() -> None:
    frame = FRAME.assign(s1=np.sin(2 * np.pi * np.arange(len(FRAME)) / SEASON))
    made = compared(frame).windows.query("model == 'naive'")
    one = compared(FRAME[["date", "s0"]]).windows.query("model == 'naive'")
    np.testing.assert_allclose(made["mase"], one["mase"])
    np.testing.assert_allclose(made["sql"], one["sql"])


def test_models_run_without_covariates_that_they_cannot_read() -> None:
    made = compared(FRAME, past_covariates="s1")
    assert set(made.forecasts["column"]) == {"s0"} and made.table["mase"].notna().all()
    np.testing.assert_allclose(
        made.forecasts.query("model == 'ridge'")["forecast"],
        compared(FRAME[["date", "s0"]]).forecasts.query("model == 'ridge'")["forecast"],
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"models": ["ridge", "rigde"]}, "Unknown model 'rigde'; did you mean 'ridge'"),
        ({"models": []}, "Argument 'models' is empty"),
        ({"metric": "mas"}, "Unknown metric 'mas'; did you mean 'mase'"),
        ({"metric": "sql", "probabilistic": False}, "Metric 'sql' needs quantiles"),
        ({"n_windows": 0}, "'n_windows' takes a whole number of at least 1, not '0'"),
        ({"step_size": -1}, "'step_size' takes a whole number of at least 1"),
        (
            {"n_windows": 40},
            r"40 windows of 12 steps, 12 rows apart, leave too few of the 400 rows.*at most 31 windows",
        ),
        ({"horizon": 399, "n_windows": 1}, "use a shorter horizon, or provide more rows"),
        ({"settings": {"model.rigde": 1}}, "rigde"),
        ({"seq_len": 1000}, "A look-back of 1000 steps"),
        ({"tarrget": "s0"}, "Unknown argument 'tarrget'; did you mean 'target'"),
    ],
)
def test_mistakes_are_refused(options: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("femts.analysis.compare.train_to_score", None)  # nothing is trained
    with pytest.raises(UsageError, match=message):
        compared(**options)


def test_largest_number_of_windows_that_a_message_names_fits() -> None:
    assert len(compared(n_windows=31, seq_len=None).windows.query("model == 'naive'")) == 31


def test_plot(comparison: Comparison) -> None:
    left, right = comparison.plot().axes
    assert [label.get_text() for label in left.get_yticklabels()] == list(comparison.table["model"])
    assert left.get_xlabel() == f"MASE over {WINDOWS} windows of {P} steps"
    assert right.get_xlabel() == "difference to the best, 95 % interval over windows"


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    FRAME.to_csv(tmp_path / "mine.csv", index=False)
    options = ["--models", "ridge", "--windows", str(WINDOWS), "--horizon", str(P), "--seq-len", "48"]
    files = ["-o", str(tmp_path / "out.csv"), "--plot", str(tmp_path / "plot.png")]
    command = ["compare", str(tmp_path / "mine.csv"), *options, "--set", f"model.longest={P}", "--device", "cpu"]
    assert main([*command, *files]) == 0
    lines, made = capsys.readouterr().out.splitlines(), compared(tmp_path / "mine.csv")
    assert lines[0].split() == list(made.table)
    for line, row in zip(lines[1:], made.table.itertuples(index=False), strict=False):
        assert line.split()[:10] == [row.model, *("-" if np.isnan(x) else f"{x:.4f}" for x in row[1:10])]
    assert lines[-2:] == [str(tmp_path / "out.csv"), str(tmp_path / "plot.png")]
    assert len(pd.read_csv(tmp_path / "out.csv")) == len(made.forecasts)
    assert (tmp_path / "plot.png").read_bytes()[:4] == b"\x89PNG"
    assert main([*command, "--windows", "3"]) == 0
    assert "note: 3 windows are too few for intervals of the differences" in capsys.readouterr().err
    assert main([*command, "--windows", "99"]) == 2
    assert "ask for at most" in capsys.readouterr().err


def test_series_with_static_covariates() -> None:
    long = panel_table().assign(size=lambda t: t["unique_id"].str.len())
    options: dict[str, Any] = {"horizon": 7, "n_windows": 2, "seq_len": 14, "settings": {}, "refit": True}
    made = compared(long, "ridge", **options, static_covariates="size")  # which ridge cannot read
    pd.testing.assert_frame_equal(made.forecasts, compared(long.drop(columns="size"), **options).forecasts)
