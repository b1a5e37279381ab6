"""A panel: many series of one kind, each with its own clock, scale and end, which one model learns from together."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pandas as pd

from femts.config.arguments import check_kind
from femts.data.check import check_frame, check_unique, check_values
from femts.data.columns import infer_columns
from femts.data.dataset import Dataset
from femts.data.panel_series import LongRows, read_series
from femts.data.read import LoadedTable, open_table
from femts.data.schema import Reading, Schema
from femts.data.splits import PARTS, SHORTEST, Split, horizon_split, ratio_split
from femts.data.stamps import read_stamps
from femts.data.static import read_static
from femts.errors import UsageError, memory_checked
from femts.text import shown


@dataclass(frozen=True, eq=False)
class Panel:
    """Series by name, each a data set of the same columns and step.

    Attributes:
        name: the file's name without its ending, or `frame`.
        series: a data set for each name, in the order of the table.
        freq: the step between stamps.
        sha256: of the file, or of the values where there is no file.
        schema: how it was read.
        notes: what a user should be told once.
        source: the path of its file; None for a table in memory.
        static: what stays the same for each series, as `read_static` gives it; None without static columns.
    """

    name: str
    series: Mapping[str, Dataset]
    freq: str
    sha256: str
    schema: Schema
    notes: tuple[str, ...] = ()
    source: str | None = None
    static: pd.DataFrame | None = None

    @property
    def _first(self) -> Dataset:
        return next(iter(self.series.values()))

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of each series: its values, and those known up to now."""
        return self._first.columns

    @property
    def targets(self) -> int:
        """Number of the columns, the first ones, that are to be forecast."""
        return self._first.targets

    @property
    def season(self) -> int:
        """Steps in the natural season."""
        return self._first.season

    @property
    def rows(self) -> int:
        """Rows of the longest series."""
        return max(data.rows for data in self.series.values())

    @property
    def train_rows(self) -> int:
        """Training rows of the longest series."""
        return max(data.train_rows for data in self.series.values())

    @property
    def typical_rows(self) -> int:
        """Training rows of a series of middle length."""
        return int(np.median([data.train_rows for data in self.series.values()]))

    @property
    def common_rows(self) -> int:
        """Training rows of the shortest series that has some."""
        return min((data.train_rows for data in self.series.values() if data.train_rows), default=0)

    @property
    def record(self) -> dict[str, Any]:
        """Record that identifies the data of a training: hash, and how many rows the parts have,
        one after the other."""
        counts = [sum(stop - start for start, stop in self._ranges(part)) for part in PARTS]
        ends = np.cumsum([0, *counts]).tolist()
        return {"sha256": self.sha256, "split": {part: [ends[k], ends[k + 1]] for k, part in enumerate(PARTS)}}

    @property
    def learned_until(self) -> str | None:
        """Latest stamp that any series has in its training rows, as text; None where no series has such rows."""
        learned = (data for data in self.series.values() if data.train_rows)
        ends = [data.dates[data.split.train[1] - 1] for data in learned if data.dates is not None]
        return str(max(ends)) if ends else None

    def fingerprint(self) -> str:
        """SHA-256 of names, stamps and values."""
        return _hash(self.series, self.static)

    def with_series(self, series: Mapping[str, Dataset]) -> Panel:
        """The same panel with `series`, some of its own or what is left of them."""
        return replace(self, series=series, static=None if self.static is None else self.static.loc[list(series)])

    def _ranges(self, part: str) -> Iterator[tuple[int, int]]:
        return (getattr(data.split, part) for data in self.series.values())


def panel_for_horizon(panel: Panel, pred_len: int) -> Panel:
    """`panel`, with the usual split of each series by its own length, where the user has not said otherwise."""
    if panel.schema.split.given:
        return panel
    series = {
        name: replace(data, split=_usual_split(len(data.values), pred_len)) for name, data in panel.series.items()
    }
    return replace(panel, series=series)


def _usual_split(rows: int, pred_len: int) -> Split:
    """As for a table of one's own; a series too short for three parts has no validation, and then no test."""
    if rows >= 2 * pred_len + SHORTEST:
        return horizon_split(ratio_split(rows), pred_len)
    train = rows - pred_len if rows > pred_len else rows
    return Split(train=(0, train), val=(train, train), test=(train, rows))


@memory_checked()
def load_panel(source: str | Path | pd.DataFrame, schema: Schema | None = None, **reading: Unpack[Reading]) -> Panel:
    """A panel from a file or a DataFrame: a long table of series (`unique_id, ds, y`), or a wide
    one, a series a column.

    Args:
        source: a CSV or Parquet file, or a DataFrame.
        schema: how the table is read, where that is at hand as an object.
        reading: the same by name, as in `load_dataset`.

    Returns:
        The panel, each series split by its own length; `notes` say what a user should know.

    Raises:
        UsageError: data that cannot be used; the text says what and where.
    """
    schema = Schema.of(**reading) if schema is None else schema
    check_kind(schema, Schema, "The schema", "give one of femts.data.schema, or na=, columns= and so on")
    return table_panel(open_table(source, schema.form), schema)


