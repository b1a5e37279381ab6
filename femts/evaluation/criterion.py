"""What `auto` chooses by: a loss of every value that candidates forecast on the validation split."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from femts.data.dataset import Dataset
from femts.data.preprocess import Preprocess
from femts.errors import UsageError
from femts.evaluation.series_scores import seasonal_changes

Array = NDArray[np.float64]

CRITERIA = {
    "mae": "mean absolute error, scaled units",
    "mse": "mean squared error, scaled units",
    "mase": "mean absolute scaled error (MASE)",
    "wql": "weighted quantile loss (WQL)",
}
USUAL = "mae"
TAILS = (0.1, 0.2, 0.3, 0.4)  # quantiles that WQL takes below the median; as many lie above it


def losses(criterion: str, errors: Array) -> Array:
    """Loss of each of the `errors` (W, P, T), NaN where the target is missing; for `mase` and `wql` in their units.

    The quantiles that WQL scores lie symmetrically around the forecast, as the intervals of femts do, as far from it as
    these errors are, whose order statistics by target they are.
    """
    size = np.abs(errors)
    if criterion == "mse":
        return np.asarray(size**2)
    if criterion != "wql":
        return size
    made = size / 2  # the pinball loss of the median
    for tail in TAILS:  # that of both ends of an interval: half its interval score times the probability outside
        half_width = np.nanquantile(size, 1 - 2 * tail, axis=(0, 1))
        made = made + 2 * tail * half_width + np.maximum(size - half_width, 0)
    return np.asarray(made * 2 / (2 * len(TAILS) + 1))


def units(criterion: str, data: Dataset, preprocess: Preprocess, series: NDArray[np.int64], targets: Array) -> Array:
    """Factors (W, 1, T) that bring scaled errors into the units of `criterion`; NaN for a series that has none.

    Args:
        criterion: one of `CRITERIA`.
        data: whose training rows MASE takes its seasonal error from.
        preprocess: of the scaled units.
        series: number of the series of each window, (W,).
        targets: what followed, (W, P, T) in scaled units.

    Raises:
        UsageError: the units are not a multiple of the scaled ones.
    """
    if criterion in ("mae", "mse"):
        return np.ones((len(series), 1, targets.shape[-1]))
    if not preprocess.linear:
        raise UsageError(
            f"--metric {criterion} cannot be used with a transform of the values, which scores scaled units do not follow; "
            "choose by mae or mse."
        )
    scale, mean = (each[:, : targets.shape[-1]] for each in (preprocess.scaler.scale, preprocess.scaler.mean))
    scale, mean = (each[series if len(each) > 1 else np.zeros_like(series)] for each in (scale, mean))
    if criterion == "mase":
        change = seasonal_changes(data)[0][series]
        return np.asarray(np.divide(scale, change, out=np.full_like(change, np.nan), where=change > 0)[:, None])
    size = np.nanmean(np.abs(targets * scale[:, None] + mean[:, None]), axis=(0, 1))
    return np.asarray(np.divide(scale, size, out=np.full_like(scale, np.nan), where=size > 0)[:, None])
