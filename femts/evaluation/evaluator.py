"""Scores of a model over all windows of a split, in scaled units."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from femts.data.batch import Batch
from femts.data.windows import Windows
from femts.evaluation.constants import SERIES_PER_BATCH, SERIES_PER_BATCH_ON_CPU
from femts.evaluation.memory import kept_memory
from femts.evaluation.metric import Collector
from femts.evaluation.sums import ErrorSums
from femts.mixers.ops.precision import full_precision
from femts.models.base import ForecastModel, Forecasts


def _as_they_are(sums: Tensor) -> Tensor:
    return sums


@dataclass(frozen=True)
class Share:
    """Share of the windows scored by one of several processes: every `world`-th, starting at `rank`.

    Attributes:
        rank: index of the process.
        world: number of processes.
        reduce: function that adds up the sums (3,) of all processes.
    """

    rank: int = 0
    world: int = 1
    reduce: Callable[[Tensor], Tensor] = _as_they_are


def evaluate(
    model: ForecastModel,
    windows: Windows,
    batch_size: int = 256,
    *,
    some: int | Tensor | None = None,
    share: Share | None = None,
    also: Iterable[Collector] = (),
) -> dict[str, float | int]:
    """Compute mean errors over all values of the windows, in float32 even in a bf16 run, so that scores are comparable.

    Args:
        model: model on the device of `windows`.
        windows: all windows of the split at the requested horizon.
        batch_size: windows per batch, reduced if there are many channels; scores do not depend on it.
        some: maximum number of windows, spread evenly over the split, or window numbers (n,) to score in this order;
            None scores all, or as many as the model allows.
        share: the windows of this process, if there are several; None scores all.
        also: further sums, updated with the windows of this process in order.

    Returns:
        `mse` and `mae` in scaled units and the number of `windows`.
    """
    device, also, share = windows.rows.device, list(also), share or Share()
    sums = ErrorSums(device)
    numbers = some if isinstance(some, Tensor) else windows.subsample(some or model.most_windows)
    scored = numbers.to(device)
    with _scoring(model, device):
        for index in scored[share.rank :: share.world].split(windows_at_a_time(windows.rows, batch_size)):
            made, batch = forecast_windows(model, windows, index)
            counted = _counted(windows, index, batch)
            sums.add(made.points, batch.target, counted)
            _update(also, made, batch, counted)
    sums.sums = share.reduce(sums.sums)
    return {"mse": sums.mse, "mae": sums.mae, "windows": len(scored)}


def _counted(windows: Windows, index: Tensor, batch: Batch) -> Tensor | None:
    """Mask of the targets of `batch` that are observed and included in means; None for all."""
    counts, observed = windows.counts(index), batch.future_observed
    if counts is None:
        return observed
    return counts.expand_as(batch.target) if observed is None else observed & counts


def _pools(collector: Collector) -> bool:
    return getattr(collector, "pools", False)


def _update(collectors: Iterable[Collector], made: Forecasts, batch: Batch, counted: Tensor | None) -> None:
    """Update with the steps that are forecast, NaN where a target is not observed or, for those that pool, not
    `counted`."""
    steps = made.points.shape[1]
    y, observed = batch.target[:, :steps], batch.future_observed
    masks = {False: observed, True: counted}
    seen = {
        pools: replace(batch, future=y if mask is None else y.masked_fill(~mask[:, :steps], torch.nan))
        for pools, mask in masks.items()
    }
    if counted is observed:
        seen[True] = seen[False]  # so that what is derived from a batch is derived once
    for each in collectors:
        each.update(made, seen[_pools(each)])


def evaluate_horizons(
    model: ForecastModel,
    windows: Sequence[Windows],
    batch_size: int = 256,
    most: int | None = None,
    also: Mapping[int, Sequence[Collector]] | None = None,
) -> dict[int, dict[str, float | int]]:
    """Compute mean errors at several horizons, as in `evaluate`, from one recursive forecast per window.

    A shorter forecast is the beginning of a longer one (`ForecastModel.direct_forecast`).

    Args:
        model: model on the device of `windows`.
        windows: all windows of one split for each horizon; window i begins at the same row for all of them.
        batch_size: as in `evaluate`.
        most: maximum number of windows, spread evenly over those of the longest horizon; None scores all of each
            horizon.
        also: further sums by horizon.

    Returns:
        The result of `evaluate` by horizon P, in the order of `windows`.
    """
    device = windows[0].rows.device
    batch_size = windows_at_a_time(windows[0].rows, batch_size)
    sums = {each.pred_len: ErrorSums(device) for each in windows}
    counts, first, most = dict.fromkeys(sums, 0), 0, most or model.most_windows
    with _scoring(model, device):
        for longest in sorted(windows, key=lambda each: each.pred_len, reverse=True):  # it has the fewest windows
            begin = torch.arange(first, len(longest)) if most is None else longest.subsample(most)
            for index in begin.to(device).split(batch_size):
                made, batch = forecast_windows(model, longest, index)
                counted = _counted(longest, index, batch)
                for steps in (steps for steps in sums if steps <= longest.pred_len):
                    mask, points = None if counted is None else counted[:, :steps], made.points[:, :steps]
                    sums[steps].add(points, batch.target[:, :steps], mask)
                    counts[steps] += len(index)
                    if also is not None:
                        _update(also[steps], Forecasts(points, None), batch, counted)
            if most is not None:
                break
            first = len(longest)
    return {steps: {"mse": each.mse, "mae": each.mae, "windows": counts[steps]} for steps, each in sums.items()}


def forecast_windows(model: ForecastModel, windows: Windows, index: Tensor) -> tuple[Forecasts, Batch]:
    """Forecasts of the T targets for the windows `index` (B,), and their batch, with offsets added back, as returned by
    `predict`: recursion continues from the model's output, and limits are applied only at the end."""
    batch = windows.batch(index)
    x, y, made = batch.past, batch.target, model.forecasts(batch, windows.pred_len)
    observed, offsets = windows.scored(index), windows.offsets(index)
    if offsets is not None:
        before, after = offsets.split([x.shape[1], windows.pred_len], dim=1)
        x, y = x + before, y + after
        made = made.with_each(lambda points: points + after, lambda quantiles: quantiles + after[:, :, None])
    x, y = (each[..., : windows.n_targets] for each in (x, y))
    made = made.with_each(*2 * (lambda values: values[..., : windows.n_targets],))
    limits = windows.limits(index)
    if limits is not None:
        made = made.with_each(limits.clip, limits.clip)
    scored = Batch(x, future=y, future_observed=observed, series=batch.series, number=index)
    return made, scored


@contextmanager
def _scoring(model: ForecastModel, device: torch.device) -> Iterator[None]:
    """Context in evaluation mode, without gradients and in float32 even in a bf16 run; restores the mode afterwards."""
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad(), full_precision(device.type), kept_memory(device.type):
            yield
    finally:
        model.train(was_training)


def windows_at_a_time(rows: Tensor, batch_size: int) -> int:
    """Number of windows of `rows` (N, C) per batch: `batch_size`, or fewer if there are many channels."""
    most = SERIES_PER_BATCH_ON_CPU if rows.device.type == "cpu" else SERIES_PER_BATCH
    return max(1, min(batch_size, most // rows.shape[1]))
