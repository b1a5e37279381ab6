"""From a user's table to a dataset: the only place that decides what its columns and rows are.

Everything after it may rely on sorted, evenly spaced and unique time stamps, and on float64 values with NaN where one is
missing. A table given to a trained model decides nothing: it only has to fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.data.aggregation import by_step
from femts.data.ahead import channels_of, undeclared, without_ahead
from femts.data.categories import encode_categories
from femts.data.check import check_unique, words_of
from femts.data.column_names import bounded, check_bound_names
from femts.data.columns import to_frame
from femts.data.dataset import Dataset
from femts.data.describe import names
from femts.data.even import evenly_spaced
from femts.data.holidays import check_countries
from femts.data.interpret import interpreted
from femts.data.rows import Rows, numbered_rows, read_rows, refuse_repeats
from femts.data.schema import Schema
from femts.data.splits import Split
from femts.data.static import read_static
from femts.errors import UsageError
from femts.text import argument, quote

Array = NDArray[np.float64]
MOST_EMPTY, ROOM = 1000, 2**24  # most cells of a wide table per value of the long one, and cells always allowed


def normalise(
    table: Any,
    schema: Schema,
    where: str = "The frame",
    *,
    name: str = "frame",
    columns: Sequence[str] | None = None,
    freq: str | None = None,
) -> Dataset:
    """Read a table of any library as a dataset in raw units.

    Args:
        table: an object that `femts.data.columns.is_table` accepts.
        schema: how to read it. `panel` None makes a long table a panel.
        where: description of the table, to start messages with.
        name: name of the dataset.
        columns: for a table given to a trained model, its targets and past covariates in order; the table also needs
            the future and static covariates of the schema. None decides what the columns are.
        freq: with `columns`, the step of the training data; None for data without time stamps.

    Returns:
        The dataset; that of a trained model has no splits.

    Raises:
        UsageError: The table cannot be used; the message says what is wrong, where, and what would help.
    """
    return to_dataset(table_rows(table, schema, where, columns, freq), name, columns, freq)


def table_rows(
    table: Any,
    schema: Schema,
    where: str,
    columns: Sequence[str] | None,
    freq: str | None,
    needed: Sequence[str] = (),
    series: Sequence[str] = (),
) -> Rows:
    """The rows of a table, aggregated if they have to be; arguments as in `normalise` and `read_rows`, and
    `series`, those of the training data."""
    if columns is None:
        return training_rows(to_frame(table, where, schema.form), schema, where)
    if freq is None:
        return numbered_rows(to_frame(table, where, None), schema, where)
    schema = replace(schema, panel=bool(schema.panel))
    rows = read_rows(to_frame(table, where, schema.form), schema, where, freq, needed)
    if needed and schema.aggregate is not None:  # covariates alone, which are averaged
        rows = replace(rows, schema=replace(rows.schema, aggregate="mean"))
    return rows if schema.freq is None else by_step(rows, series)


def training_rows(frame: pd.DataFrame, schema: Schema, where: str, own: bool = False) -> Rows:
    """The rows of a table to train on, from `to_frame`, with all that the user left open decided. Nothing else needs an
    `own` frame, which loses its columns so that those which are not used need no memory."""
    table = frame
    listed = {*schema.roles.past, *schema.roles.future} & set(frame.columns)
    notes = tuple[str, ...]()
    if listed:
        check_unique(frame.columns, where)
        text = words_of(frame[[name for name in frame.columns if name in listed]])
        frame, roles, form, notes = encode_categories(frame, text, schema.roles, schema.form, where)
        schema = replace(schema, roles=roles, form=form)
    rows = read_rows(frame, schema, where)
    roles = rows.schema.roles
    if rows.long and roles.target and schema.panel is not False and roles.named <= set(rows.columns):
        rows = rows.only({*roles.named, rows.schema.form.value})
    del frame
    if own:
        for name in list(table.columns):
            del table[name]
    rows = interpreted(rows)
    rows = replace(rows, schema=replace(rows.schema, panel=_is_panel(rows)), notes=(*notes, *rows.notes))
    return rows if rows.schema.freq is None else by_step(rows)


def _is_panel(rows: Rows) -> bool:
    """Whether series are separate; those that have roles by their names are columns."""
    if rows.schema.panel is not None:
        return rows.schema.panel
    roles = rows.schema.roles
    named = {*roles.target, *roles.past, *roles.future}
    return rows.long and not (named and named <= set(rows.series))


def to_dataset(
    rows: Rows, name: str, columns: Sequence[str] | None = None, freq: str | None = None, planned: bool = True
) -> Dataset:
    """The dataset of `rows`; arguments as in `normalise`, and whether the rows after the last readings are `planned`, and
    not late."""
    if not rows.schema.panel:
        rows = _wide(rows, trained=columns is not None)
    rows, ahead = without_ahead(rows, columns or channels_of(rows)) if planned else (rows, None)
    if rows.schema.panel:
        made = _panel(rows, name, freq or rows.schema.freq, trained=columns is not None)
    else:
        made = _joint(rows, name, columns, freq)
    note = (undeclared(rows) if columns is None else None) if ahead is None else ahead.note
    return replace(made, ahead=ahead, notes=(*made.notes, note) if note else made.notes)


def _wide(rows: Rows, trained: bool) -> Rows:
    """The rows of a table whose columns are forecast jointly, which may be the series of a long one; `trained` as in
    `_panel`."""
    if rows.long and rows.schema.form.dates is not None:
        fault = f"{rows.where} has series whose rows are numbered separately, so they do not share time steps"
        remedy = "" if trained else f"remove {argument('panel=False')}, or "
        text = f"{fault}; {remedy}provide a wide table with one column per series."
        raise UsageError(text, argument="panel", value=False, remedy={"panel": None})
    return as_columns(rows) if rows.long else rows


def _panel(rows: Rows, name: str, freq: str | None, trained: bool) -> Dataset:
    """The series of a long table, or the columns of a wide one, as separate series; a table for a `trained` model is
    like the training data, so remedies are none of its reading."""
    schema, form = rows.schema, rows.schema.form
    if not rows.series:
        raise UsageError(f"{rows.where} has no rows; provide a table with rows.")
    roles, series = replace(schema.roles, target=schema.roles.target or (form.value,)), rows.series
    notes, nothing = rows.notes, np.empty((len(rows), 0))
    if rows.long:
        listed = roles.check(rows.columns, rows.where, trained)
        further = [column for column in rows.columns if column not in listed]
        bounds = [column for column in further if bounded(column, listed)]
        if bounds and not schema.roles.target:  # a forecast
            notes = (*notes, f"{names(tuple(bounds))} are bounds of forecasts and are left out")
            further = [column for column in further if column not in bounds]
        if further and not schema.roles.target:
            named = [argument(f"{kind}_covariates") for kind in ("past", "future", "static")]
            naming = "" if trained else f"name it in {named[0]}, {named[1]} or {named[2]}, or "
            text = f"{rows.where} has the additional column '{quote(further[0])}'; {naming}remove it."
            raise UsageError(text, remedy={} if trained else {"drop": [*schema.form.layout.drop, *further]})
        rows.leave({*rows.columns} - roles.named)
        values = (
            rows.taken((*roles.target, *roles.past)),
            (rows.taken_exactly(roles.future) if roles.future else nothing),
        )
    elif schema.roles.any:
        lacking = form.value if form.series in rows.columns else form.series
        text = (
            f"{rows.where} has no column '{quote(lacking)}', so it is not a long table, and columns of a wide table "
            f"cannot have roles in a panel; provide a long table{'' if trained else ', or remove ' + argument('panel=True')}."
        )
        raise UsageError(text, argument="panel", value=True, remedy={"panel": None})
    else:
        values = rows.values(None), nothing
        check_bound_names(rows.columns)  # they are columns of its forecast again
    even = evenly_spaced(rows, values, freq)
    (whole, covariates), spans, stamps = even.values, even.spans, even.stamps
    if not rows.long:
        steps, series = len(whole), rows.columns
        begin = np.arange(len(series)) * steps
        whole, spans = whole.reshape(-1, 1, order="F"), np.stack([begin, begin + steps], axis=1)
        covariates = np.empty((len(whole), 0))
        stamps = stamps[np.tile(np.arange(steps), len(series))]
    static = read_static(rows.frame, roles.constant, rows.codes, series, roles.country_column)
    if roles.country_column is not None:
        check_countries(static[roles.country_column])
    return Dataset(
        name=name,
        values=whole,
        spans=spans,
        series=series,
        stamps=stamps,
        columns=(*roles.target, *roles.past),
        freq=even.freq,
        season=schema.season_of(even.freq),
        split=schema.split.split(stamps, spans, rows.where),
        sha256="",
        covariates=covariates,
        static=static if roles.constant else None,
        schema=replace(schema, panel=True),
        notes=(*notes, *even.notes),
    )


def _joint(rows: Rows, name: str, columns: Sequence[str] | None, freq: str | None) -> Dataset:
    """The columns of a wide table as one series."""
    schema = rows.schema
    if columns is None:
        schema.roles.refuse_static()
        rows, further = rows.only(schema.roles.check(rows.columns, rows.where)) if schema.roles.target else rows, {}
        values, channels = rows.values(None), rows.columns
    else:
        needed, channels = (*columns, *schema.roles.future), tuple(columns)
        values = (rows.only(needed) if schema.roles.any else rows).values(needed)
        further = {"split": Split.of((0, 0), (0, 0), (0, 0))}
    stamps, step, notes = rows.stamps, None, rows.notes
    if columns is None or freq is not None:
        even = evenly_spaced(rows, (values,), freq or schema.freq)
        (values,), stamps, step, notes = even.values, even.stamps, even.freq, (*notes, *even.notes)
    return Dataset.of_one(
        name,
        np.ascontiguousarray(values[:, : len(channels)]),
        stamps,
        channels,
        freq=step,
        covariates=np.ascontiguousarray(values[:, len(channels) :]),
        schema=schema,
        notes=notes,
        **further,
    )


def as_columns(rows: Rows, strict: bool = True) -> Rows:
    """Rows of a wide table with one column for each series of a long one, in order of appearance.

    Raises:
        UsageError: A series has a time stamp twice, or series hardly share any; or, if `strict`, a cell is not a number.
    """
    value, count = (rows.schema.form.value,), len(rows.series)
    values = rows.values(value) if strict else rows.readable(value)
    if "date" in rows.series:
        raise UsageError(
            f"{rows.where} has a series named 'date', which is the name of the time stamps in a wide table; rename the "
            "series."
        )
    refuse_repeats(rows.stamps, rows.codes, rows.series, rows.where, several=True)
    places, stamps = pd.factorize(rows.stamps, sort=True)
    if count * len(stamps) > max(ROOM, MOST_EMPTY * len(rows)):
        raise UsageError(
            f"{rows.where} has {count} series and {len(stamps)} different dates, but only {len(rows)} values; provide "
            "series that share their dates."
        )
    table = np.full((len(stamps), count), np.nan)
    table[places, rows.codes] = values[:, 0]
    return replace(
        rows,
        frame=pd.DataFrame(table, columns=list(rows.series)),
        stamps=pd.Index(stamps),
        codes=np.zeros(len(stamps), dtype=np.intp),
        series=("",),
        long=False,
    )
