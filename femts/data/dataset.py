"""Datasets in memory: one series with many columns, or many series with the same columns, in one array."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.data.ahead import Ahead
from femts.data.catalog import CATALOG
from femts.data.cutoffs import rows_before
from femts.data.describe import are, count, names, stamp
from femts.data.holidays import with_countries
from femts.data.pieces import slices
from femts.data.schema import PLAIN, Schema
from femts.data.split_rule import SplitRule
from femts.data.splits import PARTS, Rows, Split, usual_split
from femts.errors import UsageError, suggest
from femts.text import argument, quote

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """The data of a training run: S series with the same C columns, stored one after the other.

    A wide table is a single series whose columns are forecast jointly; a long table has one series for each name in it.

    Attributes:
        name: catalogue name, or the name of the file without its extension.
        values: (N, C) float64 in raw units, NaN where missing: all rows of the first series in order of time, then
            those of the next. Targets come first, then past covariates.
        spans: (S, 2), the first row of each series and one past its last.
        series: names of the S series; the name of a wide table is empty.
        stamps: (N,) dates or whole numbers; None if the data have no time stamps.
        columns: names of the C columns.
        freq: step between time stamps, a pandas frequency or a number; None without time stamps.
        season: number of steps in a season, used by `seasonal_naive`.
        split: training, validation and test rows of each series.
        sha256: hash of the file, or of the values if there is no file.
        covariates: (N, K) float64, the future covariates (`schema.roles.future`) in raw units; float32 in a large panel
            if that holds them exactly.
        static: static covariates and countries (`schema.roles.constant`), one row for each series, as numbers or text;
            None without any.
        schema: how the table was read; if columns have roles, every target is named.
        notes: messages about the data that a user should see once.
        source: catalogue name or path from which `load_dataset` can load it again; None for a table in memory.
        ahead: what the table says about the steps after its last readings, if anything; see `femts.data.ahead`.
    """

    name: str
    values: Array
    spans: Rows
    series: tuple[str, ...]
    stamps: pd.Index | None
    columns: tuple[str, ...]
    freq: str | None
    season: int
    split: Split
    sha256: str
    covariates: NDArray[Any]
    static: pd.DataFrame | None = None
    schema: Schema = PLAIN
    notes: tuple[str, ...] = ()
    source: str | None = None
    ahead: Ahead | None = None

    @classmethod
    def of_one(
        cls, name: str, values: Array, stamps: pd.Index | None, columns: Sequence[str], **further: Any
    ) -> Dataset:
        """Create a dataset of one series, with the default split unless one is given.

        Args:
            name: name of the dataset.
            values: (N, C), NaN where missing.
            stamps: (N,), or None.
            columns: names of the C columns.
            further: other attributes by name.

        Returns:
            The dataset.
        """
        spans = np.array([[0, len(values)]], dtype=np.int64)
        schema = further.get("schema", PLAIN)
        usual = {
            "freq": None,
            "sha256": "",
            "split": schema.split.split(stamps, spans, f"'{quote(name)}'") if "split" not in further else None,
            "covariates": np.empty((len(values), 0)),
        }
        further = {**usual, **further}
        season = further.pop("season", None) or schema.season_of(further["freq"])
        return cls(name, values, spans, ("",), stamps, tuple(columns), season=season, **{"schema": schema, **further})

    def words(self, series: int) -> str:
        """Start of a message about the series with the number `series`."""
        if not self.schema.panel:
            return f"Dataset '{quote(self.name)}'"
        return f"Series '{quote(self.series[series])}' of '{quote(self.name)}'"

    def place(self, row: int) -> tuple[str, int]:
        """Name of the series of `row` for messages, and the row number within the series."""
        series = int(np.searchsorted(self.spans[:, 1], row, side="right"))
        return self.words(series), row - int(self.spans[series, 0])

    def __len__(self) -> int:
        """Number S of series."""
        return len(self.series)

    @cached_property
    def observed(self) -> NDArray[np.bool_] | None:
        """Mask (N, C) of the observed values; None if none are missing."""
        observed = ~np.isnan(self.values)
        return None if observed.all() else observed

    @property
    def n_targets(self) -> int:
        """Number T of target columns, which come first."""
        return len(self.columns) - len(self.schema.roles.past)

    @property
    def lengths(self) -> Rows:
        """Number of rows of each series, (S,)."""
        return self.spans[:, 1] - self.spans[:, 0]

    @property
    def rows(self) -> int:
        """Number of rows of the longest series."""
        return int(self.lengths.max())

    @property
    def train_lengths(self) -> Rows:
        """Number of training rows of each series, (S,)."""
        return self.split.train[:, 1] - self.split.train[:, 0]

    @property
    def typical_rows(self) -> int:
        """Median number of training rows per series."""
        return int(np.median(self.train_lengths))

    @property
    def common_rows(self) -> int:
        """Number of training rows of the shortest series that has any."""
        some = self.train_lengths[self.train_lengths > 0]
        return int(some.min()) if len(some) else 0

    @property
    def has_known(self) -> bool:
        """Whether there are future covariates or calendar features."""
        return self.schema.roles.in_advance

    @property
    def drops_outliers(self) -> bool:
        """Whether readings far outside the usual range are read as missing; those of the catalogue are kept unless the
        user says otherwise, because published scores include them."""
        asked = self.schema.outliers
        return asked == "missing" if asked is not None else self.source not in CATALOG

    @property
    def fixed_split(self) -> bool:
        """Whether the split was set by the user or the catalogue, so that it does not depend on the horizon."""
        return self.schema.split.given or self.source in CATALOG

    def part(self, name: str) -> Rows:
        """Rows of the split `name` of each series, (S, 2), as indices of `values`."""
        return self.spans[:, :1] + self.split.part(name)

    @property
    def train_values(self) -> Array:
        """Training rows of all series, (rows, C), the only ones that a scaler may be fitted on."""
        if len(self) == 1:
            return self.values[slice(*self.part("train")[0])]
        return np.concatenate([self.values[first:stop] for first, stop in self.part("train").tolist()])

    def codes(self, some: slice = slice(None)) -> NDArray[np.int64]:
        """Series number of each row, for the series in `some` or for all."""
        return np.repeat(np.arange(len(self))[some], self.lengths[some])

    def dates(self, stamps: pd.Index | None, codes: Rows) -> pd.Index | None:
        """Time `stamps` (n,) of rows of the series `codes` (n,), with their countries if holidays differ by series."""
        column = self.schema.roles.country_column
        if stamps is None or column is None:
            return stamps
        assert self.static is not None
        return with_countries(stamps, self.static[column].iloc[codes])

    def known(self, rows: slice | Rows = slice(None)) -> Array:
        """Future covariates of some `rows`, (..., K) float64."""
        return np.asarray(self.covariates[rows], dtype=np.float64)

    def chunks(self, rows: int = 2**20) -> list[tuple[slice, slice]]:
        """Slices of consecutive series with about `rows` rows each to limit memory use, and slices of their rows."""
        borders = np.searchsorted(self.spans[:, 1], np.arange(0, self.spans[-1, 1], rows))
        borders = np.unique([0, *borders, len(self)])
        pairs = zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True)
        return [(slice(a, b), slice(int(self.spans[a, 0]), int(self.spans[b - 1, 1]))) for a, b in pairs]

    @property
    def record(self) -> dict[str, Any]:
        """Hash and split sizes that identify the training data, in plain types; for several series, the sizes are
        totals."""
        if len(self) == 1:
            parts = {part: self.split.part(part)[0].tolist() for part in PARTS}
        else:
            ends = np.cumsum([0, *((self.split.rows[..., 1] - self.split.rows[..., 0]).sum(0))]).tolist()
            parts = {part: [ends[k], ends[k + 1]] for k, part in enumerate(PARTS)}
        return {"sha256": self.sha256, "split": parts}

    def learned_until(self, part: int = 0) -> list[str | None]:
        """Time stamp of the last row of each series that a model was trained on, as text.

        Args:
            part: 0 for the training split, 1 for all rows before the test split.

        Returns:
            One time stamp per series; None if there is none.
        """
        if self.stamps is None:
            return [None] * len(self)
        stop = self.split.rows[:, part, 1] if part == 0 else self.split.test[:, 0]
        last = self.stamps[np.maximum(self.spans[:, 0] + stop - 1, 0)]
        return [str(each) if some else None for each, some in zip(last, (stop > 0).tolist(), strict=True)]

    @property
    def learned_last(self) -> str | None:
        """Latest time stamp in the training rows of any series, as text; None if there is none."""
        some = self.train_lengths > 0
        if self.stamps is None or not some.any():
            return None
        return str(self.stamps[self.part("train")[some, 1] - 1].max())

    def fingerprint(self) -> str:
        """SHA-256 hash of names, time stamps and values."""
        stamps = self.stamps.asi8 if isinstance(self.stamps, pd.DatetimeIndex) else self.stamps
        content = hashlib.sha256(b"" if self.static is None else self.static.to_csv().encode())
        content.update(f"{self.columns} {self.series} {self.spans.tolist()}".encode())
        for array in (stamps, self.values):
            content.update(b"" if array is None else np.ascontiguousarray(array).data)
        for rows in slices(len(self.covariates)):
            content.update(np.ascontiguousarray(self.known(rows)).data)
        return content.hexdigest()

    def __getitem__(self, name: str) -> Dataset:
        """Return one series as a dataset; UsageError if the name is unknown."""
        if name not in self.series:
            raise UsageError(f"Dataset '{quote(self.name)}' has no series '{quote(name)}'{suggest(name, self.series)}")
        return self.take(np.array([self.series.index(name)]))

    def take(self, series: NDArray[np.integer[Any]], stops: Rows | None = None) -> Dataset:
        """Select series. Their split is kept, except for rows that are cut off.

        Args:
            series: series numbers (n,), in the desired order.
            stops: (n,), number of leading rows to keep of each; None keeps all.

        Returns:
            The selected dataset.
        """
        spans = self.spans[series]
        spans = spans if stops is None else np.stack([spans[:, 0], spans[:, 0] + stops], axis=1)
        if stops is None and len(spans) > 1 and np.array_equal(series, np.arange(len(self))):
            return self
        lengths = spans[:, 1] - spans[:, 0]
        rows = slice(*spans[0]) if len(spans) == 1 else _ranges(spans[:, 0], lengths)
        return replace(
            self._of_rows(rows, lengths),
            series=tuple(self.series[number] for number in series.tolist()),
            static=None if self.static is None else self.static.iloc[series],
            split=Split(np.minimum(self.split.rows[series], lengths[:, None, None])),
        )

    def _of_rows(self, rows: slice | Rows, lengths: Rows) -> Self:
        """The given rows, of which the next `lengths` (S,) belong to one series each."""
        ends = lengths.cumsum()
        return replace(
            self,
            values=self.values[rows],
            spans=np.stack([ends - lengths, ends], axis=1),
            stamps=None if self.stamps is None else self.stamps[rows],
            covariates=self.covariates[rows],
        )

    def recent(self, steps: int) -> Self:
        """The last rows of each series, after those with the last earlier value of each column that has none in the first
        of them.

        Args:
            steps: number of the last rows.

        Returns:
            The series of these rows.
        """
        begin = np.maximum(self.spans[:, 0], self.spans[:, 1] - steps)
        lengths = self.spans[:, 1] - begin
        rows, before, places = _ranges(begin, lengths), list[Rows](), list[Rows]()
        starts = lengths.cumsum() - lengths
        gaps = (begin > self.spans[:, 0]) & (lengths > 0)
        gaps[gaps] = np.isnan(self.values[begin[gaps]]).any(axis=1)
        for number in np.flatnonzero(gaps).tolist():
            first, stop = int(self.spans[number, 0]), int(begin[number])
            seen = ~np.isnan(self.values[first:stop, np.isnan(self.values[stop])])
            before.append(np.unique(stop - 1 - seen[::-1].argmax(axis=0)[seen.any(axis=0)]))
            places.append(np.full(len(before[-1]), starts[number]))
            lengths[number] += len(before[-1])
        if before:
            rows = np.insert(rows, np.concatenate(places), np.concatenate(before))
        return self._of_rows(rows, lengths)

    def continued(self, stamps: pd.Index, covariates: Array) -> Self:
        """The series with further steps, whose values are missing.

        Args:
            stamps: time stamps of the same number of steps after each series, (S steps,), series by series.
            covariates: future covariates of these steps, (S, steps, K).

        Returns:
            The longer series.
        """
        steps, rows = len(stamps) // len(self), len(self.values)
        order = np.insert(np.arange(rows), self.spans[:, 1].repeat(steps), rows + np.arange(len(stamps)))
        missing = np.full((len(stamps), self.values.shape[1]), np.nan)
        flat = covariates.reshape(len(stamps), -1)
        longer = replace(
            self,
            values=np.concatenate([self.values, missing]),
            stamps=None if self.stamps is None else self.stamps.append(stamps),
            covariates=np.concatenate([self.covariates, flat]),
        )
        return longer._of_rows(order, self.lengths + steps)

    def preceded(self, steps: int) -> Self:
        """A single series with at least so many rows.

        Args:
            steps: number of rows; if there are fewer, the first season is repeated before them, if there is one.

        Returns:
            The longer series, or this one.
        """
        missing = steps - len(self.values)
        if missing <= 0 or not 1 < self.season <= len(self.values):
            return self
        rows = np.arange(-missing, len(self.values))
        rows[:missing] %= self.season
        return self._of_rows(rows, np.array([len(rows)]))

    def look_backs(self, steps: int) -> Array:
        """The last values of each series.

        Args:
            steps: number of rows.

        Returns:
            (S, steps, C), NaN where missing and before a series began.
        """
        rows, first = self.spans[:, 1:] + np.arange(-steps, 0), self.spans[:, :1]
        return np.where((rows >= first)[..., None], self.values[np.maximum(rows, first)], np.nan)

    def targets_alone(self) -> Dataset:
        """The same data without past and static covariates, which the source of the table may still contain."""
        roles = replace(self.schema.roles, target=self.columns[: self.n_targets], past=(), static=())
        alone = replace(
            self,
            values=self.values[:, : self.n_targets],
            columns=self.columns[: self.n_targets],
            static=self.static[list(roles.constant)] if self.static is not None and roles.constant else None,
            schema=replace(self.schema, roles=roles),
        )
        return alone if self.source else replace(alone, sha256=alone.fingerprint())

    def for_horizon(self, pred_len: int) -> Self:
        """The same data with validation and test splits that fit `pred_len` steps, unless the split is fixed."""
        return self if self.fixed_split else replace(self, split=usual_split(self.lengths, pred_len, self.season))

    def short_notes(self, pred_len: int, refit: bool | None = None) -> list[str]:
        """A sentence if the series are too short for whole test forecasts (`usual_split`).

        Args:
            pred_len: horizon in steps.
            refit: whether intervals are calibrated on the test split as well as on the validation split; None leaves
                them out.

        Returns:
            The sentence, or nothing.
        """
        split = self.split
        if not split.short(pred_len) or not (split.test[:, 0] < split.test[:, 1]).any():
            return []
        tested = int((split.test[:, 1] - split.test[:, 0]).max())
        held = int(((split.test if refit else split.val)[:, 1] - split.val[:, 0]).max())
        steps = "first step" if tested == 1 else f"first {tested} steps"
        beyond = f", and calibrated intervals after step {held} are extrapolated"
        beyond *= refit is not None and held < pred_len
        return [
            f"{count(self.rows, 'row')} {are(self.rows)} too few to test whole forecasts of {count(pred_len, 'step')}, so scores are of "
            f"their {steps} at most{beyond}"
        ]

    def all_rows(self) -> Self:
        """The same data with all rows of each series in the training split."""
        return replace(self, split=Split.at(self.lengths, self.lengths, self.lengths))

    def held_out(self) -> Self:
        """The same data with the validation split of each series extended to the end of its test split."""
        rows = self.split.rows.copy()
        rows[:, 1, 1] = rows[:, 2, 1]
        return replace(self, split=Split(rows))

    def learning(self, part: str) -> Self:
        """The same data with all rows up to the end of the split `part` in the training split."""
        rows = self.split.rows.copy()
        rows[:, 0, 1] = np.maximum(rows[:, 0, 1], self.split.part(part)[:, 1])
        return replace(self, split=Split(rows))

    def __repr__(self) -> str:
        size = f"{count(len(self.values), 'row')} of {count(self.values.shape[1], 'column')}"
        lines = [f"Dataset '{quote(self.name)}': {size}"]
        if len(self) > 1:
            least, most = int(self.lengths.min()), int(self.lengths.max())
            each = f"{least} to {count(most, 'row')}" if least < most else f"{count(most, 'row')} each"
            lines.append(f"  series: {len(self)} of {each}: {names(self.series)}")
        lines.append(f"  columns: {names(self.columns)}")
        roles = self.schema.roles
        for role, listed in (("past", roles.past), ("future", roles.future), ("static", roles.static)):
            lines += [f"  {role}: {names(listed)}"] * bool(listed)
        if self.stamps is not None and len(self.stamps):
            season = f", season {count(self.season, 'step')}" * (self.season > 1)
            first, last = self.stamps.min(), self.stamps.max()
            lines.append(f"  step: {self.freq}, from {stamp(first)} to {stamp(last)}{season}")
        missing = 0 if self.observed is None else int((~self.observed).sum())
        gaps = f"{missing} of {count(self.values.size, 'value')}" if missing else "none"
        lines.append(f"  gaps: {gaps}")
        counts = (self.split.rows[..., 1] - self.split.rows[..., 0]).sum(0).tolist()
        parts = ", ".join(f"{part} {rows}" for part, rows in zip(PARTS, counts, strict=True))
        lines.append(f"  split: {parts} rows")
        return "\n".join(lines)

    def frame(self) -> pd.DataFrame:
        """The table in raw units.

        Returns:
            Series names and time stamps, if there are any, then the columns and the future covariates.
        """
        table = pd.DataFrame(self.values, columns=list(self.columns))
        if self.schema.roles.future:
            table[list(self.schema.roles.future)] = self.known()
        form = self.schema.form
        if self.static is not None:
            table[list(self.static.columns)] = self.static.iloc[self.codes()].to_numpy()
        if self.stamps is not None:
            table.insert(0, form.written(bool(self.schema.panel)), self.stamps)
        if self.schema.panel:
            table.insert(0, form.series, np.repeat(np.array(self.series, dtype=object), self.lengths))
        return table

    def before_test(self, pred_len: int, origins: int) -> list[Dataset]:
        """The data without the test split, for model selection at one or several forecast origins.

        Each series ends after its validation split; each further dataset ends earlier by the length of that split. The
        test split that `train` requires is the last window of the validation split again.

        Args:
            pred_len: number of steps to forecast.
            origins: number of datasets.

        Returns:
            The datasets, latest origin first.

        Raises:
            UsageError: There are too few training rows for that many origins.
        """
        if origins > self.most_origins:
            if len(self) > 1:
                text = f"Several series are validated at one origin, not at {origins}; remove {argument(f'origins={origins}')}."
                raise UsageError(text, argument="origins", value=origins, remedy={"origins": None})
            (first, start), (_, end) = self.split.train[0].tolist(), self.split.val[0].tolist()
            text = (
                f"{count(origins, 'origin')}, each {count(end - start, 'row')} before the next, leave less than half of the "
                f"{count(start - first, 'training row')} of '{self.name}'; ask for at most {self.most_origins}."
            )
            raise UsageError(text, argument="origins", value=origins, remedy={"origins": self.most_origins})
        schema = replace(self.schema, split=SplitRule(test_rows=pred_len))  # otherwise it would be split again
        train, stop, cut = self.split.train[:, 1], self.split.val[:, 1], list[Dataset]()
        held_out = stop - train
        for learned in rows_before(stop, origins, held_out, held_out).T[::-1]:
            known = learned + held_out
            rows, test = self.take(np.arange(len(self)), known), np.maximum(learned, known - pred_len)
            parts = np.stack([0 * stop, learned, learned, known, test, known], axis=1).reshape(-1, len(PARTS), 2)
            cut.append(replace(rows, split=Split(parts), schema=schema, notes=()))
        return cut

    @property
    def most_origins(self) -> int:
        """Largest number of origins that leaves half of the training rows to the earliest one."""
        if len(self) > 1:
            return 1
        (first, start), stop = self.split.train[0].tolist(), int(self.split.val[0, 1])
        return 1 if stop == start else 1 + (start - first) // (2 * (stop - start))


def _ranges(first: Rows, lengths: Rows) -> Rows:
    """Row numbers of ranges that begin at `first` (S,), one after the other."""
    ends = lengths.cumsum()
    return np.arange(ends[-1]) + np.repeat(first - (ends - lengths), lengths)
