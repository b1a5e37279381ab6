"""The line on a terminal that says how far a training is and how long it will take."""

from __future__ import annotations

import sys
import time

from femts.training.schedule import Budget
from femts.training.state import TrainState

_FIRST = 2.0  # seconds before a time is told


class ProgressLine:
    """One line on a terminal's stderr that counts steps and shows time left and scores, at most five times a second."""

    def __init__(self, wanted: bool, state: TrainState, budget: Budget) -> None:
        self._on = wanted and sys.stderr.isatty()
        self._state, self._budget = state, budget
        self._began, self._before, self._shown = time.monotonic(), state.progress, 0.0

    def show(self) -> None:
        """Redraw the line when it is old enough; nothing is read from the device."""
        now = time.monotonic()
        if not self._on or now - self._shown < 0.2:
            return
        self._shown = now
        state = self._state
        text = f"step {state.step} [{'#' * int(20 * state.progress):<20}] {100 * state.progress:.0f} %"
        if now - self._began > _FIRST and state.progress > self._before:
            text += f", {span((now - self._began) * (1 - state.progress) / (state.progress - self._before))} left"
        if state.validations:
            text += f"  val MSE {state.validations[-1]['val_mse']:.4f}, best {state.best_mse:.4f} at step {state.best_step}"
        sys.stderr.write(f"\r\x1b[2K{text}")
        sys.stderr.flush()

    def clear(self) -> None:
        """Clear the line."""
        if self._on:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()


def span(seconds: float) -> str:
    """`40s`, `2m10s`, `1h05m`."""
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    if minutes >= 60:
        return f"{minutes // 60}h{minutes % 60:02d}m"
    return f"{minutes}m{rest:02d}s" if minutes else f"{rest}s"
