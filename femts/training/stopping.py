"""Reasons to stop that come from outside: a signal, or the clock."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from types import FrameType, TracebackType
from typing import Any

from femts.errors import RunFailure


class Interrupted(RunFailure):
    """Ctrl-C or SIGTERM ended the training; what was reached is saved. Whoever trains in a loop should let it pass."""


class StopSignals:
    """Turns SIGINT and SIGTERM into a flag, so that training ends between two steps with its state saved.

    Lightning would end the process on SIGINT and lose the epoch. A second signal ends at once. Signals belong to the main
    thread; in any other, nothing is changed.
    """

    def __init__(self) -> None:
        self.received = 0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> StopSignals:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
            self.claim()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def claim(self) -> None:
        """Install the handlers (again): Lightning replaces SIGTERM's when it starts."""
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.received += 1
        worker = multiprocessing.parent_process() is not None
        for child in multiprocessing.active_children():  # the main process of a DDP run only waits for them
            if child.pid is not None:
                os.kill(child.pid, number)
        # Workers get a terminal's Ctrl-C twice, from the terminal and from the main process, so they go on counting.
        if self.received > 1 and not worker:
            for child in multiprocessing.active_children():
                child.kill()
            raise KeyboardInterrupt

    def __getstate__(self) -> dict[str, Any]:
        return {"received": 0, "_before": {}}  # handlers stay in the process that installed them


class Deadline:
    """The end of `max_time`, counted from `started` (a `time.monotonic()`), with time kept for the final scores.

    Args:
        seconds: length of the whole call; None is no limit.
        started: when the call began.
        windows: windows that still have to be scored after the last step.
    """

    def __init__(self, seconds: float | None, started: float, windows: int) -> None:
        self._end = None if seconds is None else started + seconds
        self._windows = windows
        self.seconds_per_window = 0.0

    def passed(self) -> bool:
        """Whether training has to stop now for the scores to be ready in time."""
        if self._end is None:
            return False
        reserve = 1.2 * self._windows * self.seconds_per_window  # a little more than measured: other processes run too
        return time.monotonic() + reserve >= self._end
