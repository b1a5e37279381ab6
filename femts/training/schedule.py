"""The learning rate schedule over a budget of steps or, if that is shorter, of time."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from femts.config.training import TrainingConfig
from femts.training.constants import FEWEST_SCORED, FIRST_STEPS, RESERVED, SCORING_RATIO


def learning_rate(config: TrainingConfig, progress: float, epoch: int) -> float:
    """Learning rate of a step.

    Args:
        config: the recipe.
        progress: share of the budget spent before the step, in [0, 1]; at 1 the rate is 0.
        epoch: completed epochs before the step, by which the exponential schedule decays.
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
    """Point of a schedule chosen by the validation of an earlier training.

    Attributes:
        step: optimiser steps up to the weights that were kept.
        steps: total steps of the learning rate schedule, at least `step`.
        epoch: steps per epoch.
    """

    step: int
    steps: int
    epoch: int

    @property
    def share(self) -> float:
        """Share of the schedule before the point, in (0, 1]."""
        return self.step / self.steps


class Budget:
    """The budget of a training in steps and, with a time limit, in time, part of which is reserved for the final
    scores.

    Args:
        steps: optimiser steps.
        seconds: time limit of the whole call; None is no limit.
        called: `time.monotonic()` when the call began.
        scored: number of windows to score after the last step.
    """

    def __init__(self, steps: int, seconds: float | None, called: float, scored: int) -> None:
        self.steps, self.seconds, self._called, self._scored = steps, seconds, called, scored
        self._began = time.monotonic()
        self._fastest, self._noted = math.inf, 0
        self._per_window: float | None = None  # seconds of scoring per window

    def note_step(self, seconds_per_window: float) -> None:
        """Record a training step; until a validation is timed, the fastest step serves to estimate the scoring time."""
        self._noted += 1
        self._fastest = min(self._fastest, seconds_per_window)

    def note_scoring(self, seconds_per_window: float) -> None:
        """Record a validation."""
        self._per_window = seconds_per_window

    def time_spent(self) -> float:
        """Share of the training time that is spent, 1 when the final scores have to begin; 0 without a limit."""
        if self.seconds is None:
            return 0.0
        per_window = self._per_window
        if per_window is None:
            per_window = SCORING_RATIO * self._fastest if self._noted >= FIRST_STEPS else 0.0
        # A margin over the measurement, since other processes run too.
        scored = 1.2 * per_window * self._scored
        reserve = min(scored, max(RESERVED * self.seconds, 1.2 * per_window * 2 * FEWEST_SCORED))
        span = self._called + self.seconds - reserve - self._began
        now = time.monotonic() - self._began
        return 1.0 if now >= span else now / span
