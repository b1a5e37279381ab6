"""Power transform of skewed values, fitted to the training rows and undone with the forecast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from femts.errors import UsageError
from femts.text import shown

Array = NDArray[np.float64]
SMALL = 1e-12  # of what a power is undone from, where a forecast leaves what the transform can give


@dataclass(frozen=True, eq=False)
class PowerTransform:
    """Box-Cox transform of T channels: ((x + shift) ** power - 1) / power, or its logarithm where the power is 0.

    Box & Cox, "An Analysis of Transformations" (Journal of the Royal Statistical Society B, 1964).

    Attributes:
        shift: what is added to the raw values.
        powers: (T,).
    """

    shift: float
    powers: Array

    @classmethod
    def fit(cls, transform: str, values: Array, columns: Sequence[str], where: str) -> PowerTransform | None:
        """The transform of that name for raw `values` (rows, T), NaN where missing; None for `none`.

        Raises:
            UsageError: values that it does not take; the text begins with `where`.
        """
        if transform == "none":
            return None
        from scipy.stats import boxcox_normmax

        made = cls(1.0 if transform == "log1p" else 0.0, np.zeros(values.shape[-1]))
        made.check(values, columns, where)
        if transform == "log1p":
            return made
        observed = [column[~np.isnan(column)] for column in values.T]
        # A constant, or a few values, have no power of their own; one beyond 2 either way only follows chance.
        fitted = [boxcox_normmax(x, method="mle") if len(np.unique(x)) > 2 else 1.0 for x in observed]
        return cls(0.0, np.clip(np.array(fitted, dtype=np.float64), -2.0, 2.0))

    def of(self, channel: int) -> PowerTransform:
        """The transform of one channel."""
        return PowerTransform(self.shift, self.powers[channel : channel + 1])

    def check(self, values: Array, columns: Sequence[str], where: str) -> None:
        """UsageError for raw `values` (..., rows, T) that are not above the lowest that the transform takes."""
        low = values + self.shift <= 0
        if low.any():
            *_, row, column = np.argwhere(low)[0]
            value, least = values[tuple(np.argwhere(low)[0])], 0.0 - self.shift
            remedy = "take --transform log1p, or none" if not self.shift else "take --transform none"
            raise UsageError(
                f"{where} has {value:g} in column '{shown(columns[column])}' at data row {row + 1}, and this transform "
                f"takes values above {least:g} alone; {remedy}."
            )

    def apply(self, values: Array) -> Array:
        """Transformed `values` (..., T)."""
        from scipy.special import boxcox

        return np.asarray(boxcox(values + self.shift, self.powers[: values.shape[-1]]))

    def undo(self, values: Array) -> Array:
        """Raw values of transformed ones (..., T); what no raw value gives becomes the nearest that one does."""
        powers = np.broadcast_to(self.powers[: values.shape[-1]], values.shape)
        base = np.where(np.isnan(values), np.nan, np.maximum(powers * values + 1, SMALL))
        straight = np.where(powers == 0, 1.0, powers)
        return np.where(powers == 0, np.exp(np.where(powers == 0, values, 0.0)), base ** (1 / straight)) - self.shift

    def to_dict(self) -> dict[str, Any]:
        """Plain types for JSON."""
        return {"shift": self.shift, "powers": self.powers.tolist()}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> PowerTransform:
        """The inverse of `to_dict`."""
        return cls(float(record["shift"]), np.asarray(record["powers"], dtype=np.float64))
