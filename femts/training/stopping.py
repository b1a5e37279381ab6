"""The reason to stop that comes from outside: a signal."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any

from femts.errors import RunFailure


class Interrupted(RunFailure):
    """Ctrl-C or SIGTERM ended the training; what was reached is saved. Whoever trains in a loop should let it pass."""


class StopSignals:
    """Turns SIGINT and SIGTERM into a flag, so that training ends between two steps with its state saved.

    A second signal ends at once. Signals belong to the main thread; in any other, nothing is changed.
    """

    def __init__(self) -> None:
        self.received = 0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> StopSignals:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._note) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

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
