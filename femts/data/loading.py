"""Datasets by catalogue name, from a file or from a DataFrame: read, checked, and split."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.tseries.frequencies import to_offset

from femts.config.arguments import check_kind, check_path
from femts.data.catalog import CATALOG, DatasetCard, card
from femts.data.check import sentinels
from femts.data.closures import Closures
from femts.data.dataset import Dataset
from femts.data.describe import are, count, quoted_names
from femts.data.download import fetch
from femts.data.faults import faults_of, is_large
from femts.data.holidays import holiday_terms
from femts.data.known import calendar_marks
from femts.data.normalise import to_dataset, training_rows
from femts.data.pieces import slices
from femts.data.read import LoadedTable, first_rows, open_table, read_first_rows, read_source
from femts.data.roles import Roles
from femts.data.rows import Rows
from femts.data.schema import Reading, Schema
from femts.data.splits import ratio_split
from femts.data.unpack import STDIN
from femts.errors import FemtsError, TableFault, UsageError, memory_checked
from femts.files import file_sha256
from femts.text import Message, argument, arguments, quote


@memory_checked()
def load_dataset(
    source: str | Path | pd.DataFrame,
    data_root: str | Path | None = None,
    download: bool = True,
    schema: Schema | None = None,
    **reading: Unpack[Reading],
) -> Dataset:
    """Load a dataset from the catalogue, a file or a data frame, and split it.

    Args:
        source: name in the catalogue (case-insensitive), path of a file (`-` for standard input), or a table of pandas,
            polars or pyarrow. A wide table has a `date` column, or its time stamps in the index, and one column for
            each variable; a long one has `unique_id`, `ds` and `y`, or series names and time stamps in the index. Your
            own data are split 70/10/20 unless told otherwise.
        data_root: folder with the files of the catalogue; None searches as described in `femts.data.download.data_root`.
        download: whether a missing file of the catalogue may be downloaded.
        schema: how to read the table, as an object instead of the keywords below.
        reading: keywords of `femts.data.schema.Schema.of`:

            `na`: numbers that mean "missing", in addition to empty cells, or `none`. By default, those that stand apart
            from all others and repeat, such as -9999, are found. Missing values count neither in losses nor in scores;
            most models read the last value before them.

            `columns`: your names for the standard columns, as a mapping from `time`, and for long tables `series` and
            `value`. By default, the column of dates and, if these repeat, the columns that name series are found.

            `target`: columns to forecast and score; by default those of numbers that vary and are not covariates, nor
            identifiers, flags, running numbers or parts of the date. If targets are named, columns without a role are
            ignored.

            `past_covariates`: columns known only up to the forecast origin; models read them, and they are not scored.

            `future_covariates`: columns also known over the forecast horizon, such as holidays; see
            `femts.data.effects` for how they are used. The last rows may have these alone; see `femts.data.ahead`.

            `static_covariates`: columns that are constant within each series of a long table.

            `calendar`: add hour-of-week and time-of-year features. By default, only trees read them.

            `holidays`: add the public holidays of a country or a part of one, such as `DE` or `DE-BY`, and the days around
            them; or, in a long table, of the country of each series, in the column of this name. Requires
            `pip install 'femts[holidays]'`.

            `season`: number of steps in a season, or several such as `[24, 168]`, if the step between rows does not
            imply it; 1 for no season.

            `freq`: step between rows; by default that of the time stamps or, at uneven distances, about the usual one.
            Rows that do not keep it are averaged over such steps, here and in each table given to a model trained on
            these data. 1 numbers the rows in order of their dates instead.

            `aggregate`: what the targets of each step of `freq` are, `sum` for transactions such as orders, `count` for
            the number of rows, in a column of that name, or `mean`, `median`, `min` or `max`; dates may then repeat. In
            sums and counts, steps without rows are 0, from the first row of a series to the last of the table.

            `outliers`: `missing` reads single readings far outside the usual range as missing, in training and in each
            table given to a model trained on these data, and `keep` keeps them; see `femts.data.outliers`. The default is
            `keep` for the catalogue and `missing` for other data.

            `sheet`, `skip_rows`, `drop`: sheet of a workbook, number of lines or rows above the header, and columns to
            leave out.

            `panel`: True makes each column of a wide table a series of a panel, for which one model is trained; False
            forecasts the columns jointly. By default, long tables are panels and wide ones are not.

    Returns:
        The dataset in raw units with its splits; `notes` lists anything unusual about it.

    Raises:
        UsageError: The name is unknown or the data cannot be used; the message says what and where.
        RunFailure: A download failed.

    Examples:
        >>> data = load_dataset("synthetic")
        >>> data.values.shape, data.freq, data.split.test.tolist()
        ((8760, 6), 'h', [[7008, 8760]])
    """
    data_root = None if data_root is None else check_path(data_root, "The data root")
    schema = Schema.of(**reading) if schema is None else schema
    check_kind(schema, Schema, "The schema", "give one of femts.data.schema, or keywords")
    if isinstance(source, str) and not is_path(source):
        data = _from_catalogue(card(source), data_root, download, schema)
        if schema.panel:
            frame = data.frame()
            opened = LoadedTable(frame, schema.form, data.name, data.name, data.notes, data.sha256, data.source)
            return _read(opened, schema)
        return with_roles(data, schema.roles) if schema.roles.any else data
    head = None
    if is_large(source):
        with suppress(FemtsError):  # raised again for the whole table
            head = read_first_rows(source, schema.form)
    if head is not None and (fault := faults_of(head, schema, _read)) is not None:
        raise fault
    return _read(read_source(source, schema.form), schema, all_faults=head is None)


def _read(given: LoadedTable, schema: Schema, all_faults: bool = False) -> Dataset:
    """Dataset of a user's table, or of its first rows; with `all_faults`, a fault is told with the others of these."""
    head = first_rows(given)
    try:
        given = open_table(replace(given, form=schema.form))
        own = given.source is not None and len(head.frame) < len(given.frame)
        rows = training_rows(given.frame, replace(schema, form=given.form), given.where, own)
        given = replace(given, frame=head.frame)  # rows hold what they need of a large table
        return _dataset(rows, given, schema.panel)
    except TableFault as fault:
        raise (faults_of(head, schema, _read) if all_faults else None) or fault from None


