"""Notes to the user by the standard library's `logging`: each module logs at level INFO to a child of `femts`."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

PROGRESS = logging.getLogger("femts.progress")  # lines on how far long work has come
_TRAINING = logging.getLogger("femts.training")


@contextmanager
def quiet_training() -> Iterator[None]:
    """Log no notes of trainings that are steps of something larger, such as the candidates of `auto`."""
    level = _TRAINING.level
    _TRAINING.setLevel(logging.WARNING)
    try:
        yield
    finally:
        _TRAINING.setLevel(level)
