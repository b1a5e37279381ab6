"""Data sets by catalogue name, from a file or from a DataFrame: read, checked, and split."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.tseries.frequencies import to_offset

from femts.config.arguments import check_kind, check_path
from femts.data.catalog import CATALOG, DatasetCard, card
from femts.data.categories import encode_categories
from femts.data.check import check_frame, check_unique, sentinels, words_of
from femts.data.dataset import Dataset
from femts.data.download import fetch, file_sha256
from femts.data.frequency import step_of
from femts.data.long_table import read_long
from femts.data.numbering import by_order
from femts.data.read import LoadedTable, open_table
from femts.data.roles import NO_ROLES, Roles
from femts.data.schema import Reading, Schema
from femts.data.series_rows import from_rows
from femts.data.splits import ratio_split
from femts.data.unpack import STDIN
from femts.errors import UsageError, memory_checked
from femts.text import quote


@memory_checked()
def load_dataset(
    source: str | Path | pd.DataFrame,
    data_root: str | Path | None = None,
    download: bool = True,
    schema: Schema | None = None,
    **reading: Unpack[Reading],
) -> Dataset:
    """A data set by catalogue name, by the path of a file, or from a DataFrame.

    Args:
        source: a name of the catalogue (any case), a file that `read_table` reads (`-` is standard
            input), with `date` and value columns or `unique_id, ds, y`, or such a table of pandas, polars or
            pyarrow, its stamps in a column or in the index. Files and frames of one's own are split .7, .1, .2.
        data_root: folder of the catalogue's files; None finds it as `femts.data.data_root` does.
        download: whether a missing catalogue file may be downloaded.
        schema: how the table is read, where that is at hand as an object.
        reading: the same by name. `na`: numbers that stand for a missing value, beside empty cells.
            What is missing counts neither in losses nor in scores; models read the last value
            before it instead. `columns`: what one's own columns are called where not as usual:
            `time` for `date`, or for `ds` in a long table, whose other columns are `series` and
            `value` for `unique_id` and `y`.
            `target`: columns to forecast and to score; by default all columns that are not covariates. If targets are
            named, columns without a role are ignored.
            `past_covariates`: columns known only up to the forecast origin; models read them, and they are not scored.
            `future_covariates`: columns also known over the forecast horizon, such as holidays; `femts.data.effects`
            describes how they are used.
            `static_covariates`: columns that are constant within each series of a long table.
            `calendar`: add hour-of-week and time-of-year features.
            `season`: steps of a season, or of several (24, or [24, 168]), where the step does not tell it, and 1 for
            none; `freq`: the step, where the stamps do not show it, and 1 to number the rows in the order of dates that
            keep no even step. `femts.data.schema.Schema` says how they are used.
            `panel`: true for a series each, in a wide table each column, from which one model learns; false for
            columns that are forecast together. By default a long table has series, and a wide one columns.

    Returns:
        The data set in raw units, split in three; `notes` say what is odd about it.

    Raises:
        UsageError: unknown name, or data that cannot be used; the text says what and where.
        RunFailure: a download failed.

    Examples:
        >>> data = load_dataset("synthetic")
        >>> data.values.shape, data.freq, data.split.test.tolist()
        ((8760, 6), 'h', [[7008, 8760]])
    """
    data_root = None if data_root is None else check_path(data_root, "The data root")
    schema = Schema.of(**reading) if schema is None else schema
    check_kind(schema, Schema, "The schema", "give one of femts.data.schema, or na=, columns= and so on")
    if isinstance(source, str) and not is_path(source):
        data = _from_catalogue(card(source), data_root, download, schema)
        if schema.panel:
            opened = LoadedTable(data.frame(), schema.form, data.name, data.name, data.notes, data.sha256, data.source)
            return _series_dataset(opened, schema)
        return with_roles(data, schema.roles) if schema.roles.any else data
    opened = open_table(source, schema.form, guess=bool(schema.panel) or not schema.roles.any)
    opened = _arranged(opened, schema)
    check_unique(list(map(str, opened.frame.columns)), opened.where)
    listed = {*schema.roles.past, *schema.roles.future}
    text = words_of(opened.frame[[name for name in opened.frame.columns if str(name) in listed]])
    frame, roles, form, notes = encode_categories(opened.frame, text, schema.roles, opened.form, opened.where)
    opened, schema = replace(opened, frame=frame, form=form, notes=opened.notes + notes), replace(schema, roles=roles)
    if schema.panel or (schema.panel is None and opened.is_long(schema.roles.target)):
        return _series_dataset(opened, schema)
    return _table_dataset(opened, schema)


def read_series(frame: pd.DataFrame, name: str, schema: Schema, where: str, freq: str | None = None) -> Dataset:
    """The series of a table that is in memory, one each in a long table or for a column of a wide one, with the step
    `freq`, which the longest series shows unless it is given.

    Raises:
        UsageError: a series, a stamp or a cell is not as it must be; the text names it.
    """
    read = read_long(frame, replace(schema, panel=True), where, freq)
    roles, form = read.schema.roles, read.schema.form
    roles = replace(roles, target=roles.target or (form.value,))
    columns = (*roles.target, *roles.past)
    values, covariates = np.split(read.values, [len(columns)], axis=1)
    check_known(values, covariates, roles, read.stamps)
    return Dataset(
        name,
        np.ascontiguousarray(values),
        read.spans,
        read.series,
        read.stamps,
        columns,
        read.freq,
        schema.season_of(read.freq),
        schema.split.split(read.stamps, read.spans, where),
        "",
        np.ascontiguousarray(covariates),
        read.static,
        read.schema,
        read.notes,
    )


def _arranged(opened: LoadedTable, schema: Schema) -> LoadedTable:
    """A table with a row for each step of a series and stamps with an even step, as far as it can be made one."""
    frame, form, notes = from_rows(opened.frame, opened.form, opened.where, schema.na)
    frame, form, more = by_order(frame, form, schema.freq, opened.where)
    return replace(opened, frame=frame, form=form, notes=(*opened.notes, *notes, *more))


def _series_dataset(opened: LoadedTable, schema: Schema) -> Dataset:
    """The series of a user's table; UsageError for data that cannot be used."""
    notes = opened.notes
    if schema.panel is None:
        notes = (
            *notes,
            "the table is long, so one model learns from each series by itself; --multivariate joins them",
        )
    data = read_series(opened.frame, opened.name, replace(schema, form=opened.form), opened.where)
    tested = (data.split.test[:, 0] > 0) & (data.split.test[:, 0] < data.split.test[:, 1])
    if schema.split.given and not tested.any():
        wish = ", ".join(f"{name} {value}" for name, value in schema.split.to_dict().items())
        raise UsageError(
            f"No series of '{quote(data.name)}' has both training and test rows with the split {wish}; change the "
            "split."
        )
    least, most = int(data.lengths.min()), int(data.lengths.max())
    gaps = 0 if data.observed is None else int((np.bincount(data.codes()[~data.observed.all(1)]) > 0).sum())
    lengths = f"{least} to {most}" if least < most else f"{most}"
    notes = (*notes, *data.notes, f"it has {len(data)} series of {lengths} rows, {gaps} of them with gaps")
    return replace(data, notes=notes, source=opened.source, sha256=opened.sha256 or data.fingerprint())


