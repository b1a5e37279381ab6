"""Raw values to what a model reads, and back: scaling, effects of known columns, gaps, in one object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from femts.data.dataset import Dataset
from femts.data.domain import ANY, Domain
from femts.data.effects import Effects
from femts.data.effects_fit import fit_effects
from femts.data.power import PowerTransform
from femts.data.scaler import Scaler, Values
from femts.errors import UsageError
from femts.text import shown

Array = NDArray[np.float64]
MOST_DEVIATIONS = 1e15  # sums of squares of such values are still within float32


@dataclass(frozen=True, eq=False)
class Preprocess:
    """Preprocessing of C channels, fitted once on the training rows and kept with the model.

    Targets are transformed, where the user wishes it, values are scaled, what known columns explain
    of them is taken off, and gaps are filled, in this order. What is taken off is called offsets:
    in scaled units, a number for each step and channel. On the way back, raw values end at the
    bounds of their domain.

    Attributes:
        columns: names of the C channels.
        scaler: mean and scale of each.
        effects: of the known columns on the scaled channels; None where none are known.
        power: transform of the targets, the first channels; None where there is none.
        domain: bounds of the targets.
        reads_raw: made for a model that reads values before scaling, where a look-back may begin before its series.
    """

    columns: tuple[str, ...]
    scaler: Scaler
    effects: Effects | None = None
    power: PowerTransform | None = None
    domain: Domain = ANY
    reads_raw: bool = False

    @classmethod
    def fit(cls, data: Dataset, units: Preprocess | None = None) -> Preprocess:
        """Fit to the training rows of `data`, and to no others but for a channel that does not vary there.

        With `units` their transform and scale stay.
        """
        return cls.fit_rows(data, data.train_values, slice(*data.split.train), units)

    @classmethod
    def fit_rows(cls, data: Dataset, values: Array, rows: slice, units: Preprocess | None = None) -> Preprocess:
        """Fit to `values` (n, C), which are those of `rows` of `data`; with `units` their transform and scale stay."""
        plain = cls.fit_scale(data, values) if units is None else units.kept(values)
        if data.covariates is None:
            return plain
        covariates, dates = data.covariates[rows], None if data.dates is None else data.dates[rows]
        effects = fit_effects(plain.scale(values), covariates, dates, data.season, data.schema.roles.calendar)
        return replace(plain, effects=effects)

    @classmethod
    def fit_scale(cls, data: Dataset, values: Array, like: Array | None = None) -> Preprocess:
        """Transform and scale alone, fitted to `values` (n, C), rows of `data`; known columns have no effect.

        A channel that does not vary there is scaled by the rows before the test part, by all up to its end, or by its
        level, `like` other series; see `Scaler.fit_first`.
        """
        domain, targets, test = data.schema.domain, data.targets, data.split.test
        known = values if not np.isnan(values).all(0).any() else data.values
        power = PowerTransform.fit(domain.transform, known[:, :targets], data.columns, f"Data set '{shown(data.name)}'")
        rows = [_transformed(each, power) for each in (values, data.values[: test[0]], data.values[: test[1]])]
        return cls(data.columns, Scaler.fit_first(rows, like), None, power, domain)

    def kept(self, values: Array) -> Preprocess:
        """The same transform and scale, but for channels that had no scale of their own, which are fitted to `values`
        (n, C); known columns have no effect."""
        scaler, own = self.scaler, self.scaler.own
        if not own.all():
            fitted = Scaler.fit_first([_transformed(values, self.power)] * 3)
            mean, scale = np.where(own, scaler.mean, fitted.mean), np.where(own, scaler.scale, fitted.scale)
            scaler = Scaler(mean, scale, own | fitted.own)
        return replace(self, scaler=scaler, effects=None, reads_raw=False)

    def reading(self, raw: bool) -> Preprocess:
        """The same, for a model that reads values before scaling, or not."""
        return replace(self, reads_raw=raw)

    def scale(self, values: Array) -> Array:
        """Raw `values` (..., C) transformed and scaled; what is missing and what is known stay in them."""
        return self.scaler.transform(_transformed(values, self.power))

    def offsets(self, covariates: Array | None, dates: pd.Index | None, where: str = "The history") -> Array | None:
        """Offsets (n, C) at the known columns `covariates` (n, K), raw units, and the stamps `dates`
        (n,); None without effects.

        Raises:
            UsageError: known columns were there in the training and are missing here; the text begins with `where`.
        """
        if self.effects is None:
            return None
        if covariates is None:
            raise UsageError(f"{where} was loaded without its known columns; load it with the roles of the training.")
        return self.effects.of(covariates, dates)

    def transform(self, values: Array, offsets: Array | None = None, where: str = "The history") -> Array:
        """Raw `values` (..., rows, C), NaN where missing, as models read them: without gaps and without `offsets`.

        Raises:
            UsageError: other channels, or a value so far off that its square would leave float32;
                the text begins with `where`.
        """
        if self.power is not None:
            self.power.check(values[..., : len(self.power.powers)], self.columns, where)
        scaled = self.scale(values)
        scaled = scaled if offsets is None else scaled - offsets
        far = np.abs(scaled) > MOST_DEVIATIONS
        if far.any():
            *_, row, column = np.argwhere(far)[0]
            raise UsageError(
                f"{where} has, in column '{shown(self.columns[column])}' at data row {row + 1}, a value more than "
                f"{MOST_DEVIATIONS:g} deviations from the mean of the training rows, too far for single precision; "
                "correct it, or leave it empty."
            )
        return fill_gaps(scaled)

    def unscaled(self, values: Array, offsets: Array | None = None) -> Array:
        """Values that are scaled: raw `values` (..., rows, C), NaN where missing, transformed, `offsets` taken off."""
        values = _transformed(values, self.power)
        return values if offsets is None else values - offsets * self.scaler.scale

    def inverse(self, scaled: Values, offsets: Values | None = None) -> Values:
        """Raw forecasts of `scaled` ones (..., T), arrays or tensors of the first T channels, within the domain.

        `offsets` (..., T or C) are put back.
        """
        return _as_array(self.domain.clip, self.restore(scaled, offsets))

    def restore(self, scaled: Values, offsets: Values | None = None) -> Values:
        """As `inverse`, of values that happened: they are what they were, within the domain or not."""
        if offsets is not None:
            scaled = scaled + offsets[..., : scaled.shape[-1]]
        values = self.scaler.inverse(scaled)
        return values if self.power is None else _as_array(self.power.undo, values)

    @property
    def linear(self) -> bool:
        """True where raw values are scaled ones times a scale, plus a mean: there is no transform and no bound."""
        return self.power is None and self.domain == ANY

    def rescale(self, raw: Array) -> Array:
        """Scaled units of raw forecasts (..., T) of the first T channels, in which they are scored."""
        values = raw if self.power is None else self.power.apply(raw)
        return (values - self.scaler.mean[: raw.shape[-1]]) / self.scaler.scale[: raw.shape[-1]]

    def limits(self, targets: int) -> Array:
        """Smallest and largest forecasts (2, T) of the first T channels in scaled units, by domain and transform.

        They are infinite where nothing limits a forecast, or where no value that the transform takes is below it.
        """
        least = -np.inf if self.power is None else -self.power.shift
        ends = self.domain.clip(np.repeat([[least], [np.inf]], targets, axis=1))
        low, high = self.rescale(np.maximum(ends, least))
        return np.stack([np.where(low < np.inf, low, -np.inf), np.where(high > -np.inf, high, np.inf)])

    def to_dict(self) -> dict[str, Any]:
        """Plain types for JSON, which keeps float64 without loss; `reads_raw` follows from the model."""
        effects = {} if self.effects is None else {"effects": self.effects.to_dict()}
        power = {} if self.power is None else {"power": self.power.to_dict()}
        domain = {} if self.domain == ANY else {"domain": self.domain.to_dict()}
        return {"scaler": self.scaler.to_dict() | effects, "columns": list(self.columns), **power, **domain}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Preprocess:
        """The inverse of `to_dict`.

        Raises:
            UsageError: no scaler could hold these numbers.
        """
        scaler = record["scaler"]
        effects = Effects.from_dict(scaler["effects"]) if "effects" in scaler else None
        power = PowerTransform.from_dict(record["power"]) if "power" in record else None
        domain = Domain.from_dict(record.get("domain", {}))
        return cls(tuple(record["columns"]), Scaler.from_dict(scaler), effects, power, domain)


def _as_array(function: Callable[[Array], Array], values: Values) -> Values:
    """A function of arrays, of a tensor, too."""
    if isinstance(values, np.ndarray):
        return function(values)
    return torch.from_numpy(function(values.cpu().double().numpy())).to(values)


def _transformed(values: Array, power: PowerTransform | None) -> Array:
    if power is None:
        return values
    targets = len(power.powers)
    return np.concatenate([power.apply(values[..., :targets]), values[..., targets:]], axis=-1)


def fill_gaps(scaled: Array) -> Array:
    """Scaled values (..., rows, C), gaps filled: by the last value before them, or by the training
    mean, 0, at the start."""
    missing = np.isnan(scaled)
    if not missing.any():
        return scaled
    rows = np.arange(scaled.shape[-2])[:, None]
    last = np.maximum.accumulate(np.where(missing, -1, rows), axis=-2)
    return np.where(last < 0, 0.0, np.take_along_axis(scaled, np.maximum(last, 0), axis=-2))
