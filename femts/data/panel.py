"""A panel: many series of one kind, each with its own clock, scale and end, which one model learns from together."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pandas as pd

from femts.data.dataset import Dataset
from femts.data.download import file_sha256
from femts.data.frames import check_frame
from femts.data.grid import step_of
from femts.data.interchange import is_table, to_frame
from femts.data.loading import make_dataset
from femts.data.naming import settle
from femts.data.opening import STDIN, name_of, place, raw
from femts.data.reading import read_table
from femts.data.schema import Reading, Schema
from femts.data.splits import PARTS, SHORTEST, Split, horizon_split, ratio_split
from femts.data.timestamps import read_dates
from femts.errors import UsageError
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
    """

    name: str
    series: Mapping[str, Dataset]
    freq: str
    sha256: str
    schema: Schema
    notes: tuple[str, ...] = ()
    source: str | None = None
    _first: Dataset = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_first", next(iter(self.series.values())))

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
        """Training rows of the shortest series."""
        return min(data.train_rows for data in self.series.values())

    @property
    def record(self) -> dict[str, Any]:
        """Record that identifies the data of a training: hash, and how many rows the parts have,
        one after the other."""
        counts = [sum(stop - start for start, stop in self._ranges(part)) for part in PARTS]
        ends = np.cumsum([0, *counts]).tolist()
        return {"sha256": self.sha256, "split": {part: [ends[k], ends[k + 1]] for k, part in enumerate(PARTS)}}

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
    schema = replace(Schema.of(**reading) if schema is None else schema, panel=True)
    if is_table(source):
        return read_panel(to_frame(source, "The frame", schema.form), "frame", "", schema, "The frame")
    if not isinstance(source, str | Path):
        raise UsageError(f"The data are a {type(source).__name__}; give the path of a file, or a DataFrame.")
    path = Path(source).expanduser()
    table = read_table(path, schema.form)
    sha256 = hashlib.sha256(raw(path).read()).hexdigest() if path == STDIN else file_sha256(path)
    panel = read_panel(to_frame(table, place(path), schema.form), name_of(path), sha256, schema, place(path))
    return panel if path == STDIN else replace(panel, source=str(path.resolve()))


def read_panel(
    frame: pd.DataFrame, name: str, sha256: str, schema: Schema, where: str, freq: str | None = None
) -> Panel:
    """The panel of a table that is in memory, with the step `freq`, which the longest series shows unless it is given.

    Raises:
        UsageError: a series, a stamp or a cell is not as it must be; the text names it.
    """
    roles, form = schema.roles, schema.form
    if roles.future or roles.calendar or roles.target:
        raise UsageError(
            "A panel takes no --target, --future and --calendar yet; leave them out, or take the table without --panel."
        )
    form, notes = settle(frame, form, where)
    schema = replace(schema, form=form)
    time = form.time or "ds"
    if {form.series, time, form.value} <= set(frame.columns):
        read = (form.value, *roles.past)
        further = [str(c) for c in frame.columns if c not in (form.series, time, *read)]
        if further:
            raise UsageError(
                f"{where} has the further column '{shown(further[0])}'; name it for --past, or leave it out."
            )
    else:
        time = form.time_of(frame)
        frame, read = _as_long(frame, schema, time, where), (form.value,)
    frame = frame.assign(**{time: read_dates(frame[time], where)})
    groups = {str(key): rows for key, rows in frame.groupby(form.series, sort=False)}
    if not groups:
        raise UsageError(f"{where} has no rows; bring a table with some.")
    freq = freq or step_of(pd.Index(max(groups.values(), key=len)[time]).sort_values(), where)
    plain = schema.wide()
    series = {}
    for key, rows in groups.items():
        table = rows[[time, *read]].rename(columns={time: "date"})
        checked = check_frame(table, plain, columns=read, freq=freq, where=f"Series '{shown(key)}' of {where}")
        series[key] = make_dataset(checked, key, freq, plain)
    if not sha256:
        content = "\n".join(f"{key} {data.fingerprint()}" for key, data in series.items())
        sha256 = hashlib.sha256(content.encode()).hexdigest()
    return Panel(name, series, freq, sha256, schema, (*notes, *_notes(series)))


def _as_long(frame: pd.DataFrame, schema: Schema, time: str, where: str) -> pd.DataFrame:
    """A wide table as a long one."""
    form = schema.form
    if time not in frame.columns:
        check_frame(frame, schema, where=where)  # says what is missing
    values = "\0"  # a column of the table may be called as the values, which pandas refuses
    long = frame.melt(id_vars=[time], var_name=form.series, value_name=values).rename(columns={values: form.value})
    return long[[form.series, time, form.value]]


def _notes(series: Mapping[str, Dataset]) -> tuple[str, ...]:
    """Describe how many series there are, how long they are, and how many have gaps."""
    rows = [len(data.values) for data in series.values()]
    gaps = sum(data.observed is not None for data in series.values())
    lengths = f"{min(rows)} to {max(rows)}" if min(rows) < max(rows) else f"{rows[0]}"
    return (f"it is a panel of {len(rows)} series of {lengths} rows, {gaps} of them with gaps",)
