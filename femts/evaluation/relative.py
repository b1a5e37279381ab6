"""Relative errors in raw units: WAPE and bias."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from femts.data.batch import Batch
from femts.data.preprocess import Preprocess
from femts.data.scaler import Scaler
from femts.evaluation.metrics import WindowSeries
from femts.models.base import Forecasts

Array = NDArray[np.float64]


class RelativeErrors:
    """WAPE and bias in raw units, from float64 sums by series and target that ignore missing values.

    WAPE is the sum of absolute errors divided by the sum of absolute actual values, and bias the sum of forecasts minus
    actual values divided by the same; positive bias means that forecasts are too high. If no value is negative, bias is
    the mean error relative to the mean, and never larger than WAPE in absolute value (Kolassa & Schütz, "Advantages of
    the MAD/Mean ratio over the MAPE", Foresight 2007).

    Args:
        preprocess: conversion between scaled and raw units.
        series: number S of series.
        targets: number T of targets, the first channels.
    """

    def __init__(self, preprocess: Preprocess, series: int, targets: int) -> None:
        self._preprocess, self._series = preprocess, series
        self.sums = torch.zeros(3, series, targets, dtype=torch.float64)  # absolutes, errors, sizes

    def update(self, forecasts: Forecasts, batch: Batch) -> None:
        """Add windows in scaled units; see `femts.evaluation.metrics.Metric`."""
        numbers = WindowSeries.of_batch(batch, self._series)
        own = self._preprocess.at(numbers.of.numpy())
        actual = own.restore(batch.target.cpu().double())
        error = own.inverse(forecasts.points.cpu().double()) - actual
        size = sizes(actual, torch.from_numpy(zero_within(own.scaler, actual.shape[-1]))[:, None])
        self.sums += torch.stack([numbers.sums(each) for each in (error.abs(), error, size)])

    def compute(self) -> dict[str, float]:
        """`wape` and `bias` over all series, averaged over targets; NaN if all actual values are 0."""
        return {name: float(value) for name, value in relative(*self.sums.sum(1).numpy()).items()}

    def by_series(self) -> dict[str, Array]:
        """The same for each series (S,), NaN for one whose values are all 0."""
        return relative(*self.sums.numpy())


def relative(absolute: Array, signed: Array, size: Array) -> dict[str, Array]:
    """`wape` and `bias` (...,) from sums of `absolute` and `signed` errors and of the `size` of actual values: means
    over the targets (..., T) with nonzero size, NaN if there are none."""
    some = size > 0
    count = some.sum(-1)
    shares = {}
    for name, sums in (("wape", absolute), ("bias", signed)):
        each = np.divide(sums, size, out=np.zeros(size.shape), where=some).sum(-1)
        shares[name] = np.divide(each, count, out=np.full(each.shape, np.nan), where=count > 0)
    return shares


def sizes(actual: Tensor, zero: Tensor) -> Tensor:
    """Absolute raw values, set to 0 within `zero` of it."""
    size = actual.abs()
    return torch.where(size <= zero, 0.0, size)


def zero_within(scaler: Scaler, targets: int) -> Array:
    """Distance (S, T) from 0 within which a raw value may have been 0, given the float32 resolution of scaled
    values."""
    return 2.0**-20 * (np.abs(scaler.mean[:, :targets]) + scaler.scale[:, :targets])
