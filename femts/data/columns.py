"""Detection of time stamps, series names and values in a user's table by the names and cells of its columns."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from femts.data.categories import with_indicators
from femts.data.column_names import ROW, USUAL, ColumnNames
from femts.data.marks import without_marks
from femts.data.month_names import month_number
from femts.data.months import months_in_rows
from femts.data.numbering import with_numbers
from femts.data.stamp_parts import HOURS, PARTS, joined
from femts.data.stamps import (
    YEARS,
    as_text,
    first_days,
    is_short_month,
    plain_dates,
    read_dates,
    short_months,
    times_of,
    whole_numbers,
    without_revisions,
)
from femts.data.units import measured
from femts.data.zone_names import without_zone
from femts.errors import UsageError
from femts.text import Blank, arguments, quote

NOTES = "femts.notes"  # key in `attrs` for notes to the user about a table
DOUBTS = "femts.doubts"  # key in `attrs` for why columns cannot be used as numbers, by name
SERIES = "femts.series"  # key in `attrs` for the column of series names, if an index tells it
NAMELESS = "Unnamed: 0"  # how pandas names a first column without a name
SAMPLE = 20  # cells of a column that are inspected
FEWEST, EVEN = 4, 0.9  # steps between fractions of years, and share of them that are about the usual one
_NAMES = (
    *("year", "quarter", "month", "week", "day", "date", "datetime", "time", "timestamp", "period", "epoch", "ts"),
    *("jahr", "quartal", "monat", "woche", "tag", "datum", "zeit", "année", "año", "yyyymmdd", "yyyymm"),
)
_WORDS = re.compile(
    r"(mon|tues?|wed(nes)?|thu(rs)?|fri|sat(ur)?|sun)(day)?|[tz]|am|pm|at|um|\u00e0|utc|gmt|st|nd|rd|th|del?"
)
_AMOUNT = re.compile(r"[+-]?\d{1,3}(?:[.,]\d{3})+(?:[.,]\d+)?")  # with separators of thousands, such as 3.005,59
CODE = r"\s*0\d+\s*"  # written with leading zeros, so a name rather than a number
CALENDAR = frozenset((*_NAMES, *PARTS, *HOURS))  # names of columns with parts of time stamps

BETWEEN = " / "  # parts of the name of a series that several columns give


def is_table(table: object) -> bool:
    """Return whether `to_frame` accepts `table`: a DataFrame or Series of pandas, polars or pyarrow, an object with a
    dataframe exchange protocol, or an array or list of numbers."""
    exchanged = ("__arrow_c_stream__", "__dataframe__")
    return isinstance(table, pd.DataFrame | pd.Series | np.ndarray | list | tuple) or any(
        hasattr(type(table), each) for each in exchanged
    )


def to_frame(table: Any, where: str = "The frame", names: ColumnNames | None = USUAL) -> pd.DataFrame:
    """Convert a table to a plain frame with its time stamps in a column, without modifying the original.

    Args:
        table: an object that `is_table` accepts. A Series or an array (rows,) is one channel, named by the Series or
            `y`; channels of an array (rows, C) are named `y0`, `y1` and so on.
        where: description of the table, to start messages with.
        names: column names. If no column has time stamps, they are taken from the index, or from columns such as year
            and month together, or are row numbers if the name of the time column is `row`. None for data without time
            stamps.

    Raises:
        UsageError: An array is not numeric, the index is unclear, a column has another unit than in training, or the
            table cannot be converted. Cells of a frame are not checked.
    """
    if isinstance(table, np.ndarray | list | tuple):
        frame = _of_numbers(table, where)
    elif isinstance(table, pd.Series):
        frame = table.to_frame("y" if table.name is None else table.name)
    else:
        frame = table if isinstance(table, pd.DataFrame) else _exchanged(table, where)
    if frame.columns.nlevels > 1 or not all(isinstance(name, str) for name in frame.columns):
        frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    if names is None:
        return frame
    dropped = [name for name in names.layout.drop if name in frame.columns]
    frame = frame.drop(columns=dropped) if dropped else frame
    if names.missing:
        frame = without_marks(frame, names.missing, (names.time, names.series, *names.keys))
    if names.units:
        frame = _without_units(frame, names, where)
    if not isinstance(frame.index, pd.RangeIndex) or frame.index.name is not None:
        frame = _with_index(frame, names, where)
    notes = frame.attrs.get(NOTES, ())
    if list(frame.columns[:1]) == [NAMELESS] and is_index(frame, names):
        frame, attrs = frame.iloc[:, 1:], frame.attrs
        frame.attrs, notes = attrs, (*notes, "its first column has no name and numbers the rows, so it is left out")
    frame, of_months = months_in_rows(frame, names)
    frame, of_stamps = joined(frame, names, _dated)
    if notes := (*notes, *of_months, *of_stamps):
        frame.attrs = {**frame.attrs, NOTES: notes}
    if names.keys:
        frame = with_keys(frame, names)
    if names.categories:
        frame = with_indicators(frame, names)
    if names.time != ROW or {ROW, names.dates, names.series} & set(frame.columns):
        return frame
    return with_numbers(frame)


def _without_units(frame: pd.DataFrame, names: ColumnNames, where: str) -> pd.DataFrame:
    """The frame with numbers in the columns of which the units of the training data are known; UsageError if a column
    has another one."""
    made = dict[str, pd.Series]()
    for name, unit in names.units:
        if list(map(str, frame.columns)).count(name) != 1 or pd.api.types.is_numeric_dtype(frame[name]):
            continue
        cells = as_text(frame[name].dropna()).str.strip()
        found = measured(cells, unit)
        if found is None:
            continue
        if found.unit != unit:
            raise UsageError(
                f"{where} has '{quote(cells.iloc[0])}' in column '{quote(name)}', but the training data are in '{unit}'; "
                "convert its numbers."
            )
        made[name] = pd.Series(found.numbers, cells.index).reindex(frame.index)
    return frame.assign(**made) if made else frame


def with_keys(frame: pd.DataFrame, names: ColumnNames) -> pd.DataFrame:
    """The frame with series names joined from several of its columns."""
    columns, keys = list(map(str, frame.columns)), list(names.keys)
    if names.series in columns or not keys or any(columns.count(key) != 1 for key in keys):
        return frame
    parts = frame.set_axis(columns, axis=1)[keys]
    rows = parts.groupby(keys, sort=False, observed=True).ngroup().fillna(-1).to_numpy(dtype=np.int64)
    first = pd.Series(rows).drop_duplicates()
    first = first[first >= 0].sort_values()
    cells = parts.iloc[first.index].apply(as_text).agg(BETWEEN.join, axis=1) if len(first) else pd.Series([], dtype=str)
    codes, series = pd.factorize(cells)
    numbers = np.where(rows < 0, -1, codes[rows]) if len(first) else rows
    keyed = frame.copy(deep=False)
    keyed.insert(0, names.series, pd.Categorical.from_codes(numbers, series))
    return keyed


def _of_numbers(values: Any, where: str) -> pd.DataFrame:
    """An array of numbers, (rows,) as the column `y` or (rows, C) as `y0`, `y1` and so on."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"{where} is a {type(values).__name__} that is not numeric; pass an array of numbers."
        ) from error
    if array.ndim not in (1, 2):
        raise UsageError(f"{where} has the shape {array.shape}; give an array (rows,) or (rows, columns).")
    return pd.DataFrame(array, columns=["y"] if array.ndim == 1 else [f"y{number}" for number in range(array.shape[1])])


