"""Scores of quantile forecasts."""

from __future__ import annotations

import torch
from torch import Tensor

from femts.evaluation.metric import Metric
from femts.evaluation.values import Values


class SQL(Metric):
    """Scaled quantile loss: as MASE, for twice the mean pinball loss of the quantiles."""

    name, view, unitless, selects = "sql", "raw", True, False
    over_series = over_targets = "averaged"

    def terms(self, values: Values) -> tuple[Tensor, None]:
        return quantile_loss(values) / values.absolute, None


class WQL(Metric):
    """Weighted quantile loss: as WAPE, for twice the mean pinball loss of the quantiles."""

    name, view, shown, unitless, selects = "wql", "raw", ("raw",), True, False
    over_targets = "averaged"

    def terms(self, values: Values) -> tuple[Tensor, Tensor]:
        return quantile_loss(values), values.size


def quantile_loss(values: Values) -> Tensor:
    """Twice the pinball loss (B, P, T), averaged over the quantiles; the absolute error if all are the median."""
    assert values.quantiles is not None
    losses = []
    for level, quantile in values.quantiles.items():
        below = values.actual - quantile
        losses.append(torch.maximum(level * below, (level - 1) * below))
    return 2 * torch.stack(losses).mean(0)
