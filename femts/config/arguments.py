"""Arguments of the public functions: each refused in one sentence where it is of a kind that none of them takes."""

from __future__ import annotations

import os
from pathlib import Path

from femts.errors import UsageError
from femts.text import quote


def check_path(value: object, what: str) -> Path:
    """`value` as a path; UsageError where it is none, of an argument that `what` names."""
    if isinstance(value, str | os.PathLike) and "\0" not in os.fsdecode(value):
        return Path(os.fsdecode(value)).expanduser()
    raise UsageError(f"{what} is {_named(value)}, which is not a path; pass a string or a Path.")


def check_flag(value: object, name: str) -> bool:
    """`value` where it is true or false; else UsageError."""
    if type(value).__name__ in ("bool", "bool_"):  # of Python, or of numpy
        return bool(value)
    raise UsageError(f"Argument '{name}' is {_named(value)}; give True or False.")


def check_kind(value: object, kind: type | tuple[type, ...], what: str, remedy: str) -> None:
    """UsageError where `value` is not of `kind`; `what` begins the sentence, and `remedy` ends it."""
    if not isinstance(value, kind):
        raise UsageError(f"{what} is {_named(value)}; {remedy}.")


def check_text(value: object, name: str) -> str:
    """`value` where it is text; else UsageError that names the argument."""
    if isinstance(value, str):
        return value
    raise UsageError(f"Argument '{name}' is {_named(value)}; give a name as text.")


def check_names(value: object, name: str) -> tuple[str, ...]:
    """`value`, one text or a list of texts, as distinct names; UsageError where it is neither, or empty."""
    several = (value,) if isinstance(value, str | os.PathLike) else value
    if isinstance(several, list | tuple | set):
        names = tuple(dict.fromkeys(each for each in several if isinstance(each, str | os.PathLike)))
        if names and all(isinstance(each, str | os.PathLike) for each in several):
            return tuple(os.fsdecode(each) for each in names)
    raise UsageError(f"Argument '{name}' is {_named(value)}; pass a name, or a list of names.")


def _named(value: object) -> str:
    """A value for a sentence: itself where it is short, else its kind."""
    text = quote(value) if isinstance(value, str | int | float) or value is None else ""
    return f"'{text}'" if text else f"a {type(value).__name__}"