def _exchanged(table: Any, where: str) -> pd.DataFrame:
    try:
        with warnings.catch_warnings(action="ignore"):  # pandas plans to drop the older protocol
            if hasattr(table, "__arrow_c_stream__"):
                try:
                    import pyarrow

                    return pyarrow.table(table).to_pandas()
                except ImportError:
                    pass
            if hasattr(table, "__dataframe__"):
                return pd.api.interchange.from_dataframe(table)
    except Exception as error:  # other libraries may raise anything
        reason = quote(str(error).strip().partition("\n")[0])
        raise UsageError(f"{where} cannot be converted to a pandas DataFrame ({reason}); convert it first.") from error
    raise UsageError(
        f"{where} is a {type(table).__name__}, which needs pyarrow; run pip install pyarrow, or use pandas."
    )


def _with_index(frame: pd.DataFrame, names: ColumnNames, where: str) -> pd.DataFrame:
    """The frame with index levels that hold time stamps or series names as first columns, if no column has these."""
    columns = [str(column) for column in frame.columns]
    usual = {names.time, names.series, "date", "ds"} - {None, *columns}
    levels = {n: str(name) for n, name in enumerate(frame.index.names) if name is not None and str(name) in usual}
    if not {names.time, "date", "ds"} & set(columns):
        if frame.index.nlevels > 1:
            levels = _levels(frame.index, levels, columns, names, where)
        elif not levels:
            name = "date" if frame.index.name is None or str(frame.index.name) in columns else str(frame.index.name)
            stamps = frame.index.to_series(name=name)
            told = frame.index.name is not None or not pd.api.types.is_numeric_dtype(stamps)
            if name not in columns and told and holds_dates(stamps):
                levels = {0: name}
    if not levels:
        return frame
    dated = frame.set_axis(columns, axis=1).reset_index(drop=True)
    for place, (level, name) in enumerate(levels.items()):
        dated.insert(place, name, frame.index.get_level_values(level).to_series().reset_index(drop=True))
    if frame.index.nlevels == len(levels) == 2:
        dated.attrs[SERIES] = next(iter(levels.values()))
    return dated


