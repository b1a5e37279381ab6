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
        current: parameters of the model in training.
    """

    def __init__(self, model: M, decay: float, weights: Mapping[str, Tensor], steps: int) -> None:
        self.model, self.decay, self.steps = copy.deepcopy(model), decay, steps
        if weights:
            self.model.load_state_dict(weights)
        self._averaged: list[Tensor] = list(self.model.parameters())
        self.current: list[Tensor] = list(model.parameters())
        # Statistics of batch norm are copied.
        self._buffers = list(zip(self.model.buffers(), model.buffers(), strict=True))
        self._weight = self.current[0].new_zeros(())  # as a tensor, so that a CUDA graph can contain the update

    def update(self) -> None:
        """Update the average after an optimiser step."""
        self.advance()
        self.apply()

    def advance(self) -> None:
        """Set the weight of the next update, by the number of those before."""
        decay = min(self.decay, (1 + self.steps) / (10 + self.steps))
        self._weight.fill_(1 - decay)
        self.steps += 1

    @torch.no_grad()
    def apply(self) -> None:
        """Update the average by the weight that `advance` set, which is not read from the device."""
        if self._weight.is_cpu:
            torch._foreach_lerp_(self._averaged, self.current, [self._weight] * len(self.current))
        else:  # where each of these is one launch, and an interpolation by a tensor one for each parameter
            changes = torch._foreach_sub(self.current, self._averaged)
            torch._foreach_mul_(changes, self._weight)
            torch._foreach_add_(self._averaged, changes)
        for own, current in self._buffers:
            own.copy_(current)