def _dataset(rows: Rows, opened: LoadedTable, asked: bool | None) -> Dataset:
    """Dataset of rows to train on, with its splits and notes; `asked` is the `panel` of the user."""
    schema = rows.schema
    data = to_dataset(rows, opened.name)
    data = replace(data, source=opened.source, sha256=opened.sha256 or data.fingerprint())
    if not data.schema.panel:
        data = replace(data, schema=replace(data.schema, panel=asked))
        data = _checked(replace(data, notes=(*opened.notes, *data.notes)))
        return _with_published(with_roles(data, data.schema.roles) if data.schema.roles.any else data)
    notes = (*opened.notes, *data.notes)
    if asked is None:
        long = "the table is long, so one model is trained on separate series"
        notes += (Message(f"{long}; {argument('panel=False')} forecasts them jointly"),)
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
    notes = (*notes, f"it has {len(data)} series of {lengths} rows, {gaps} of them with gaps")
    _check_known(data)
    return replace(data, notes=notes)


def with_roles(data: Dataset, roles: Roles) -> Dataset:
    """Assign `roles` to the columns of `data`, a single series whose columns have no roles yet.

    Raises:
        UsageError: Names do not match, or a future covariate leaks the target.
    """
    roles = roles.sorted_out(data.columns, data.name)
    at = {name: number for number, name in enumerate(data.columns)}
    columns = (*roles.target, *roles.past)
    values = np.ascontiguousarray(data.values[:, [at[name] for name in columns]])
    covariates = np.ascontiguousarray(data.values[:, [at[name] for name in roles.future]])
    made = replace(
        data, values=values, columns=columns, schema=replace(data.schema, roles=roles), covariates=covariates
    )
    _check_known(made)
    return made