def _levels(
    index: pd.MultiIndex, known: dict[int, str], columns: list[str], names: ColumnNames, where: str
) -> dict[int, str]:
    """Column names for all levels of an index with several, the time stamps last, as in `(item_id, timestamp)`; `known`
    are the levels with a usual or given name.

    Raises:
        UsageError: No level or more than one holds dates.
    """
    times = [n for n, name in known.items() if name in (names.time, "date", "ds")]
    dated = times or [n for n in range(index.nlevels) if holds_dates(index.get_level_values(n).to_series())]
    if len(dated) != 1 and names.time != ROW:
        listed = ", ".join(f"'{quote(name)}'" for name in index.names)
        raise UsageError(
            f"{where} has an index of the levels {listed}, of which {len(dated) or 'none'} "
            f"contain{'s' if not dated else ''} dates; name the one with the time stamps, as in {arguments({'columns': {'time': Blank('NAME')}})}."
        )
    series = names.series if index.nlevels == 2 else "level_{}"
    labels = {
        n: str(name) if name is not None else names.time or "date" if n in dated else series.format(n)
        for n, name in enumerate(index.names)
    }
    order = sorted(labels, key=lambda n: (n in dated, n))
    return {n: labels[n] for n in order if labels[n] not in columns}


def is_index(frame: pd.DataFrame, names: ColumnNames) -> bool:
    """Return whether the first column of a table only numbers its rows, because another one holds its time stamps."""
    known = {names.time, "date", "ds"} & set(map(str, frame.columns[1:]))
    others = (frame.iloc[:, n] for n in range(1, frame.shape[1]))
    return whole_numbers(frame.iloc[:, 0]) is not None and (
        bool(known) or any(holds_dates(each) for each in others if not pd.api.types.is_numeric_dtype(each))
    )


def infer_columns(
    table: pd.DataFrame, names: ColumnNames, where: str = "The frame"
) -> tuple[ColumnNames, tuple[str, ...]]:
    """Infer which column of a table holds its time stamps, from names and cells.

    They are in the column named in `names`, or in `date`, or in the first column if it holds dates, or in the only
    column that does. The other level of an index of two, one of time stamps, names series. The only column
    beside time stamps and named series holds their values.

    Args:
        table: unchecked user table, with `date` and value columns, or with one row per series and time stamp.
        names: column names given by the user.
        where: description of the table, to start messages with.

    Returns:
        The column names, equal to `names` if nothing is clear, and notes on what was detected.

    Raises:
        UsageError: The first row is data, with a date in it, instead of a header.
    """
    columns = [str(column) for column in table.columns]
    table = table.set_axis(columns, axis=1)
    if len(set(columns)) < len(columns) or names.is_long(table):
        return names, ()
    if names.time is None and {names.series, "ds"} <= set(columns):  # a long table with further columns
        return names, ()
    time = names.time or ("date" if "date" in columns else _dated(table))
    if time is None or time not in columns:
        return names, ()
    notes = tuple[str, ...]()
    if time not in (names.time, "date"):
        if time == columns[0] and _are_dates(pd.Series([time])):
            raise UsageError(f"{where} has '{quote(time)}' as the name of its first column; add a header row.")
        names = replace(names, time=time)
        notes = (f"column '{quote(time)}' contains dates and is used as time stamps",)
    series = table.attrs.get(SERIES)
    if series in columns and names.series not in columns:
        names = replace(names, time=time, series=series)
    values = [name for name in columns if name not in (time, names.series, *names.keys)]
    if names.series in columns and len(values) == 1:
        names = replace(names, time=time, value=values[0])
    return names, notes


def match_columns(table: pd.DataFrame, names: ColumnNames) -> ColumnNames:
    """Column names of a table given for prediction, whose time stamp column may differ from `names`, those of
    training."""
    if names.time_of(table) in map(str, table.columns):
        return names
    return infer_columns(table, replace(names, time=None))[0]


