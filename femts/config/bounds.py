"""Bounds of settings as field annotations: `lr: Positive = 1e-3`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import inf
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from femts.errors import UsageError


@dataclass(frozen=True)
class Bounds:
    """Range of valid numbers of a field, as part of its annotation. None is always valid.

    Attributes:
        words: description of the range for error messages.
        at_least, above: inclusive or exclusive lower bound.
        at_most, below: inclusive or exclusive upper bound; without one, any finite number is valid.
    """

    words: str
    at_least: float = -inf
    above: float = -inf
    at_most: float = inf
    below: float = inf

    def take(self, number: float) -> bool:
        """Return whether `number` is within the bounds; NaN never is."""
        return self.at_least <= number <= self.at_most and self.above < number < self.below


Count = Annotated[int, Bounds("a whole number of at least 1", at_least=1)]
Natural = Annotated[int, Bounds("a whole number of at least 0", at_least=0)]
Positive = Annotated[float, Bounds("a number above 0", above=0)]
NotNegative = Annotated[float, Bounds("a number of at least 0", at_least=0)]
Share = Annotated[float, Bounds("a number in [0, 1)", at_least=0, below=1)]
UpTo1 = Annotated[float, Bounds("a number in [0, 1]", at_least=0, at_most=1)]
_SENTENCE = "Setting '{where}.{name}' takes {words}, not {value}."


def check_bounds(config: object, where: str, sentence: str = _SENTENCE) -> None:
    """Check the fields of a dataclass against their bounds; for a tuple, each number.

    Args:
        config: the dataclass.
        where: prefix of field names in settings (`model`, `training`).
        sentence: error message with `{where}`, `{name}`, `{words}` and `{value}`.

    Raises:
        UsageError: A field is out of bounds.
    """
    for name in _bounds(type(config)):  # type: ignore[arg-type]  # classes are hashable
        check_value(type(config), name, getattr(config, name), where, sentence)


def check_value(kind: type, name: str, value: Any, where: str, sentence: str = _SENTENCE) -> None:
    """Check one typed `value` against the bounds of the field `name` of the dataclass `kind`, as in `check_bounds`."""
    bounds = _bounds(kind).get(name)  # type: ignore[arg-type]
    numbers = value if isinstance(value, tuple) else () if value is None else (value,)
    if bounds is not None and not all(map(bounds.take, numbers)):
        text = sentence.format(where=where, name=name, words=bounds.words, value=value)
        raise UsageError(text, argument=f"{where}.{name}".strip("."), value=value)


@cache
def _bounds(kind: type) -> dict[str, Bounds]:
    """Bounds of a dataclass by field."""
    hints = get_type_hints(kind, include_extras=True)
    return {name: bounds for name, hint in hints.items() if (bounds := _find(hint))}


def _find(hint: Any) -> Bounds | None:
    """Bounds in an annotation, such as `Count | None`."""
    if get_origin(hint) is Annotated:
        return next((each for each in hint.__metadata__ if isinstance(each, Bounds)), None)
    return next(filter(None, map(_find, get_args(hint))), None)
