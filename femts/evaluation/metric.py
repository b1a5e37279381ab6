"""Metrics as ratios of two sums over forecast values, and their registry."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from femts.data.batch import Batch
from femts.evaluation.values import Units, Values
from femts.models.base import Forecasts
from femts.plugins import Registry, import_all

Pooling = Literal["pooled", "averaged"]


class Collector(Protocol):
    """Running sums over a stream of forecasts, which are not stored.

    A collector with a true attribute `pools` sums over several targets or series in scaled units; targets that are not
    included in such means (`Windows.counts`) are then missing.
    """

    def update(self, forecasts: Forecasts, batch: Batch) -> None:
        """Add windows, in scaled units.

        Args:
            forecasts: `points` (B, P, T) of the T targets and, for a quantile model, `quantiles` (B, P, Q, T).
            batch: look-backs `past` (B, L, T) and targets `future` (B, P, T), NaN where missing; numbers of the
                `series` and of the windows.
        """
        ...


class Metric(ABC):
    """A score of forecasts that is a function of the ratio of two sums over values.

    Sums can be grouped, so a metric is available overall and by step, column or series in one pass. To add one,
    subclass it, define `terms` and, if the score is not the ratio itself, `finish`, and register it by
    `register_metric`: it is then part of all scores.

    Attributes:
        name: column of tables.
        view: units of the values that `terms` sees: `scaled`, `raw`, or `each` of the two for rows in these units.
        shown: units of the rows of a table that have the metric.
        over_series, over_targets: whether the score of several series or targets is that of all their values together
            (`pooled`), or the mean of their scores (`averaged`).
        unitless: whether it is a number without a unit, even if it is shown in raw units.
        per_window: whether there is one term for all steps of a window, so that steps have no scores.
        greater_is_better: whether a higher score is better; `compare` orders models by it. Such a metric selects no
            checkpoints, because these have the lowest score.
        selects: whether it can be the `training.metric` that selects checkpoints: it can be computed in scaled units.
    """

    name: str = ""
    view: ClassVar[Literal["scaled", "raw", "each"]] = "each"
    shown: ClassVar[tuple[Units, ...]] = ("scaled", "raw")
    over_series: ClassVar[Pooling] = "pooled"
    over_targets: ClassVar[Pooling] = "pooled"
    unitless: ClassVar[bool] = False
    per_window: ClassVar[bool] = False
    greater_is_better: ClassVar[bool] = False
    selects: ClassVar[bool] = True

    @abstractmethod
    def terms(self, values: Values) -> tuple[Tensor, Tensor | None]:
        """Numerator and denominator (B, P, T), or (B, 1, T) of a metric that is `per_window`, float64.

        A numerator of NaN leaves out the value. None as the denominator counts the values, so the ratio is their mean.
        """

    def weighted_terms(self, values: Values) -> tuple[Tensor, Tensor]:
        """The `terms` with a denominator, which is 0 for values that are left out."""
        above, below = self.terms(values)
        missing = above.isnan()
        return above, (~missing).double() if below is None else below.masked_fill(missing, 0.0)

    def finish(self, ratio: NDArray[np.float64]) -> NDArray[np.float64]:
        """Score from the ratio of the sums, which is NaN if the denominator is not positive."""
        return ratio


STANDARD = ("mse", "mae", "rmse", "smape", "mase", "rmsse", "wape", "bias", "skill")  # scores name those that suit them
METRICS: Registry[type[Metric]] = Registry("metric", load=lambda: import_all("femts.evaluation.metrics"))
_Kind = TypeVar("_Kind", bound=type[Metric])


def register_metric(name: str) -> Callable[[_Kind], _Kind]:
    """Class decorator that registers a `Metric` under a name, for all scores and for `training.metric`."""

    def add(kind: _Kind) -> _Kind:
        kind.name = name
        METRICS.add(name, kind, kind.__module__)
        return kind

    return add


def own_metrics() -> list[Metric]:
    """The registered metrics beyond `STANDARD`, of a plugin or a file in femts, which are added to all scores."""
    return [METRICS[name]() for name in METRICS.names() if name not in STANDARD]


def own_names() -> list[str]:
    """Names of `own_metrics`, which are columns of tables."""
    return [metric.name for metric in own_metrics()]
