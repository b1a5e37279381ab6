"""The rule by which `--model auto` takes models, and who the candidates are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from small_panels import panel_table

from femts.data.dataset import Dataset
from femts.data.loading import load_dataset
from femts.errors import UsageError
from femts.training.select.candidates import MANY_WINDOWS, WINDOWS, shortlist, windows_to_score
from femts.training.select.rule import best_mean, error_of
from femts.training.select.trial import Array, CandidateResult

RNG = np.random.default_rng(0)
TRUTH: Array = RNG.normal(size=(20, 6, 2))


def tried(model: str, *mistakes: Array | float) -> CandidateResult:
    """A candidate that was wrong by `mistakes` at as many origins."""
    forecasts = tuple(np.asarray(TRUTH + mistake, dtype=np.float64) for mistake in mistakes)
    return CandidateResult(model, forecasts=forecasts, targets=(TRUTH,) * len(mistakes), seconds=1.0)


def taken(*candidates: CandidateResult) -> list[str]:
    return [each.model for each in best_mean(candidates)]


def test_the_best_is_taken_alone_where_the_others_only_make_it_worse() -> None:
    assert taken(tried("far", 3.0), tried("near", 0.1), tried("farther", 4.0)) == ["near"]


def test_models_that_err_in_opposite_ways_are_averaged() -> None:
    above, below, far = tried("above", 1.0), tried("below", -1.1), tried("far", 9.0)
    assert taken(far, below, above) == ["above", "below"]
    assert error_of([above, below]) == pytest.approx(0.05)


def test_naive_models_are_no_members_where_many_windows_decide() -> None:
    above, below = (tried(name, *[mistake] * 9) for name, mistake in (("ridge", 1.0), ("seasonal_naive", -1.1)))
    assert taken(above, below) == ["ridge"]
    assert taken(tried("ridge", *[1.2] * 9), below) == ["seasonal_naive"]


def test_no_more_than_three_are_averaged() -> None:
    noisy = [tried(f"model{n}", RNG.normal(size=TRUTH.shape)) for n in range(6)]
    assert len(taken(*noisy)) == 3


def test_near_equal_model_is_added_where_few_windows_decide() -> None:
    candidates = [tried("first", 1.0), tried("second", 1.04), tried("third", 1.9)]
    assert taken(*candidates) == ["first", "second"]
    often = [replace(each, forecasts=each.forecasts * 9, targets=each.targets * 9) for each in candidates]
    assert taken(*often) == ["first"]


def test_origins_count_equally() -> None:
    """One that is right at two origins of three beats one that is a little wrong at each."""
    assert taken(tried("steady", 0.5, 0.5, 0.5), tried("often", 0.0, 0.0, 1.0)) == ["often"]


def test_failed_or_non_finite_candidates_are_not_taken() -> None:
    failed, wild = CandidateResult("failed", reason="it did"), tried("wild", float("nan"))
    assert taken(failed, wild, tried("plain", 2.0)) == ["plain"]
    assert taken(failed, wild) == []


def test_missing_targets_do_not_count() -> None:
    holes = np.where(RNG.random(TRUTH.shape) < 0.5, np.nan, TRUTH)
    one = CandidateResult("one", forecasts=(TRUTH + 1.0,), targets=(holes,))
    assert one.error == pytest.approx(1.0)


def table(rows: int, freq: str = "MS", zeros: float = 0.0) -> Dataset:
    values = np.where(RNG.random(rows) < zeros, 0.0, 10 + RNG.normal(size=rows))
    frame = pd.DataFrame({"date": pd.date_range("1990-01-01", periods=rows, freq=freq), "y": values})
    return load_dataset(frame).for_horizon(12)


def names(data: object, seconds: float | None = None, out: bool = False) -> list[str]:
    made = shortlist(data, 12, 3, seconds)  # type: ignore[arg-type]
    return [each.model for each in made if bool(each.reason) == out]


def test_short_tables_get_the_classics_and_no_network() -> None:
    few = names(table(120))
    assert {"seasonal_naive", "naive", "ridge", "auto_ets", "auto_theta", "mstl"} <= set(few)
    assert "fem_sm_ridge" in names(table(120), out=True)


def test_long_tables_get_networks_and_no_classic() -> None:
    long = shortlist(table(20000, "h"), 12, 1, None)
    assert [each.model for each in long] == ["seasonal_naive", "naive", "ridge", "fem_sm_ridge"]
    assert windows_to_score(long) == MANY_WINDOWS
    assert windows_to_score(shortlist(table(120), 12, 3, None)) == WINDOWS


def panel(series: int, rows: int, **schema: Any) -> Dataset:
    stamps = np.tile(pd.date_range("1990-01-01", periods=rows, freq="MS"), series)
    long = pd.DataFrame({"unique_id": np.repeat([f"s{n}" for n in range(series)], rows), "ds": stamps})
    long = long.assign(y=RNG.normal(size=series * rows))
    if schema:
        long["kind"] = np.where(long.unique_id == "s0", "one", "other")
    return load_dataset(long, **schema, panel=True).for_horizon(12)


@pytest.mark.parametrize(
    ("series", "rows", "tried"), [(10, 60, False), (20, 150, False), (20, 300, True), (30, 100, True)]
)
def test_a_panel_has_two_networks_where_it_has_many_series_or_windows(series: int, rows: int, tried: bool) -> None:
    assert [name in names(panel(series, rows)) for name in ("fem_sm_ridge", "fem_sm")] == [tried, tried]


def test_with_static_columns_only_models_that_take_them_are_tried() -> None:
    reasons = {each.model: each.reason for each in shortlist(panel(30, 100, static=["kind"]), 12, 1, None)}
    assert reasons["ridge"] == reasons["naive"] == "it takes no static columns" and not reasons["fem_sm"]


def test_static_columns_of_too_few_windows_for_a_network_are_refused_with_a_remedy() -> None:
    with pytest.raises(UsageError, match=r"and 240 windows are too few .*leave out --static kind, or .*--model fem_sm"):
        shortlist(panel(10, 60, static=["kind"]), 12, 1, None)


def test_seldom_demand_brings_its_model() -> None:
    assert "croston_sba" in names(table(120, zeros=0.6))
    assert "croston_sba" not in names(table(120, zeros=0.1))


def test_slow_ones_are_left_out_of_many_series_and_say_why() -> None:
    one = panel_table()
    many = load_dataset(pd.concat([one.assign(unique_id=one["unique_id"] + str(n)) for n in range(100)]), panel=True)
    left_out = [each for each in shortlist(many.for_horizon(7), 7, 1, None) if each.model == "auto_arima"]
    assert "fits would take about" in left_out[0].reason


def test_less_time_leaves_out_more() -> None:
    assert set(names(table(300), 20.0)) < set(names(table(300), 600.0))


def test_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from femts.models.classics import Classic

    monkeypatch.setattr(Classic, "needs", ("no_such_library", "stats"))
    reasons = {each.model: each.reason for each in shortlist(table(120), 12, 3, None)}
    assert "pip install 'femts[stats]'" in reasons["auto_ets"]
