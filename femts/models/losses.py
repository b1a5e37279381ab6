"""Losses by name: the mean squared error, the mean absolute error and the pinball loss, and those added by plugins."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from femts.data.batch import Batch
from femts.plugins import Registry

Loss = Callable[[Tensor, Batch], Tensor]
BUILT_IN = ("mse", "mae", "pinball")  # computed by the models themselves
LOSSES: Registry[Loss] = Registry("loss", BUILT_IN)
register_loss = LOSSES.register
"""Function decorator that registers a loss under a name, for `training.loss`.

It is called with forecasts (B, P, C) in scaled units and a `Batch` with the true values `future` (B, P, C) and the mask
`future_observed` (None if all are observed), and returns a scalar.
"""


def find_loss(name: str) -> Loss | None:
    """The loss called `name`, or None for one of `BUILT_IN`; raise UsageError if it is unknown."""
    return None if name in BUILT_IN else LOSSES[name]
