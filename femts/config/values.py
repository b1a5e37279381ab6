"""Plain values: texts, numbers and lists of a size that a person could have written, read from YAML
or given in Python."""

from __future__ import annotations

import re
from collections.abc import Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from femts.errors import UsageError
from femts.text import quote

MOST_BYTES = 2**20  # of a file
MOST_DEEP = 12  # lists in lists
_WHOLE = re.compile(r"[+-]?\d+")
MOST_STEPS = 10**6  # of a forecast: a year of half minutes; what is asked for by mistake is often more
LARGEST_WHOLE = 2**32 - 1  # of a setting; random generators take no larger seed everywhere


def read_yaml(path: Path, what: str) -> Any:
    """The content of a YAML file in plain values; `what` begins a message.

    Raises:
        UsageError: it cannot be read, is no YAML, is larger than a person writes, or names a part
            of itself, by which a few lines can stand for billions.
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
            f"{what} {path} is larger than {MOST_BYTES >> 20} MB, which is too large for settings; name another file."
        )
    try:
        depth = 0
        for event in yaml.parse(text, yaml.SafeLoader):
            if isinstance(event, yaml.AliasEvent):
                line = event.start_mark.line + 1
                raise UsageError(
                    f"{what} {path} has the alias '*{quote(event.anchor)}' in line {line}, which is not supported; "
                    "write the value out."
                )
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MOST_DEEP:
                line = event.start_mark.line + 1
                raise UsageError(
                    f"{what} {path} is nested more than {MOST_DEEP} levels deep in line {line}; flatten it."
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
    """UsageError for a key that stands twice in one mapping of a YAML node, of which the first would be lost."""
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
    """Tell a text, a number, true, false or nothing from a list, a mapping or an object."""
    # Numpy's is no Real.
    return value is None or isinstance(value, str | Real) or type(value).__name__ in ("bool", "bool_")


def check_plain(value: object, what: str) -> None:
    """UsageError where `value` is no text or number, and no list or mapping of them; `what` says where it stands."""
    if isinstance(value, Mapping):
        value = [*value.keys(), *value.values()]
    if isinstance(value, list | tuple):
        for each in value:
            check_plain(each, what)
    elif not is_single(value):
        raise UsageError(
            f"{what} takes text, numbers and lists of them, not a {type(value).__name__}; write it as one of those."
        )


def whole_number(value: object, what: str) -> int | None:
    """`value`, a number or its text, as a whole number; None where it is none.

    Raises:
        UsageError: it is larger than any that femts takes; the sentence begins with `what`.
    """
    if isinstance(value, str):
        if not _WHOLE.fullmatch(value.strip()):
            return None
        number = int(value) if len(value.strip()) < 20 else LARGEST_WHOLE + 1
    elif isinstance(value, Integral) and not isinstance(value, bool):
        number = int(value)
    elif isinstance(value, float) or (isinstance(value, Real) and not isinstance(value, bool)):
        if not float(value).is_integer():  # nor are NaN and infinity
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
    """Tell a number of steps that is left to femts, None or `auto`, from one that is asked for."""
    return steps is None or (isinstance(steps, str) and steps.strip().lower() == "auto")


def check_count(value: object, what: str, least: int = 1) -> int:
    """`value`, a number or its text, as a whole number of at least `least`; UsageError naming `what` if it is none."""
    number = whole_number(value, what)
    if number is None or number < least:
        raise UsageError(f"{what} takes a whole number of at least {least}, not '{quote(value)}'.")
    return number


def check_steps(steps: object) -> int:
    """A horizon, if it is one; else UsageError."""
    if isinstance(steps, bool) or not isinstance(steps, Integral) or not 1 <= int(steps) <= MOST_STEPS:
        raise UsageError(
            f"A horizon of {quote(steps)} steps is not supported; use a whole number from 1 to {MOST_STEPS}."
        )
    return int(steps)