def with_roles(data: Dataset, roles: Roles) -> Dataset:
    """`data` of one series, of which every column is to be forecast, with its columns in these roles.

    Raises:
        UsageError: names that do not fit, or a known column that tells the future.
    """
    roles = roles.sorted_out(data.columns, data.name)
    at = {name: number for number, name in enumerate(data.columns)}
    columns = (*roles.target, *roles.past)
    values = np.ascontiguousarray(data.values[:, [at[name] for name in columns]])
    covariates = np.ascontiguousarray(data.values[:, [at[name] for name in roles.future]])
    check_known(values, covariates, roles, data.stamps)
    schema = replace(data.schema, roles=roles)
    return replace(data, values=values, columns=columns, schema=schema, covariates=covariates)


def check_known(
    values: NDArray[np.float64], covariates: NDArray[np.float64], roles: Roles, stamps: pd.Index | None
) -> None:
    """Refuse what would tell the future: a known column that is a target, under another name; and a
    calendar without dates."""
    if roles.calendar and not isinstance(stamps, pd.DatetimeIndex):
        raise UsageError("Calendar features need dates, which these data do not have; leave --calendar out.")
    for k, name in enumerate(roles.future):
        for c, target in enumerate(roles.target):
            if np.array_equal(covariates[:, k], values[:, c], equal_nan=True):
                raise UsageError(
                    f"Column '{quote(name)}' of --future-covariates equals the target '{quote(target)}' in every row, "
                    "which would leak the answer; leave it out."
                )


def _table_dataset(opened: LoadedTable, schema: Schema) -> Dataset:
    """The data set of a user's table, its columns forecast together in the roles of `schema`, split as it says.

    Raises:
        UsageError: data that cannot be used; the text says what and where.
    """
    if opened.form.dates is not None and opened.form.is_long(opened.frame):
        raise UsageError(
            f"{opened.where} has series whose rows are numbered separately, so they do not share time steps; remove "
            "--multivariate, or provide a wide table with one column per series."
        )
    schema = replace(schema, form=opened.form)
    frame = check_frame(schema.roles.narrow(opened.frame, opened.form, opened.where), schema, where=opened.where)
    stamps, values = pd.Index(frame["date"]), frame.drop(columns="date")
    data = Dataset.of_one(
        opened.name,
        np.ascontiguousarray(values.to_numpy(dtype=np.float64)),
        stamps,
        tuple(map(str, values.columns)),
        freq=schema.freq or step_of(stamps),
        schema=replace(schema, roles=NO_ROLES),
        sha256=opened.sha256,
    )
    data = _checked(replace(data, notes=(*opened.notes, *frame.attrs["notes"]), source=opened.source))
    published = next((c for c in CATALOG.values() if c.sha256 == data.sha256 and c.split != ratio_split(c.rows)), None)
    if published is not None:
        name = f"{opened.source} is {published.name}"
        note = f"{name}; loaded by path it is split .7, .1, .2; load it by name for the published split"
        data = replace(data, notes=(note, *data.notes))
    return with_roles(data, schema.roles) if schema.roles.any else data


