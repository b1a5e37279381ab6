"""Errors relative to the values, to their seasonal changes, or to the seasonal naive forecast."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from femts.evaluation.metric import Metric, register_metric
from femts.evaluation.values import Values


@register_metric("mase")
class MASE(Metric):
    """Mean absolute scaled error: absolute error relative to the mean absolute seasonal change of the training rows
    (Hyndman & Koehler, 2006), averaged over series and targets; those without a change are left out."""

    view, unitless, selects = "raw", True, False
    over_series = over_targets = "averaged"

    def terms(self, values: Values) -> tuple[Tensor, None]:
        return values.error.abs() / values.absolute, None


@register_metric("rmsse")
class RMSSE(Metric):
    """Root mean squared scaled error: as `MASE`, with squares (Makridakis et al., the M5 competition)."""

    view, unitless, selects = "raw", True, False
    over_series = over_targets = "averaged"

    def terms(self, values: Values) -> tuple[Tensor, None]:
        return (values.error / values.squared).square(), None

    def finish(self, ratio: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.sqrt(ratio)


@register_metric("wape")
class WAPE(Metric):
    """Weighted absolute percentage error: sum of absolute errors divided by the sum of absolute actual values, in raw
    units; averaged over targets, NaN for one whose values are all 0 (Kolassa & Schütz, "Advantages of the MAD/Mean
    ratio over the MAPE", Foresight 2007)."""

    view, shown, unitless, selects = "raw", ("raw",), True, False
    over_targets = "averaged"

    def terms(self, values: Values) -> tuple[Tensor, Tensor]:
        return values.error.abs(), values.size


@register_metric("bias")
class Bias(Metric):
    """Sum of forecasts minus actual values, divided by the sum of absolute actual values: positive if forecasts are too
    high. If no value is negative, it is the mean error relative to the mean, and never larger than `WAPE` in absolute
    value."""

    view, shown, unitless, selects = "raw", ("raw",), True, False
    over_targets = "averaged"

    def terms(self, values: Values) -> tuple[Tensor, Tensor]:
        return values.error, values.size


@register_metric("skill")
class Skill(Metric):
    """1 minus the squared error relative to that of the seasonal naive forecast; NaN if the look-back is shorter than a
    season."""

    unitless, greater_is_better, selects = True, True, False

    def terms(self, values: Values) -> tuple[Tensor, Tensor]:
        naive, squares = values.seasonal_naive, values.error.square()
        if naive is None:
            return torch.full_like(squares, torch.nan), squares
        return squares, (naive - values.actual).square()

    def finish(self, ratio: NDArray[np.float64]) -> NDArray[np.float64]:
        return 1 - ratio
