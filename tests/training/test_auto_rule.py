"""The selection rule and the candidates of `auto`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from femts.data.dataset import Dataset
from femts.data.loading import load_dataset
from femts.evaluation.constants import FEW
from femts.models.parts.classic_fit import Fit
from femts.training.request import FitRequest
from femts.training.resolve import Lengths
from femts.training.select import plan as planning
from femts.training.select.candidates import ENSEMBLE, TUNED, ZERO_SHOT, Candidate, shortlist
from femts.training.select.constants import (
    FADES,
    FEWEST_SCORED,
    HALF,
    MANY_WINDOWS,
    NAIVE_NAMES,
    OF_LARGE,
    OF_SMALL,
    PRIOR,
    ROBUST,
    SCORED,
    STEEPEST,
    WINDOWS,
)
from femts.training.select.plan import Clock, Plan, plan
from femts.training.select.rule import best_mean
from femts.training.select.trial import Array, CandidateResult
from femts.training.select.work import within, work_of_fit

RNG = np.random.default_rng(0)
TRUTH: Array = RNG.normal(size=(20, 6, 2))


def candidate(model: str, *mistakes: Array | float) -> CandidateResult:
    """A candidate with the given errors at each origin."""
    forecasts = tuple(np.asarray(TRUTH + mistake, dtype=np.float64) for mistake in mistakes)
    return CandidateResult(model, forecasts=forecasts, targets=(TRUTH,) * len(mistakes), seconds=1.0)


def selected(*candidates: CandidateResult) -> list[str]:
    return [each.model for each in best_mean(candidates).members]


def test_best_model_alone_if_the_others_are_far_worse() -> None:
    assert selected(candidate("far", 3.0), candidate("near", 0.1), candidate("farther", 4.0)) == ["near"]
    exact = candidate("exact", 0.0)
    assert selected(candidate("near", 0.1), exact) == ["exact"]


def test_weights_are_powers_of_errors() -> None:
    one, other = candidate("one", 1.0), candidate("other", -1.1)  # 240 values each
    made = best_mean([other, one])
    power = STEEPEST * 240 / (240 + HALF)
    assert [each.model for each in made.members] == ["one", "other"] and sum(made.weights) == pytest.approx(1.0)
    assert made.weights[1] / made.weights[0] == pytest.approx(1.1**-power)
    assert made.error == pytest.approx(made.weights[0] - 1.1 * made.weights[1])


def test_few_values_weigh_models_almost_equally() -> None:
    def of(*errors: float) -> list[CandidateResult]:
        truth = np.zeros((1, 2, 1))
        return [CandidateResult(f"{e}", forecasts=(truth + e,), targets=(truth,)) for e in errors]

    assert min(best_mean(of(1.0, -1.2)).weights) > 0.49
    assert max(best_mean([candidate("one", 1.0), candidate("other", -1.2)]).weights) > 0.7


def test_pretrained_models_count_more() -> None:
    assert selected(candidate(ZERO_SHOT, 1.3), candidate("ridge", 1.0), candidate("mstl", 1.3)) == ["ridge", ZERO_SHOT]
    made = best_mean([candidate(ZERO_SHOT, 1.0), candidate("ridge", 1.0)])
    assert made.members[0].model == ZERO_SHOT and made.weights == (PRIOR / (PRIOR + 1), 1 / (PRIOR + 1))


def test_one_of_two_models_that_differ_little_takes_part() -> None:
    ridge, zero, tuned = (candidate(name, error) for name, error in (("ridge", 1.0), (ZERO_SHOT, 1.0), (TUNED, 0.99)))
    assert selected(ridge, zero, tuned) == [TUNED, "ridge"]
    assert selected(ridge, zero, candidate(TUNED, 1.0)) == [ZERO_SHOT, "ridge"], "training has to pay"


def test_pretrained_model_gives_quantiles_where_windows_are_few() -> None:
    good, learned = candidate("ridge", 0.1), candidate(ZERO_SHOT, 9.0)
    made = best_mean([good, learned])
    assert [each.model for each in made.members] == ["ridge", ZERO_SHOT] and made.weights == (1.0, 0.0)
    assert made.error == pytest.approx(good.error)
    assert selected(good, learned, candidate(TUNED, 0.1)) == ["fem_zero_tuned", "ridge"]
    many = np.repeat(TRUTH, FEW, axis=0)
    far, near = (
        CandidateResult(m, forecasts=(many + e,), targets=(many,)) for m, e in ((ZERO_SHOT, 9.0), ("ridge", 0.1))
    )
    assert selected(far, near) == ["ridge"]


def test_median_counts_more_on_few_values() -> None:
    def of(count: int) -> float:
        truth = np.zeros((count, 1, 1))
        pair = [CandidateResult(m, forecasts=(truth + 1.0,), targets=(truth,)) for m in (ENSEMBLE, "ridge")]
        made = best_mean(pair)
        return 1.0 if len(made.members) == 1 else made.weights[0]

    prior = ROBUST**0.5
    assert of(int(FADES)) == pytest.approx(prior / (prior + 1)) and of(4) == 1.0
    assert 0.5 < of(30_000) < 0.52


def test_the_ensemble_has_the_classical_models_that_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    fits = dict.fromkeys(("dotm", "auto_ets", "auto_ces", "mstl"), 0.01) | {"auto_arima": 0.01, ENSEMBLE: 0.0}
    made = planned(monkeypatch, None, 3, **fits)
    assert made.candidates[-1].settings == {"members": ("dotm", "auto_ets", "auto_ces", "auto_arima")}
    assert made.costs[ENSEMBLE] == pytest.approx(4 * made.costs["dotm"])
    made = planned(monkeypatch, None, 3, **fits | {"auto_arima": 3.0})
    assert made.candidates[-1].settings == {"members": ("dotm", "auto_ets", "auto_ces")}
    made = planned(monkeypatch, None, 3, **fits | {"auto_arima": 3.0, "auto_ets": 3.0})
    assert "too few of its models" in made.candidates[-1].reason


def test_empty_column_is_ignored() -> None:
    empty = np.where([True, False], np.nan, TRUTH)
    pair = [CandidateResult(f"{m}", forecasts=(TRUTH + m,), targets=(empty,)) for m in (1.0, -1.0)]
    made = best_mean(pair)
    assert len(made.members) == 2 and made.error == pytest.approx(0.0)


def test_at_most_four_models_are_averaged() -> None:
    noisy = [candidate(f"model{n}", RNG.normal(size=TRUTH.shape)) for n in range(7)]
    assert len(selected(*noisy)) == 4


def test_model_joins_with_its_best_look_back_only() -> None:
    pair = [candidate("ridge", 1.2), candidate("ridge", 1.0), candidate("mstl", 1.1)]
    made = best_mean(pair)
    assert [each.model for each in made.members] == ["ridge", "mstl"] and made.members[0] is pair[1]


def test_mse_criterion_changes_the_selection() -> None:
    steady, often = candidate("steady", 0.5), candidate("often", np.where(np.arange(20) < 18, 0.0, 3.0)[:, None, None])
    assert selected(steady, often)[0] == "often"
    squared = [replace(each, criterion="mse") for each in (steady, often)]
    assert selected(*squared)[0] == "steady" and squared[0].error == pytest.approx(0.25)
    twice = [replace(candidate(name, error), criterion="mse") for name, error in (("one", 1.0), ("other", 1.1))]
    assert best_mean(twice).weights == pytest.approx(best_mean([replace(t, criterion="mae") for t in twice]).weights)


def test_origins_count_equally() -> None:
    made = best_mean([candidate("often", 0.0, 0.0, 1.0), candidate("steady", 0.5, 0.5, 0.5)])
    assert made.members[0].model == "often" and made.members[0].error == pytest.approx(1 / 3)


def test_failed_or_non_finite_candidates_are_ignored() -> None:
    failed, wild = CandidateResult("failed", reason="it did"), candidate("wild", float("nan"))
    assert selected(failed, wild, candidate("plain", 2.0)) == ["plain"]
    assert selected(failed, wild) == []


def test_missing_targets_are_ignored() -> None:
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


def test_short_tables_try_no_networks() -> None:
    few = names(table(120))
    assert {*NAIVE_NAMES, ZERO_SHOT, "ridge", "auto_ets", "auto_ces", "dotm", "mstl", "auto_arima", ENSEMBLE} == set(
        few
    )
    assert "fem_sm_ridge" in names(table(120), out=True)


def test_long_tables_try_networks_instead_of_classical_fits() -> None:
    long = {each.model: each for each in shortlist(table(20000, "h"), LENGTHS)}
    assert not long["fem_sm_ridge"].reason
    out = {
        name
        for name, each in long.items()
        if each.reason == "series of more than 2,000 rows are left to trained models"
    }
    assert out == {"dotm", "mstl", "auto_ets", "auto_ces", "auto_arima", ENSEMBLE}
    half_hours = {each.model: each for each in shortlist(table(2000, "30min"), LENGTHS)}
    assert not half_hours["dotm"].reason
    assert "ignore a season of more than 24 steps" in half_hours[ENSEMBLE].reason


def test_ridge_look_backs_are_tried_unless_given() -> None:
    backs = [each.seq_len for each in shortlist(table(200), LENGTHS) if each.model == "ridge"]
    assert len(backs) > 1 and backs[0] == max(back or 0 for back in backs)
    for given in (LENGTHS._replace(seq_len=30), LENGTHS._replace(protocol="lookback96")):
        assert [each.seq_len for each in shortlist(table(200), given) if each.model == "ridge"] == [None]


def planned(
    monkeypatch: pytest.MonkeyPatch, left: float | None, origins: int = 3, share: float = 1.0, **seconds: float
) -> Plan:
    """The plan for models with fits of the given `seconds`, by work as by the clock, remaining time, and share of the
    series that are compared."""
    for name in ("seconds_of_forecast", "work_of_forecast"):
        monkeypatch.setattr(planning, name, lambda each, *_: seconds[each.model])
    monkeypatch.setattr(planning.Clock, "left", left)
    candidates = [Candidate("ridge"), *(Candidate(name, slow=True) for name in seconds)]
    request = FitRequest.of("auto", {}, {}, 0.0)
    return plan(candidates, request, [table(120)] * origins, Clock(0.0, left, OF_SMALL), share)


def test_all_candidates_are_tried_given_time(monkeypatch: pytest.MonkeyPatch) -> None:
    made = planned(monkeypatch, 60.0, quick=0.01, slow=0.5)
    assert made.windows == WINDOWS and not made.notes and not any(each.reason for each in made.candidates)


def test_windows_are_reduced_before_models_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    made = planned(monkeypatch, 30.0, quick=0.1, slow=1.0)
    assert made.windows < WINDOWS and not any(each.reason for each in made.candidates)
    assert made.notes == (
        f"to stay within the time limit, candidates are compared on {made.windows} windows of each origin",
    )


def test_single_origin_keeps_sixteen_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "LONG", 0)
    made = planned(monkeypatch, 20.0, 1, quick=0.01, slow=0.5)
    assert made.windows == 16 and not any(each.reason for each in made.candidates)
    made = planned(monkeypatch, 20.0, 1, quick=0.01, slow=0.9)
    assert made.windows == 32 and [each.model for each in made.candidates if each.reason] == ["slow"]


def test_slowest_model_is_dropped_first(monkeypatch: pytest.MonkeyPatch) -> None:
    made = planned(monkeypatch, 10.0, quick=0.02, slow=0.9)
    assert [each.model for each in made.candidates if each.reason] == ["slow"] and made.windows == WINDOWS
    assert "each forecast takes about 0.9 s" in made.candidates[2].reason


def test_scores_on_all_series_take_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    made = planned(monkeypatch, 60.0, share=1 / 200, quick=0.01, slow=0.5)
    assert [each.model for each in made.candidates if each.reason] == ["slow"]


def test_fit_exceeding_the_limit_is_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    started = list[str]()
    made = planned(monkeypatch, 10.0, quick=0.3, auto_arima=9.0)
    assert "takes about 9 s" in made.candidates[2].reason

    def timed(candidate: Candidate, *_: object) -> float:
        started.append(candidate.model)
        return 0.3

    monkeypatch.setattr(planning, "seconds_of_forecast", timed)
    plan(made.candidates[:2], FitRequest.of("auto", {}, {}, 0.0), [table(120)], Clock(0.0, 10.0))
    assert started == ["quick"]


def test_without_a_limit_work_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    made = planned(monkeypatch, None, quick=0.01, slow=0.1)
    assert made.windows == WINDOWS and not any(each.reason for each in made.candidates)
    made = planned(monkeypatch, None, quick=0.01, slow=3.0)
    assert [each.model for each in made.candidates if each.reason] == ["slow"]
    assert "too long without a time limit" in made.candidates[2].reason


def test_work_left_by_the_trials_scores_more_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    made = planned(monkeypatch, None, quick=0.01, slow=0.9)
    assert made.scored(["quick"]) == SCORED and made.scored(["ridge"]) is None
    assert FEWEST_SCORED <= (made.scored(["quick", "slow"]) or 0) < SCORED


def test_many_windows_without_fitted_models(monkeypatch: pytest.MonkeyPatch) -> None:
    assert planned(monkeypatch, None).windows == MANY_WINDOWS


def test_small_tables_get_little_work_and_no_time_limit() -> None:
    request, timed = (FitRequest.of("auto", given, {}, 0.0) for given in ({}, {"max_time": "9m"}))
    assert [Clock.of(each, table(120)).limit for each in (request, timed)] == [None, 540.0]
    assert Clock.of(request, table(120)).allowed == OF_SMALL and Clock.of(request, table(6000, "h")).allowed == OF_LARGE


@pytest.mark.parametrize("model", ["nhits", "fem_sm_ridge"])
def test_work_limits_the_steps_of_networks(model: str) -> None:
    data, request = table(1500), FitRequest.of("auto", {}, {}, 0.0)
    request = replace(request, lengths=LENGTHS)
    steps = [
        within(Candidate(model, learns=True), request, data, most).training.get("max_steps") for most in (4, 8, 1e3)
    ]
    few, more, usual = steps
    assert usual is None and few is not None and more is not None and few < more < 1000
    assert "too long" in within(Candidate(model, learns=True), request, data, 0.1).reason
    asked = replace(FitRequest.of("auto", {"max_steps": 7}, {}, 0.0), lengths=LENGTHS)
    assert not within(Candidate(model, learns=True), asked, data, 0.1).training


def test_work_limits_the_rows_of_trees() -> None:
    request = replace(FitRequest.of("auto", {}, {}, 0.0), lengths=LENGTHS)
    rows = [within(Candidate("boost", learns=True), request, table(1500), most).settings["rows"] for most in (8.0, 1e4)]
    assert rows == [20_000, 100_000]


def test_work_grows_with_rows_and_season() -> None:
    fits = [Fit(name, season, 12) for name in ("AutoETS", "AutoARIMA", "MSTL") for season in (1, 12)]
    assert all(work_of_fit(each, 400) > work_of_fit(each, 100) > 0 for each in fits)
    assert work_of_fit(fits[3], 300) > 4 * work_of_fit(fits[2], 300)
    assert work_of_fit(Fit("AutoARIMA", 168, 12), 400) < work_of_fit(fits[3], 400)  # loess removes long seasons