def holds_dates(column: pd.Series) -> bool:
    """Return whether a column certainly holds dates; whole numbers count if they are years or days in order."""
    if pd.api.types.is_datetime64_any_dtype(column) or isinstance(column.dtype, pd.PeriodDtype):
        return True
    if pd.api.types.is_bool_dtype(column) or pd.api.types.is_complex_dtype(column):
        return False
    cells = as_text(column)
    if not pd.api.types.is_numeric_dtype(column):
        text = _plain(column.dropna().head(SAMPLE))
        if not text.str.fullmatch(r"-?\d+(\.\d+)?").any():
            return _are_dates(text)
        cells = _plain(column)
    # Years, months (202412), days or Unix time: accepted if in order, or if the name says so.
    numbers = pd.to_numeric(cells, errors="coerce").to_numpy()
    others = cells[np.isnan(numbers)]  # months or quarters among years are refused later
    if not len(numbers) or len(others) or not np.isfinite(numbers).all():
        return is_named_date(column.name) and len(others) < len(cells) and _are_dates(others.dropna().head(SAMPLE))
    if (numbers == np.floor(numbers)).all():
        numbers = numbers.astype(np.int64)
    named, steps = is_named_date(column.name), np.diff(numbers)
    if numbers.dtype.kind == "f" and len(numbers) and numbers.max() <= YEARS[1]:  # fractions of years are at even steps
        distinct = np.diff(np.unique(numbers))
        if len(distinct) < FEWEST or np.mean(np.abs(distinct / np.median(distinct) - 1) < 0.2) < EVEN:
            return False
    return times_of(numbers, name=str(column.name)) is not None and (
        named or bool((steps > 0).all() or (steps < 0).all())
    )


def _plain(column: pd.Series) -> pd.Series:
    """Text of dates without what may stand behind them."""
    return without_revisions(plain_dates(as_text(column).str.strip()))


def _are_dates(text: pd.Series) -> bool:
    """Return whether at least half of the cells are dates, including those with an ambiguous order of day and month."""
    if not len(text):
        return False
    if first_days(text) is not None or (is_short_month(text.iloc[0]) and short_months(text) is not None):
        return True
    return 2 * sum(map(_is_date, text)) >= len(text)


def _is_date(cell: str) -> bool:
    words = re.findall(r"[^\W\d_]+", without_zone(cell).lower())
    if _AMOUNT.fullmatch(cell):
        return False
    if not all(_WORDS.fullmatch(word) or month_number(word) for word in words) or not re.search(
        r"[-/. ]|^\d{8}[:_]\d{4}$", cell
    ):
        return False
    try:
        read_dates(pd.Series([cell]))
    except UsageError as error:
        return ", whose " in str(error)  # day or time zone has several meanings
    return True


def _dated(table: pd.DataFrame) -> str | None:
    """The first column if it holds dates, otherwise the one among those that do whose name says so best; None if there is
    none."""
    if not len(table.columns):
        return None
    if len(set(table.columns)) < table.shape[1]:  # refused later
        return None
    first, *others = table.columns
    held = [first] if holds_dates(table[first]) else []
    if held and not _is_year(table[first]) and _is_read(table[first]) and not _is_constant(table[first]):
        return str(first)
    held += [
        name
        for name in others
        if (is_named_date(name) or not pd.api.types.is_numeric_dtype(table[name])) and holds_dates(table[name])
    ]
    ranked = [
        (
            not _is_read(table[name]),
            _is_constant(table[name]),
            _is_year(table[name]),
            bool(table[name].isna().any()),
            name != first,
            str(name).lower() not in _NAMES,
            not is_named_date(name),
        )
        for name in held
    ]
    return str(held[ranked.index(min(ranked))]) if held else None


def _is_constant(column: pd.Series) -> bool:
    """Return whether several rows have the same date, such as that of the file."""
    return len(column) > 1 and column.nunique() == 1


def _is_year(column: pd.Series) -> bool:
    """Return whether dates are years alone, beside which another column may hold days."""
    numbers = whole_numbers(column.head(SAMPLE))
    return numbers is not None and bool((np.abs(numbers) < 3000).all())


def _is_read(column: pd.Series) -> bool:
    """Return whether a few cells from the whole column are dates, or their order of day and month is unclear."""
    try:
        read_dates(column.iloc[np.unique(np.linspace(0, len(column) - 1, SAMPLE).astype(int))].reset_index(drop=True))
    except UsageError as error:
        return "could be the month" in str(error)
    return True


def is_named_date(name: object) -> bool:
    """Return whether the name of a column says that it holds dates."""
    return not {*re.split(r"[\W\d_]+", str(name).lower())}.isdisjoint(_NAMES)
