"""CRPS from quantiles, compared with closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from even_intervals import covered, even_intervals
from scipy.stats import norm

from femts.evaluation.constants import LEVELS

N = 20_000


def closed_form(y: np.ndarray, deviation: float) -> np.ndarray:
    """CRPS of a centered normal (Gneiting & Raftery, 2007, eq. 21)."""
    z = y / deviation
    return np.asarray(deviation * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / math.sqrt(math.pi)))


def crps_of_normal(levels: tuple[float, ...], deviation: float, y: np.ndarray) -> float:
    """CRPS from the quantiles of a centered normal."""
    half = deviation * norm.ppf(0.5 + np.array(levels) / 200)
    target = torch.from_numpy(y).float()[:, None, None]
    sums = covered(even_intervals(levels, half[:, None, None]), torch.zeros_like(target), target)
    assert sums.crps.shape == (1, 1)
    return sums.crps.item()


def test_normal_crps_matches_closed_form() -> None:
    """Five levels underestimate the CRPS slightly."""
    for deviation in [0.5, 1.0, 2.0]:
        for levels, apart in [(tuple(np.arange(0.5, 100.0)), 0.003), (LEVELS, 0.06)]:
            y = np.random.default_rng(0).normal(size=N)
            expected = closed_form(y, deviation).mean()
            found = crps_of_normal(levels, deviation, y)
            assert found == pytest.approx(expected, rel=apart)


def test_the_true_distribution_scores_best() -> None:
    y = np.random.default_rng(1).normal(size=N)
    scores = {deviation: crps_of_normal(LEVELS, deviation, y) for deviation in (0.6, 0.8, 1.0, 1.25, 1.6)}
    assert min(scores, key=lambda deviation: scores[deviation]) == 1.0


def test_degenerate_forecast_scores_absolute_error() -> None:
    y = torch.tensor([1.0, -2.0, 4.0])[:, None, None]
    for levels in ((80.0,), LEVELS, (2.5, 60.0, 97.0)):
        sums = covered(even_intervals(levels, np.zeros((len(levels), 1, 1))), torch.full_like(y, 0.5), y)
        assert sums.crps.item() == pytest.approx((0.5 + 2.5 + 3.5) / 3)


def test_missing_values_are_ignored() -> None:
    y = torch.tensor([1.0, torch.nan, 4.0])[:, None, None]
    even, zeros = even_intervals((80.0,), np.ones((1, 1, 1))), torch.zeros_like(y)
    assert covered(even, zeros, y).crps.item() == covered(even, zeros[::2], y[::2]).crps.item()
