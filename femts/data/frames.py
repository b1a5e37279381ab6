"""Tables from users: checked, and refused in one sentence that says what is wrong and where; and written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.data.describe import count
from femts.data.dialect import check_thousands
from femts.data.formats import PARQUET, parquet_library
from femts.data.grid import check_step, grid_of, order_of, step_of
from femts.data.naming import holds_dates
from femts.data.schema import PLAIN, Schema
from femts.data.timestamps import are_clocks, as_text, read_stamps
from femts.errors import UsageError
from femts.files import write_file
from femts.text import shown

LARGEST = 3.4e38  # that single precision holds
MOST_EMPTY, ROOM = 1000, 2**24  # cells for each value of a long table, and cells that any may have, once it is wide


def check_frame(
    frame: pd.DataFrame,
    schema: Schema = PLAIN,
    columns: Sequence[str] | None = None,
    freq: str | None = None,
    where: str = "The frame",
) -> pd.DataFrame:
    """A wide table that can be trained on or forecast from: `date` first, then float64 columns; NaN
    where a value is missing.

    Rows that the step skips are put in, without values, and rows out of order are sorted. What a
    user should know of it is in `attrs["notes"]`, a tuple of sentences.

    Args:
        frame: wide (`date` and value columns), or long (`unique_id, ds, y`), which is made wide, one column a series.
        schema: what stands for a missing value, and what the columns are called.
        columns: the value columns that must be there, in the order in which they are returned; None takes what comes.
        freq: the step that the dates must have, a pandas frequency; None takes that of the schema, or without one any
            even step, and three rows to see it.
        where: what the table is, to begin a message with.

    Raises:
        UsageError: a column, date or cell is not as it must be; the text names it, its place and the remedy.
    """
    frame = frame.set_axis([str(c) for c in frame.columns], axis=1)
    check_unique(frame.columns, where)
    form, freq = schema.form, freq or schema.freq
    time = form.time_of(frame)
    if time not in frame.columns:
        first = str(frame.columns[0]) if form.time is None and len(frame.columns) > 2 else ""
        if first and _words(frame) == [first] and frame[first].is_unique and not holds_dates(frame[first]):
            raise UsageError(
                f"{where} has a series in each row, such as '{shown(frame[first].iloc[0])}', and needs a row for each "
                f"step; turn rows and columns, and number the steps from 0 in a column '{shown(time)}': with pandas, "
                f"table.set_index('{shown(first)}').T.reset_index(drop=True).rename_axis('{shown(time)}')."
            )
        raise UsageError(
            f"{where} has no '{shown(time)}' column (it has {_few(frame.columns)}); "
            "name the column of time stamps so, or say which it is (--columns time=NAME) when training, or, where rows "
            f"without stamps are in order of time, number them from 0 in a column '{shown(time)}', or give the "
            f"columns {form.series}, {form.time or 'ds'}, {form.value}."
        )
    if time != "date" and "date" in frame.columns:
        raise UsageError(f"{where} has a column 'date' beside its time stamps in '{shown(time)}'; rename or drop it.")
    notes: tuple[str, ...] = ()
    if form.is_long(frame):
        frame, notes = _to_wide(frame, where, schema, freq)
    else:
        if columns is None:
            _check_words(frame, time, where)
        frame = frame.rename(columns={time: "date"})
    values = check_values(frame.drop(columns="date"), columns, where, schema.na)
    dates, more = read_stamps(frame["date"], where, freq)
    order = order_of(dates, where)
    if order is not None:
        how = "run backwards" if dates.is_monotonic_decreasing else "are not in order of time"
        more = (*more, f"its rows {how}, so they are sorted")
        values, dates = values.iloc[order].reset_index(drop=True), dates[order]
    if freq is None:
        freq = step_of(dates, where)
    else:
        check_step(dates, freq, where, given=schema.freq is not None)
    grid = grid_of(dates, freq)
    if len(grid) > len(dates):
        if len(grid) > 2 * len(dates):
            more = (
                *more,
                f"only {len(dates)} of the {len(grid)} stamps of its step '{freq}' are there; the others get no values",
            )
        values = values.set_axis(dates).reindex(grid).reset_index(drop=True)
        dates = grid
    values.insert(0, "date", dates)
    values.attrs["notes"] = (*notes, *more)
    return values


def _check_words(frame: pd.DataFrame, time: str, where: str) -> None:
    """UsageError for columns of words in a wide table, which may name the series of a long one."""
    words = _words(frame.drop(columns=time))
    if not words:
        return
    numbers = [name for name in frame.columns if name != time and name not in words]
    if frame[time].duplicated().any() and numbers:
        one, joined = shown(words[0]), ""
        if len(words) > 1:
            one, joined = "NAME", "put one column NAME in their place that joins them, and "
        raise UsageError(
            f"{where} has several rows a date, and words in {_few(words)}: where these name the series, {joined}say so "
            f"by --columns 'time={shown(time)},series={one}' --target '{shown(numbers[0])}'."
        )
    example = shown(next(cell for cell in frame[words[0]] if not pd.isna(cell)))
    leave = f", or name those to forecast, which leaves others out: --target '{','.join(map(shown, numbers[:6]))}'"
    raise UsageError(
        f"{where} has the text '{example}' in column '{shown(words[0])}' at data row "
        f"{int(frame[words[0]].notna().to_numpy().argmax()) + 1}; leave the column out{leave if numbers else ''}."
    )


def _words(frame: pd.DataFrame) -> list[str]:
    """Names of the columns that have text, and neither a number nor times of day."""
    words = []
    for name in frame.columns:
        if not pd.api.types.is_numeric_dtype(frame[name]):
            numbers, unread = parsed(frame[name])
            if unread is not None and np.isnan(numbers).all() and not are_clocks(frame[name]):
                words.append(str(name))
    return words


def check_values(
    frame: pd.DataFrame, columns: Sequence[str] | None = None, where: str = "The frame", na: Sequence[float] = ()
) -> pd.DataFrame:
    """The value columns alone, as float64 under names of text, in the order of `columns` when that is given.

    A missing value, and each of the numbers `na`, becomes NaN.

    Raises:
        UsageError: columns differ from `columns`, or a cell is text, infinite or beyond float32; the text says which.
    """
    frame = frame.set_axis([str(c) for c in frame.columns], axis=1)
    check_unique(frame.columns, where)
    if columns is not None:
        missing = [c for c in columns if c not in frame.columns]
        unknown = [c for c in frame.columns if c not in columns]
        if missing or unknown:
            differences = [f"lacks {_few(missing)}"] * bool(missing) + [f"has {_few(unknown)} besides"] * bool(unknown)
            what = " and ".join(differences)
            raise UsageError(f"{where} {what}; give the columns of the training data, {_few(columns)}.")
        frame = frame[list(columns)]
    if not len(frame.columns):
        raise UsageError(f"{where} has no value columns; add at least one column of numbers.")
    checked = _all_numbers(frame, where, na)
    bad = np.isinf(checked.to_numpy())
    if bad.any():
        row, column = np.argwhere(bad)[0]
        first = f"the first in column '{shown(checked.columns[column])}' at data row {row + 1}"
        raise UsageError(
            f"{where} has {count(int(bad.sum()), 'infinite cell')}, {first}; put numbers there, or leave them empty."
        )
    large = np.abs(checked.to_numpy()) > LARGEST
    if large.any():
        row, column = np.argwhere(large)[0]
        place = f"in column '{shown(checked.columns[column])}' at data row {row + 1}"
        raise UsageError(
            f"{where} has {checked.iat[row, column]:g} {place}, and single precision holds nothing beyond {LARGEST:g}; "
            "take a larger unit, or leave the cell empty."
        )
    return checked


def write_table(frame: pd.DataFrame, path: str | Path) -> Path:
    """Write `frame` without its index, as Parquet where `path` ends so, else as CSV: whole or not at all.

    Raises:
        UsageError: the folder is missing, or `path` is a folder.
        RunFailure: the disk did not take it.
    """
    path = Path(path)
    if path.is_dir() or not path.parent.is_dir():
        wrong = "is a folder" if path.is_dir() else "is in a folder that does not exist"
        raise UsageError(f"The output {path} {wrong}; name a file in an existing folder.")
    if path.suffix.lower() in PARQUET:
        with parquet_library(path):
            content = frame.to_parquet(None, index=False)
    else:
        content = frame.to_csv(index=False).encode()
    write_file(path, content)
    return path


def check_unique(names: Sequence[str], where: str) -> None:
    """UsageError for a name that two columns have."""
    seen = set[str]()
    for name in names:
        if name in seen:
            raise UsageError(f"{where} has two columns named '{shown(name)}'; rename one.")
        seen.add(name)


def _few(names: Sequence[Any]) -> str:
    some = ", ".join(f"'{shown(name)}'" for name in list(names)[:6]) or "nothing"
    return some if len(names) <= 6 else f"{some} and {len(names) - 6} more"


def parsed(column: pd.Series, na: Sequence[float] = ()) -> tuple[NDArray[np.float64], NDArray[np.bool_] | None]:
    """The numbers of a column, NaN where there is none or one of `na`, and which cells are a text
    that is none; None for none."""
    if isinstance(column.dtype, pd.SparseDtype):
        column = column.sparse.to_dense()
    kind = column.dtype
    if pd.api.types.is_bool_dtype(kind) or (pd.api.types.is_numeric_dtype(kind) and kind.kind != "c"):
        return _without(column.to_numpy(dtype=np.float64, na_value=np.nan), sentinels(na, kind)), None
    text = as_text(column)  # dates and the like would turn into whatever number stands behind them
    numbers = pd.to_numeric(text, errors="coerce")
    unread = (numbers.isna() & column.notna() & (text.str.strip().str.lower() != "nan")).to_numpy()
    return _without(numbers.to_numpy(dtype=np.float64), na), unread if unread.any() else None


def check_marks(column: pd.Series, name: str, where: str) -> None:
    """UsageError where the numbers of a column of text have marks that could stand between thousands."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object)
    if not pd.api.types.is_numeric_dtype(column) and pd.api.types.infer_dtype(column, skipna=True) == "string":
        check_thousands([column.reset_index(drop=True).to_frame(name)], where)


