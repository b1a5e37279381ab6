"""Sums of metrics over windows, by step or by series, and the scores and tables made from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from femts.data.batch import Batch
from femts.errors import UsageError, reads, suggest
from femts.evaluation.metric import Metric, Units
from femts.evaluation.sums import WindowSeries
from femts.evaluation.values import Viewer
from femts.models.base import Forecasts
from femts.text import quote

Array = NDArray[np.float64]
GROUPS = ("step", "channel")
BY_SERIES = ("series",)


class ScoreSums:
    """Float64 sums of the terms of metrics over windows, by group and target; memory does not grow with the number of
    windows.

    Args:
        metrics: what to compute.
        viewer: makes the values that metrics see.
        by: the groups, `step` or `series`.
        units: units of the scores. Raw units of several series can only be grouped by series.
        pools: whether targets without a scale of their own are missing (`Collector`).
    """

    def __init__(
        self,
        metrics: Sequence[Metric],
        viewer: Viewer,
        by: Literal["step", "series"],
        units: Sequence[Units] = ("scaled", "raw"),
        pools: bool = False,
    ) -> None:
        self.metrics, self.units, self.by, self.pools, self.windows = tuple(metrics), tuple(units), by, pools, 0
        self._viewer = viewer
        self._sums = dict[tuple[str, Units], Tensor]()

    def update(self, forecasts: Forecasts, batch: Batch) -> None:
        """Add windows in scaled units; see `femts.evaluation.metric.Collector`."""
        self.windows += len(batch.past)
        numbers = WindowSeries.of_batch(batch, len(self._viewer.preprocess.series))
        views = self._viewer.views(forecasts, batch, numbers.of.numpy())
        for metric in self.metrics:
            for units in self._views(metric):
                terms = metric.weighted_terms(views(units))
                sums = torch.stack([each.nansum(0) if self.by == "step" else numbers.sums(each) for each in terms])
                key = metric.name, units
                self._sums[key] = self._sums[key] + sums if key in self._sums else sums

    def _views(self, metric: Metric) -> tuple[Units, ...]:
        return self.units if metric.view == "each" else (metric.view,)

    def scores(
        self,
        metric: Metric,
        units: Units,
        groups: bool = False,
        targets: bool = False,
        some: NDArray[np.bool_] | None = None,
    ) -> Array:
        """Scores by `metric`, of each group and target, each group (G, 1), each target (1, T), or overall (1, 1).

        Args:
            metric: one of `metrics`.
            units: of the scores; any for a metric with a view of its own.
            groups, targets: whether to keep these apart.
            some: (G or 1, T) bool, groups and targets to include; None includes all.
        """
        sums = self.sums(metric, units)
        if sums is None or (groups and self.by == "step" and metric.per_window):
            return np.full((1, 1), np.nan)
        pooled = (self.by == "step" or metric.over_series == "pooled", metric.over_targets == "pooled")
        return reduced(metric, sums if some is None else np.where(some, sums, 0.0), (groups, targets), pooled)

    def sums(self, metric: Metric, units: Units = "scaled") -> Array | None:
        """Numerators and denominators (2, G, T) of `metric`; None without windows."""
        made = self._sums.get((metric.name, units if metric.view == "each" else metric.view))
        return None if made is None else made.numpy()

    def overall(self, metric: Metric, units: Units = "scaled", some: NDArray[np.bool_] | None = None) -> float:
        """Score over all groups and targets."""
        return float(self.scores(metric, units, some=some).item())

    def frame(self, targets: Sequence[str], by: Sequence[str] = ()) -> pd.DataFrame:
        """One row for each group and unit of sums by step; see `Forecaster.scores` for the columns.

        Args:
            targets: names of the T targets.
            by: `step`, `channel`, both, or neither for a single group.
        """
        groups, apart = "step" in by, "channel" in by
        own = self._viewer.preprocess.scaler.own[:1, : len(targets)]
        # Means over targets leave out those without a scale of their own, unless none has one.
        some = None if apart or self.pools or not own.any() else own
        frames = []
        for units in self.units:
            table = dict[str, object]()
            for metric in self.metrics:
                if units not in metric.shown:
                    table[metric.name] = np.nan
                    continue
                within = some if units == "scaled" or ("scaled" in metric.shown and metric.view == "raw") else None
                table[metric.name] = self.scores(metric, units, groups, apart, within).reshape(-1)
            steps = len(next(iter(self._sums.values()))[0]) if groups else 1
            frame = pd.DataFrame(table, index=range(steps * (len(targets) if apart else 1)))
            if apart:
                frame.insert(0, "channel", list(targets) * steps)
            if groups:
                frame.insert(0, "step", np.repeat(np.arange(1, steps + 1), len(targets) if apart else 1))
            frame.insert(len(by), "units", units)
            frame.insert(len(by) + 1, "windows", self.windows)
            frames.append(frame)
        return pd.concat(frames, ignore_index=True)

    def by_series(self, series: Sequence[str], windows: NDArray[np.int64]) -> pd.DataFrame:
        """One row for each of the S `series` with windows, given their number (S,), of sums by series in raw units."""
        table = {"series": np.array(series, dtype=object), "units": "raw", "windows": windows}
        scores = {metric.name: self.scores(metric, "raw", groups=True)[:, 0] for metric in self.metrics}
        return pd.DataFrame(table | scores)[windows > 0].reset_index(drop=True)


def reduced(metric: Metric, sums: Array, kept: Sequence[bool], pooled: Sequence[bool]) -> Array:
    """Scores by `metric` from its sums (2, ...), whose axes are kept or have length 1 in the result.

    Args:
        metric: the metric.
        sums: numerators and denominators.
        kept: for each further axis, whether it is kept.
        pooled: for each that is not, whether the scores are those of all its values together, or means of its scores
            that are defined.
    """
    axes = range(len(kept))
    together = tuple(axis for axis in axes if pooled[axis] and not kept[axis])
    above, below = sums.sum(axis=tuple(axis + 1 for axis in together), keepdims=True)
    made = metric.finish(np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0))
    apart = tuple(axis for axis in axes if not pooled[axis] and not kept[axis])
    defined = ~np.isnan(made)
    count, total = (each.sum(axis=apart, keepdims=True) for each in (defined, np.where(defined, made, 0.0)))
    return np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0) if apart else made


@reads("by")
def check_groups(by: str | Sequence[str] | None) -> tuple[str, ...]:
    """`by` as names in `GROUPS`, or only `series`; UsageError for other names."""
    names = tuple(by) if isinstance(by, list | tuple) else () if by is None else (by,)
    groups = (*GROUPS, *BY_SERIES)
    for name in names:
        if not isinstance(name, str) or name not in groups:
            raise UsageError(f"Scores cannot be grouped by '{quote(name)}'{suggest(str(name), groups)}")
    if len(set(names)) > 1 and set(names) & set(BY_SERIES):
        raise UsageError("Scores cannot be grouped by series together with step or channel; use either.")
    return tuple(dict.fromkeys(names))
