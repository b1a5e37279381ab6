"""Losses by name: the mean squared and absolute error and the pinball loss, and those that a plugin adds."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from femts.data.batch import Batch
from femts.plugins import Registry

Loss = Callable[[Tensor, Batch], Tensor]
BUILT_IN = ("mse", "mae", "pinball")  # which models compute themselves
LOSSES: Registry[Loss] = Registry("loss", BUILT_IN)
register_loss = LOSSES.register
"""Function decorator: make a loss available by a name, as `training.loss`.

It is called with forecasts (B, P, C) in scaled units and a `Batch` whose `future` (B, P, C) followed and whose
`future_observed` says which of it is real, None for all, and returns a scalar.
"""


def find_loss(name: str) -> Loss | None:
    """The loss of that name; None for one of `BUILT_IN`. UsageError where there is none."""
    return None if name in BUILT_IN else LOSSES[name]
