"""Metrics that select checkpoints on the validation split, as sums that several processes can add up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import torch
from torch import Tensor

from femts.config.training import TrainingConfig
from femts.data.batch import Batch
from femts.errors import UsageError
from femts.evaluation.metric import METRICS, Collector, Metric
from femts.evaluation.quantiles import PinballSums
from femts.evaluation.values import Values
from femts.models.base import ForecastModel, Forecasts

BUILT_IN = ("mse", "mae", "pinball")  # computed on the device of the forecasts


class ValidationSums(Collector, Protocol):
    """A collector with one score.

    Attributes:
        sums: float64, any shape: the complete state; the sums of several processes are added up.
    """

    sums: Tensor

    def compute(self) -> Mapping[str, float]:
        """The score by its name; lower is better."""
        ...


class MetricSums:
    """Sums of a registered metric over all targets and series, in scaled units."""

    pools = True

    def __init__(self, metric: Metric) -> None:
        self._metric, self.sums = metric, torch.zeros(2, dtype=torch.float64)

    def update(self, forecasts: Forecasts, batch: Batch) -> None:
        """Add windows in scaled units; see `femts.evaluation.metric.Collector`."""
        forecast, actual = (each.cpu().double() for each in (forecasts.points, batch.target))
        above, below = self._metric.weighted_terms(Values(forecast, actual, lambda: batch.past.cpu().double()))
        self.sums = self.sums.cpu() + torch.stack([above.nansum(), below.nansum()])

    def compute(self) -> dict[str, float]:
        above, below = self.sums.cpu()[:, None].numpy()
        return {self._metric.name: float(self._metric.finish(above / below).item())}


def chosen_by(training: TrainingConfig) -> str:
    """Name of the metric used for model selection on the validation split."""
    return training.metric or ("pinball" if training.learned_quantiles else "mse")


def validation_sums(training: TrainingConfig, model: ForecastModel) -> list[ValidationSums]:
    """What a validation computes other than `mse` and `mae`: the pinball loss of a quantile model, and the metric in
    `training`.

    Raises:
        UsageError: The metric is the pinball loss, and the model has no quantiles.
    """
    named = training.metric not in ("", *BUILT_IN)
    pinball = bool(model.quantiles) or training.metric == "pinball"
    sums: list[ValidationSums] = [PinballSums(model)] if pinball else []
    return [*sums, *([MetricSums(METRICS[training.metric]())] if named else [])]


def check_selects(name: str) -> None:
    """Raise UsageError if the metric `name` is unknown or cannot select checkpoints."""
    if _selects(name):
        return
    able = (*BUILT_IN, *(other for other in METRICS.names() if _selects(other) and other not in BUILT_IN))
    why, remedy = "", ""
    if METRICS[name].selects:  # everything from early stopping to the pruning of trials compares errors
        why = ", which have the lowest score, because it is better the higher it is"
        remedy = ", or register one whose `finish` returns the opposite"
    text = f"Metric '{name}' cannot select checkpoints{why}; use one of {', '.join(able)}{remedy}."
    raise UsageError(text, argument="training.metric", value=name)


def _selects(name: str) -> bool:
    return name in BUILT_IN or (METRICS[name].selects and not METRICS[name].greater_is_better)
