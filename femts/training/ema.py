"""The running average of the weights, which is validated, kept and scored."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn

M = TypeVar("M", bound=nn.Module)


class RunningAverage(Generic[M]):
    """Exponential moving average of the weights of a model in training.

    Early decays are smaller than `decay`, so that short runs are not dominated by the initial weights. (Torch's own
    `AveragedModel` synchronises with the device at every update.)

    Args:
        model: the model in training.
        decay: share of the average that remains after a step, in [0, 1); at 0 the average is the model.
        weights: the average so far; empty before the first step.
        steps: number of optimiser steps averaged so far.

    Attributes:
        model: a copy of the model with the averaged weights.
    """

    def __init__(self, model: M, decay: float, weights: Mapping[str, Tensor], steps: int) -> None:
        self.model, self.decay, self.steps = copy.deepcopy(model), decay, steps
        if weights:
            self.model.load_state_dict(weights)
        self._average, self._current = _tensors(self.model), _tensors(model)
        # Statistics of batch norm are copied.
        self._buffers = list(zip(self.model.buffers(), model.buffers(), strict=True))

    def update(self) -> None:
        """Update the average after an optimiser step."""
        decay = min(self.decay, (1 + self.steps) / (10 + self.steps))
        torch._foreach_lerp_(self._average, self._current, 1 - decay)
        for own, current in self._buffers:
            own.copy_(current)
        self.steps += 1


def _tensors(model: nn.Module) -> list[Tensor]:
    return [parameter.detach() for parameter in model.parameters()]
