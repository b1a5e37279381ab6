"""Errors averaged by each convention in use, so that a score can be compared with the literature."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from femts.data.windows import Windows
from femts.evaluation.constants import SERIES_PER_BATCH
from femts.evaluation.evaluator import forecast_windows
from femts.mixers.ops.precision import full_precision
from femts.models.base import ForecastModel


@dataclass(frozen=True)
class ConventionScore:
    """A score under one convention.

    Attributes:
        convention: which windows count, and what is averaged.
        units: `scaled` or `raw`.
        windows: number of windows that count.
        mse: mean squared error, in squared units.
        mae: mean absolute error.
    """

    convention: str
    units: str
    windows: int
    mse: float
    mae: float


def window_errors(model: ForecastModel, windows: Windows, scale: Tensor | None, batch_size: int) -> Tensor:
    """Errors by window, in one pass that stores no forecasts.

    Args:
        model: forecaster in evaluation mode on the device of `windows`.
        windows: N windows in order.
        scale: factors from scaled to raw units of the targets; None if there is no common scale.
        batch_size: number of windows per batch; as in `evaluate`.

    Returns:
        (N, 5) float64 on the CPU, sums over the observed steps and channels: squared and absolute errors in scaled,
        then in raw units, and the number of these values.
    """
    device, sums = windows.rows.device, []
    batch_size = max(1, min(batch_size, SERIES_PER_BATCH // windows.rows.shape[1]))
    with torch.no_grad(), full_precision(device.type):
        for index in windows.subsample(model.most_windows).to(device).split(batch_size):
            made, batch = forecast_windows(model, windows, index)
            forecast, y, mask = made.points, batch.target, batch.future_observed
            observed = torch.ones_like(y, dtype=torch.bool) if mask is None else mask
            counts = windows.counts(index)
            observed = observed if counts is None else observed & counts
            error = (forecast.float() - y.float()).cpu().double().abs() * observed.cpu()
            raw = error if scale is None else error * scale
            sums.append(
                torch.stack([e.sum((1, 2)) for e in (error**2, error, raw**2, raw, observed.cpu().double())], dim=1)
            )
    return torch.cat(sums)


def convention_scores(errors: Tensor, batch_sizes: Iterable[int], raw: bool = True) -> tuple[ConventionScore, ...]:
    """Scores of `errors`, as returned by `window_errors`, under each convention.

    `drop_last` leaves out the windows of an incomplete last batch (with fewer windows than a batch, all of them, so
    there is no score); the mean of batch means gives a short last batch the weight of a full one.

    Args:
        errors: (N, 5), windows in order.
        batch_sizes: batch sizes for dropping or averaging.
        raw: whether there are errors in raw units.
    """
    rows = [("every window (femts)", "scaled", len(errors), _mean(errors)[:2])]
    for size in sorted(set(batch_sizes)):
        whole = len(errors) // size * size
        if whole:
            rows.append((f"drop_last, batches of {size}", "scaled", whole, _mean(errors[:whole])[:2]))
        means = torch.stack([_mean(batch)[:2] for batch in errors.split(size)])
        rows.append((f"mean of means of batches of {size}", "scaled", len(errors), means.nanmean(0)))
    if raw:
        rows.append(("every window", "raw", len(errors), _mean(errors)[2:]))
    return tuple(ConventionScore(name, units, n, float(mean[0]), float(mean[1])) for name, units, n, mean in rows)


def _mean(errors: Tensor) -> Tensor:
    """The four means over all observed values of some windows; NaN if there are none."""
    sums = errors.sum(0)
    return sums[:4] / sums[4]