def is_path(source: str) -> bool:
    """Tell whether `load_dataset` takes `source` for a file rather than for a name of the catalogue."""
    if source.lower() in (name.lower() for name in CATALOG):
        return False
    return source == str(STDIN) or bool(Path(source).suffix) or len(Path(source).parts) != 1 or os.path.exists(source)


def _from_catalogue(entry: DatasetCard, root: str | Path | None, download: bool, schema: Schema) -> Dataset:
    notes: tuple[str, ...] = ()
    if schema.freq not in (None, entry.freq):
        raise UsageError(f"{entry.name} has the step '{entry.freq}', not '{schema.freq}'; leave --freq out.")
    if entry.make is not None:
        table, sha256, place, remedy = entry.make(), "", "What is made", "fix its card"
    else:
        path = fetch(entry, root, download)
        # Verified by its hash, so it is taken as it is: Weather repeats a stamp and holds sentinels of -9999.
        table, sha256, place, remedy = entry.read(path), file_sha256(path), str(path), f"download {entry.filename} again"
        if path.name != entry.filename:
            notes = (f"{path.name} is unpacked, so it cannot be verified: no hash is published for it",)
    when = pd.DatetimeIndex(pd.to_datetime(table.pop("date"))) if "date" in table else None
    if when is None:
        notes = ("it has no dates, so forecasts have none either", *notes)
    if table.shape != (entry.rows, entry.channels):
        raise UsageError(
            f"{place} has {table.shape[0]} rows of {table.shape[1]} values, but {entry.name} has "
            f"{entry.rows} of {entry.channels}; {remedy}."
        )
    if when is not None:
        _check_step(entry, when)
    schema = Schema(na=schema.na, split=schema.split, domain=schema.domain, season=schema.season)
    spans = np.array([[0, entry.rows]], dtype=np.int64)
    data = Dataset.of_one(
        entry.name,
        _matrix(table, schema),
        when,
        tuple(map(str, table.columns)),
        freq=None if when is None else entry.freq,
        split=schema.split.split(when, spans, entry.name) if schema.split.given else entry.split,
        sha256=sha256,
        season=schema.season[0] if schema.season else entry.season,
        notes=notes,
        source=entry.name,
        schema=schema,
    )
    return _checked(data)


def _check_step(entry: DatasetCard, when: pd.DatetimeIndex) -> None:
    """Refuse a step of a card that is none, or is not the usual one between its stamps; Weather repeats one of them."""
    card = f"The card of {entry.name} has the step '{quote(entry.freq)}'"
    try:
        with warnings.catch_warnings(action="ignore"):  # of pandas 2, which still reads some that pandas 3 does not
            step = to_offset(entry.freq)
    except ValueError as error:
        raise UsageError(
            f"{card}, which is no frequency of pandas; write freq='h', '15min', 'D' or the like."
        ) from error
    row = int(np.argmax(np.diff(when) == pd.Series(np.diff(when)).mode()[0])) if len(when) > 1 else -1
    if step is not None and row >= 0 and when[row] + step != when[row + 1]:
        raise UsageError(f"{card}, but its stamps go from {when[row]} to {when[row + 1]}; give the card their step.")


def _matrix(table: pd.DataFrame, schema: Schema) -> NDArray[np.float64]:
    """Values (rows, C), NaN where missing."""
    if schema.na:
        table = table.mask(table.apply(lambda column: column.isin(sentinels(schema.na, column.dtype))))
    return np.ascontiguousarray(table.to_numpy(dtype=np.float64))


def _checked(data: Dataset) -> Dataset:
    """`data` with a hash, where there is no file to have one, and with notes on constant columns and on gaps."""
    if not data.sha256:
        data = replace(data, sha256=data.fingerprint())
    train = pd.DataFrame(data.train_values, columns=list(data.columns))
    empty = train.columns[train.isna().all()]
    if len(empty):
        raise UsageError(
            f"Column '{quote(empty[0])}' of '{quote(data.name)}' has no value in its {len(train)} training rows; leave "
            "it out."
        )
    constant = train.columns[train.min() == train.max()]
    notes = data.notes + tuple(f"column '{quote(c)}' is constant in training, so its scale is 1" for c in constant)
    gaps = () if data.observed is None else (_gaps(data.observed, data.columns, data.stamps),)
    return replace(data, notes=(*notes, *gaps))


def _gaps(observed: NDArray[np.bool_], columns: Sequence[str], dates: pd.Index | None) -> str:
    """Describe how much is missing, and where it begins."""
    row, column = np.argwhere(~observed)[0]
    when = f"row {row + 1}" if dates is None else str(dates[row])
    missing, gappy = int((~observed).sum()), int((~observed).any(0).sum())
    where = f"in {gappy} of {len(columns)} columns, the first in '{quote(columns[column])}' at {when}"
    rule = "they are excluded from losses and scores, and models read the last value before them"
    return f"{missing} of {observed.size} values are missing, {where}; {rule}"
