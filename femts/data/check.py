"""Validation of users' tables; errors are one sentence that says what is wrong and where."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.data.categories import MOST_CATEGORIES
from femts.data.column_names import ColumnNames
from femts.data.columns import DOUBTS, whole_numbers
from femts.data.describe import count
from femts.data.frequency import check_step, grid_of, order_of, step_of
from femts.data.schema import PLAIN, Schema
from femts.data.stamps import are_clocks, as_text, first_of_periods, read_stamps
from femts.errors import UsageError
from femts.text import quote

LARGEST = 3.4e38  # largest number in single precision
MOST_EMPTY, ROOM = 1000, 2**24  # most cells of a wide table per value of the long one, and cells always allowed
MOST_KEYS = 6  # columns tried as numbers of series
_THOUSANDS = re.compile(
    r"[+-]?\d{1,3}(?:(,\d{3})+\.\d+|(\.\d{3})+,\d+|([.,]\d{3}){2,}|([ '\u00a0\u202f]\d{3})+([.,]\d+)?)"
)


_WITH_UNIT = re.compile(r"[€$£]?\s*[+-]?\d[\d.,]*\s*[a-zA-Z%°µ€$£][a-zA-Z0-9%°µ€$£²³/]{0,7}|[€$£]\s*[+-]?\d[\d.,]*")
MISSING = (  # text, in lower case, that means a missing value
    "",
    "nan",
    "na",
    "n/a",
    "n.a.",
    "n/e",
    "null",
    "(null)",
    "none",
    "nil",
    r"\n",
    "-",
    "--",
    "\u2013",
    "?",
    ".",
)


def check_frame(
    frame: pd.DataFrame,
    schema: Schema = PLAIN,
    columns: Sequence[str] | None = None,
    freq: str | None = None,
    where: str = "The frame",
) -> pd.DataFrame:
    """Check a table to train on or forecast from, and return it in wide form: `date`, then float64 columns with NaN for
    missing values.

    Skipped steps become rows without values, and rows are sorted by time. `attrs["notes"]` is a tuple of notes for the
    user.

    Args:
        frame: wide table (`date` and value columns), or long table (`unique_id, ds, y`), which becomes a wide one with
            one column per series.
        schema: column names and numbers that mean "missing".
        columns: required value columns, in the order in which they are returned; None accepts all.
        freq: required step between time stamps, a pandas frequency. None uses that of the schema or, if it has none,
            accepts any even step that at least three rows show.
        where: description of the table, to start messages with.

    Raises:
        UsageError: A column, date or cell is invalid; the message gives its place and the remedy.
    """
    frame = _with_text_names(frame)
    check_unique(frame.columns, where)
    names, freq = schema.form, freq or schema.freq
    time = names.time_of(frame)
    if time not in frame.columns:
        raise _without_stamps(frame, schema, where)
    if time != "date" and "date" in frame.columns:
        raise UsageError(
            f"{where} has a column 'date' in addition to its time stamps in '{quote(time)}'; rename or drop it."
        )
    notes: tuple[str, ...] = ()
    if names.is_long(frame):
        frame, notes = _to_wide(frame, where, schema, freq)
    else:
        if columns is None:
            _check_words(frame, names, where)
        frame = frame if time == "date" else frame.rename(columns={time: "date"})
    others = frame.take(np.flatnonzero(frame.columns != "date"), axis=1)  # `loc` takes thrice as long
    values = check_values(others, columns, where, schema.na)
    dates, more = read_stamps(frame["date"], where, freq)
    if columns is None and dates.has_duplicates:
        stamped = values.assign(**{time: dates})
        keys = _series_keys(stamped, time, [])
        if keys:
            it = "it names" if len(keys) == 1 else "they name"
            text = f"{where} has several rows per date, distinguished by {_few(keys)}; if {it}"
            raise _several_per_date(text, stamped, time, keys)
    order = order_of(dates, where)
    if order is not None:
        how = "run backwards" if dates.is_monotonic_decreasing else "are not in order of time"
        more = (*more, f"its rows {how} and were sorted")
        values, dates = values.iloc[order].reset_index(drop=True), dates[order]
    if freq is None:
        freq = step_of(dates, where)
        dates, periods = first_of_periods(dates, freq)
        more = (*more, *periods)
    else:
        check_step(dates, freq, where, given=schema.freq is not None)
    grid = grid_of(dates, freq)
    if len(grid) > len(dates):
        if len(grid) > 2 * len(dates):
            there = f"only {len(dates)} of the {len(grid)} time stamps at its step '{freq}' are present"
            more = (*more, f"{there}; the others are filled with missing values")
        values = values.set_axis(dates).reindex(grid).reset_index(drop=True)
        dates = grid
    values.insert(0, "date", dates)
    values.attrs["notes"] = (*notes, *more)
    return values


def _without_stamps(frame: pd.DataFrame, schema: Schema, where: str) -> UsageError:
    """Error for a table whose time stamp column is unknown."""
    names = schema.form
    time = names.time_of(frame)
    return UsageError(
        f"{where} has no '{quote(time)}' column (it has {_few(frame.columns)}); "
        "rename the time stamp column, or name it with columns={'time': NAME} when training; if rows have no stamps but "
        f"are in time order, number them from 0 in a column '{quote(time)}'; or provide the columns {names.series}, "
        f"{names.time or 'ds'}, {names.value}."
    )


def _check_words(frame: pd.DataFrame, names: ColumnNames, where: str) -> None:
    """Raise UsageError for text columns in a wide table, which may be series names of a long one."""
    time, keys = names.time_of(frame), names.keys if names.series in frame.columns else ()
    frame = frame.drop(columns=[names.series] if keys else [])
    words = words_of(frame.drop(columns=time))
    if not words:
        return
    numbers = [name for name in frame.columns if name not in (time, names.series, *keys, *words)]
    if frame[time].duplicated().any() and numbers:
        text = f"{where} has several rows per date and text in {_few(words)}; if the text names"
        raise _several_per_date(text, frame, time, _series_keys(frame, time, keys or words))
    row = int(frame[words[0]].notna().to_numpy().argmax())
    listed = [quote(name) for name in numbers[:6]]
    covariate = ", declare it as a covariate (past_covariates or future_covariates)" * (
        as_text(frame[words[0]]).nunique() <= MOST_CATEGORIES
    )
    leave = f"{covariate}, or name the columns to forecast with target={listed}"
    text = quote(frame[words[0]].iloc[row])
    unit = "write numbers without units, or " * bool(_WITH_UNIT.fullmatch(text.strip()))
    raise UsageError(
        f"{where} has the text '{text}' in column '{quote(words[0])}' at data row {row + 1}; {unit}remove the column"
        f"{leave if numbers else ''}."
    )


def _series_keys(frame: pd.DataFrame, time: str, words: Sequence[str]) -> list[str]:
    """The columns of a long table that may name its series: `words`, and at most two of whole numbers if these are
    needed to tell all rows of a time stamp apart; without `words`, none unless many time stamps repeat."""
    numbers = [name for name in frame.columns if name not in (time, *words)]
    counts = {name: frame[name].nunique() for name in numbers if whole_numbers(frame[name]) is not None}
    whole = sorted([name for name in counts if 3 * counts[name] <= len(frame)], key=counts.__getitem__)[:MOST_KEYS]
    if not words and 4 * np.count_nonzero(frame[time].duplicated()) < len(frame):
        return []
    choices = [[*words, *more] for n in range(3) for more in itertools.combinations(whole, n) if n < len(numbers)]
    keys = [each for each in choices if each and not frame[[time, *each]].duplicated().any()]
    return min(keys, key=lambda each: (len(each), len(frame[each].drop_duplicates())), default=list(words))


def _several_per_date(text: str, frame: pd.DataFrame, time: str, keys: Sequence[str]) -> UsageError:
    """Error for a long table that is read as a wide one; `text` begins the message."""
    values = [name for name in frame.columns if name not in (time, *keys, *words_of(frame.drop(columns=time)))]
    counters = [name for name in values if frame[name].is_unique and whole_numbers(frame[name]) is not None]
    target = next((name for name in values if name not in counters), values[0])
    return UsageError(
        f"{text} the series, use columns={{'time': '{quote(time)}', 'series': '{quote('+'.join(keys))}'}}, "
        f"target='{quote(target)}'."
    )


def words_of(frame: pd.DataFrame) -> list[str]:
    """Names of the columns with text that contains neither numbers, in whatever format, nor times of day."""
    words = []
    for name in frame.columns:
        if not pd.api.types.is_numeric_dtype(frame[name]):
            numbers, unread = parsed(frame[name])
            if unread is None or not np.isnan(numbers).all() or are_clocks(frame[name]):
                continue
            if not _THOUSANDS.fullmatch(quote(frame[name].iloc[int(np.argmax(unread))]).strip()):
                words.append(str(name))
    return words


def check_values(
    frame: pd.DataFrame, columns: Sequence[str] | None = None, where: str = "The frame", na: Sequence[float] = ()
) -> pd.DataFrame:
    """Return the value columns as float64 with names of type str, in the order of `columns` if given.

    Missing values, and the numbers `na`, become NaN.

    Raises:
        UsageError: The columns differ from `columns`, or a cell is text, infinite or beyond float32; the message says
            which.
    """
    frame = _with_text_names(frame)
    check_unique(frame.columns, where)
    if columns is not None:
        missing = [c for c in columns if c not in frame.columns]
        unknown = [c for c in frame.columns if c not in columns]
        if missing or unknown:
            differences = [f"lacks {_few(missing)}"] * bool(missing) + [f"has {_few(unknown)} besides"] * bool(unknown)
            what = " and ".join(differences)
            raise UsageError(f"{where} {what}; give the columns of the training data, {_few(columns)}.")
        frame = frame if list(frame.columns) == list(columns) else frame[list(columns)]
    if not len(frame.columns):
        raise UsageError(f"{where} has no value columns; add at least one column of numbers.")
    numbers = _all_numbers(frame, where, na)
    for bad, what in ((np.isinf(numbers), "infinite"), (np.abs(numbers) > LARGEST, "large")):
        if bad.any():
            row, column = np.argwhere(bad)[0]
            place = f"in column '{quote(frame.columns[column])}' at data row {row + 1}"
            if what == "large":
                raise UsageError(
                    f"{where} has {numbers[row, column]:g} {place}, which exceeds single precision ({LARGEST:g}); use "
                    "a larger unit, or leave the cell empty."
                )
            raise UsageError(
                f"{where} has {count(int(bad.sum()), 'infinite cell')}, the first {place}; replace them by numbers, "
                "or leave them empty."
            )
    return pd.DataFrame(numbers, columns=frame.columns)


def _with_text_names(frame: pd.DataFrame) -> pd.DataFrame:
    """`frame` with column names of type str."""
    if all(type(name) is str for name in frame.columns):
        return frame
    return frame.set_axis([str(name) for name in frame.columns], axis=1)


def check_unique(names: Sequence[str], where: str) -> None:
    """Raise UsageError if two columns have the same name."""
    seen = set[str]()
    for name in names:
        if name in seen:
            raise UsageError(f"{where} has two columns named '{quote(name)}'; rename one.")
        seen.add(name)


def _few(names: Sequence[Any]) -> str:
    some = ", ".join(f"'{quote(name)}'" for name in list(names)[:6]) or "nothing"
    return some if len(names) <= 6 else f"{some} and {len(names) - 6} more"


def parsed(column: pd.Series, na: Sequence[float] = ()) -> tuple[NDArray[np.float64], NDArray[np.bool_] | None]:
    """Numbers of a column, (N,), NaN for missing values (also text such as `-`) and for the numbers in `na`; and a mask
    of other text, None if there is none."""
    if isinstance(column.dtype, pd.SparseDtype):
        column = column.sparse.to_dense()
    kind = column.dtype
    if pd.api.types.is_bool_dtype(kind) or (pd.api.types.is_numeric_dtype(kind) and kind.kind != "c"):
        return _without(column.to_numpy(dtype=np.float64, na_value=np.nan), sentinels(na, kind)), None
    text = as_text(column)  # otherwise dates and the like would become their internal numbers
    numbers = pd.to_numeric(text, errors="coerce")
    unread = (numbers.isna() & column.notna() & ~text.str.strip().str.lower().isin(MISSING)).to_numpy()
    return _without(numbers.to_numpy(dtype=np.float64), na), unread if unread.any() else None


def check_marks(column: pd.Series, name: str, where: str) -> None:
    """Raise UsageError if the numbers in a column of text may have thousands separators, or reading them left a doubt."""
    doubt = column.attrs.get(DOUBTS, {}).get(name)
    if doubt is not None:
        raise UsageError(doubt)
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object)
    if not pd.api.types.is_numeric_dtype(column) and pd.api.types.infer_dtype(column, skipna=True) == "string":
        check_thousands([column.reset_index(drop=True).to_frame(name)], where)


def check_thousands(pieces: Iterable[pd.DataFrame], where: str, decimal: str = ".") -> None:
    """Refuse marks that could be decimal or thousands separators, such as in 1.027 next to 960.

    Args:
        pieces: frames of text with the same columns; the index counts rows.
        where: description of the table, to start messages with.
        decimal: the decimal mark.

    Raises:
        UsageError: All numbers of a column with a mark have three digits after it, and the others have at most three
            digits; the message quotes the first.
    """
    doubtful = rf"[+-]?(?:[1-9]\d{{0,2}}{re.escape(decimal)}\d{{3}}|\d{{1,3}})"
    seen: dict[str, dict[str, int]] = {}
    for piece in pieces:
        for name in map(str, piece.columns):
            cells = piece[name].dropna().drop_duplicates().str.strip()
            cells = cells[cells.str.lower() != "nan"]
            rows = seen.setdefault(name, {})
            if "" in rows or not cells.str.fullmatch(doubtful).all():
                seen[name] = {"": 0}  # 1.5 or 1027 settles it: the mark is a decimal separator
            else:
                seen[name] = {cell: int(row) for row, cell in cells.items()} | rows
        if all("" in rows for rows in seen.values()):
            return
    for name, rows in seen.items():
        in_order = sorted(rows, key=rows.__getitem__)
        marked = next((cell for cell in in_order if decimal in cell), None)
        plain = next((cell for cell in in_order if decimal not in cell and cell.strip("+-0")), None)
        if marked and plain:
            raise UsageError(
                f"{where} has '{marked}' in column '{quote(name)}' at data row {rows[marked] + 1} next to '{plain}', "
                "so its separator could be a thousands or a decimal separator; remove thousands separators, or write "
                "all its numbers with decimals."
            )


def sentinels(na: Sequence[float], dtype: Any) -> list[float]:
    """The numbers `na` as stored in a column of `dtype`: -999.9 is a different number in single precision."""
    if not pd.api.types.is_float_dtype(dtype) or dtype.itemsize >= 8:
        return list(na)
    with np.errstate(over="ignore"):
        held = np.array(na).astype(f"f{dtype.itemsize}").astype(np.float64)
    return held[np.isfinite(held)].tolist()


def _without(numbers: NDArray[np.float64], na: Sequence[float]) -> NDArray[np.float64]:
    return np.where(np.isin(numbers, na), np.nan, numbers) if na else numbers


def numbers_of(column: pd.Series, name: str, where: str, na: Sequence[float] = ()) -> NDArray[np.float64]:
    """Numbers of a column, NaN for missing values and those in `na`; UsageError for text that is not a number."""
    numbers, unread = parsed(column, na)
    check_marks(column, name, where)
    if unread is not None:
        row = int(np.argmax(unread))
        text = quote(column.iloc[row])
        remedy = "enter a number, or leave the cell empty"
        if _THOUSANDS.fullmatch(text.strip()):
            remedy = "remove thousands separators"
        elif _WITH_UNIT.fullmatch(text.strip()):
            remedy = "write numbers without units"
        raise UsageError(f"{where} has the text '{text}' in column '{quote(name)}' at data row {row + 1}; {remedy}.")
    return numbers


def _all_numbers(frame: pd.DataFrame, where: str, na: Sequence[float]) -> NDArray[np.float64]:
    """Numbers of all columns, converted together per data type, because there may be very many columns."""
    numbers = np.empty(frame.shape[::-1]).T  # stored by columns
    kinds = frame.dtypes.to_numpy()
    for kind in dict.fromkeys(kinds):
        (places,) = np.nonzero(kinds == kind)
        if isinstance(kind, np.dtype) and kind.kind in "biuf":
            alike = frame if len(places) == len(kinds) else frame.iloc[:, places]
            numbers[:, places] = _without(alike.to_numpy(np.float64), sentinels(na, kind))
            continue
        for place in places:
            numbers[:, place] = numbers_of(frame.iloc[:, place], frame.columns[place], where, na)
    return numbers


def _to_wide(frame: pd.DataFrame, where: str, schema: Schema, freq: str | None) -> tuple[pd.DataFrame, tuple[str, ...]]:
    names = schema.form
    y = numbers_of(frame[names.value], names.value, where, schema.na)
    series = as_text(frame[names.series]).to_numpy()
    if "date" in series:
        raise UsageError(
            f"{where} has a series named 'date', which is the name of the time stamps in a wide table; rename the "
            "series."
        )
    stamps, notes = read_stamps(frame[names.time_of(frame)], where, freq)
    table = pd.DataFrame({"id": series, "date": stamps, "y": y})
    again = table.duplicated(["id", "date"]).to_numpy()
    if again.any():
        row = int(np.argmax(again))
        raise UsageError(
            f"{where} has series '{quote(table['id'][row])}' twice at {table['date'][row]} (data row {row + 1}); keep "
            "one of the rows."
        )
    columns, steps = table["id"].nunique(), table["date"].nunique()
    if columns * steps > max(ROOM, MOST_EMPTY * len(table)):
        raise UsageError(
            f"{where} has {columns} series and {steps} different dates, but only {len(table)} values; provide series "
            "that share their dates."
        )
    wide = table.pivot(index="date", columns="id", values="y")[list(dict.fromkeys(series))]
    wide.columns.name = None
    return wide.reset_index(), notes
