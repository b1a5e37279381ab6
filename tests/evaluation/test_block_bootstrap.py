"""Block bootstrap intervals of a mean."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from femts.evaluation.block_bootstrap import mean_interval

NORMAL = 1.96


def overlapping(rng: np.random.Generator, count: int = 200, steps: int = 12) -> NDArray[np.float64]:
    """Mean-zero errors of windows that share all but one of their `steps`."""
    return np.convolve(rng.normal(size=count + steps - 1), np.ones(steps) / steps, "valid")


def naive_width(values: NDArray[np.float64]) -> float:
    return float(2 * NORMAL * values.std(ddof=1) / np.sqrt(len(values)))


def test_independent_values_match_the_normal_interval() -> None:
    values = np.random.default_rng(0).normal(size=500)
    low, high = mean_interval(values, 1)
    assert high - low == pytest.approx(naive_width(values), rel=0.05)
    assert low < values.mean() < high
    assert (low, high) == mean_interval(values, 1), "the draws are seeded"


def test_autocorrelated_values_have_a_wider_interval() -> None:
    rng, inside, naively = np.random.default_rng(1), 0, 0
    for _ in range(200):
        values = overlapping(rng)
        low, high = mean_interval(values, 24)
        assert high - low > 1.5 * naive_width(values)
        inside += low <= 0 <= high
        naively += abs(values.mean()) <= naive_width(values) / 2
    assert inside >= 180 and naively <= 120


def test_interval_around_a_given_mean() -> None:
    values = overlapping(np.random.default_rng(2))
    low, high = mean_interval(values, 24)
    moved = mean_interval(values, 24, values.mean() + 1)
    assert moved == pytest.approx((low + 1, high + 1))
    assert mean_interval(np.zeros(50), 5) == (0, 0)
