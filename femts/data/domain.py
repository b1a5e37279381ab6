"""Domain of the values, as a user names it: bounds that no forecast leaves, and a transform of skewed values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from femts.config.values import check_plain
from femts.errors import UsageError, suggest
from femts.text import shown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

TRANSFORMS = ("none", "log1p", "boxcox")


@dataclass(frozen=True)
class Domain:
    """Domain of the targets, as a user names it.

    Attributes:
        low: smallest value of a forecast, raw units; None for no bound.
        high: largest value, likewise.
        transform: `none`, `log1p` (the logarithm of 1 + x) or `boxcox` (a power of x, fitted to each target).
    """

    low: float | None = None
    high: float | None = None
    transform: str = "none"

    @classmethod
    def of(cls, low: object, high: object, transform: object) -> Domain:
        """The domain by the arguments `min`, `max` and `transform` of `load_dataset`.

        Raises:
            UsageError: no number, an empty domain, or no transform of that name.
        """
        low, high = _number(low, "min"), _number(high, "max")
        if low is not None and high is not None and low >= high:
            raise UsageError(f"No value is above --min {low:g} and below --max {high:g}; give a lower --min.")
        name = "none" if transform is None else transform
        if name not in TRANSFORMS:
            raise UsageError(f"Unknown transform '{shown(name)}'{suggest(shown(name), TRANSFORMS)}")
        return cls(low, high, str(name))

    def clip(self, values: Array) -> Array:
        """Raw `values`, those outside the domain at its ends."""
        return values if self.low is None and self.high is None else values.clip(self.low, self.high)  # type: ignore[arg-type]

    def to_dict(self) -> dict[str, Any]:
        """Arguments of `of` that differ from the usual."""
        given = {"min": self.low, "max": self.high, "transform": None if self.transform == "none" else self.transform}
        return {name: value for name, value in given.items() if value is not None}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Domain:
        """The inverse of `to_dict`."""
        return cls(record.get("min"), record.get("max"), record.get("transform", "none"))


ANY = Domain()


def _number(value: object, name: str) -> float | None:
    if value is None:
        return None
    check_plain(value, f"Argument '{name}'")
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError) as error:
        raise UsageError(f"Argument '{name}' is '{shown(value)}', which is no number; give one, such as 0.") from error
    if not math.isfinite(number):
        raise UsageError(f"Argument '{name}' is {shown(value)}, which bounds nothing; give a number, or leave it out.")
    return number
