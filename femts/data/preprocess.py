"""Preprocessing in one object: raw values to model inputs and back, by scaling, effects and gap filling."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from femts.data.catalog import CATALOG
from femts.data.categories import origins
from femts.data.closures import Closures
from femts.data.column_names import ColumnNames
from femts.data.dataset import Dataset
from femts.data.domain import ANY, Domain
from femts.data.effects import DateTerms, Effects
from femts.data.effects_fit import fit_effects, fit_own
from femts.data.known import EFFECT_ALONE, KnownInputs, Reads, calendar_marks
from femts.data.outliers import Outliers
from femts.data.power import PowerTransform
from femts.data.scaler import Scaler, Values
from femts.data.static import StaticCodes
from femts.data.usual_values import UsualValues
from femts.errors import UsageError
from femts.text import quote

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]
MOST_DEVIATIONS = 1e15  # sums of squares of such values still fit in float32


@dataclass(frozen=True, eq=False)
class Preprocess:
    """Preprocessing of C channels of S series, fitted once on the training rows and stored with the model.

    In this order: targets are transformed if requested, values are scaled, effects of future covariates are subtracted,
    readings far outside the usual range are found, and gaps are filled. The subtracted values are called offsets, one per step and channel in scaled units. The inverse
    also clips raw forecasts to their domain.

    The first axis of values is the series, or items that belong to one series each; or there is one series for all.
    `take` returns the preprocessing of windows or rows by their series numbers.

    Attributes:
        columns: names of the C channels.
        series: names of the S series.
        scaler: mean and scale of each channel of each series.
        effects: effects of future covariates on the scaled channels, shared by all series; None without covariates.
        own_effects: effects of series that do not use the shared ones, by number.
        power: transform of the targets, which are the first channels; None without one.
        domain: bounds of the targets.
        static: encoding of the static covariates; None without them.
        known: encoding of future covariates and calendar features as model inputs; None if the model reads none.
        outliers: usual distances between readings, by which odd ones in look-backs are found and read as missing; None
            keeps all.
        usual: values of the future covariates in training, by which others are noticed; None without any.
        closures: times at which a series never had a value; None if there are none.
        reads_raw: whether the model reads values before scaling; look-backs may then begin before their series.
    """

    columns: tuple[str, ...]
    series: tuple[str, ...]
    scaler: Scaler
    effects: Effects | None = None
    own_effects: Mapping[int, Effects] = field(default_factory=dict)
    power: PowerTransform | None = None
    domain: Domain = ANY
    static: StaticCodes | None = None
    known: KnownInputs | None = None
    outliers: Outliers | None = None
    usual: UsualValues | None = None
    closures: Closures | None = None
    reads_raw: bool = False

    @classmethod
    def fit(
        cls, data: Dataset, units: Preprocess | None = None, reads: Reads = EFFECT_ALONE, scaler: str = "standard"
    ) -> Preprocess:
        """Fit to the training rows of each series of `data`; later rows are used only for channels constant in
        training, and validation rows to exclude columns whose readings begin to vary in another way from the search for
        odd ones.

        Args:
            data: series and their splits.
            units: preprocessing whose encodings of static and future covariates are kept, and whose transform, scale
                and usual distances are kept for its series; None fits everything.
            reads: which future information the model reads, and whether effects are fitted.
            scaler: registered name of the scaler.
        """
        made = cls._fit_values(data, units, reads, scaler)
        if data.drops_outliers:
            made, odd = made._with_outliers(data, units)
            if len(odd[0]):  # a few would determine mean and scale
                usual = data.values.copy()
                usual[odd] = np.nan
                made = cls._fit_values(replace(data, values=usual), units, reads, scaler)
                made, _ = made._with_outliers(data, units)
        return replace(made, closures=Closures.fit(data, data.part("train")))

    def _with_outliers(self, data: Dataset, units: Preprocess | None) -> tuple[Preprocess, tuple[Numbers, Numbers]]:
        """The same with the usual distances between readings, and the rows and columns of odd training readings; see
        `fit`."""
        chunks = ((self.unfilled(data, *chunk)[0], data.lengths[chunk[0]]) for chunk in data.chunks())
        rows = data.split.train[:, 1], np.maximum(data.split.train[:, 1], data.split.val[:, 1])
        scale, known = self.scaler.mean / self.scaler.scale, None
        if units is not None and units.outliers is not None:
            places = units.places(data.series)
            known = units.outliers.take(places), places >= 0
        outliers, odd = Outliers.fit(chunks, *rows, scale, data.season, growing=self.power is None, known=known)
        return replace(self, outliers=outliers), odd

    @classmethod
    def _fit_values(cls, data: Dataset, units: Preprocess | None, reads: Reads, scaler: str) -> Preprocess:
        """Fit all but the usual distances and the closures; see `fit`."""
        made, roles = cls._fit_units(data, units, kind=scaler), data.schema.roles
        static, known = (None, None) if units is None else (units.static, units.known)
        if static is None and data.static is not None and roles.static:
            static = StaticCodes.fit(data.static[list(roles.static)])
        made = replace(made, static=static, known=known)
        training = data.part("train")
        if roles.future:
            made = replace(made, usual=UsualValues.fit(data.covariates, training))
        if known is None and reads.any:
            rows = np.concatenate([np.arange(first, stop) for first, stop in training.tolist()])
            marks = calendar_marks(data.freq, roles.holidays)[: reads.calendar]
            columns = data.known(rows) if reads.columns else np.empty((len(rows), 0))
            known = KnownInputs.fit(columns, None if data.stamps is None else data.stamps[rows], marks)
            made = replace(made, known=known)
        if not (reads.effect and data.has_known):
            return made

        def scaled(rows: Numbers) -> Array:
            return made.at(np.searchsorted(data.spans[:, 1], rows, side="right")).scale(data.values[rows])

        dated = DateTerms(bool(roles.calendar), roles.holidays)
        stamps = data.dates(data.stamps, data.codes()) if dated.any else None
        own, further = dict[int, Effects](), (data.covariates, stamps, data.season)
        shared = fit_effects(scaled, *further, dated, training)
        if len(data) > 1:
            own = fit_own(shared, scaled, *further, training, data.n_targets)
        return replace(made, effects=shared, own_effects=own)

    @classmethod
    def _fit_units(
        cls, data: Dataset, units: Preprocess | None = None, like: Scaler | None = None, kind: str = "standard"
    ) -> Preprocess:
        """Fit transform and scale only; see `fit`, and `Scaler.fit` for `like`."""
        domain, targets, values = data.schema.domain, data.n_targets, data.values
        places = np.full(len(data), -1) if units is None else units.places(data.series)
        ends = np.stack([data.part("train")[:, 0], data.part("train")[:, 1], *data.part("test").T], axis=1).tolist()
        known: list[tuple[str, Array]] = []
        for number, (first, stop, *_) in enumerate(ends if domain.transform != "none" else []):
            rows = values[first:stop]
            rows = values[slice(*data.spans[number])] if np.isnan(rows).all(0).any() else rows
            known.append((data.words(number), rows[:, :targets]))
        power = PowerTransform.fit(domain.transform, known, data.columns)
        if units is not None and units.power is not None and power is not None:
            kept = units.power.powers[places]
            power = replace(power, powers=np.where((places >= 0)[:, None], kept, power.powers))

        def sets(number: int) -> list[Array]:
            own = cls(data.columns, ("",), Scaler.even(len(data.columns)), power=power)
            own = own if power is None or len(data) == 1 else replace(own, power=power.take(np.array([number])))
            first, stop, test, end = ends[number]
            begin = int(data.spans[number, 0])
            pieces = [values[first:stop], values[begin:test], values[begin:end]]
            return pieces if power is None else [own._transformed(each) for each in pieces]

        scaler = Scaler.fit(map(sets, range(len(data))), len(data.columns), like, kind)
        if units is not None:
            stay = units.scaler.take(places)
            own = stay.own & (places >= 0)[:, None]
            mean, scale = np.where(own, stay.mean, scaler.mean), np.where(own, stay.scale, scaler.scale)
            scaler = replace(scaler, mean=mean, scale=scale, own=own | scaler.own)
        if units is not None:
            domain = units.domain
        elif domain.low == -np.inf:
            domain = replace(domain, low=None)
        elif domain.low is None and data.source not in CATALOG:
            domain = domain.fitted([values[first:stop, :targets] for first, stop, *_ in ends])
        return cls(data.columns, data.series, scaler, power=power, domain=domain)

    def places(self, series: Sequence[str]) -> Numbers:
        """Index of each of `series`, (len(series),); -1 if it is new."""
        if tuple(series) == self.series:
            return np.arange(len(series))
        numbers = {name: number for number, name in enumerate(self.series)}
        return np.array([numbers.get(name, -1) for name in series], dtype=np.int64)

    def take(self, series: NDArray[np.integer[Any]]) -> Preprocess:
        """Preprocessing of windows, rows or series by their series numbers (B,); without names."""
        power = None if self.power is None else self.power.take(series)
        own = {}
        if self.own_effects:
            own = {k: self.own_effects[n] for k, n in enumerate(series.tolist()) if n in self.own_effects}
        outliers = None if self.outliers is None else self.outliers.take(series)
        closures = None if self.closures is None else self.closures.take(series)
        made = replace(self, series=(), scaler=self.scaler.take(series), power=power, own_effects=own)
        return replace(made, outliers=outliers, closures=closures)

    def at(self, numbers: NDArray[np.integer[Any]]) -> Preprocess:
        """As `take`, but without effects, usual distances and closures of single series, and returns itself if there is a
        single series."""
        if len(self.scaler.mean) == 1:
            return self
        return replace(self, own_effects={}, outliers=None, closures=None).take(numbers)

    def for_series(self, data: Dataset) -> Preprocess:
        """Preprocessing of the series of `data`, matched by name; new series are scaled by their own rows."""
        places = self.places(data.series)
        made = replace(self.take(places), series=data.series)
        new = np.flatnonzero(places < 0)
        if not len(new):
            return made
        fitted = self._fit_units(data.take(new).all_rows(), like=self.scaler, kind=self.scaler.kind)
        every = fitted.take(np.clip(np.cumsum(places < 0) - 1, 0, None))
        own = {number: each for number, each in made.own_effects.items() if places[number] >= 0}
        return replace(made.with_others(every, new), own_effects=own)

    def with_others(self, others: Preprocess, some: NDArray[np.integer[Any]]) -> Preprocess:
        """The same with transform and scale of `others` for `some` of the series, by number."""

        def mixed(own: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
            made = own.copy()
            made[some] = other[some]
            return made

        one, other = self.scaler, others.scaler
        mean, scale, own = (mixed(getattr(one, name), getattr(other, name)) for name in ("mean", "scale", "own"))
        scaler = replace(one, mean=mean, scale=scale, own=own)
        power = self.power
        if power is not None and others.power is not None:
            power = replace(power, powers=mixed(power.powers, others.power.powers))
        return replace(self, scaler=scaler, power=power)

    def reading(self, raw: bool, reads: Reads | None = None) -> Preprocess:
        """The same for a model that reads values before scaling if `raw`, and of the known inputs those in `reads`; None
        keeps all."""
        known = self.known
        if reads is not None and known is not None:
            known = known.with_calendar(reads.calendar) if reads.any else None
        return replace(self, reads_raw=raw, known=known)

    @property
    def reach(self) -> int:
        """Rows before a look-back by which its first readings are judged; 0 if all are kept."""
        return 0 if self.outliers is None else self.outliers.reach

    def scale(self, values: Array) -> Array:
        """Transform and scale raw `values` (S or n, ..., C), keeping gaps and effects."""
        return self.scaler.transform(self._transformed(values))

    def offsets(self, covariates: Array, stamps: pd.Index | None, numbers: Numbers, where: str) -> Array | None:
        """Offsets (n, C) for future covariates `covariates` (n, K) in raw units; None without effects.

        Args:
            covariates: rows, series by series.
            stamps: (n,), for calendar features, from `Dataset.dates`.
            numbers: series number of each row, in increasing order.
            where: description of the rows, to start messages with.

        Raises:
            UsageError: Future covariates used in training are missing.
        """
        if self.effects is None:
            return None
        if covariates.shape[1] != len(self.effects.knots):
            raise UsageError(
                f"{where} was loaded without its future covariates; load it with the same column roles as in training."
            )
        offsets = self.effects.of(covariates, stamps)
        for number in self.own_effects.keys() & np.unique(numbers).tolist():
            rows = slice(*np.searchsorted(numbers, [number, number + 1]))
            own = self.own_effects[number].of(covariates[rows], None if stamps is None else stamps[rows])
            offsets[rows] = own
        return offsets

    def without_effect(self, future: Sequence[str], form: ColumnNames, targets: int) -> tuple[str, ...]:
        """Those of the covariates in the columns `future` of which no effect on any of the first `targets` channels was
        fitted; all of them without effects."""
        if self.effects is None:
            return origins(future, form)
        have = np.any([each.of_columns(targets) for each in (self.effects, *self.own_effects.values())], axis=0)
        used = origins([name for name, has in zip(future, have, strict=True) if has], form)
        return tuple(name for name in origins(future, form) if name not in used)

    def transform(
        self,
        values: Array,
        offsets: Array | None = None,
        where: Callable[..., tuple[str, int]] = lambda *place: ("The history", place[-1]),
        first: Numbers | None = None,
    ) -> Array:
        """Convert raw `values` (..., rows, C), NaN where missing, to model inputs: scaled, with `offsets` subtracted and gaps
        filled.

        Args:
            values: rows in order of time.
            offsets: (..., rows, C).
            where: function from indices of `values` to the name of a series and a row number, for messages.
            first: (rows,), first row of the series of each row; None for a single series.

        Raises:
            UsageError: The channels differ, or the square of a scaled value would overflow float32.
        """
        return fill_gaps(self._scaled(values, offsets, where), first)

    def unfilled(self, data: Dataset, series: slice, rows: slice) -> tuple[Array, Array | None]:
        """Model inputs (n, C) of the `rows` of some series of `data` before gaps are filled, and their offsets.

        Raises:
            UsageError: As in `transform` and `offsets`.
        """
        numbers = data.codes(series)
        stamps = data.dates(None if data.stamps is None else data.stamps[rows], numbers)
        taken = self.offsets(data.known(rows), stamps, numbers, data.words(series.start))
        where = lambda row: data.place(rows.start + row)  # noqa: E731
        return self.at(numbers)._scaled(data.values[rows], taken, where), taken

    def _scaled(self, values: Array, offsets: Array | None, where: Callable[..., tuple[str, int]]) -> Array:
        """Scale raw values and subtract `offsets`; gaps stay NaN."""
        if self.power is not None:
            self.power.check(values[..., : self.power.powers.shape[1]], self.columns, where)
        scaled = self.scale(values)
        scaled = scaled if offsets is None else scaled - offsets
        far = np.abs(scaled) > MOST_DEVIATIONS
        if far.any():
            *place, column = np.argwhere(far)[0].tolist()
            words, number = where(*place)
            raise UsageError(
                f"{words} has, in column '{quote(self.columns[column])}' at data row {number + 1}, a value more than "
                f"{MOST_DEVIATIONS:g} deviations from the mean of the training rows, too large for single precision; "
                "correct it, or leave the cell empty."
            )
        return scaled

    def unscaled(self, values: Array, offsets: Array | None = None) -> Array:
        """Raw `values` (S or n, ..., C) after the transform and without the effects `offsets`, but not scaled; NaN where
        missing."""
        values = self._transformed(values)
        return values if offsets is None else values - offsets * self.scaler.like(values)[1]

    def inverse(self, scaled: Values, offsets: Values | None = None) -> Values:
        """Convert scaled forecasts (S or n, ..., T) of T channels, arrays or tensors, to raw units within the domain.

        `offsets` (..., T or C) are added back.
        """
        return _as_array(self.domain.clip, self.restore(scaled, offsets))

    def restore(self, scaled: Values, offsets: Values | None = None) -> Values:
        """As `inverse`, but for observed values, which are not clipped to the domain."""
        if offsets is not None:
            scaled = scaled + offsets[..., : scaled.shape[-1]]
        values = self.scaler.inverse(scaled)
        return values if self.power is None else _as_array(self.power.undo, values)

    @property
    def linear(self) -> bool:
        """Whether raw values are an affine function of scaled ones, so without a transform."""
        return self.power is None

    def rescale(self, raw: Array) -> Array:
        """Convert raw forecasts (S or n, ..., T) of the first T channels to the scaled units used in scores."""
        values = raw if self.power is None else self.power.apply(raw)
        targets = raw.shape[-1]
        scaler = self.scaler
        own = replace(
            scaler, mean=scaler.mean[:, :targets], scale=scaler.scale[:, :targets], own=scaler.own[:, :targets]
        )
        return own.transform(values)

    def limits(self, targets: int) -> tuple[Array, Array]:
        """Smallest and largest forecasts (S, T) of the first T channels in scaled units, from domain and transform.

        They are infinite if forecasts are unbounded, or if a bound is below all values in the range of the transform.
        """
        least = -np.inf if self.power is None else -self.power.shift
        ends = self.domain.clip(np.repeat([[least], [np.inf]], targets, axis=1))
        ends = np.broadcast_to(np.maximum(ends, least), (len(self.scaler.mean), 2, targets))
        low, high = self.rescale(ends).transpose(1, 0, 2)
        return np.where(low < np.inf, low, -np.inf), np.where(high > -np.inf, high, np.inf)

    def _transformed(self, values: Array) -> Array:
        if self.power is None:
            return values
        targets = self.power.powers.shape[1]
        return np.concatenate([self.power.apply(values[..., :targets]), values[..., targets:]], axis=-1)

    def to_dict(self) -> dict[str, Any]:
        """Plain types for JSON, which preserves float64; `reads_raw` follows from the model."""
        record: dict[str, Any] = {
            "columns": list(self.columns),
            "series": list(self.series),
            "scaler": self.scaler.to_dict(),
        }
        names = ("effects", "power", "static", "known", "outliers", "usual", "closures")
        parts = {name: getattr(self, name) for name in names}
        for name, part in parts.items():
            record |= {} if part is None else {name: part.to_dict()}
        record |= {} if self.domain == ANY else {"domain": self.domain.to_dict()}
        own = {str(number): effects.to_dict() for number, effects in self.own_effects.items()}
        return record | ({"own_effects": own} if own else {})

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Preprocess:
        """The inverse of `to_dict`.

        Raises:
            UsageError: The numbers are not a valid scaler.
        """
        return cls(
            tuple(record["columns"]),
            tuple(record["series"]),
            Scaler.from_dict(record["scaler"]),
            Effects.from_dict(record["effects"]) if "effects" in record else None,
            {int(number): Effects.from_dict(each) for number, each in record.get("own_effects", {}).items()},
            PowerTransform.from_dict(record["power"]) if "power" in record else None,
            Domain.from_dict(record.get("domain", {})),
            StaticCodes.from_dict(record["static"]) if "static" in record else None,
            KnownInputs.from_dict(record["known"]) if "known" in record else None,
            Outliers.from_dict(record["outliers"]) if "outliers" in record else None,
            UsualValues.from_dict(record["usual"]) if "usual" in record else None,
            Closures.from_dict(record["closures"]) if "closures" in record else None,
        )


def _as_array(function: Callable[[Array], Array], values: Values) -> Values:
    """Apply a function of arrays to an array or a tensor."""
    if isinstance(values, np.ndarray):
        return function(values)
    return torch.from_numpy(function(values.cpu().double().numpy())).to(values)


def fill_gaps(scaled: Array, first: Numbers | None = None) -> Array:
    """Fill gaps in scaled values (..., rows, C) by the last value before them or, if there is none since the `first`
    row (rows,) of their series, by 0, the training mean."""
    if not np.isnan(scaled).any():
        return scaled
    last = last_observed(scaled, first)
    return np.where(last < 0, 0.0, np.take_along_axis(scaled, np.maximum(last, 0), axis=-2))


def last_observed(values: Array, first: Numbers | None = None) -> Numbers:
    """Index of the last observed row up to each row of `values` (..., rows, C); -1 if there is none since the `first`
    row (rows,) of its series."""
    rows = np.arange(values.shape[-2])[:, None]
    last = np.maximum.accumulate(np.where(np.isnan(values), -1, rows), axis=-2)
    return np.where(last < (0 if first is None else first[:, None]), -1, last)
