"""Notes to the user through the standard library's `logging`: modules log at level INFO to children of `femts`."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from femts.errors import AccuracyWarning

PROGRESS = logging.getLogger("femts.progress")  # progress of long computations
_TRAINING = logging.getLogger("femts.training")


@contextmanager
def quiet_training() -> Iterator[None]:
    """Silence the notes and accuracy warnings of trainings that are part of something larger, such as the candidates of `auto`."""
    level = _TRAINING.level
    _TRAINING.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AccuracyWarning)
            yield
    finally:
        _TRAINING.setLevel(level)
