"""External reasons to stop: signals, and watchers of the validations."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType, TracebackType
from typing import Any

from femts.errors import RunFailure

Watch = Callable[[Sequence[Mapping[str, Any]]], bool]
_WATCH: ContextVar[Watch | None] = ContextVar("watch", default=None)


class Interrupted(RunFailure):
    """Ctrl-C or SIGTERM stopped the training; progress is saved. Loops over trainings should let it propagate."""


class Diverged(RunFailure):
    """The loss or a validation error became NaN or infinite, in all processes of a training alike."""


class StopSignals:
    """Turns SIGINT and SIGTERM into a flag, so that training stops between two steps with its state saved.

    A second signal stops at once. Signal handlers belong to the main thread; in other threads nothing is changed.
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
        for child in multiprocessing.active_children():  # the main process of a DDP run only waits for its workers
            if child.pid is not None:
                os.kill(child.pid, number)
        # Workers receive a terminal's Ctrl-C twice, from the terminal and from the main process, so they continue
        # counting.
        if self.received > 1 and not worker:
            for child in multiprocessing.active_children():
                child.kill()
            raise KeyboardInterrupt


@contextmanager
def watched(watch: Watch) -> Iterator[None]:
    """Call `watch` with the validation rows so far after each step of a training inside, and stop if it returns True,
    as if by a signal. Not supported for trainings on several devices."""
    token = _WATCH.set(watch)
    try:
        yield
    finally:
        _WATCH.reset(token)


def asked_to_stop(validations: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the watcher of this training wants it to stop."""
    watch = _WATCH.get()
    return watch is not None and watch(validations)
