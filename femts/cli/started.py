"""When a command began, from which its time limit counts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from femts.environment import process_began

_STARTED: ContextVar[float | None] = ContextVar("started", default=None)


@contextmanager
def command_started(with_process: bool) -> Iterator[None]:
    """Context of a command that begins now or, `with_process`, with this process, whose imports then count."""
    token = _STARTED.set(process_began() if with_process else time.monotonic())
    try:
        yield
    finally:
        _STARTED.reset(token)


def started() -> float:
    """`time.monotonic()` when the command began."""
    began = _STARTED.get()
    return time.monotonic() if began is None else began