def sentinels(na: Sequence[float], dtype: Any) -> list[float]:
    """The numbers `na` as a column of `dtype` holds them: -999.9 is another number in single precision."""
    if not pd.api.types.is_float_dtype(dtype) or dtype.itemsize >= 8:
        return list(na)
    with np.errstate(over="ignore"):
        held = np.array(na).astype(f"f{dtype.itemsize}").astype(np.float64)
    return held[np.isfinite(held)].tolist()


def _without(numbers: NDArray[np.float64], na: Sequence[float]) -> NDArray[np.float64]:
    return np.where(np.isin(numbers, na), np.nan, numbers) if na else numbers


def _numbers(column: pd.Series, name: str, where: str, na: Sequence[float] = ()) -> np.ndarray:
    numbers, unread = parsed(column, na)
    check_marks(column, name, where)
    if unread is not None:
        row = int(np.argmax(unread))
        place = f"in column '{shown(name)}' at data row {row + 1}"
        raise UsageError(f"{where} has the text '{shown(column.iloc[row])}' {place}; put a number there.")
    return numbers


def _all_numbers(frame: pd.DataFrame, where: str, na: Sequence[float]) -> pd.DataFrame:
    """The numbers of all columns, those of one kind of number at once: there may be very many columns."""
    numbers = np.empty(frame.shape[::-1]).T  # column by column
    kinds = frame.dtypes.to_numpy()
    for kind in dict.fromkeys(kinds):
        (places,) = np.nonzero(kinds == kind)
        if isinstance(kind, np.dtype) and kind.kind in "biuf":
            numbers[:, places] = _without(frame.iloc[:, places].to_numpy(np.float64), sentinels(na, kind))
            continue
        for place in places:
            numbers[:, place] = _numbers(frame.iloc[:, place], frame.columns[place], where, na)
    return pd.DataFrame(numbers, columns=frame.columns)


