"""Conformal intervals around points and learned quantiles, and their coverage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from even_intervals import Covered, covering, even_intervals
from every_window import every_window
from scipy.stats import norm
from sklearn.metrics import mean_pinball_loss
from torch import Tensor

from femts.config.model import ModelConfig
from femts.data.batch import Batch
from femts.data.resident import Context, ScaledSeries
from femts.data.windows import Windows
from femts.errors import RunFailure, UsageError
from femts.evaluation.conformal import calibrate, passes
from femts.evaluation.constants import GRID, LEVELS
from femts.evaluation.coverage import Bounds
from femts.evaluation.evaluator import evaluate
from femts.evaluation.intervals import Intervals, check_levels, rank, refuse_unreachable, with_bounds
from femts.evaluation.quantiles import PinballSums, check_quantiles, conformal_bounds, ends_of, level_of
from femts.models.base import MEMBER_QUANTILES, ForecastModel
from femts.models.parts.quantiles import quantile_at

KNOWN = (0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975)
P, C = 2, 2


class Spread(ForecastModel):
    """Quantiles of a centered normal with `factor` times the last value as deviation; zeros without quantiles."""

    def __init__(self, factor: float = 1.0, known: Sequence[float] = KNOWN) -> None:
        super().__init__(ModelConfig(1, P, C), known)
        self.factor, self.calls = factor, 0

    def forward(self, batch: Batch) -> Tensor:
        self.calls += 1
        places = torch.tensor(self.factor * norm.ppf(self.quantiles or (0.5,))).float()
        return (batch.past[:, -1:].abs() * places[:, None]).repeat(1, P, 1)


def windows(count: int, seed: int = 0, gaps: float = 0.0) -> Windows:
    """Independent windows of 1 + P rows, of which the last P are normal noise as wide as the first row says.

    `Windows` of stride 1 would overlap and see each other's noise as look-back, so these are picked apart.
    """
    rng = np.random.default_rng(seed)
    wide = rng.uniform(0.5, 3, (count, 1, C))
    rows = np.concatenate([wide, wide * rng.normal(size=(count, P, C))], axis=1).reshape(-1, C)
    observed = None if not gaps else torch.from_numpy(rng.random(rows.shape) >= gaps)

    class Apart(Windows):
        def _rows(self, index: Tensor, ahead: int | None = None) -> Tensor:
            return (1 + P) * index[:, None] + self._steps

    spans = torch.tensor([[0, len(rows), 0, count]])
    return Apart(ScaledSeries(torch.from_numpy(rows).float(), observed), 1, P, spans)


def forecasts(model: ForecastModel, these: Windows) -> tuple[Tensor, np.ndarray]:
    """Quantiles (n, P, Q, C), or points without quantiles, and targets."""
    batch, y = every_window(these)
    made = model.rolled_out(batch, P)
    return made if model.quantiles else made[:, :, None], y.numpy()


def uncalibrated(forecast: Tensor, known: Sequence[float], level: float) -> tuple[np.ndarray, np.ndarray]:
    """Interval bounds before calibration."""
    low, high = (quantile_at(forecast, known or (0.5,), end).numpy() for end in ends_of(level))
    return low, high


def test_half_widths_are_order_statistics_of_residuals() -> None:
    for known in [KNOWN, (0.5,), ()]:
        model, val = Spread(0.7, known), windows(139)
        made, _ = calibrate(model, val)
        assert (made.levels, made.windows, made.steps) == (LEVELS if known else GRID[:-1], 139, P)
        forecast, y = forecasts(model, val)
        for level, widths in zip(made.levels, made.half_widths, strict=True):
            low, high = uncalibrated(forecast, known, level)
            outside = np.sort(np.maximum(low - y, y - high), axis=0)
            np.testing.assert_array_equal(widths, outside[math.ceil(140 * level / 100) - 1])
        if known == KNOWN:
            assert (made.half_widths[1:] > 0).all(), "too narrow quantiles move outwards"
            assert (calibrate(Spread(3.0), val)[0].half_widths[:4] < 0).all(), "and too wide ones inwards"


@pytest.mark.parametrize(("known", "most"), [(KNOWN, 10**9), ((), 1)], ids=["quantiles", "point"])
def test_blockwise_calibration_is_equal(known: tuple[float, ...], most: int) -> None:
    model, val = Spread(known=known), windows(139)
    made, _ = calibrate(model, val, batch_size=1000, most=most)
    assert model.calls == passes(139, P, C, most, learned=5 if known else 0) == {1: P, 10**9: 1}[most]
    again, _ = calibrate(Spread(known=known), val, batch_size=7)
    np.testing.assert_array_equal(made.half_widths, again.half_widths)


@pytest.mark.parametrize(
    ("factor", "known"), [(0.3, KNOWN), (1.0, ()), (3.0, KNOWN)], ids=["too narrow", "right", "too wide"]
)
def test_coverage_of_exchangeable_windows(factor: float, known: tuple[float, ...]) -> None:
    """Coverage holds for any quantiles, within 4 standard deviations."""
    model, val, test = Spread(factor, known), windows(2000), windows(10_000, seed=1)
    made, _ = calibrate(model, val)
    covered = covering(made, test, known)
    evaluate(model, test, also=[covered.sums])
    for level, measured in zip(covered.levels, covered.of("coverage"), strict=True):
        share = level / 100
        deviation = math.sqrt(share * (1 - share) * (1 / len(val) + 1 / len(test)))
        assert np.abs(measured - share).max() < 4 * deviation


@pytest.mark.parametrize(("known", "gaps"), [(KNOWN, 0.3), ((), 0.0), ((), 0.3)])
def test_coverage_width_and_pinball_match_sklearn(gaps: float, known: tuple[float, ...]) -> None:
    model, test = Spread(0.8, known), windows(90, 1, gaps)
    made, _ = calibrate(model, windows(300, 0, gaps))
    one_by_one, at_once = (covering(made, test, known) for _ in range(2))
    own = [PinballSums(model)] if known else []
    evaluate(model, test, 1, also=[one_by_one.sums])
    evaluate(model, test, 1000, also=[at_once.sums, *own])
    kinds = ("coverage", "width", "pinball")
    coverage, width, pinball = (at_once.of(kind) for kind in kinds)
    for kind, made_at_once in zip(kinds, (coverage, width, pinball), strict=True):
        np.testing.assert_allclose(one_by_one.of(kind), made_at_once, rtol=1e-12)
    np.testing.assert_allclose(one_by_one.crps, at_once.crps, rtol=1e-12)
    forecast, target = forecasts(model, test)
    seen = test.seen(torch.arange(len(test)))
    there = np.ones_like(target, dtype=bool) if seen is None else (seen[:, 1:] & seen[:, :1]).numpy()
    assert gaps == 0 or not there.all()
    for k, level in enumerate(at_once.levels):
        half = made.half_width(level, P)
        low, high = uncalibrated(forecast, known, level)
        lower, upper = low - half, high + half
        for step, channel in np.ndindex(P, C):
            some = there[:, step, channel]
            below, above, y = (np.float64(v[some, step, channel]) for v in (lower, upper, target))
            if not known:  # the others hold the median and each other
                assert coverage[k, step, channel] == pytest.approx(np.mean((below <= y) & (y <= above)))
                assert width[k, step, channel] == pytest.approx(np.mean(above - below))
            losses = [mean_pinball_loss(y, end, alpha=a) for end, a in zip((below, above), ends_of(level), strict=True)]
            assert pinball[k, step, channel] == pytest.approx(np.mean(losses), rel=1e-6 if not known else 0.05)
    if known:
        expected = [
            mean_pinball_loss(target[there], forecast[:, :, q].numpy()[there], alpha=a) for q, a in enumerate(known)
        ]
        assert own[0].mean == pytest.approx(np.mean(expected), rel=1e-6) and own[0].sums[1] == there.sum()


@pytest.mark.parametrize("known", [KNOWN, ()], ids=["quantiles", "point"])
def test_interpolated_levels_are_nested_and_cover(known: tuple[float, ...]) -> None:
    model, val, test = Spread(known=known), windows(2000), windows(10_000, seed=1)
    made, _ = calibrate(model, val)
    levels = (5.0, 25.0, 50.0, 65.0, 80.0, 85.0, 97.5)
    covered = Covered(Bounds(made, test, known, levels))
    evaluate(model, test, also=[covered.sums])
    assert covered.levels == tuple(sorted({*levels, *LEVELS}))
    for level, measured in zip(covered.levels, covered.of("coverage"), strict=True):
        assert np.abs(measured - level / 100).max() < 0.05
    forecast, _ = forecasts(model, test)
    quantiles = forecast if known else None
    points = forecast[:, :, known.index(0.5)] if known else forecast
    bounds = made.bounds(points, test.context(torch.arange(len(test))), quantiles, known, levels)
    lower, upper = (torch.stack(side) for side in zip(*bounds.values(), strict=True))
    assert (lower.diff(dim=0) <= 0).all() and (upper.diff(dim=0) >= 0).all()
    own = made.bounds(points, test.context(torch.arange(len(test))), quantiles, known)
    assert all(torch.equal(bounds[level][0], own[level][0]) for level in (50.0, 80.0))


def test_intervals_are_nested_and_contain_the_median() -> None:
    forecast, _ = forecasts(Spread(), windows(50))
    levels = (50.0, 80.0, 95.0)
    corrections = np.random.default_rng(0).normal(-0.5, 2, (3, P, C)).astype(np.float32)
    bounds = list(conformal_bounds(forecast, KNOWN, levels, list(torch.from_numpy(corrections).double())))
    lower, upper = (torch.stack(side) for side in zip(*bounds, strict=True))
    median = forecast[:, :, 3].double()
    assert (lower <= median).all() and (upper >= median).all()
    assert (lower.diff(dim=0) <= 0).all() and (upper.diff(dim=0) >= 0).all()
    plain = list(conformal_bounds(forecast, KNOWN, levels, list(torch.full((3, P, C), 0.25))))
    torch.testing.assert_close(plain[1][0], forecast[:, :, 1].double() - 0.25)
    torch.testing.assert_close(plain[2][1], forecast[:, :, 6].double() + 0.25)


def test_quantile_interpolation_and_extrapolation() -> None:
    forecast = torch.tensor([-3.0, 0.0, 5.0])[None, None, :, None]
    for quantile, expected in ((0.1, -3), (0.5, 0), (0.7, 2.5), (0.9, 5), (0.3, -1.5), (0.01, -3), (0.999, 5)):
        assert float(quantile_at(forecast, (0.1, 0.5, 0.9), quantile)) == pytest.approx(expected, abs=1e-6)


def test_ranks_and_levels_are_exact() -> None:
    for whole, count, expected in ((95, 19, 19), (95, 18, 19), (80, 4, 4), (50, 1, 1), (99, 99, 99)):
        assert rank(whole, count) == expected
    for level in (0.1, 29, 55, 57, 58, 95, 99.9):
        for n in range(1, 400):
            k, share = rank(level, n), Fraction(str(level)) / 100
            assert Fraction(k - 1, n + 1) < share <= Fraction(k, n + 1)
    assert [ends_of(each) for each in (50, 80, 95)] == [(0.25, 0.75), (0.1, 0.9), (0.025, 0.975)]
    for level in (50.0, 80.0, 85.0, 90.0, 95.0, 97.5, 99.0, 99.9):
        assert [level_of(end) for end in ends_of(level)] == [level, level]
    assert level_of(0.5) == 0
    assert even_intervals((80.0, 95.0), np.zeros((2, 1, 1))).quantiles == (0.025, 0.1, 0.5, 0.9, 0.975)


def test_uncalibrated_levels_are_refused() -> None:
    made, _ = calibrate(Spread(known=()), windows(40))
    assert (made.windows, made.disjoint, made.few, made.levels) == (40, 20, False, GRID[:-3])
    assert made.half_width(95, 1).shape == (1, C)
    for levels, steps, says in (
        ([99], 1, r"Level 99 is not calibrated, because 40 .*too few; use at most 95\.$"),
        (
            [95.1],
            1,
            r"Level 95.1 is not calibrated; use at most 95, or run .*--level 95.1` \(quantiles 0\.0245 and",
        ),
        ([95], 6, r"calibrated for 2 steps, not for 6; forecast at most 2, or run .*--horizon 6"),
    ):
        with pytest.raises(UsageError, match=says):
            made.check(levels, steps)
    refuse_unreachable([95], 20, 20)
    with pytest.raises(
        UsageError, match=r"Level 95.5 cannot be calibrated on 20 .*infinite; use a level of at most 95,"
    ):
        refuse_unreachable([95.5], 20, 20)


def test_non_finite_forecasts_are_refused() -> None:
    with pytest.raises(RunFailure, match="not finite"):
        calibrate(Spread(float("inf")), windows(139))


def test_intervals_roundtrip() -> None:
    made, _ = calibrate(Spread(), windows(139), (80, 99.5, 2.5))
    again = Intervals.from_bytes(made.to_bytes())
    assert (again.levels, again.windows) == (made.levels, made.windows) == ((2.5, 80), 139)
    np.testing.assert_array_equal(again.half_widths, made.half_widths)


def test_invalid_levels_and_quantiles_are_refused() -> None:
    cases: list[tuple[Any, ...]] = [
        (check_levels, [80, 100], "Level 100 is not a percentage between 1 and 100"),
        (check_levels, [0.8], "Level 0.8 is not a percentage"),
        (check_levels, [float("nan")], "Level nan is not"),
        (check_levels, ["high"], "Level 'high' is not a number"),
        (check_levels, "80", "Level '80' is not a number"),
        (check_levels, [True], "Level 'True' is not a number"),
        (check_levels, [], "No level is given"),
        (check_quantiles, [0.5, 1.0], "Quantile '1.0' is not a number between 0 and 1"),
        (check_quantiles, [float("nan")], "Quantile 'nan' is not"),
        (check_quantiles, ["low"], "Quantile 'low' is not"),
        (check_quantiles, "0.5", "Quantile '0.5' is not"),
        (check_quantiles, [True], "Quantile 'True' is not"),
        (check_quantiles, [], "No quantile is given"),
    ]
    for check, given, says in cases:
        with pytest.raises(UsageError, match=says):
            check(given)


def test_levels_and_quantiles_are_deduplicated_in_order() -> None:
    levels: list[Any] = [95, 80, 95.0, np.int64(80)]
    assert check_levels(levels) == (95.0, 80.0) and check_levels(80) == (80.0,)
    assert check_quantiles([0.9, np.float64(0.1), 0.9]) == (0.9, 0.1)


def test_interval_columns_follow_their_column() -> None:
    forecast = pd.DataFrame({"OT": [1.0, 2.0], "load": [3.0, 4.0]})
    bounds = {"lo-80": np.array([[0.9, 2.0], [1.8, 2.0]]), "hi-97.5": np.array([[1.3, 6.0], [2.4, 8.0]])}
    table = with_bounds(forecast, bounds)
    assert list(table) == ["OT", "OT-lo-80", "OT-hi-97.5", "load", "load-lo-80", "load-hi-97.5"]
    np.testing.assert_allclose(table["OT-hi-97.5"], [1.3, 2.4])
    np.testing.assert_allclose(table["load-lo-80"], [2.0, 2.0])
    with pytest.raises(UsageError, match="named like an interval bound"):
        with_bounds(forecast.rename(columns={"load": "OT-lo-80"}), bounds)


def test_intervals_of_a_mean_lie_between_its_own_and_those_of_its_members() -> None:
    members = even_intervals([80.0], np.full((1, 1, 1), 1.0))
    made = replace(even_intervals([80.0], np.full((1, 1, 1), 2.0)), of_members=members)
    zeros = torch.zeros(1, 1, 1, dtype=torch.float64)
    quantiles = torch.tensor([-4.0 if level <= 0.1 else 2.0 if level >= 0.9 else 0.0 for level in MEMBER_QUANTILES])
    context = Context(torch.zeros(1, dtype=torch.int64), zeros, zeros, of_members=quantiles.view(1, 1, -1, 1))
    for intervals in (made, Intervals.from_bytes(made.to_bytes()), made.longer(1)):
        low, high = intervals.bounds(zeros, context)[80.0]
        assert low.item() == (-2 + -4 - 1) / 2
        assert high.item() == (2 + 2 + 1) / 2
