"""Bounds of numeric fields."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, nan
from typing import Annotated, Any, Literal

import pytest

from femts.config.bounds import Bounds, Count, Natural, NotNegative, Positive, Share, check_bounds
from femts.config.settings import apply_settings
from femts.errors import UsageError


@dataclass(frozen=True)
class Unbounded:
    name: str = ""
    kind: Literal["a", "b"] = "a"
    rate: Positive = 0.1


@dataclass(frozen=True)
class Bounded(Unbounded):
    layers: Count = 3
    width: Count | None = None
    seed: Natural = 0
    decay: NotNegative = 0.0
    part: Share = 0.5
    pair: Annotated[tuple[float, float], Bounds("two numbers up to 1", at_most=1, above=0)] = (0.5, 1.0)

    def __post_init__(self) -> None:
        check_bounds(self, "x")


def test_values_within_bounds_are_accepted() -> None:
    cases: list[Any] = [
        {"rate": 1e-300, "layers": 1, "width": 1, "seed": 0, "decay": 0.0, "part": 0.0, "pair": (1e-9, 1.0)},
        {"rate": 1e300, "layers": 2**40, "width": None, "part": 0.999},
    ]
    for changes in cases:
        assert replace(Bounded(), **changes)


def test_values_out_of_bounds_are_refused() -> None:
    cases: list[tuple[Any, ...]] = [
        ("rate", 0.0, "Setting 'x.rate' takes a number above 0, not 0.0."),
        ("rate", inf, "Setting 'x.rate' takes a number above 0, not inf."),
        ("rate", nan, "Setting 'x.rate' takes a number above 0, not nan."),
        ("layers", 0, "Setting 'x.layers' takes a whole number of at least 1, not 0."),
        ("width", -1, "Setting 'x.width' takes a whole number of at least 1, not -1."),
        ("seed", -1, "Setting 'x.seed' takes a whole number of at least 0, not -1."),
        ("decay", -0.1, "Setting 'x.decay' takes a number of at least 0, not -0.1."),
        ("part", 1.0, "Setting 'x.part' takes a number in [0, 1), not 1.0."),
        ("pair", (0.5, 1.5), "Setting 'x.pair' takes two numbers up to 1, not (0.5, 1.5)."),
        ("pair", (0.0, 0.5), "Setting 'x.pair' takes two numbers up to 1, not (0.0, 0.5)."),
    ]
    for name, value, sentence in cases:
        with pytest.raises(UsageError) as caught:
            replace(Bounded(), **{name: value})
        assert str(caught.value) == sentence


def test_text_settings_are_parsed() -> None:
    held = apply_settings(Bounded(), {"rate": "2", "width": "none", "pair": "0.5,0.6", "layers": "4"}, "x")
    assert held == Bounded(rate=2.0, width=None, pair=(0.5, 0.6), layers=4)


def test_custom_error_message() -> None:
    with pytest.raises(UsageError, match=r"^rate=-1 is not a number above 0\.$"):
        check_bounds(Unbounded(rate=-1), "", "{name}={value} is not {words}.")
