"""Errors, sorted by whose fault they are: the command line turns these into exit statuses 2 and 1."""

from __future__ import annotations

import difflib
import errno
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from femts.text import MOST, quote, sentence

MOST_CHOICES = 40  # that a sentence names
NO_MEMORY = (
    "Out of memory; use fewer rows or columns, a shorter --seq-len or --horizon, a smaller "
    "training.batch_size and training.eval_batch_size, or a machine with more."
)
# What libraries say where the system gives no memory, under `ulimit -v` also to their shared objects and threads.
_SIGNS = (
    "can't allocate memory",
    "out of memory",
    "not enough memory",
    "cannot allocate memory",
    "unable to allocate",
    "failed to allocate",
    "bad_alloc",
    "failed to map segment",
    "can't start new thread",
    "storage size calculation overflowed",
)


class FemtsError(Exception):
    """Base of every error that femts raises on purpose; its text is one sentence for the user,
    whatever data it quotes."""

    def __init__(self, text: object = "") -> None:
        super().__init__(sentence(text))


class UsageError(FemtsError, ValueError):
    """A mistake of the caller (exit status 2): the text names the thing, the value and the remedy."""


class RunFailure(FemtsError, RuntimeError):
    """A run that was asked for rightly and failed (exit status 1)."""


class GapWarning(UserWarning):
    """A history that lacks values was filled before it was forecast from."""


class ScaleWarning(UserWarning):
    """A series or column has no scale of its own in its training rows, or leaves it later on."""


class AgeWarning(UserWarning):
    """A history goes on for more than a horizon after the last row that the model learned from."""


class UnitsWarning(UserWarning):
    """A history has values of another size than the rows that the model learned from, as in another unit."""


class CellWarning(UserWarning):
    """Cells of a table have failed, and have no score."""


def warn(text: str, kind: type[Warning]) -> None:
    """Warn in the line of the caller of femts, however deep within femts the reason is found."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("femts", "contextlib"):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, kind, stacklevel=level)


def out_of_memory(error: BaseException) -> bool:
    """Tell if `error`, or what it comes from, says that memory ran out, on the CPU or on another device."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, MemoryError) or getattr(seen, "errno", None) == errno.ENOMEM:
            return True
        if isinstance(seen, RuntimeError | ImportError | SystemError | OSError) and not isinstance(seen, FemtsError):
            text = str(seen).lower()
            if any(sign in text for sign in _SIGNS):
                return True
        seen = seen.__cause__ or seen.__context__
    return False


@contextmanager
def memory_checked() -> Iterator[None]:
    """Raise one `RunFailure` for all the errors by which libraries say that memory ran out; also a decorator."""
    try:
        yield
    except FemtsError:
        raise
    except Exception as error:
        if not out_of_memory(error):
            raise
        raise RunFailure(NO_MEMORY) from error


def suggest(name: str, choices: Iterable[str]) -> str:
    """Ending of a sentence about an unknown `name`: the nearest right one, or all when none is near, if any."""
    choices = list(choices)
    if not choices:
        return "; there is none to choose from, so leave it out."
    by_lower = {choice.lower(): choice for choice in choices}
    near = difflib.get_close_matches(str(name)[:MOST].lower(), list(by_lower), n=1)
    if near:
        return f"; did you mean '{quote(by_lower[near[0]])}'?"
    return f"; choose from {', '.join(map(quote, choices[:MOST_CHOICES]))}{', ...' * (len(choices) > MOST_CHOICES)}."
