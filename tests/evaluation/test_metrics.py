"""Running sums of errors."""

import numpy as np
import pytest
import torch

from femts.evaluation.sums import ErrorSums


def test_uneven_batches_equal_the_overall_mean() -> None:
    rng = np.random.default_rng(0)
    forecast, target = rng.normal(size=(2, 10, 4, 3)).astype(np.float32)
    sums = ErrorSums()
    for part in (slice(0, 7), slice(7, 10)):
        sums.add(torch.from_numpy(forecast[part]), torch.from_numpy(target[part]))
    error = forecast.astype(np.float64) - target
    assert sums.mse == pytest.approx((error**2).mean(), rel=1e-6)
    assert sums.mae == pytest.approx(np.abs(error).mean(), rel=1e-6)
    assert sums.sums[2] == 120
    # The planted fault: a mean of batch means is another number here.
    wrong = np.mean([(error[:7] ** 2).mean(), (error[7:] ** 2).mean()])
    assert abs(wrong - sums.mse) > 1e-3


def test_small_errors_are_not_lost_in_a_large_sum() -> None:
    """A float32 sum of ones stops at 2^24."""
    sums = ErrorSums()
    sums.add(torch.full((1,), 2.0**12), torch.zeros(1))
    for _ in range(100):
        sums.add(torch.full((1,), 0.5), torch.zeros(1))
    assert sums.sums[0].item() == 2.0**24 + 25


def test_broadcasting_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\(2, 3, 1\).*\(2, 3, 4\)"):
        ErrorSums().add(torch.zeros(2, 3, 1), torch.zeros(2, 3, 4))
