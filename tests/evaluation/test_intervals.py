"""Split-conformal half-widths and what they cover, against computations by hand."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from even_intervals import covering, even_intervals
from every_window import every_window
from sklearn.metrics import mean_pinball_loss
from torch import Tensor

from femts.config.model import ModelConfig
from femts.data.batch import Batch
from femts.data.windows import Windows
from femts.errors import RunFailure, UsageError
from femts.evaluation.conformal import calibrate, passes
from femts.evaluation.evaluator import evaluate
from femts.evaluation.intervals import (
    Intervals,
    check_levels,
    rank,
    refuse_unreachable,
    with_bounds,
)
from femts.models.naive import Naive

MODEL = Naive(ModelConfig(10, 5, 3))


@pytest.fixture
def windows() -> Windows:
    return Windows(torch.randn(153, 3, generator=torch.Generator().manual_seed(0)), 10, 5)


def errors_of(windows: Windows) -> np.ndarray:
    """Absolute errors of `naive`, (n, P, C)."""
    batch, y = every_window(windows)
    return (y - batch.past[:, -1:]).abs().numpy()


def test_half_widths_are_the_corrected_quantiles_of_the_absolute_errors(windows: Windows) -> None:
    n = len(windows)
    assert n == 139
    rising = np.sort(errors_of(windows), axis=0)
    made, _ = calibrate(MODEL, windows)
    assert (made.levels, made.windows, made.steps) == ((50, 80, 90, 95, 99), n, 5)
    for level, widths in zip(made.levels, made.half_widths, strict=True):
        np.testing.assert_array_equal(widths, rising[math.ceil(140 * level / 100) - 1])


@pytest.mark.parametrize(
    ("level", "windows", "expected"), [(95, 19, 19), (95, 18, 19), (80, 4, 4), (50, 1, 1), (99, 99, 99)]
)
def test_ranks_are_exact_where_floats_are_not(level: float, windows: int, expected: int) -> None:
    assert rank(level, windows) == expected


@pytest.mark.parametrize("level", [0.1, 29, 55, 57, 58, 95, 99.9])
def test_ranks_need_no_rounding(level: float) -> None:
    for n in range(1, 400):
        k, share = rank(level, n), Fraction(str(level)) / 100
        assert Fraction(k - 1, n + 1) < share <= Fraction(k, n + 1)


@pytest.mark.parametrize("most", [1, 2 * 139 * 3, 4 * 139 * 3 + 1, 10**9])
def test_blocks_of_steps_make_no_difference(windows: Windows, most: int) -> None:
    calls = 0

    class Count(Naive):
        def forward(self, batch: Batch) -> Tensor:
            nonlocal calls
            calls += 1
            return super().forward(batch)

    made, _ = calibrate(Count(ModelConfig(10, 5, 3)), windows, batch_size=1000, most=most)
    np.testing.assert_array_equal(made.half_widths, calibrate(MODEL, windows, batch_size=7)[0].half_widths)
    assert calls == passes(139, 5, 3, most) == {1: 5, 834: 5, 1669: 3, 10**9: 1}[most]


def test_levels_beyond_the_windows_are_left_out_and_refused_by_name(windows: Windows) -> None:
    few = Windows(windows.rows[: 10 + 1 + 19], 10, 1)
    made, _ = calibrate(MODEL, few)
    assert (made.windows, made.disjoint, made.few, made.levels) == (20, 20, False, (50, 80, 90, 95))
    assert made.at([95], 1).shape == (1, 1, 3)
    with pytest.raises(
        UsageError, match=r"Level 99 is not calibrated, for 20 .*too few for it; choose from 50, 80, 90, 95\.$"
    ):
        made.at([99], 1)
    with pytest.raises(
        UsageError,
        match=r"Level 85 is not calibrated; choose from .*--level 85` \(quantiles 0\.075 and 0\.925\)\.$",
    ):
        made.at([85], 1)
    with pytest.raises(UsageError, match=r"calibrated for 1 steps, not for 6; ask for up to 1, or run .*--pred-len 6"):
        made.at([95], 6)
    refuse_unreachable([95], 20, 20)
    with pytest.raises(UsageError, match=r"Level 95.5 cannot be calibrated on 20 .*infinite; ask for at most 95,"):
        refuse_unreachable([95.5], 20, 20)


def test_forecasts_that_are_not_finite_have_no_intervals(windows: Windows) -> None:
    class Broken(Naive):
        def forward(self, batch: Batch) -> Tensor:
            return super().forward(batch) / 0

    with pytest.raises(RunFailure, match="not finite"):
        calibrate(Broken(ModelConfig(10, 5, 3)), windows)


def test_exchangeable_errors_are_covered_as_promised() -> None:
    """Windows of white noise around a constant forecast: errors are independent, so 4 standard
    deviations bound the share."""
    noise = torch.from_numpy(np.random.default_rng(0).standard_t(3, (12_000, 2))).float()

    class Zero(Naive):
        def forward(self, batch: Batch) -> Tensor:
            return torch.zeros_like(batch.past)

    model = Zero(ModelConfig(1, 1, 2))
    val, test = Windows(noise[:2000], 1, 1), Windows(noise[2000:], 1, 1)
    made, _ = calibrate(model, val)
    sums = covering(made, test)
    evaluate(model, test, also=[sums])
    for level, measured in zip(made.levels, sums.coverage, strict=True):
        share = level / 100
        deviation = math.sqrt(share * (1 - share) * (1 / len(val) + 1 / len(test)))
        assert np.abs(measured - share).max() < 4 * deviation


def test_coverage_width_and_pinball_against_sklearn(windows: Windows) -> None:
    made, _ = calibrate(MODEL, windows)
    levels = (80.0, 95.0)
    test = Windows(torch.randn(90, 3, generator=torch.Generator().manual_seed(1)) * 1.3, 10, 5)
    one_by_one, at_once = (covering(even_intervals(levels, made.at(levels, 5)), test) for _ in range(2))
    evaluate(MODEL, test, 1, also=[one_by_one])
    evaluate(MODEL, test, 1000, also=[at_once])
    assert np.array_equal(one_by_one.coverage, at_once.coverage)
    batch, y = every_window(test)
    forecast = MODEL(batch).double().numpy()
    target = y.double().numpy()
    for k, level in enumerate(levels):
        half = made.at([level], 5)[0].astype(np.float64)
        inside = np.abs(batch.past[:, -1:].numpy() - y.numpy()) <= made.at([level], 5)[0]
        np.testing.assert_allclose(at_once.coverage[k], inside.mean(0), rtol=1e-12)
        np.testing.assert_allclose(at_once.width[k], 2 * half, rtol=1e-12)
        low, high = (1 - level / 100) / 2, (1 + level / 100) / 2
        for step, channel in np.ndindex(5, 3):
            truth, middle, reach = target[:, step, channel], forecast[:, step, channel], half[step, channel]
            ends = [
                mean_pinball_loss(truth, middle - reach, alpha=low),
                mean_pinball_loss(truth, middle + reach, alpha=high),
            ]
            assert at_once.pinball[k, step, channel] == pytest.approx(np.mean(ends), rel=1e-5)
    np.testing.assert_array_equal(one_by_one.coverage, at_once.coverage)
    np.testing.assert_allclose(one_by_one.pinball, at_once.pinball, rtol=1e-12)
    overall = at_once.overall((80.0, 95.0, 99.0))
    assert list(overall) == ["80", "95"]
    assert overall["80"] == pytest.approx({"coverage": at_once.coverage[0].mean(), "width": at_once.width[0].mean()})


def test_intervals_survive_their_file(windows: Windows) -> None:
    made, _ = calibrate(MODEL, windows, (80, 99.5, 2.5))
    again = Intervals.from_bytes(made.to_bytes())
    assert (again.levels, again.windows) == (made.levels, made.windows) == ((2.5, 80), 139)
    np.testing.assert_array_equal(again.half_widths, made.half_widths)


@pytest.mark.parametrize(
    ("levels", "says"),
    [
        ([0], "Level 0 is not between 0 and 100"),
        ([80, 100], "Level 100 is not between"),
        ([-5], "Level -5 is not"),
        ([float("nan")], "Level nan is not"),
        (["high"], "Level 'high' is not a number"),
        ("80", "Level '80' is not a number"),
        ([True], "Level 'True' is not a number"),
        ([None], "Level 'None' is not a number"),
        ([], "No level is named"),
    ],
)
def test_levels_that_are_none_are_refused(levels: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        check_levels(levels)


def test_levels_are_taken_in_their_order_and_once() -> None:
    levels: list[Any] = [95, 80, 95.0, np.int64(80)]
    assert check_levels(levels) == (95.0, 80.0)
    assert check_levels(80) == (80.0,)


def test_bounds_stand_beside_their_column() -> None:
    forecast = pd.DataFrame({"OT": [1.0, 2.0], "load": [3.0, 4.0]})
    bounds = {"lo-80": np.array([[0.9, 2.0], [1.8, 2.0]]), "hi-97.5": np.array([[1.3, 6.0], [2.4, 8.0]])}
    table = with_bounds(forecast, bounds)
    assert list(table) == ["OT", "OT-lo-80", "OT-hi-97.5", "load", "load-lo-80", "load-hi-97.5"]
    np.testing.assert_allclose(table["OT-hi-97.5"], [1.3, 2.4])
    np.testing.assert_allclose(table["load-lo-80"], [2.0, 2.0])
    with pytest.raises(UsageError, match="called like a bound"):
        with_bounds(forecast.rename(columns={"load": "OT-lo-80"}), bounds)
