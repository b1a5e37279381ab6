"""Plain values, as JSON and YAML hold them, held against rules: types, bounds, finite numbers, lengths.

A rule is called with a value and the name of its field, and raises a `Misfit` where the value does not keep it.
"""

from __future__ import annotations

import hashlib
import json
import reprlib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Rule = Callable[[Any, str], None]
LARGEST, MOST = sys.float_info.max, 2**24
MOST_BYTES = 2**28
MISSING = object()
HEXADECIMAL = frozenset("0123456789abcdef")


class Misfit(ValueError):
    """A value that a rule refuses; its text names the field, the value and what would be right."""

    def __init__(self, name: str, value: object, right: str) -> None:
        fault = "is missing" if value is MISSING else f"is {reprlib.repr(value)}, not {right}"
        super().__init__(f"{name or 'its content'} {fault}")


def read_json(path: Path) -> Any:
    """Read what the file `path` holds; a Misfit when that is no JSON, an OSError when the system refuses."""
    with open(path, "rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise Misfit("", f"more than {MOST_BYTES} bytes", "of a size that femts writes")
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise Misfit("", content[:30], "JSON") from error


def fingerprint(content: Any) -> str:
    """SHA-256 of plain values; the same for equal ones, however they are written."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def anything(value: Any, name: str) -> None:
    """The rule that every value keeps."""


def real(value: Any, name: str) -> None:
    """A number, also one that is not finite."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Misfit(name, value, "a number")


def flag(value: Any, name: str) -> None:
    """True or false."""
    if not isinstance(value, bool):
        raise Misfit(name, value, "true or false")


def number(low: float = -LARGEST, high: float = LARGEST) -> Rule:
    """A finite number from `low` to `high`."""
    bounds = "" if low == -LARGEST else f" of at least {low:g}" if high == LARGEST else f" in [{low:g}, {high:g}]"

    def rule(value: Any, name: str) -> None:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
            raise Misfit(name, value, f"a finite number{bounds}")

    return rule


def whole(low: int = 0, high: int = 2**53) -> Rule:
    """A whole number from `low` to `high`."""

    def rule(value: Any, name: str) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise Misfit(name, value, f"a whole number from {low} to {high}")

    return rule


def text(value: Any, name: str) -> None:
    """A string that can be written out."""
    if not isinstance(value, str) or any("\ud800" <= letter <= "\udfff" for letter in value):
        raise Misfit(name, value, "text")


def digest(value: Any, name: str) -> None:
    """A SHA-256 in hexadecimal."""
    if not isinstance(value, str) or len(value) != 64 or set(value) - HEXADECIMAL:
        raise Misfit(name, value, "a SHA-256")


def one_of(*values: object) -> Rule:
    """One of `values`, of their type."""

    def rule(value: Any, name: str) -> None:
        if not any(type(value) is type(each) and value == each for each in values):
            raise Misfit(name, value, " or ".join(map(repr, values)))

    return rule


def maybe(rule: Rule) -> Rule:
    """Nothing, or what `rule` says."""
    return lambda value, name: None if value is None else rule(value, name)


def both(one: Rule, other: Rule) -> Rule:
    """Join `one` and `other` into one rule."""

    def rule(value: Any, name: str) -> None:
        one(value, name)
        other(value, name)

    return rule


def several(rule: Rule, least: int = 0, most: int = MOST) -> Rule:
    """A list of `least` to `most` values that keep `rule`."""

    def each(value: Any, name: str) -> None:
        if not isinstance(value, (list, tuple)) or not least <= len(value) <= most:
            raise Misfit(name, value, f"a list of {least if least == most else f'{least} to {most}'} values")
        for place, item in enumerate(value):
            rule(item, f"{name}[{place}]")

    return each


def entries(rule: Rule, key: Rule = text) -> Rule:
    """A mapping of names that keep `key` to values that keep `rule`."""

    def each(value: Any, name: str) -> None:
        if not isinstance(value, Mapping):
            raise Misfit(name, value, "a mapping")
        for inner, item in value.items():
            key(inner, f"a name in {name}")
            rule(item, f"{name}.{inner}")

    return each


def fields(needed: Mapping[str, Rule], further: Mapping[str, Rule] | None = None, closed: bool = True) -> Rule:
    """A mapping that has `needed` and may have `further`; where it is not `closed`, others as well."""
    rules = {**needed, **(further or {})}

    def record(value: Any, name: str) -> None:
        if not isinstance(value, Mapping):
            raise Misfit(name, value, "a mapping")
        prefix = f"{name}." if name else ""
        for field in needed:
            if field not in value:
                raise Misfit(f"{prefix}{field}", MISSING, "")
        for field in value if closed else ():
            if field not in rules:
                raise Misfit(prefix.rstrip("."), field, "a mapping without that name")
        for field, rule in rules.items():
            if field in value:
                rule(value[field], f"{prefix}{field}")

    return record