def table_panel(opened: LoadedTable, schema: Schema) -> Panel:
    """The panel of a user's table; UsageError for data that cannot be used."""
    notes = opened.notes
    if schema.panel is None and opened.is_long(schema.roles.target):
        notes = (
            *notes,
            "the table is long, so one model learns from each series by itself; --multivariate joins them",
        )
    schema = replace(schema, panel=True, form=opened.form)
    panel = read_panel(opened.frame, opened.name, opened.sha256, schema, opened.where)
    if schema.split.given and not any(0 < data.split.test[0] < data.split.test[1] for data in panel.series.values()):
        wish = ", ".join(f"{name} {value}" for name, value in schema.split.to_dict().items())
        raise UsageError(
            f"No series of '{shown(panel.name)}' has rows to learn from and rows to test by, split as {wish}; "
            "change it."
        )
    return replace(panel, notes=(*notes, *panel.notes), source=opened.source)


def read_panel(
    frame: pd.DataFrame, name: str, sha256: str, schema: Schema, where: str, freq: str | None = None
) -> Panel:
    """The panel of a table that is in memory, with the step `freq`, which the longest series shows unless it is given.

    Raises:
        UsageError: a series, a stamp or a cell is not as it must be; the text names it.
    """
    frame = frame.set_axis([str(column) for column in frame.columns], axis=1)
    check_unique(frame.columns, where)
    frame, schema, notes = _settled(frame, schema, where)
    check_unique(frame.columns, where)  # a role may name the stamps or the series
    roles, form = schema.roles, schema.form
    time, freq = form.time or "ds", freq or schema.freq
    dates, more = read_stamps(frame[time], where, freq)
    rows = LongRows.of(frame, form.series, dates, where)
    freq = freq or rows.step(where)
    named = replace(schema, roles=replace(roles, target=roles.target or (form.value,)))
    series = read_series(rows, named, freq, where)
    static = None
    if roles.static:
        static = read_static(frame, roles.static, rows.row_codes, rows.names)
    sha256 = sha256 or _hash(series, static)
    return Panel(name, series, freq, sha256, schema, (*notes, *more, *_notes(series)), static=static)


def _settled(frame: pd.DataFrame, schema: Schema, where: str) -> tuple[pd.DataFrame, Schema, tuple[str, ...]]:
    """A long table of what is to be read, its schema with the names of its columns, and notes on them."""
    notes: tuple[str, ...] = ()
    form, roles = schema.form, schema.roles
    if not {form.series, form.time or "ds"} <= set(frame.columns):
        form, notes = infer_columns(frame, form, where)
        if form.time is None and {form.series, "date"} <= set(frame.columns):
            form = replace(form, time="date")
    schema = replace(schema, form=form)
    time = form.time or "ds"
    columns = [str(column) for column in frame.columns if column not in (form.series, time)]
    if {form.series, time} <= set(frame.columns) and (roles.target or form.value in columns):
        named = replace(roles, target=roles.target or (form.value,)).check(columns, where)
        further = [column for column in columns if column not in named]
        if further and not roles.target:
            raise UsageError(
                f"{where} has the further column '{shown(further[0])}'; name it for --past, --future or --static, or "
                "leave it out."
            )
        return frame[[form.series, time, *named]], schema, notes
    if roles.any:
        lacking = next((n for n in (form.series, time, form.value) if n not in frame.columns), form.value)
        raise UsageError(
            f"{where} has no column '{shown(lacking)}', so it is no long table, and columns of others have no roles in "
            "a panel; bring a long one, or leave --panel out."
        )
    time = form.time_of(frame)
    return _as_long(frame, schema, time, where), schema, notes


def _hash(series: Mapping[str, Dataset], static: pd.DataFrame | None) -> str:
    """SHA-256 of names, stamps and values."""
    content = hashlib.sha256(b"" if static is None else static.to_csv().encode())
    for key, data in series.items():
        content.update(f"{key} {data.columns} {len(data.values)}".encode())
        stamps = data.dates.asi8 if isinstance(data.dates, pd.DatetimeIndex) else data.dates
        for array in (data.values, data.covariates, stamps):
            content.update(b"" if array is None else np.ascontiguousarray(array).tobytes())
    return content.hexdigest()


def _as_long(frame: pd.DataFrame, schema: Schema, time: str, where: str) -> pd.DataFrame:
    """A wide table as a long one."""
    form = schema.form
    if time not in frame.columns:
        check_frame(frame, schema, where=where)  # says what is missing
    values = check_values(frame.drop(columns=time), None, where, schema.na)
    rows, columns = values.shape
    stamps = frame[time].iloc[np.tile(np.arange(rows), columns)].reset_index(drop=True)
    names = values.columns.repeat(rows)
    return pd.DataFrame({form.series: names, form.time or "ds": stamps, form.value: values.to_numpy().ravel("F")})


def _notes(series: Mapping[str, Dataset]) -> tuple[str, ...]:
    """Describe how many series there are, how long they are, and how many have gaps."""
    rows = [len(data.values) for data in series.values()]
    gaps = sum(data.observed is not None for data in series.values())
    lengths = f"{min(rows)} to {max(rows)}" if min(rows) < max(rows) else f"{rows[0]}"
    return (f"it is a panel of {len(rows)} series of {lengths} rows, {gaps} of them with gaps",)