def _check_known(data: Dataset) -> None:
    """Refuse future covariates that equal a target under another name, and calendar features without dates."""
    roles = data.schema.roles
    if roles.calendar and not isinstance(data.stamps, pd.DatetimeIndex):
        text = f"Calendar features need dates, which these data do not have; remove {argument('calendar=True')}."
        raise UsageError(text, argument="calendar", value=True, remedy={"calendar": None})
    if roles.holidays is not None:
        stamps = data.stamps
        if not isinstance(stamps, pd.DatetimeIndex) or "weekday" not in calendar_marks(data.freq):
            text = (
                f"Holidays need dates whose steps are at most a day; remove {arguments({'holidays': roles.holidays})}."
            )
            raise UsageError(text, argument="holidays", value=roles.holidays, remedy={"holidays": None})
        if roles.country_column is None:
            holiday_terms(stamps[:1], roles.holidays)  # refuses an unknown country at once
    for k, name in enumerate(roles.future):
        for c, target in enumerate(data.columns[: data.n_targets]):
            if _equal(data.covariates[:, k], data.values[:, c]):
                text = (
                    f"Column '{quote(name)}' of {argument('future_covariates')} equals the target '{quote(target)}' in "
                    "every row, which would leak the answer; remove it."
                )
                others = {"future_covariates": [each for each in roles.future if each != name] or None}
                raise UsageError(text, argument="future_covariates", value=list(roles.future), remedy=others)


def _equal(one: NDArray[np.floating[Any]], other: NDArray[np.floating[Any]]) -> bool:
    """Whether two columns (N,) are equal, NaN included; most differ in the first rows."""
    return all(np.array_equal(one[rows], other[rows], equal_nan=True) for rows in slices(len(one)))


def _with_published(data: Dataset) -> Dataset:
    """`data` with a note if they are a file of the catalogue that has splits of its own."""
    published = next((c for c in CATALOG.values() if c.sha256 == data.sha256 and c.split != ratio_split(c.rows)), None)
    if published is None:
        return data
    name = f"{data.source} is {published.name}"
    note = f"{name}; loaded by path it is split .7, .1, .2; load it by name for the published split"
    return replace(data, notes=(note, *data.notes))


def is_path(source: str) -> bool:
    """Return whether `load_dataset` reads `source` as a file rather than as a catalogue name."""
    if source.lower() in (name.lower() for name in CATALOG):
        return False
    return source == str(STDIN) or bool(Path(source).suffix) or len(Path(source).parts) != 1 or os.path.exists(source)


def _from_catalogue(entry: DatasetCard, root: str | Path | None, download: bool, schema: Schema) -> Dataset:
    notes: tuple[str, ...] = ()
    if schema.freq not in (None, entry.freq):
        text = (
            f"{entry.name} has the step '{entry.freq}', not '{schema.freq}'; remove {arguments({'freq': schema.freq})}."
        )
        raise UsageError(text, argument="freq", value=schema.freq, remedy={"freq": None})
    if entry.make is not None:
        table, sha256, place, remedy = entry.make(), "", "The generated table", "correct its card"
    else:
        path = fetch(entry, root, download)
        # Not checked further, as its hash is verified: Weather repeats a time stamp and contains sentinels of -9999.
        table, sha256, place, remedy = (
            entry.read(path),
            file_sha256(path),
            str(path),
            f"download {entry.filename} again",
        )
        if path.name != entry.filename:
            notes = (
                f"{path.name} is unpacked and cannot be verified, because only the compressed file has a published hash",
            )
    when = pd.DatetimeIndex(pd.to_datetime(table.pop("date"))) if "date" in table else None
    if when is None:
        notes = ("it has no dates, so neither do its forecasts", *notes)
    if table.shape != (entry.rows, entry.channels):
        raise UsageError(
            f"{place} has {table.shape[0]} rows of {table.shape[1]} values, but {entry.name} has "
            f"{entry.rows} of {entry.channels}; {remedy}."
        )
    if when is not None:
        _check_step(entry, when)
    schema = Schema(schema.na, split=schema.split, domain=schema.domain, season=schema.season, outliers=schema.outliers)
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
    """Refuse a step of a card that is invalid or not the most common one between its time stamps."""
    card = f"The card of {entry.name} has the step '{quote(entry.freq)}'"
    try:
        with warnings.catch_warnings(action="ignore"):  # pandas 2 warns about aliases that pandas 3 rejects
            step = to_offset(entry.freq)
    except ValueError as error:
        raise UsageError(f"{card}, which is not a pandas frequency; write h, 15min, D or the like.") from error
    row = int(np.argmax(np.diff(when) == pd.Series(np.diff(when)).mode()[0])) if len(when) > 1 else -1
    if step is not None and row >= 0 and when[row] + step != when[row + 1]:
        raise UsageError(f"{card}, but its time stamps go from {when[row]} to {when[row + 1]}; correct the card.")


