"""The learning rate over a budget, which is one of steps or, where that is shorter, of time."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from femts.training.config import TrainingConfig

_SCORING_TO_TRAINING = 0.4  # seconds a window; a guess that holds until the first validation is timed


def learning_rate(config: TrainingConfig, progress: float, epoch: int) -> float:
    """The rate of a step.

    Args:
        config: the recipe.
        progress: part of the budget that is spent before the step, in [0, 1]; at 1 the rate is 0.
        epoch: whole epochs before the step, which the exponential schedule falls by.
    """
    if config.schedule == "exponential":
        return config.lr * config.epoch_decay ** max(0, epoch + 1 - config.hold_epochs)
    if progress < config.warm_up:
        first = 1 / config.div_factor
        return config.lr * (first + (1 - first) * progress / config.warm_up)
    left = (1 - progress) / (1 - config.warm_up)
    return config.lr * (left if config.schedule == "linear" else math.sin(math.pi / 2 * left) ** 2)


@dataclass
class Budget:
    """The steps of a training and, where `seconds` says so, its time, part of which is kept for the final scores.

    Attributes:
        steps: optimiser steps.
        seconds: length of the whole call; None is no limit.
        called: `time.monotonic()` when the call began.
        scored: windows that are still to be scored after the last step.
        seconds_per_window: of scoring, as far as is known.
    """

    steps: int
    seconds: float | None
    called: float
    scored: int
    seconds_per_window: float = 0.0

    def __post_init__(self) -> None:
        self.began = time.monotonic()

    def guess_scoring(self, seconds_per_window: float) -> None:
        """Take what a window of training takes for a first idea of what scoring one does."""
        if self.seconds_per_window == 0.0:
            self.seconds_per_window = _SCORING_TO_TRAINING * seconds_per_window

    def time_spent(self) -> float:
        """Part of the time for training that is over, 1 when the final scores have to begin; 0 without a limit."""
        if self.seconds is None:
            return 0.0
        reserve = 1.2 * self.scored * self.seconds_per_window  # a little more than measured: other processes run too
        span = self.called + self.seconds - reserve - self.began
        now = time.monotonic() - self.began
        return 1.0 if now >= span else now / span
