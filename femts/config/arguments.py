"""Type checks of arguments of public functions, with one-sentence errors."""

from __future__ import annotations

import os
from pathlib import Path

from femts.errors import UsageError
from femts.text import quote


def check_path(value: object, what: str) -> Path:
    """`value` as a path; UsageError, starting with `what`, if it is not one."""
    if isinstance(value, str | os.PathLike) and "\0" not in os.fsdecode(value):
        return Path(os.fsdecode(value)).expanduser()
    raise UsageError(f"{what} is {_named(value)}, which is not a path; pass a string or a Path.")


def check_flag(value: object, name: str) -> bool:
    """Return `value` if it is a boolean; raise UsageError otherwise."""
    if type(value).__name__ in ("bool", "bool_"):  # Python or numpy
        return bool(value)
    raise UsageError(f"Argument '{name}' is {_named(value)}; use True or False.", argument=name, value=value)


def check_kind(value: object, kind: type | tuple[type, ...], what: str, remedy: str) -> None:
    """Raise UsageError unless `value` is of type `kind`; the message starts with `what` and ends with `remedy`."""
    if not isinstance(value, kind):
        raise UsageError(f"{what} is {_named(value)}; {remedy}.")


def check_text(value: object, name: str) -> str:
    """Return `value` if it is a string; raise UsageError otherwise."""
    if isinstance(value, str):
        return value
    raise UsageError(f"Argument '{name}' is {_named(value)}; pass a name as a string.", argument=name, value=value)


def check_names(value: object, name: str) -> tuple[str, ...]:
    """`value`, a string or a list of strings, as distinct names; UsageError if it is anything else or empty."""
    several = (value,) if isinstance(value, str | os.PathLike) else value
    wrong = f"is {_named(value)}"
    if isinstance(several, list | tuple | set):
        others = [each for each in several if not isinstance(each, str | os.PathLike)]
        if several and not others:
            return tuple(os.fsdecode(each) for each in dict.fromkeys(several))
        wrong = f"contains {_named(others[0])}" if others else "is empty"
    raise UsageError(f"Argument '{name}' {wrong}; pass a name, or a list of names.", argument=name, value=value)


def _named(value: object) -> str:
    """A value for a message: itself if it is short, otherwise its type."""
    text = quote(value) if isinstance(value, str | int | float) or value is None else ""
    return f"'{text}'" if text else f"a {type(value).__name__}"
