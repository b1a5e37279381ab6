"""Plain values: text, numbers and lists of plausible size, read from YAML or given in Python."""

from __future__ import annotations

import re
from collections.abc import Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from femts.errors import UsageError, blamed
from femts.text import quote

MOST_BYTES = 2**20  # size of a file
_WHOLE = re.compile(r"[+-]?\d+")
MOST_STEPS = 10**6  # horizon, a year of half minutes; larger ones are probably mistakes
LARGEST_WHOLE = 2**32 - 1  # of a setting; the largest seed that all random generators accept


def read_yaml(path: Path, what: str) -> Any:
    """Read a YAML file as plain values; `what` starts error messages.

    Raises:
        UsageError: The file cannot be read, is not YAML, is too large, or contains aliases, by which a few lines can
            expand to billions.
    """
    import yaml

    try:
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
        text = raw.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(f"{what} {path} cannot be read: {reason}; give a YAML file.") from error
    if len(raw) > MOST_BYTES:
        raise UsageError(
            f"{what} {path} is larger than {MOST_BYTES >> 20} MB, which is too large for settings; use another file."
        )
    try:
        for event in yaml.parse(text, yaml.SafeLoader):
            if isinstance(event, yaml.AliasEvent):
                line = event.start_mark.line + 1
                raise UsageError(
                    f"{what} {path} has the alias '*{quote(event.anchor)}' in line {line}, which is not supported; "
                    "write the value out."
                )
        _check_keys(yaml.compose(text, yaml.SafeLoader), f"{what} {path}")
        return yaml.safe_load(text)
    except UsageError:
        raise
    except (yaml.YAMLError, ValueError, OverflowError, TypeError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 1}" if mark else ""
        raise UsageError(f"{what} {path} is not YAML{line}; write it as 'key: value' lines.") from error


def _check_keys(node: Any, where: str) -> None:
    """Raise UsageError if a mapping in a YAML node has a duplicate key, whose first value would be lost."""
    if isinstance(node.value if node is not None else "", str):
        return
    lines: dict[str, int] = {}
    for each in node.value:
        key, value = each if isinstance(each, tuple) else (None, each)
        if key is not None:
            name, line = str(key.value), key.start_mark.line + 1
            if name in lines:
                raise UsageError(
                    f"{where} has the key '{quote(name)}' twice, in lines {lines[name]} and {line}; keep one of them."
                )
            lines[name] = line
        _check_keys(value, where)


def is_single(value: object) -> bool:
    """Return whether a value is a string, number, boolean or None, and not a list, mapping or object."""
    # numpy's bool is not a Real.
    return value is None or isinstance(value, str | Real) or type(value).__name__ in ("bool", "bool_")


def check_plain(value: object, what: str) -> None:
    """Raise UsageError unless `value` is text, a number, or a list or mapping of these; `what` says where it occurs."""
    if isinstance(value, Mapping):
        value = [*value.keys(), *value.values()]
    if isinstance(value, list | tuple):
        for each in value:
            check_plain(each, what)
    elif not is_single(value):
        raise UsageError(f"{what} takes text, numbers and lists of them, not a {type(value).__name__}; convert it.")


def whole_number(value: object, what: str) -> int | None:
    """`value`, a number or text, as a whole number; None if it is not one.

    Raises:
        UsageError: It exceeds the largest supported number; the message starts with `what`.
    """
    if isinstance(value, str):
        if not _WHOLE.fullmatch(value.strip()):
            return None
        number = int(value) if len(value.strip()) < 20 else LARGEST_WHOLE + 1
    elif isinstance(value, Integral) and not isinstance(value, bool):
        number = int(value)
    elif isinstance(value, float) or (isinstance(value, Real) and not isinstance(value, bool)):
        if not float(value).is_integer():  # false for NaN and infinity, too
            return None
        number = int(float(value))
    else:
        return None
    if abs(number) > LARGEST_WHOLE:
        raise UsageError(
            f"{what} is {quote(value)}, but the largest supported value is {LARGEST_WHOLE}; use a smaller one."
        )
    return number


def left_open(steps: object) -> bool:
    """Return whether a number of steps is left to femts, as None or `auto`."""
    return steps is None or (isinstance(steps, str) and steps.strip().lower() == "auto")


def check_count(value: object, name: str, least: int = 1) -> int:
    """`value` of the argument or option `name`, a number or text, as a whole number of at least `least`; UsageError if
    it is not."""
    what = f"{'Option' if name.startswith('-') else 'Argument'} '{name}'"
    with blamed(name, value):
        number = whole_number(value, what)
        if number is None or number < least:
            raise UsageError(f"{what} takes a whole number of at least {least}, not '{quote(value)}'.")
    return number


def check_steps(steps: object, name: str = "horizon") -> int:
    """Return `steps`, the argument `name`, if it is a valid horizon; raise UsageError otherwise."""
    if isinstance(steps, bool) or not isinstance(steps, Integral) or not 1 <= int(steps) <= MOST_STEPS:
        text = f"A horizon of {quote(steps)} steps is not supported; use a whole number from 1 to {MOST_STEPS}."
        raise UsageError(text, argument=name, value=steps, remedy={name: None})
    return int(steps)
