"""Errors by cause: mistakes in the input (exit status 2) and runs that failed (exit status 1)."""

from __future__ import annotations

import difflib
import errno
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar, cast

from femts.text import MOST, Message, argument, quote

F = TypeVar("F", bound=Callable[..., Any])
Remedy = Mapping[str, Any] | None
MOST_CHOICES = 40  # most names listed in a message
NO_MEMORY = (
    f"Out of memory; use fewer rows or columns, a shorter {argument('seq_len')} or {argument('pred_len')}, a smaller "
    "training.batch_size and training.eval_batch_size, or a machine with more."
)
# Messages of libraries when memory runs out; under `ulimit -v`, loading shared objects and starting threads fail, too.
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
    """Base class of all errors that femts raises deliberately; the message is one printable sentence."""

    def __init__(self, text: object = "") -> None:
        super().__init__(Message(text))

    @property
    def marked(self) -> str:
        """The message with its arguments marked (`femts.text.argument`)."""
        return str(self.args[0].marked)


class UsageError(FemtsError, ValueError):
    """Invalid input (exit status 2); the message names the argument, the value and the remedy.

    Attributes:
        argument: name of the argument at fault, or of the setting, such as `training.lr`; None if no single one is.
        value: its value as it was given.
        remedy: keywords of the function that was called which mend it, None for those to leave out; empty if there are
            none.
    """

    def __init__(
        self, text: object = "", *, argument: str | None = None, value: object = None, remedy: Remedy = None
    ) -> None:
        super().__init__(text)
        self.argument, self.value, self.remedy = argument, value, dict(remedy or {})


class TableFault(UsageError):
    """A fault of a table that further rows cannot mend, so that its first rows tell it.

    Attributes:
        fault: what is wrong, with the table as its subject.
        advice: the end of the message, which begins with a semicolon.
        column: name of the column that is absent or has the fault; None if it does not matter who named it.
    """

    def __init__(
        self, fault: str, advice: str = "", remedy: Remedy = None, column: str | None = None, **blame: Any
    ) -> None:
        super().__init__(fault + advice, remedy=remedy, **blame)
        self.fault, self.advice, self.column = Message(fault), Message(advice), column


class TableFaults(TableFault):
    """Several faults of a table, with keywords that mend all that any keyword mends."""


class NoNewRows(UsageError):
    """A table without rows that came after a training, so that there is nothing to check or to learn."""


class RunFailure(FemtsError, RuntimeError):
    """A valid run that failed (exit status 1)."""


class GapWarning(UserWarning):
    """Gaps in a history were filled before forecasting, or rows of a table were left out."""


class ScaleWarning(UserWarning):
    """A series or column is constant in its training rows, or leaves their range later."""


class AccuracyWarning(UserWarning):
    """A model has higher test errors than a naive forecast, or its intervals miss their coverage."""


class AgeWarning(UserWarning):
    """A history ends more than one horizon after the last training row."""


class UnitsWarning(UserWarning):
    """The values of a history, or of future covariates, differ so much from the training rows that their unit may differ."""


class ForecastWarning(UserWarning):
    """A forecast does not depend on a future covariate, or a total is not the sum of the forecasts."""


# What is to be known about a forecast and its history, which commands print as notes.
OF_FORECASTS = (GapWarning, AgeWarning, UnitsWarning, ForecastWarning)


class CellWarning(UserWarning):
    """Cells of a results table failed and have no score."""


def warn(text: str, kind: type[Warning]) -> None:
    """Issue a warning that points at the caller's line outside femts."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("femts", "contextlib"):
        level, frame = level + 1, frame.f_back
    warnings.warn(kind(Message(text)), stacklevel=level)


def out_of_memory(error: BaseException) -> bool:
    """Return whether `error` or its cause says that memory ran out, on the CPU or another device."""
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


def is_full(error: OSError) -> bool:
    """Whether a disk or a quota is used up, so that freeing some space is a remedy."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def write_remedy(error: OSError, otherwise: str) -> str:
    """What to do about a failed write: what else is possible, and to free some space if there is none left."""
    return f"free some disk space or {otherwise}" if is_full(error) else otherwise


@contextmanager
def blamed(argument: str, value: object) -> Iterator[None]:
    """Name the `argument` that is being read, and its `value`, in a `UsageError` that names none; leaving it out mends
    it, unless it is a setting."""
    try:
        yield
    except UsageError as error:
        if error.argument is None:
            error.argument, error.value = argument, value
            error.remedy = error.remedy or ({} if "." in argument else {argument: None})
        raise


def reads(argument: str, place: int = 0) -> Callable[[F], F]:
    """Decorator of a function that reads the value of an `argument`, its parameter number `place`, as in `blamed`."""

    def decorate(function: F) -> F:
        @wraps(function)
        def read(*args: Any, **kwargs: Any) -> Any:
            with blamed(argument, (*args, *kwargs.values())[place]):
                return function(*args, **kwargs)

        return cast(F, read)

    return decorate


@contextmanager
def renamed(names: Mapping[str, str]) -> Iterator[None]:
    """Give the arguments of a `UsageError` the names that they have in another function; also a decorator of that."""
    try:
        yield
    except UsageError as error:
        error.argument = names.get(str(error.argument), error.argument)
        error.remedy = {names.get(name, name): value for name, value in error.remedy.items()}
        raise


@contextmanager
def memory_checked() -> Iterator[None]:
    """Raise a `RunFailure` for any library error that says that memory ran out; also a decorator."""
    try:
        yield
    except FemtsError:
        raise
    except Exception as error:
        if not out_of_memory(error):
            raise
        raise RunFailure(NO_MEMORY) from error


def suggest(name: str, choices: Iterable[str]) -> str:
    """End of a message about an unknown `name`: the closest valid name or, if none is close, all of them."""
    choices = list(choices)
    if not choices:
        return "; there is none to choose from, so leave it out."
    near = nearest(name, choices)
    if near is not None:
        return f"; did you mean '{quote(near)}'?"
    return f"; choose from {', '.join(map(quote, choices[:MOST_CHOICES]))}{', ...' * (len(choices) > MOST_CHOICES)}."


def unknown(what: str, name: object, choices: Iterable[str], argument: str | None = None) -> UsageError:
    """Error about a `name` that is no `what`, such as a metric; its remedy is the closest valid name, if one is close."""
    choices = list(choices)
    near, text = nearest(str(name), choices), f"Unknown {what} '{quote(name)}'{suggest(str(name), choices)}"
    return UsageError(text, argument=argument, value=name, remedy={argument: near} if argument and near else None)


def nearest(name: str, choices: Iterable[str]) -> str | None:
    """The valid name that an unknown `name` is probably meant to be; None if none is close."""
    by_lower = {choice.lower(): choice for choice in choices}
    near = difflib.get_close_matches(str(name)[:MOST].lower(), list(by_lower), n=1)
    return by_lower[near[0]] if near else None
