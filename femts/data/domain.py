"""Domain of the targets: bounds that forecasts stay within, and transforms for skewed values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from femts.config.values import check_plain
from femts.errors import UsageError, blamed, unknown
from femts.text import argument, quote

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

NEAR = 1.0  # ranges of the training values; 0 becomes a bound only if it is at most this far below them
MANY = 1000  # number of non-negative values that imply a bound on their own
SOME = 0.02  # fraction of zeros that implies a bound
TRANSFORMS = ("none", "log1p", "boxcox")


@dataclass(frozen=True)
class Domain:
    """Domain of the targets.

    Attributes:
        low: smallest forecast in raw units, for all targets or one per target; minus infinity for no bound, None to
            infer it from the training rows (see `fitted`).
        high: largest forecast; None for no bound.
        transform: `none`, `log1p` (the logarithm of 1 + x) or `boxcox` (a power of x, fitted to each target).
    """

    low: float | tuple[float, ...] | None = None
    high: float | None = None
    transform: str = "none"

    @classmethod
    def of(cls, low: object, high: object, transform: object) -> Domain:
        """Create the domain from the arguments `min`, `max` and `transform` of `load_dataset`.

        Raises:
            UsageError: A bound is not a number, the domain is empty, or the transform is unknown.
        """
        none = isinstance(low, str) and low.strip().lower() == "none"
        low, high = -math.inf if none else _number(low, "min"), _number(high, "max")
        if low is not None and high is not None and low >= high:
            text = f"{argument(f'min={low:g}')} is not below {argument(f'max={high:g}')}; use a lower minimum."
            raise UsageError(text, argument="min", value=low, remedy={"min": None})
        name = "none" if transform is None else transform
        if not isinstance(name, str) or name not in TRANSFORMS:
            raise unknown("transform", name, TRANSFORMS, "transform")
        return cls(low, high, name)

    def fitted(self, pieces: Sequence[Array]) -> Domain:
        """Infer missing lower bounds from the training rows of each series, `pieces` (n, T).

        The bound is 0 if no value is negative, 0 is close enough for a forecast to reach, and the values look bounded:
        they are whole numbers, such as counts, or some are 0, or there are many. A few hundred positive values are not
        enough: in the daily means of ETTh1 and ETTh2, up to 69 % of the later values are negative in columns that
        started out positive.
        """
        columns = ([each[:, n] for each in pieces] for n in range(pieces[0].shape[1]))
        bounds = [self._bound(each) for each in columns]
        return replace(self, low=tuple(bounds) if max(bounds) > -math.inf else None)

    @staticmethod
    def _bound(pieces: Sequence[Array]) -> float:
        import numpy as np  # slow to import

        values = np.concatenate(pieces)
        values = values[~np.isnan(values)]
        if not len(values) or not 0 <= values.min() <= NEAR * np.ptp(values):
            return -math.inf
        ends = len(values) >= MANY or bool((values == values.round()).all()) or float((values == 0).mean()) >= SOME
        return 0.0 if ends else -math.inf

    def admitting(self, values: Array) -> Domain:
        """The same without inferred bounds that observed `values` (N, T) contradict."""
        import numpy as np

        if not isinstance(self.low, tuple):
            return self
        least = np.fmin.reduce(values, axis=0, initial=np.inf).tolist()
        low = tuple(bound if seen >= bound else -math.inf for bound, seen in zip(self.low, least, strict=True))
        return replace(self, low=low if max(low) > -math.inf else None)

    @property
    def bounded(self) -> tuple[int, ...]:
        """Indices of the targets with a lower bound."""
        return tuple(n for n, low in enumerate(self.low) if low > -math.inf) if isinstance(self.low, tuple) else ()

    def clip(self, values: Array) -> Array:
        """Clip raw `values` (..., T) to the domain."""
        return values if self.low is None and self.high is None else values.clip(self.low, self.high)  # type: ignore[arg-type]

    def to_dict(self) -> dict[str, Any]:
        """Arguments of `of` that differ from the defaults; bounds per target are a list, with None for no bound."""
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
    with blamed(name, value):
        check_plain(value, f"Argument '{name}'")
        try:
            number = float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError) as error:
            raise UsageError(
                f"Argument '{name}' is '{quote(value)}', which is not a number; use a number such as 0."
            ) from error
        if not math.isfinite(number):
            raise UsageError(
                f"Argument '{name}' is {quote(value)}, which is not a finite bound; use a number, or omit it."
            )
    return number