def _to_wide(frame: pd.DataFrame, where: str, schema: Schema, freq: str | None) -> tuple[pd.DataFrame, tuple[str, ...]]:
    form = schema.form
    y = _numbers(frame[form.value], form.value, where, schema.na)
    names = as_text(frame[form.series]).to_numpy()
    if "date" in names:
        raise UsageError(
            f"{where} calls a series 'date', as the time stamps are called in a wide table; rename the series."
        )
    stamps, notes = read_stamps(frame[form.time_of(frame)], where, freq)
    table = pd.DataFrame({"id": names, "date": stamps, "y": y})
    again = table.duplicated(["id", "date"]).to_numpy()
    if again.any():
        row = int(np.argmax(again))
        raise UsageError(
            f"{where} gives series '{shown(table['id'][row])}' twice at {table['date'][row]} (data row {row + 1}); "
            "keep one."
        )
    series, steps = table["id"].nunique(), table["date"].nunique()
    if series * steps > max(ROOM, MOST_EMPTY * len(table)):
        raise UsageError(
            f"{where} has {series} series and {steps} different dates, but only {len(table)} values; bring series that "
            "share their dates."
        )
    wide = table.pivot(index="date", columns="id", values="y")[list(dict.fromkeys(names))]
    wide.columns.name = None
    return wide.reset_index(), notes
