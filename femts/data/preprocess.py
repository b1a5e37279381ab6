"""Raw values to what a model reads, and back: scaling, effects of known columns, gaps, in one object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.data.dataset import Dataset
from femts.data.effects import Effects
from femts.data.effects_fit import fit_effects
from femts.data.scaler import Scaler, Values
from femts.errors import UsageError
from femts.text import shown

Array = NDArray[np.float64]
MOST_DEVIATIONS = 1e15  # sums of squares of such values are still within float32


@dataclass(frozen=True, eq=False)
class Preprocess:
    """Preprocessing of C channels, fitted once on the training rows and kept with the model.

    Values are scaled, what known columns explain of them is taken off, and gaps are filled, in this order. What is taken off is
    called offsets: in scaled units, a number for each step and channel.

    Attributes:
        columns: names of the C channels.
        scaler: mean and scale of each.
        effects: of the known columns on the scaled channels; None where none are known.
    """

    columns: tuple[str, ...]
    scaler: Scaler
    effects: Effects | None = None

    @classmethod
    def fit(cls, data: Dataset) -> Preprocess:
        """Fit to the training rows of `data`, and to no others."""
        return cls.fit_rows(data, data.train_values, slice(*data.split.train))

    @classmethod
    def fit_rows(cls, data: Dataset, values: Array, rows: slice) -> Preprocess:
        """Fit to `values` (n, C), which are those of `rows` of `data`."""
        scaler = Scaler.fit(values)
        if data.known is None:
            return cls(data.columns, scaler)
        known, dates = data.known[rows], None if data.dates is None else data.dates[rows]
        effects = fit_effects(scaler.transform(values), known, dates, data.season, data.schema.roles.calendar)
        return cls(data.columns, scaler, effects)

    def offsets(self, known: Array | None, dates: pd.Index | None, where: str = "The history") -> Array | None:
        """Offsets (n, C) at the known columns `known` (n, K), raw units, and the stamps `dates` (n,); None without effects.

        Raises:
            UsageError: known columns were there in the training and are missing here; the text begins with `where`.
        """
        if self.effects is None:
            return None
        if known is None:
            raise UsageError(f"{where} was loaded without its known columns; load it with the roles of the training.")
        return self.effects.of(known, dates)

    def transform(self, values: Array, offsets: Array | None = None, where: str = "The history") -> Array:
        """Raw `values` (..., rows, C), NaN where missing, as models read them: without gaps and without `offsets`.

        Raises:
            UsageError: other channels, or a value so far off that its square would leave float32; the text begins with `where`.
        """
        scaled = self.scaler.transform(values)
        scaled = scaled if offsets is None else scaled - offsets
        far = np.abs(scaled) > MOST_DEVIATIONS
        if far.any():
            *_, row, column = np.argwhere(far)[0]
            raise UsageError(
                f"{where} has, in column '{shown(self.columns[column])}' at data row {row + 1}, a value more than "
                f"{MOST_DEVIATIONS:g} deviations from the mean of the training rows, too far for single precision; correct it, "
                "or leave it empty."
            )
        return fill_gaps(scaled)

    def inverse(self, scaled: Values, offsets: Values | None = None) -> Values:
        """Raw units of `scaled` (..., T), arrays or tensors of the first T channels, with `offsets` (..., T or C) put back."""
        if offsets is not None:
            scaled = scaled + offsets[..., : scaled.shape[-1]]
        return self.scaler.inverse(scaled)

    def rescale(self, raw: Array) -> Array:
        """Scaled units of raw forecasts (..., T) of the first T channels, in which they are scored."""
        return (raw - self.scaler.mean[: raw.shape[-1]]) / self.scaler.scale[: raw.shape[-1]]

    def to_dict(self) -> dict[str, Any]:
        """Plain types for JSON, which keeps float64 without loss."""
        effects = {} if self.effects is None else {"effects": self.effects.to_dict()}
        return {"scaler": self.scaler.to_dict() | effects, "columns": list(self.columns)}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Preprocess:
        """The inverse of `to_dict`.

        Raises:
            UsageError: no scaler could hold these numbers.
        """
        scaler = record["scaler"]
        effects = Effects.from_dict(scaler["effects"]) if "effects" in scaler else None
        return cls(tuple(record["columns"]), Scaler.from_dict(scaler), effects)


def fill_gaps(scaled: Array) -> Array:
    """Scaled values (..., rows, C), gaps filled: by the last value before them, or by the training mean, 0, at the start."""
    missing = np.isnan(scaled)
    if not missing.any():
        return scaled
    rows = np.arange(scaled.shape[-2])[:, None]
    last = np.maximum.accumulate(np.where(missing, -1, rows), axis=-2)
    return np.where(last < 0, 0.0, np.take_along_axis(scaled, np.maximum(last, 0), axis=-2))
