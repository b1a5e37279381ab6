"""Power transforms of skewed targets, fitted to the training rows and inverted for forecasts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from femts.errors import UsageError
from femts.text import arguments, quote

Array = NDArray[np.float64]
SMALL = 1e-12  # smallest argument of the inverse power, for forecasts outside the range of the transform


@dataclass(frozen=True, eq=False)
class PowerTransform:
    """Box-Cox transform of T channels of S series: ((x + shift) ** power - 1) / power, or the logarithm if the power is
    0.

    Box & Cox, "An Analysis of Transformations" (Journal of the Royal Statistical Society B, 1964). The first axis of
    values is the series, or items that belong to one series each; or there is one series for all.

    Attributes:
        shift: constant added to raw values.
        powers: (S, T).
    """

    shift: float
    powers: Array

    @classmethod
    def fit(cls, transform: str, series: Iterable[tuple[str, Array]], columns: Sequence[str]) -> PowerTransform | None:
        """Fit the named transform to raw values (rows, T) of each series, NaN where missing; `None` for `none`.

        Each item of `series` is a description for messages, and the values.

        Raises:
            UsageError: Values are outside the domain of the transform.
        """
        if transform == "none":
            return None
        from scipy.stats import boxcox_normmax

        shift, powers = 1.0 if transform == "log1p" else 0.0, list[Array]()
        for words, values in series:
            made = cls(shift, np.zeros((1, values.shape[-1])))
            made.check(values, columns, lambda row, words=words: (words, row))  # type: ignore[misc]
            if transform == "boxcox":
                observed = [column[~np.isnan(column)] for column in values.T]
                # Constants and a few values determine no power, and powers beyond 2 in size are fitted to noise.
                fitted = [boxcox_normmax(x, method="mle") if len(np.unique(x)) > 2 else 1.0 for x in observed]
                made = cls(shift, np.clip(np.array([fitted], dtype=np.float64), -2.0, 2.0))
            powers.append(made.powers)
        return cls(shift, np.concatenate(powers))

    def take(self, series: NDArray[np.integer[Any]]) -> PowerTransform:
        """Transform of some series by number, (B, T)."""
        return PowerTransform(self.shift, self.powers[series])

    def check(self, values: Array, columns: Sequence[str], where: Callable[..., tuple[str, int]]) -> None:
        """Raise UsageError if raw `values` (..., rows, T) are not above the lower end of the transform's domain;
        `where` returns a description and the row number for an index."""
        low = values + self.shift <= 0
        if low.any():
            *place, column = np.argwhere(low)[0].tolist()
            value, least = values[(*place, column)], 0.0 - self.shift
            remedy = " or ".join(arguments({"transform": name}) for name in ("log1p", "none")[bool(self.shift) :])
            words, number = where(*place)
            text = (
                f"{words} has {value:g} in column '{quote(columns[column])}' at data row {number + 1}, and this "
                f"transform requires values above {least:g}; use {remedy}."
            )
            raise UsageError(text, argument="transform", remedy={"transform": None})

    def _like(self, values: Array) -> Array:
        """Powers that broadcast against `values` (S or n, ..., T), for as many channels as they have."""
        powers = self.powers[:, : values.shape[-1]]
        return powers[0] if len(powers) == 1 else powers.reshape(len(powers), *(1,) * (values.ndim - 2), -1)

    def apply(self, values: Array) -> Array:
        """Transform `values` (S or n, ..., T)."""
        from scipy.special import boxcox

        return np.asarray(boxcox(values + self.shift, self._like(values)))

    def undo(self, values: Array) -> Array:
        """Invert the transform; values outside its range become the nearest one inside."""
        powers = np.broadcast_to(self._like(values), values.shape)
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
