"""What the columns of a table are: dates, series names, flags, values worth forecasting, and what is to be left out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.data.calendar_columns import Dates, calendar_part
from femts.data.check import MISSING, parsed, words_among_numbers
from femts.data.columns import holds_dates
from femts.data.name_words import calendar_field, is_coordinate, is_cumulated, is_entity, is_id, is_value, words_in
from femts.data.sentinels import stands_for_missing
from femts.data.stamps import YEARS, are_clocks, as_text, times_of
from femts.data.units import share_unit
from femts.text import Message, arguments, quote

Kind = Literal[
    "dates",
    "clock times",
    "constant",
    "empty",
    "identifier",
    "running number",
    "cumulated",
    "flag",
    "calendar",
    "category",
    "number",
]
HEAD, SPREAD = 4000, 4000  # rows inspected at the beginning of a table, and spread evenly over the rest
ALMOST_EMPTY = 0.02  # share of filled cells
PER_NAME = 2  # rows per distinct cell of a column that names something
MARKS = 5  # distinct words in a column of numbers, such as `off`, that do not make it text
CORRECTIONS = 0.02  # share of the steps of a running total that may fall
CORRECTED = 0.02  # relative difference of the steps of a running total from another column
FEW = 24  # distinct texts that may be names, however long
SOME = 20  # cells whose repetitions are counted in all rows
SENTENCE, PER_SENTENCE = 5, 20  # words per cell on the average, from which on names have more rows than texts
_PAIRS = (  # words of flags
    *({"true", "false"}, {"t", "f"}, {"yes", "no"}, {"y", "n"}, {"0", "1"}, {"on", "off"}, {"ja", "nein"}, {"j", "n"}),
    *(
        {"oui", "non"},
        {"o", "n"},
        {"si", "no"},
        {"s\u00ed", "no"},
        {"sim", "n\u00e3o"},
        {"vrai", "faux"},
        {"wahr", "falsch"},
    ),
)
_QUALITY = frozenset("q qc qa qflag flag flags quality status".split())
_DIGITS = re.compile(r"\d+")
_NUMBER = re.compile(  # with separators of thousands, a decimal comma, a currency, or a percent sign
    r"[($\u20ac\u00a3\u00a5]*\s*[+-]?\s*[$\u20ac\u00a3\u00a5]?\s*\d{1,3}(?:[.,' \u00a0\u202f]?\d{3})*(?:[.,]\d+)?\s*[%\u20ac$\u00a3)]*"
)


@dataclass(frozen=True)
class Column:
    """What a column of a table is.

    Attributes:
        name: its name.
        kind: its kind.
        distinct: number of distinct cells among the rows inspected, not counting missing ones.
        missing: share of missing cells.
        detail: what the kind follows from, such as `month` for a calendar column, or the column whose running total it
            is.
        whole: whether all cells are whole numbers.
        words: whether cells are text.
    """

    name: str
    kind: Kind
    distinct: int
    missing: float
    detail: str = ""
    whole: bool = False
    words: bool = False


@dataclass(frozen=True)
class _Cells:
    """Cells of the inspected rows of a column; `numbers` is None for text."""

    column: pd.Series
    cells: pd.Series
    numbers: NDArray[np.float64] | None
    distinct: int
    missing: float
    head: int


def column_kinds(frame: pd.DataFrame, time: str | None = None, stamps: pd.Index | None = None) -> tuple[Column, ...]:
    """What each column of a table is, in their order, judged by its cells and, as a second sign, its name.

    Large tables are judged by `HEAD` rows at the beginning and `SPREAD` rows from the rest; only for constant and empty
    columns, and for names, are all rows looked at.

    Args:
        frame: any table, (N, columns); names may be repeated.
        time: name of the time stamp column, if that is known.
        stamps: parsed time stamps of the rows, (N,), by which columns of the calendar are recognised.
    """
    rows = _inspected(len(frame))
    known = None
    if isinstance(stamps, pd.DatetimeIndex) and len(stamps) == len(frame):
        known = Dates(stamps[rows] if len(rows) < len(frame) else stamps)
    columns = [
        _kind_of(frame.iloc[:, place], str(name), rows, known, str(name) == time)
        for place, name in enumerate(frame.columns)
    ]
    columns = [replace(each, kind="flag") if _is_quality(each, columns) else each for each in columns]
    # sales of item_7, of which one a day at most is sold, are numbers like those of item_8
    numbered = {bare for each in columns if each.kind == "number" and (bare := _DIGITS.sub("", each.name)) != each.name}
    booleans = {str(name) for name, dtype in zip(frame.columns, frame.dtypes, strict=True) if dtype.kind == "b"}
    return tuple(
        replace(each, kind="number")
        if each.kind == "flag"
        and not each.words
        and each.name not in booleans
        and (bare := _DIGITS.sub("", each.name)) != each.name
        and bare in numbered
        else each
        for each in columns
    )


def _is_quality(column: Column, columns: Sequence[Column]) -> bool:
    """Whether a column of few whole numbers has codes of the quality of another one, such as Q_TG of TG."""
    if column.kind != "number" or not column.whole or column.distinct > FEW:
        return False
    words = words_in(column.name)
    bare = [word for word in words if word not in _QUALITY]
    return 0 < len(bare) < len(words) and any(words_in(other.name) == bare for other in columns)


def _inspected(n: int) -> NDArray[np.intp]:
    if n <= HEAD + SPREAD:
        return np.arange(n)
    return np.concatenate([np.arange(HEAD), np.linspace(HEAD, n - 1, SPREAD).astype(np.intp)])


def _kind_of(column: pd.Series, name: str, rows: NDArray[np.intp], dates: Dates | None, is_time: bool) -> Column:
    there = column.notna().to_numpy()
    missing = 1 - float(there.mean()) if len(there) else 1.0
    cells = (column.iloc[rows] if len(rows) < len(column) else column).reset_index(drop=True)
    if isinstance(cells.dtype, pd.CategoricalDtype):
        cells = cells.astype(cells.dtype.categories.dtype if not cells.isna().any() else object).infer_objects()
    if isinstance(cells.dtype, pd.SparseDtype):
        cells = cells.sparse.to_dense()
    if cells.dtype.kind in "mM" or isinstance(cells.dtype, pd.PeriodDtype | pd.DatetimeTZDtype):
        kind: Kind = "clock times" if cells.dtype.kind == "m" else "dates"
        return Column(name, kind, int(cells.nunique()), missing)
    numbers = _numbers_in(cells)
    if numbers is None:
        cells = as_text(cells).str.strip().where(cells.notna())
        cells = cells.mask(cells.str.lower().isin(MISSING))
        filled = float(cells.notna().mean()) if len(cells) else 0.0
    else:
        filled = float(np.isfinite(numbers).mean()) if len(numbers) else 0.0
    missing = max(missing, 1 - filled) if len(rows) == len(column) else missing
    distinct = int(cells.nunique()) if numbers is None else len(np.unique(numbers[np.isfinite(numbers)]))
    made = Column(name, "number", distinct, missing, words=numbers is None)
    if is_time:
        return replace(made, kind="dates")
    if 1 - missing < ALMOST_EMPTY or filled == 0:
        return replace(made, kind="empty")
    each = _Cells(column, cells, numbers, distinct, missing, int(np.count_nonzero(rows < HEAD)))
    if distinct <= 1 and _is_constant(each, there):
        return replace(made, kind="constant" if missing < 0.5 or numbers is not None else "flag")
    return _kind_of_text(made, each, dates) if numbers is None else _kind_of_numbers(made, each, dates)


def _numbers_in(cells: pd.Series) -> NDArray[np.float64] | None:
    """The numbers in a column, NaN for missing ones; None if it has text, or codes with leading zeros, for cells."""
    if cells.dtype.kind == "c":
        return None
    if pd.api.types.is_numeric_dtype(cells):  # also booleans
        return parsed(cells)[0]
    text = as_text(cells).str.strip().where(cells.notna())
    text = text.mask(text.str.lower().isin(MISSING)).dropna()
    if text.str.fullmatch(r"0\d+").any():
        return None
    try:
        numbers, unread = parsed(cells)
    except (TypeError, ValueError, OverflowError):
        return None
    if unread is None:
        return numbers
    odd = as_text(cells[unread]).str.strip().drop_duplicates()
    formatted = odd.map(lambda cell: bool(_NUMBER.fullmatch(cell)))
    if not formatted.all() and not share_unit(odd):
        few = len(odd) <= MARKS and unread.mean() <= 0.2 and len(np.unique(numbers[np.isfinite(numbers)])) > 4 * MARKS
        return numbers if few else None
    bare = as_text(cells).str.replace(r"[^\d.,+-]", "", regex=True)
    bare = bare.str.replace(r"[.,](?=\d{3}(?:\D|$))", "", regex=True).str.replace(",", ".")
    return pd.to_numeric(bare, errors="coerce").to_numpy(dtype=np.float64)


def _is_constant(each: _Cells, there: NDArray[np.bool_]) -> bool:
    """Whether the only cell found is the only one of all rows."""
    if len(each.cells) == len(each.column):
        return True
    try:
        return bool((each.column.to_numpy()[there] == each.column.to_numpy()[np.argmax(there)]).all())
    except (TypeError, ValueError):
        return False


def _kind_of_text(made: Column, each: _Cells, dates: Dates | None) -> Column:
    cells = each.cells.dropna()
    words = cells.drop_duplicates()
    lower = set(words.str.lower()) if each.distinct <= 2 else set[str]()
    part = calendar_part(made.name, each.cells, dates)
    if part is not None:
        return replace(made, kind="calendar", detail=part)
    if lower in _PAIRS or (each.distinct == 1 and each.missing > 0):
        return replace(made, kind="flag")
    if words.head(40).str.contains(r"\d").mean() >= 0.5:
        if are_clocks(words.head(100)):
            return replace(made, kind="clock times")
        if holds_dates(words.head(8)):
            return replace(made, kind="dates")
    marks = words_among_numbers(each.cells) if each.distinct > 4 * MARKS else []
    reads = f"{arguments({'na': marks})} reads such text as missing"
    detail = Message(f"numbers and {', '.join(map(repr, marks))}; {reads}") if marks else _numbers_and_text(each)
    if _are_names(made, each):
        return replace(made, kind="category", detail=detail)
    return replace(made, kind="identifier", detail=detail)


def _numbers_and_text(each: _Cells) -> str:
    """What a column of numbers holds besides, such as <0.5 where less could not be measured; empty if it has few."""
    cells = each.cells.dropna()
    unread = parsed(cells)[1]
    if unread is None or 2 * unread.sum() > len(cells) or each.distinct <= 4 * MARKS:
        return ""
    return f"numbers and text such as '{quote(cells[unread].iloc[0])}'; write a number in its place"


def _are_names(made: Column, each: _Cells) -> bool:
    """Whether cells repeat as names do, unlike texts, or codes of single rows."""
    filled = int(each.cells.notna().sum())
    if each.distinct * PER_NAME > filled:
        if len(each.cells) == len(each.column):
            return False
        try:  # names of very many series may be different in all rows inspected
            some = each.column.iloc[_inspected(len(each.column))[-SPREAD :: SPREAD // SOME]].dropna().unique()
            return bool(each.column.isin(some).sum() >= PER_NAME * len(some) > 0)
        except TypeError:  # cells that cannot be compared, such as lists
            return False
    if each.numbers is not None or each.distinct <= FEW:
        return True
    lengths = each.cells.dropna().str.count(r"\s+") + 1
    return float(lengths.mean()) < SENTENCE or each.distinct * PER_SENTENCE <= filled


def _kind_of_numbers(made: Column, each: _Cells, dates: Dates | None) -> Column:
    assert each.numbers is not None
    numbers, name = each.numbers, made.name
    finite = numbers[np.isfinite(numbers)]
    whole = bool((finite == np.floor(finite)).all())
    made = replace(made, whole=whole)
    two = set(finite.tolist()) if each.distinct == 2 else set[float]()
    is_flag = two == {0.0, 1.0} or (bool(two & {0.0, 1.0}) and any(map(stands_for_missing, two - {1.0})))
    part = calendar_part(name, pd.Series(numbers), dates)
    if part is not None:
        return replace(made, kind="calendar", detail=part)
    if is_flag and is_entity(name):
        return replace(made, kind="category")
    if is_flag:
        return made if is_value(name) and not pd.api.types.is_bool_dtype(each.cells) else replace(made, kind="flag")
    if is_coordinate(name):
        return replace(made, kind="identifier", detail="coordinate")
    if not whole:
        of_years = YEARS[0] <= finite.min() and finite.max() <= YEARS[1] and bool((np.diff(finite) > 0).all())
        named = not {"year", "time", "date"}.isdisjoint(words_in(name))
        return replace(made, kind="dates") if of_years and named else made  # fractions of years without a known step
    if _are_numbered_dates(finite, name):
        return replace(made, kind="dates")
    # a column beside dates that are all different may hold what a store sells
    numbered = is_entity(name) and (dates is None or dates.distinct < len(dates.stamps))
    code = (is_id(name) or numbered) and not is_value(name)
    if (code or calendar_field(name) == "year") and _are_names(made, each):
        return replace(made, kind="category")
    if _counts_rows(numbers[: each.head], name):
        return replace(made, kind="running number")
    nameless = name.startswith("Unnamed:") and each.distinct == len(finite)
    if (is_id(name) and code) or nameless:
        return replace(made, kind="identifier")
    return made


def _are_numbered_dates(numbers: NDArray[np.float64], name: str) -> bool:
    """Whether whole numbers are Unix times or days such as 20241231, by their name or because they are valid and in
    order."""
    low, high = numbers.min(), numbers.max()
    if low < 10**7 or high > 2**62:
        return False
    if high < 10**8:
        days = pd.to_datetime(pd.Series(numbers.astype(np.int64).astype(str)), format="%Y%m%d", errors="coerce")
        return bool(days.notna().all())
    named = not {"time", "timestamp", "date", "datetime", "epoch", "unix", "ts", "at", "updated"}.isdisjoint(
        words_in(name)
    )
    in_order = bool((np.diff(numbers) >= 0).all())
    return (named or (in_order and len(np.unique(np.diff(numbers))) <= 3)) and times_of(
        numbers.astype(np.int64)
    ) is not None


def _counts_rows(numbers: NDArray[np.float64], name: str) -> bool:
    """Whether cells number the rows, in order, within groups, or shuffled."""
    if len(numbers) < 3 or not np.isfinite(numbers).all():
        return False
    steps = np.diff(numbers)
    low, high = numbers.min(), numbers.max()
    usual, falls = np.median(steps), steps < 0  # a clock that begins again, such as milliseconds since a start
    if len(numbers) >= 30 and usual > 1 and falls.any() and (falls | (steps == usual)).all() and falls.mean() <= 0.05:
        return True
    if len(numbers) >= 30 and (steps >= 0).all() and np.isin(steps, (0, 1)).mean() >= 0.95 and 0.2 <= steps.mean() < 1:
        return True  # one number for several rows
    if low not in (0, 1) and not is_id(name):
        return bool(np.isin(steps, (1, 1 - len(numbers))).all() and len(numbers) > 30 and low != numbers[0])
    ups = steps == 1
    again = numbers[1:][~ups] == low
    if ups.mean() >= 0.5 and again.all() and high - low >= 2:
        return True
    if (steps == -1).all():
        return True
    return high - low + 1 == len(numbers) == len(np.unique(numbers))


def mark_running_totals(
    frame: pd.DataFrame, columns: Sequence[Column], rows: Sequence[NDArray[np.intp]]
) -> tuple[Column, ...]:
    """`columns` with running totals marked, and numbers that count the rows of each series.

    Running totals never decrease and their differences are another column, or they stand beside such ones.

    Args:
        frame: the table.
        columns: what its columns are.
        rows: row numbers of some series, each in order of time.
    """
    rows = [each for each in rows if len(each) >= 8]
    places = [
        place for place, each in enumerate(columns) if each.kind in ("number", "running number") and not each.words
    ]
    if not rows:
        return tuple(columns)
    parts = [frame.iloc[each] for each in rows]
    values = {place: [_numbers_in(part.iloc[:, place]) for part in parts] for place in places}
    counting = {
        place
        for place in places
        if columns[place].kind == "number" and columns[place].whole and _count_rows(values[place])
    }
    columns = [replace(each, kind="running number") if n in counting else each for n, each in enumerate(columns)]
    steady = {place for place in places if all(map(_never_falls, values[place]))}
    found = dict[int, str]()
    for place in steady:
        for other in places:
            if other != place and other not in steady and all(map(_are_differences, values[place], values[other])):
                found[place] = columns[other].name
                break
    if found:
        for place in steady - set(found):
            if columns[place].kind == "number" and columns[place].whole:
                found[place] = ""
    for place in steady - set(found):
        if columns[place].kind == "number" and is_cumulated(columns[place].name) and len(steady) < len(places):
            found[place] = ""
    return tuple(
        replace(each, kind="cumulated", detail=found[place]) if place in found else each
        for place, each in enumerate(columns)
    )


def _count_rows(series: Sequence[NDArray[np.float64] | None]) -> bool:
    """Whether a column rises by one in each row of each series, from 0 or 1 if there is only one series."""
    every = [values for values in series if values is not None and (np.diff(values) == 1).all()]
    return len(every) == len(series) and (len(every) > 1 or every[0][0] in (0, 1))


def _never_falls(values: NDArray[np.float64] | None) -> bool:
    """Whether values rise and hardly ever fall, as running totals do except for corrections."""
    if values is None:
        return False
    steps = np.diff(values[np.isfinite(values)])
    return len(steps) >= 7 and bool((steps < 0).mean() <= CORRECTIONS) and len(np.unique(steps)) > 2


def _are_differences(totals: NDArray[np.float64] | None, values: NDArray[np.float64] | None) -> bool:
    if totals is None or values is None:
        return False
    steps, values = np.diff(totals), values[1:]
    change = abs(np.nansum(steps))
    if not change / 2 < abs(np.nansum(values)) < 2 * change:
        return False
    both = np.isfinite(steps) & np.isfinite(values) & ((steps != 0) | (values != 0))
    error = 1e-9 * float(np.abs(totals[np.isfinite(totals)]).max(initial=0))
    close = np.isclose(steps[both], values[both], rtol=CORRECTED, atol=error)
    return len(close) >= 5 and bool(close.mean() >= 0.8)
