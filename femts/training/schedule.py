"""The learning rate over a budget, which is one of steps or, where that is shorter, of time."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from femts.config.training import TrainingConfig

_SCORING_TO_TRAINING = 0.4  # seconds a window; a guess that holds until the first validation is timed
FEWEST = 16  # windows of a part that are scored however little time is left, and at least one of each series
RESERVED = 0.25  # part of a limit of time that the final scores get at most; they are of fewer windows then
VALIDATING = 0.03  # part of it that a validation gets at most
_FEW = 5  # steps; of fewer, each may have been held up by the machine


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


@dataclass(frozen=True)
class Chosen:
    """Point of a schedule that the validation of an earlier training chose.

    Attributes:
        step: optimiser steps before the weights that were kept.
        steps: those that the learning rate was laid out over, at least `step`.
        epoch: those of an epoch.
    """

    step: int
    steps: int
    epoch: int

    @property
    def share(self) -> float:
        """Part of the schedule that lies before the point, in (0, 1]."""
        return self.step / self.steps


class Budget:
    """The steps of a training and, where there is a limit, its time, part of which is kept for the final scores.

    Args:
        steps: optimiser steps.
        seconds: length of the whole call; None is no limit.
        called: `time.monotonic()` when the call began.
        scored: windows that are still to be scored after the last step.
    """

    def __init__(self, steps: int, seconds: float | None, called: float, scored: int) -> None:
        self.steps, self.seconds, self._called, self._scored = steps, seconds, called, scored
        self._began = time.monotonic()
        self._fastest, self._noted = math.inf, 0
        self._per_window: float | None = None  # of scoring, in seconds

    def note_step(self, seconds_per_window: float) -> None:
        """Take in a step of the training: until a validation is timed, the fastest one says what scoring will take."""
        self._noted += 1
        self._fastest = min(self._fastest, seconds_per_window)

    def note_scoring(self, seconds_per_window: float) -> None:
        """Take in a validation."""
        self._per_window = seconds_per_window

    def time_spent(self) -> float:
        """Part of the time for training that is over, 1 when the final scores have to begin; 0 without a limit."""
        if self.seconds is None:
            return 0.0
        per_window = self._per_window
        if per_window is None:
            per_window = _SCORING_TO_TRAINING * self._fastest if self._noted >= _FEW else 0.0
        # A little more than measured: other processes run too.
        scored = 1.2 * per_window * self._scored
        reserve = min(scored, max(RESERVED * self.seconds, 1.2 * per_window * 2 * FEWEST))
        span = self._called + self.seconds - reserve - self._began
        now = time.monotonic() - self._began
        return 1.0 if now >= span else now / span