def _matrix(table: pd.DataFrame, schema: Schema) -> NDArray[np.float64]:
    """Values (rows, C), with NaN for missing ones."""
    if schema.na:
        table = table.mask(table.apply(lambda column: column.isin(sentinels(schema.na, column.dtype))))
    return np.ascontiguousarray(table.to_numpy(dtype=np.float64))


def _checked(data: Dataset) -> Dataset:
    """`data` with a hash, if it has no file to take it from, and with notes on constant columns and gaps."""
    if not data.sha256:
        data = replace(data, sha256=data.fingerprint())
    train, notes = data.train_values, data.notes
    low, high = (bound.reduce(train, axis=0, initial=np.nan) for bound in (np.fmin, np.fmax))
    if np.isnan(low).any():
        raise _without_values(data, [name for name, least in zip(data.columns, low, strict=True) if np.isnan(least)])
    constant = [data.columns[place] for place in np.flatnonzero(low == high)]
    if len(constant) == 1:
        notes += (f"column '{quote(constant[0])}' is constant in training, so its scale is 1",)
    elif constant:
        notes += (f"columns {quoted_names(constant)} are constant in training, so their scales are 1",)
    return replace(data, notes=(*notes, *_gaps(data)))


def _without_values(data: Dataset, empty: list[str]) -> UsageError:
    """The error for columns of a table without a value to train on."""
    rows = count(len(data.train_values), "training row")
    fault = f"Column '{quote(empty[0])}' of '{quote(data.name)}' has no value in its {rows}"
    if data.schema.panel is not None or len(empty) == len(data.columns):  # series, or nothing would be left
        return UsageError(f"{fault}; remove it.")
    drop = [*data.schema.form.layout.drop, *empty]
    which = "such columns" if empty[1:] else "it"
    return UsageError(f"{fault}; leave {which} out with {arguments({'drop': drop})}.", remedy={"drop": drop})


def _gaps(data: Dataset) -> Iterator[str]:
    """Describe how many values of a single series are missing and where the first gap is."""
    if data.observed is None:
        return
    missing, closed = ~data.observed, np.zeros_like(data.observed)
    closures = Closures.fit(data)
    if closures is not None and data.stamps is not None:
        of_targets = closures.at(data.stamps)[0]
        closed[of_targets.all(axis=1)] = True
        closed[:, : data.n_targets] = of_targets
    never, gaps = missing & closed, missing & ~closed
    if never.any():
        times = " at times of the day, week or year that never have one"
        yield f"{_missing(data, never, times)}; forecasts leave such times out"
    if gaps.any():
        they, them = ("it is", "it") if gaps.sum() == 1 else ("they are", "them")
        rule = f"{they} excluded from losses and scores, and most models read the last value before {them}"
        yield f"{_missing(data, gaps)}; {rule}"


def _missing(data: Dataset, some: NDArray[np.bool_], times: str = "") -> str:
    """Say how many values are missing at `some` (N, C), at which `times`, and where the first one is."""
    (row, column), number = np.argwhere(some)[0], int(some.sum())
    when = f"row {row + 1}" if data.stamps is None else str(data.stamps[row])
    of = f"{int(some.any(0).sum())} of {count(len(data.columns), 'column')}"
    first = f"the first in '{quote(data.columns[column])}' at {when}"
    return f"{number} of {count(some.size, 'value')} {are(number)} missing{times}, in {of}, {first}"
