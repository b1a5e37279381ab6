"""The rule by which `--model auto` takes models, and who the candidates are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from femts.config.training import TrainingConfig
from femts.data.dataset import Dataset
from femts.data.loading import load_dataset
from femts.training.fit import FitRequest
from femts.training.resolve import Lengths
from femts.training.select import plan as planning
from femts.training.select.candidates import NAIVE_NAMES, Candidate, shortlist
from femts.training.select.plan import MANY_WINDOWS, WINDOWS, Clock, Plan, plan
from femts.training.select.rule import best_mean
from femts.training.select.trial import Array, CandidateResult

RNG = np.random.default_rng(0)
TRUTH: Array = RNG.normal(size=(20, 6, 2))


def tried(model: str, *mistakes: Array | float) -> CandidateResult:
    """A candidate that was wrong by `mistakes` at as many origins."""
    forecasts = tuple(np.asarray(TRUTH + mistake, dtype=np.float64) for mistake in mistakes)
    return CandidateResult(model, forecasts=forecasts, targets=(TRUTH,) * len(mistakes), seconds=1.0)


def taken(*candidates: CandidateResult, few: bool = True) -> list[str]:
    return [each.model for each in best_mean(candidates, few).members]


def test_the_best_is_taken_alone_where_the_others_only_make_it_worse() -> None:
    assert taken(tried("far", 3.0), tried("near", 0.1), tried("farther", 4.0)) == ["near"]


def test_models_that_err_in_opposite_ways_are_averaged() -> None:
    above, below, far = tried("above", 1.0), tried("below", -1.1), tried("far", 9.0)
    assert taken(far, below, above) == ["above", "below"]
    assert best_mean([far, below, above], True).error == pytest.approx(0.05)


def test_naive_models_join_few_rows_of_a_single_series_alone() -> None:
    pair = [tried("ridge", 1.0), tried("seasonal_naive", -1.1)]
    assert [each.model for each in best_mean(pair, True, series=1).members] == ["ridge", "seasonal_naive"]
    assert [each.model for each in best_mean(pair, True, series=9).members] == ["ridge"]
    better = [tried("ridge", 1.0), tried("seasonal_naive", -0.95)]
    assert [each.model for each in best_mean(better, True, series=9).members] == ["ridge"], "within the slack"
    assert [each.model for each in best_mean([better[0], tried("naive", -0.8)], True, series=9).members] == ["naive"]
    assert taken(*pair, few=False) == ["ridge"]
    assert taken(tried("ridge", 1.2), pair[1], few=False) == ["seasonal_naive"]


def test_members_have_weights_where_many_rows_decide() -> None:
    one, other = tried("one", 1.0), tried("other", -3.0)
    made = best_mean([one, other], few=False)
    assert [each.model for each in made.members] == ["one", "other"]
    assert made.weights == (0.75, 0.25) and made.error == pytest.approx(0.0)
    assert best_mean([one, tried("near", -1.5)], few=True).weights == (0.5, 0.5)


def test_missing_values_do_not_count() -> None:
    empty = np.where([True, False], np.nan, TRUTH)
    pair = [CandidateResult(f"{m}", forecasts=(TRUTH + m,), targets=(empty,)) for m in (1.0, -1.0)]
    made = best_mean(pair, few=False)
    assert len(made.members) == 2 and made.error == pytest.approx(0.0)


def test_no_more_than_four_are_averaged() -> None:
    noisy = [tried(f"model{n}", RNG.normal(size=TRUTH.shape)) for n in range(7)]
    assert len(taken(*noisy)) == 4


def test_model_is_a_member_with_one_look_back_only() -> None:
    noisy = [tried(name, RNG.normal(size=TRUTH.shape)) for name in ("ridge", "ridge", "ridge", "mstl")]
    assert sorted(taken(*noisy)) == ["mstl", "ridge"]


def test_near_equal_model_is_added_where_few_rows_decide() -> None:
    candidates = [tried("first", 1.0), tried("second", 1.04), tried("third", 1.9)]
    assert taken(*candidates) == ["first", "second"]
    assert taken(*candidates, few=False) == ["first"]


def test_squared_errors_choose_otherwise() -> None:
    steady, often = tried("steady", 0.5), tried("often", np.where(np.arange(20) < 18, 0.0, 3.0)[:, None, None])
    assert taken(steady, often, few=False)[0] == "often"
    squared = [replace(each, criterion="mse") for each in (steady, often)]
    assert taken(*squared, few=False)[0] == "steady" and squared[0].error == pytest.approx(0.25)


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


LENGTHS = Lengths(12)


def names(data: Dataset, out: bool = False) -> list[str]:
    return [each.model for each in shortlist(data, LENGTHS) if bool(each.reason) == out]


def test_short_tables_get_the_classics_and_no_network() -> None:
    few = names(table(120))
    assert {*NAIVE_NAMES, "ridge", "auto_ets", "dotm", "mstl", "auto_arima"} == set(few)
    assert "fem_sm_ridge" in names(table(120), out=True)


def test_long_tables_get_networks_and_classics_of_recent_rows() -> None:
    long = {each.model: each for each in shortlist(table(20000, "h"), LENGTHS)}
    assert not long["fem_sm_ridge"].reason
    assert {name: long[name].seq_len for name in ("dotm", "auto_ets")} == {"dotm": 512, "auto_ets": 512}
    half_hours = {each.model: each for each in shortlist(table(20000, "30min"), LENGTHS)}
    assert half_hours["mstl"].seq_len == 3 * 336 and half_hours["dotm"].seq_len == 512
    asked = shortlist(table(20000, "h"), LENGTHS._replace(seq_len=96))
    assert all(each.seq_len is None for each in asked)


def test_several_look_backs_of_ridge_are_tried_where_none_is_given() -> None:
    backs = [each.seq_len for each in shortlist(table(200), LENGTHS) if each.model == "ridge"]
    assert len(backs) > 1 and backs[0] == max(back or 0 for back in backs)
    for given in (LENGTHS._replace(seq_len=30), LENGTHS._replace(protocol="lookback96")):
        assert [each.seq_len for each in shortlist(table(200), given) if each.model == "ridge"] == [None]


def planned(monkeypatch: pytest.MonkeyPatch, left: float | None, origins: int = 3, **seconds: float) -> Plan:
    """The plan for models whose fits take so many `seconds`, where so much time is left."""
    monkeypatch.setattr(planning, "seconds_of_fit", lambda each, *_: seconds[each.model])
    monkeypatch.setattr(planning.Clock, "left", left)
    candidates = [Candidate("ridge"), *(Candidate(name, fitted=True) for name in seconds)]
    request = FitRequest.of("auto", {}, {}, 0.0)
    return plan(candidates, request, [table(120)] * origins, Clock(0.0, left))


def test_all_is_tried_where_there_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    made = planned(monkeypatch, 60.0, quick=0.01, slow=0.5)
    assert made.windows == WINDOWS and not made.note and not any(each.reason for each in made.candidates)


def test_windows_become_fewer_before_a_model_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    made = planned(monkeypatch, 30.0, quick=0.1, slow=1.0)
    assert made.windows < WINDOWS and not any(each.reason for each in made.candidates)
    assert (
        made.note == f"to stay within the time limit, candidates are compared on {made.windows} windows of each origin"
    )


def test_windows_of_a_single_origin_are_sixteen_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "LONG", 0)
    made = planned(monkeypatch, 20.0, 1, quick=0.01, slow=0.5)
    assert made.windows == 16 and not any(each.reason for each in made.candidates)
    made = planned(monkeypatch, 20.0, 1, quick=0.01, slow=0.9)
    assert made.windows == 32 and [each.model for each in made.candidates if each.reason] == ["slow"]


def test_the_dearest_is_left_out_where_few_windows_take_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    made = planned(monkeypatch, 10.0, quick=0.02, slow=0.9)
    assert [each.model for each in made.candidates if each.reason] == ["slow"] and made.windows == WINDOWS
    assert "each fit takes 0.9 s" in made.candidates[2].reason


def test_no_fit_is_begun_that_may_take_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    made = planned(monkeypatch, 10.0, quick=0.3, auto_arima=float("nan"))
    assert "may take 3 s" in made.candidates[2].reason


def test_without_fits_many_windows_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    assert planned(monkeypatch, None).windows == MANY_WINDOWS


def test_only_small_tables_have_a_default_time_limit() -> None:
    request, timed = (FitRequest.of("auto", given, {}, 0.0) for given in ({}, {"max_time": "9m"}))
    assert [Clock.of(each, table(120)).limit for each in (request, timed)] == [60.0, 540.0]
    assert [Clock.of(each, table(6000, "h")).limit for each in (request, timed)] == [None, 540.0]


def panel(series: int, rows: int, **schema: Any) -> Dataset:
    stamps = np.tile(pd.date_range("1990-01-01", periods=rows, freq="MS"), series)
    long = pd.DataFrame({"unique_id": np.repeat([f"s{n}" for n in range(series)], rows), "ds": stamps})
    long = long.assign(y=RNG.normal(size=series * rows))
    if schema:
        long["kind"] = np.where(long.unique_id == "s0", "one", "other")
    return load_dataset(long, **schema, panel=True).for_horizon(12)


def test_a_panel_has_two_networks_where_it_has_many_series_or_windows() -> None:
    for series, rows, tried in [(10, 60, False), (20, 150, False), (20, 300, True), (30, 100, True)]:
        assert [name in names(panel(series, rows)) for name in ("nhits", "fem_sm")] == [tried, tried]


def test_seldom_demand_brings_its_model() -> None:
    assert "croston_sba" in names(table(120, zeros=0.6))
    assert "croston_sba" not in names(table(120, zeros=0.1))


def test_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from femts.models.classics import Classic

    monkeypatch.setattr(Classic, "needs", ("no_such_library", "stats"))
    reasons = {each.model: each.reason for each in shortlist(table(120), LENGTHS)}
    assert "pip install 'femts[stats]'" in reasons["auto_ets"]


def test_short_trainings_of_mixers_take_a_higher_learning_rate() -> None:
    asked = FitRequest.of("auto", {}, {}, 0.0)
    assert asked.for_candidate("fem_sm", 10.0, None, 1).training.lr == 3e-3
    assert asked.for_candidate("fem_sm", None, None, 1).training.lr == TrainingConfig().lr
    own = FitRequest.of("auto", {}, {"training.lr": 1e-4}, 0.0)
    assert own.for_candidate("fem_sm", 10.0, None, 1).training.lr == 1e-4
