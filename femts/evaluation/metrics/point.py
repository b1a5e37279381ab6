"""Errors of point forecasts."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from femts.evaluation.metric import Metric, register_metric
from femts.evaluation.values import Values


@register_metric("mse")
class MSE(Metric):
    """Mean squared error."""

    def terms(self, values: Values) -> tuple[Tensor, None]:
        return values.error.square(), None


@register_metric("mae")
class MAE(Metric):
    """Mean absolute error."""

    def terms(self, values: Values) -> tuple[Tensor, None]:
        return values.error.abs(), None


@register_metric("rmse")
class RMSE(MSE):
    """Root mean squared error."""

    def finish(self, ratio: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.sqrt(ratio)


@register_metric("smape")
class SMAPE(Metric):
    """Symmetric mean absolute percentage error, 200 |y - f| / (|y| + |f|) in raw units, in percent (Makridakis et al.,
    the M4 competition); 0 where both are 0, as in utilsforecast and sktime."""

    view, shown, unitless, selects = "raw", ("raw",), True, False  # in scaled units, the position of 0 is arbitrary

    def terms(self, values: Values) -> tuple[Tensor, None]:
        size = values.forecast.abs() + values.actual.abs()
        relative = torch.where(size > values.zero, 200 * values.error.abs() / size, 0.0)
        return relative.where(~values.error.isnan(), torch.nan), None
