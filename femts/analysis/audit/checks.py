"""Checks of a model and its windows: changes to irrelevant inputs must not change the forecast."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from femts.data.batch import Batch
from femts.data.describe import count
from femts.data.windows import Windows
from femts.evaluation.evaluator import evaluate
from femts.mixers.ops.precision import full_precision
from femts.models.base import ForecastModel, Forecasts

TOLERANCE = 1e-5  # relative tolerance of scores and forecasts, for float32 sums in another order
BATCH_SIZES = (5, 32)  # in addition to the run's own
MOST_WINDOWS = 512  # windows that are scored again in other orders and batches, evenly spaced


@dataclass(frozen=True)
class Check:
    """Result of one check.

    Attributes:
        name: what was changed or counted.
        passed: None if there is nothing to check, or the data are inconclusive.
        says: one sentence.
    """

    name: str
    passed: bool | None
    says: str


class _ScoredForecasts:
    """Stores the scored forecasts."""

    def __init__(self) -> None:
        self.points, self.quantiles = list[Tensor](), list[Tensor]()

    def update(self, forecasts: Forecasts, batch: Batch) -> None:
        """As in `femts.evaluation.evaluator.Metric`."""
        forecast, quantiles = forecasts.points, forecasts.quantiles
        self.points.append(forecast)
        self.quantiles += [] if quantiles is None else [quantiles]


def scored_forecasts(model: ForecastModel, windows: Windows, numbers: Tensor) -> Forecasts:
    """Forecasts of the windows `numbers` (n,) as scored by `evaluate`, for T targets."""
    scored = _ScoredForecasts()
    evaluate(model, windows, some=numbers, also=[scored])
    return Forecasts(torch.cat(scored.points), torch.cat(scored.quantiles) if scored.quantiles else None)


def values_scored(values: NDArray[np.float64], first: int, many: int, seq_len: int, pred_len: int) -> NDArray[np.int64]:
    """Number (many,) of scored values in each window of `values` (rows, T) with forecasts from row `first` on: those of
    targets with a value in the look-back."""
    counts = np.pad(np.cumsum(~np.isnan(values), axis=0), ((1, 0), (0, 0)))
    row = np.arange(first, first + many)
    behind = counts[row] > counts[np.maximum(row - seq_len, 0)]
    ahead = counts[np.minimum(row + pred_len, len(values))] - counts[row]
    return np.asarray((ahead * behind).sum(1))


def distance(forecast: Tensor, usual: Tensor) -> float:
    """Largest difference, relative to the largest of `usual` if that exceeds 1; infinite if a value is not finite."""
    difference = (forecast.cpu().double() - usual.cpu().double()).abs().max() / usual.cpu().double().abs().max().clamp(
        min=1
    )
    return float(difference) if bool(difference.isfinite()) else float("inf")


def small(number: float) -> str:
    """A difference with two digits."""
    return f"{number:.1e}" if number else "0"


def sample(windows: Windows) -> Tensor:
    """Indices of the first, the middle and the last window."""
    return torch.tensor(sorted({0, len(windows) // 2, len(windows) - 1}))


def check_order(model: ForecastModel, windows: Windows, batch_size: int) -> Check:
    """The score must not depend on the order of the windows or the batch size."""
    numbers = windows.subsample(model.most_windows)
    numbers = numbers[:: -(-len(numbers) // MOST_WINDOWS)]
    usual = evaluate(model, windows, batch_size, some=numbers)
    ways = {f"in batches of {size}": (numbers, size) for size in BATCH_SIZES if size != batch_size}
    ways["in reversed order"] = (numbers.flip(0), batch_size)
    changes = {}
    for way, (order, size) in ways.items():
        scores = evaluate(model, windows, size, some=order)
        changes[way] = max(
            abs(scores[name] / usual[name] - 1) if usual[name] else abs(scores[name]) for name in ("mse", "mae")
        )
    worst = max(changes, key=lambda way: changes[way])
    says = (
        f"the score of {count(len(numbers), 'window')} changes by at most {small(changes[worst])} (tolerance {TOLERANCE:.0e}) "
        f"{', '.join(changes)}"
    )
    return Check("order and batch size", changes[worst] <= TOLERANCE, says)


def check_channels(model: ForecastModel, windows: Windows) -> Check:
    """The forecast of a channel must not depend on others if the model's class declares so."""
    name = "other channels"
    numbers = sample(windows).to(windows.rows.device)
    batch, channels = windows.batch(numbers), windows.rows.shape[-1]
    if channels < 2:
        return Check(name, None, "there is only one channel")
    noise = 10 + torch.randn(batch.past.shape, generator=torch.Generator().manual_seed(0))
    moved = 0.0
    with torch.no_grad(), full_precision(batch.past.device.type):
        usual = model.forecasts(batch, windows.pred_len).points
        for channel in sorted({0, channels // 2, channels - 1}):
            others, raw = noise.clone(), batch.raw
            others[..., channel] = 0
            if raw is not None:  # NaN stays missing
                raw = raw._replace(values=raw.values + others * raw.scale)
            changed = replace(batch, past=batch.past + others.to(batch.past), raw=raw)
            forecast = model.forecasts(changed, windows.pred_len).points
            moved = max(moved, distance(forecast[..., channel], usual[..., channel]))
    says = f"changing the other channels changes a channel's forecast by {small(moved)}"
    if model.supports.channels != 1:
        return Check(name, None, f"{says}; the model uses them by design")
    return Check(name, moved <= TOLERANCE, f"{says} (tolerance {TOLERANCE:.0e})")
