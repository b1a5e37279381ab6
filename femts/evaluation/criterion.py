"""Criterion for model selection by `auto`: a loss of every value forecast on the validation split."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from femts.data.dataset import Dataset
from femts.data.preprocess import Preprocess
from femts.errors import UsageError
from femts.evaluation.constants import TAILS
from femts.evaluation.scale import SeasonalScale

Array = NDArray[np.float64]

CRITERIA = {
    "mae": "mean absolute error, scaled units",
    "mse": "mean squared error, scaled units",
    "mase": "mean absolute scaled error (MASE)",
    "wql": "weighted quantile loss (WQL)",
}
DEFAULT = "mae"


def losses(criterion: str, errors: Array) -> Array:
    """Loss of each of `errors` (W, P, T), NaN where the target is missing; for `mase` and `wql` in their units.

    The quantiles scored by WQL are symmetric around the forecast, like the intervals of femts, at distances given by
    order statistics of the errors of each target.
    """
    size = np.abs(errors)
    if criterion == "mse":
        return np.asarray(size**2)
    if criterion != "wql":
        return size
    made = size / 2  # the pinball loss of the median
    for tail in TAILS:  # loss of both ends: half the interval score times the probability outside
        half_width = np.nanquantile(size, 1 - 2 * tail, axis=(0, 1))
        made = made + 2 * tail * half_width + np.maximum(size - half_width, 0)
    return np.asarray(made * 2 / (2 * len(TAILS) + 1))


def units(criterion: str, data: Dataset, preprocess: Preprocess, series: NDArray[np.int64], targets: Array) -> Array:
    """Factors (W, 1, T) from scaled errors to the units of `criterion`; NaN for a series that has none.

    Args:
        criterion: one of `CRITERIA`.
        data: dataset whose training rows give the seasonal error of MASE.
        preprocess: preprocessing of the scaled units.
        series: series number of each window, (W,).
        targets: (W, P, T) in scaled units.

    Raises:
        UsageError: The units are not a multiple of scaled units.
    """
    if criterion in ("mae", "mse"):
        return np.ones((len(series), 1, targets.shape[-1]))
    if not preprocess.linear:
        raise UsageError(
            f"Metric '{criterion}' cannot be used with a transform, because transformed units are not proportional to raw "
            "ones; use mae or mse."
        )
    scale, mean = (each[:, : targets.shape[-1]] for each in (preprocess.scaler.scale, preprocess.scaler.mean))
    scale, mean = (each[series if len(each) > 1 else np.zeros_like(series)] for each in (scale, mean))
    if criterion == "mase":
        change = SeasonalScale.of(data).absolute[series]
        return np.asarray(np.divide(scale, change, out=np.full_like(change, np.nan), where=change > 0)[:, None])
    size = np.nanmean(np.abs(targets * scale[:, None] + mean[:, None]), axis=(0, 1))
    return np.asarray(np.divide(scale, size, out=np.full_like(scale, np.nan), where=size > 0)[:, None])
