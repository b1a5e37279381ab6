"""Domain of the values, as a user names it: bounds that no forecast leaves, and a transform of skewed values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from femts.config.values import check_plain
from femts.errors import UsageError, suggest
from femts.text import quote

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

NEAR = 1.0  # ranges of the training values, within which 0 has to lie below them to bound a forecast
MANY = 1000  # values none of which is negative, that tell by themselves
SOME = 0.02  # part of the values that are 0
TRANSFORMS = ("none", "log1p", "boxcox")


@dataclass(frozen=True)
class Domain:
    """Domain of the targets, as a user names it.

    Attributes:
        low: smallest value of a forecast, raw units, of all targets or one each; minus infinity for none, and None for
            what the training rows show (`fitted`).
        high: largest value; None for none.
        transform: `none`, `log1p` (the logarithm of 1 + x) or `boxcox` (a power of x, fitted to each target).
    """

    low: float | tuple[float, ...] | None = None
    high: float | None = None
    transform: str = "none"

    @classmethod
    def of(cls, low: object, high: object, transform: object) -> Domain:
        """The domain by the arguments `min`, `max` and `transform` of `load_dataset`.

        Raises:
            UsageError: no number, an empty domain, or no transform of that name.
        """
        none = isinstance(low, str) and low.strip().lower() == "none"
        low, high = -math.inf if none else _number(low, "min"), _number(high, "max")
        if low is not None and high is not None and low >= high:
            raise UsageError(f"--min {low:g} is not below --max {high:g}; use a lower --min.")
        name = "none" if transform is None else transform
        if name not in TRANSFORMS:
            raise UsageError(f"Unknown transform '{quote(name)}'{suggest(quote(name), TRANSFORMS)}")
        return cls(low, high, str(name))

    def fitted(self, pieces: Sequence[Array]) -> Domain:
        """The domain of targets with `pieces` (n, T), of each series, as their training rows.

        The bound is 0 where no value is negative, 0 is near enough for a forecast to reach, and values look as if they
        ended there: whole numbers, as counts are, some that are 0, or many of them. A few hundred positive measurements
        tell nothing: of the daily means of ETTh1 and ETTh2 up to 69 % are negative later, in columns that began above
        0.
        """
        columns = ([each[:, n] for each in pieces] for n in range(pieces[0].shape[1]))
        bounds = [self._bound(each) for each in columns]
        return replace(self, low=tuple(bounds) if max(bounds) > -math.inf else None)

    @staticmethod
    def _bound(pieces: Sequence[Array]) -> float:
        import numpy as np  # takes long to import

        values = np.concatenate(pieces)
        values = values[~np.isnan(values)]
        if not len(values) or not 0 <= values.min() <= NEAR * np.ptp(values):
            return -math.inf
        ends = len(values) >= MANY or bool((values == values.round()).all()) or float((values == 0).mean()) >= SOME
        return 0.0 if ends else -math.inf

    @property
    def bounded(self) -> tuple[int, ...]:
        """Numbers of the targets that have a bound of their own below."""
        return tuple(n for n, low in enumerate(self.low) if low > -math.inf) if isinstance(self.low, tuple) else ()

    def clip(self, values: Array) -> Array:
        """Raw `values` (..., T), those outside the domain at its ends."""
        return values if self.low is None and self.high is None else values.clip(self.low, self.high)  # type: ignore[arg-type]

    def to_dict(self) -> dict[str, Any]:
        """Arguments of `of` that differ from the usual; of bounds of targets a list, None for none."""
        low: object = self.low
        if isinstance(self.low, tuple):
            low = [None if each == -math.inf else each for each in self.low]
        elif self.low == -math.inf:
            low = "none"
        given = {"min": low, "max": self.high, "transform": None if self.transform == "none" else self.transform}
        return {name: value for name, value in given.items() if value is not None}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Domain:
        """The inverse of `to_dict`."""
        low = record.get("min")
        if isinstance(low, list):
            low = tuple(-math.inf if each is None else each for each in low)
        return cls(-math.inf if low == "none" else low, record.get("max"), record.get("transform", "none"))


ANY = Domain()


def _number(value: object, name: str) -> float | None:
    if value is None:
        return None
    check_plain(value, f"Argument '{name}'")
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError) as error:
        raise UsageError(
            f"Argument '{name}' is '{quote(value)}', which is not a number; give one, such as 0."
        ) from error
    if not math.isfinite(number):
        raise UsageError(
            f"Argument '{name}' is {quote(value)}, which is not a finite bound; give a number, or leave it out."
        )
    return number
