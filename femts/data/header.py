"""Where a table begins among rows of cells: lines before its header, headers of several rows, and footers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from femts.data.columns import NOTES
from femts.data.describe import are
from femts.data.month_names import LETTERS, month_number
from femts.data.stamps import as_text
from femts.text import quote

MOST_BEFORE = 100  # rows before the header
MOST_HEADERS = 5  # rows of a header
MOST_FOOTERS = 50  # rows after the last one of the table
FEWEST = 3  # rows that show how a table without a header begins
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
SAME = 1e-3  # relative difference of a total from the sum of a column
ABOVE = 20  # rows with which footers are compared
SHOWN = 4  # cells of a row that a note quotes
_NUMBER = re.compile(r"[+-]?(?:\d[\d.,'\u00a0\u202f]*|[.,]\d+)(?:[eE][+-]?\d+)?\s?%?|[+-]?(?:inf|nan)", re.IGNORECASE)
_DATE = re.compile(
    r"(?=.*\d).{0,12}\d{1,4}\s?[-/.:]\s?\d{1,2}.{0,30}|\d{4}[- ]?[QKMW]\d{1,2}.{0,3}|[QKMW]\d{1,2}[- /]?\d{4}|"
    r"\d{8}T?\d{0,6}Z?|\d{4} ?[\u5e74\ub144].{0,20}|\d{4} ?(?:[rpe]|\*+|\([a-z\d]{1,4}\.?\))",
    re.IGNORECASE,
)
_NAMED_MONTH = re.compile(
    rf"(?:\d{{1,2}}[-./ ]{{0,2}})?(?:de )?({LETTERS}{{3,12}})\.?(?: de)?[-./' ]?\d{{2,4}}.{{0,20}}|"
    rf"\d{{4}}[-./ ]?({LETTERS}{{3,12}})\.?.{{0,20}}",
    re.IGNORECASE,
)
_FULL_DATE = (  # of Unix time, those from 2001 to 2033
    r"(?:\d{4}([-/.])\d\d?\1\d\d?|\d\d?[-/.]\d\d?[-/.]\d{4})"
    r"(?:[ T]+\d\d?:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?[AP]M)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?)?|1\d{9}(?:\d{3})?(?:\.\d+)?"
)
_EMPTY = (
    "",
    "nan",
    "na",
    "n/a",
    "n.a.",
    "null",
    "none",
    "-",
    "--",
    "\u2013",
    "?",
    ".",
    "..",
    "...",
    ":",
    "***",
    "****",
)
_TIMES = re.compile(
    r"\W*(date|time|year|month|day|hour|ds|timestamp|datum|zeit|jahr|monat|fecha|period)", re.IGNORECASE
)
TOTALS = re.compile(
    r"(grand |sub)?totals?|sum|summe|gesamt|insgesamt|average|mean|avg|minimum|maximum|min|max|total general|somme|totale|suma|razem|toplam|\u5408\u8ba1|\u5408\u8a08",
    re.IGNORECASE,
)
_LABELS = re.compile(  # of what statistics offices and central banks write below the names of their series
    r".*:|title|description|frequency|(series |data )?type|(pre)?units?|source|publication date|(series |source dataset )?ids?|"
    r"cdid|(next )?release( date)?|important notes|collection month|no\. obs\.?|series (start|end)|transform|factors|tcode|"
    r"last updated?|seasonal adjustment|titre|libell\u00e9|code( s\u00e9rie)?|unit\u00e9|magnitude|m\u00e9thode.*|fr\u00e9quence|idbank|"
    r"derni\u00e8re mise \u00e0 jour|p\u00e9riode|einheit|dezimalstellen|decimals|dimension|stand( vom)?|quelle|frequenz|kommentar|comment|t\u00edtulo|unidad|fuente|frecuencia",
    re.IGNORECASE,
)
_REMARKS = re.compile(
    r"(source|sources|notes?|last updated?|data from|copyright|quelle|footnotes?|remarks?|hinweis|fuente|updated|"
    r"downloaded|generated|q|legend|disclaimer)\b.{0,3}:|\u00a9|\*|\([a-z0-9]\)|(data|source|notes?)\b.*[.:]",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Header:
    """The header of a table among rows.

    Attributes:
        names: names of the columns, of which those without one are empty.
        before: number of the first row of the header.
        data: number of the first row after it.
        notes: messages to show the user once.
    """

    names: list[str]
    before: int
    data: int
    notes: tuple[str, ...]


def is_plain(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first of these rows names the columns of the others and all have as many cells."""
    table = [row for row in rows if row]
    if not table or len(set(map(len, table))) > 1 or len(table[0]) < 2 or not all(table[0][1:]):
        return False
    if len(table) == 1:
        return True
    if _dated(table[:FEWEST]) is not None:
        return False
    if _LABELS.fullmatch(table[1][0]) or all(map(is_data, table[0])):
        return False
    return any(map(is_data, table[1])) or not any(any(map(is_data, row)) for row in table[2:ABOVE])


def find_header(rows: Sequence[Sequence[str]], blanks: bool = False, remark: Sequence[str] = ()) -> Header | None:
    """Find the header among the first rows of a file; None if no row looks like one.

    Args:
        rows: stripped cells by row, in which an empty row has none.
        blanks: whether the cells are separated by blanks, so that dates may begin a table without a header.
        remark: words of the last remark above these rows, which may name the columns of such a table.
    """
    filled = [number for number, row in enumerate(rows) if any(row)]
    if not filled:
        return None
    width, full = _width([rows[number] for number in filled])
    if width < 2:
        return _without_header(rows, filled, blanks, remark)
    year_rows = _year_rows(rows, filled)
    if year_rows is not None:
        return year_rows
    found = _with_metadata(rows, filled, width, full) or _without_header(rows, filled, blanks, remark)
    if found is not None:
        return found
    place = _place(rows, filled, width, full)
    if place is None:
        return None
    block = [filled[place]]
    for above in reversed(filled[:place]):
        row = rows[above]
        if (
            above != block[0] - 1
            or len(row) != len(rows[block[0]])
            or sum(map(bool, row)) < 2
            or any(map(is_data, row))
            or _is_title(row, rows[filled[place]])
        ):
            break
        block.insert(0, above)
    place -= len(block) - 1
    for after in filled[place + len(block) : place + MOST_HEADERS + 1]:
        if any(map(is_data, rows[after])) or len(rows[after]) > width:
            break
        block.append(after)
    below = filled[place + len(block) : place + len(block) + ABOVE]
    if len(below) < min(3, len(filled) - place - 1) or not all(any(map(is_data, rows[each])) for each in below):
        block = [filled[_place(rows, filled, width, full) or 0]]
    names, first, notes = _names([[*rows[each], *[""] * width][:width] for each in block])
    before = block[first]
    return Header(names, before, block[-1] + 1, (*_before(rows, filled, before), *notes))


def _is_title(row: Sequence[str], header: Sequence[str]) -> bool:
    """Return whether a row above a header with dates as names is a title, in one language or several, since it has no
    cell above any of them."""
    dated = [n for n, cell in enumerate(header) if is_data(cell)]
    return len(dated) >= FEWEST and not any(row[n] for n in dated)


def _place(rows: Sequence[Sequence[str]], filled: Sequence[int], width: int, full: int) -> int | None:
    """Place among the `filled` rows of the first that names all columns, or else most of them; None if there is none."""
    like = [
        n
        for n, each in enumerate(filled[:MOST_BEFORE])
        if full <= len(rows[each]) <= width and is_header(rows[each][:full])
    ]
    for n in like:
        row = rows[filled[n]][:full]
        numbers = [cell for cell in row if _NUMBER.fullmatch(cell)]
        if all(row[1:]) and (n == like[0] or all(map(is_year, numbers))):
            return n
    return next(iter(like), None)


def _with_metadata(rows: Sequence[Sequence[str]], filled: Sequence[int], width: int, full: int) -> Header | None:
    """Header with rows below it that describe each column, such as its unit and source, up to the first date; None if
    there are none, or too few for it to be clear."""
    dated = [is_data(rows[number][0]) for number in filled[: MOST_BEFORE + ABOVE]]
    stop = next((n for n in range(1, min(len(dated), MOST_BEFORE)) if all(dated[n : n + FEWEST])), 0)
    if not stop or len(dated) < stop + FEWEST - 1 or not all(dated[stop : stop + ABOVE]):
        return None
    named = ([*rows[number][:full], *[""] * (full - len(rows[number]))] for number in filled[:stop])
    place = next((n for n, row in enumerate(named) if all(row[1:]) and len(set(row)) == full > 1), None)
    if place is None:
        return None
    further = [rows[number] for number in filled[place + 1 : stop]]
    labels = [row[0] for row in further]
    known = sum(bool(_LABELS.fullmatch(label)) for label in labels)
    if not known or not (known >= FEWEST or all(map(_is_metadata, further))):
        return None
    if len(further) < MOST_HEADERS and not any(any(map(is_data, row)) for row in further):
        return None
    header = filled[place]
    names = [*rows[header], *[""] * width][:width]
    what = f"{len(further)} rows of metadata below its header are" if further[1:] else "a row of metadata is"
    note = f"{what} left out ({_shown([label or row[1] for label, row in zip(labels, further, strict=True)])})"
    return Header(names, header, filled[stop], (*_before(rows, filled, header), note))


def _is_metadata(row: Sequence[str]) -> bool:
    """Return whether a row, which does not begin with a date, may describe columns rather than hold their values."""
    return bool(_LABELS.fullmatch(row[0])) or not any(map(_NUMBER.fullmatch, row))


def _without_header(
    rows: Sequence[Sequence[str]], filled: Sequence[int], blanks: bool, remark: Sequence[str]
) -> Header | None:
    """Header of a table without one, whose rows begin with a year, a month or a day, or of which no row but numbers is
    there; None if there is none."""
    place = next((n for n, number in enumerate(filled[:MOST_BEFORE]) if _is_row(rows[number])), None)
    if place is None:
        return None
    table = [rows[number] for number in filled[place : place + ABOVE]]
    width = len(table[0])
    if len(table) < FEWEST or any(len(row) != width or not _is_row(row) for row in table):
        return None
    times = _times(table, blanks) if width > 1 else []
    dated = None if times or blanks else _dated(table)
    times = times if dated is None else [*(f"column {n + 1}" for n in range(dated)), "date"]
    columns = ([cell for cell in cells if cell.lower() not in _EMPTY] for cells in zip(*table, strict=True))
    alike = all(len(set(map(is_data, cells))) < 2 for cells in columns)
    if not alike or not (times or (not place and _are_values(table[0]))):
        return None
    words = rows[filled[place - 1]] if place else remark
    named = len(words) == width or (times[-1:] == ["date"] and not blanks and sum(map(bool, words)) > 1)
    if place and named and not words[0].startswith("%"):
        return None  # a header
    words = [word.strip(",") for word in words if word != "%"]
    told = len(set(words)) == len(words) == width and not any(map(is_data, words))
    names = [*times, *(words[len(times) :] if told else (f"column {n + 1}" for n in range(len(times), width)))]
    first = filled[place]
    called = f"its columns are called {_shown(names)}" if width > 1 else f"its column is called {_shown(names)}"
    return Header(names, first, first, (*_before(rows, filled, first), f"it has no header, so {called}"))


def _is_row(row: Sequence[str]) -> bool:
    """Return whether a row is one of numbers behind a number or a date, or has words beside a full date as well."""
    if row and is_data(row[0]) and all(is_data(cell) or cell.lower() in _EMPTY for cell in row):
        return True
    return any(map(_is_full_date, row)) and sum(map(is_data, row)) > 1


def _dated(rows: Sequence[Sequence[str]]) -> int | None:
    """The first column of full dates in all rows, the first of which then holds no names; None if there is none."""
    places = (n for n, cell in enumerate(rows[0]) if _is_full_date(cell))
    return next((n for n in places if all(_is_full_date(row[n]) for row in rows)), None)


def _is_full_date(cell: str) -> bool:
    return bool(re.fullmatch(_FULL_DATE, cell))


def _are_values(row: Sequence[str]) -> bool:
    """Return whether a row of numbers cannot hold the names of columns, which may be numbers at even steps."""
    if not all(map(_NUMBER.fullmatch, row)) or (len(row) == 1 and "," in row[0]):
        return False
    if not all(re.fullmatch(r"\d+(\.\d+)?", cell) for cell in row):
        return True
    numbers = [float(cell) for cell in row]
    steps = np.diff(numbers)
    if len(row) > 2:
        return not steps[0] or not np.allclose(steps, steps[0])
    return numbers not in ([0], [numbers[0], numbers[0] + 1])


def _times(table: Sequence[Sequence[str]], blanks: bool) -> list[str]:
    """Names of the first columns if these are dates, or years with months and days, in order; none otherwise."""
    first = [row[0] for row in table]
    if all(map(is_year, first)):
        parts = [tuple(int(cell) if re.fullmatch(r"\d{1,4}", cell) else 0 for cell in row[:3]) for row in table]
        if all(1 <= each[1] <= 12 for each in parts):
            if len(table[0]) > 2 and (np.diff([12 * each[0] + each[1] for each in parts]) == 1).all():
                return ["Year", "Month"]
            days = [each for each in parts if len(each) > 2 and 1 <= each[2] <= 31]
            if len(table[0]) > 3 and len(days) == len(parts) and all(map(_is_later, days[1:], days)):
                return ["Year", "Month", "Day"]
        return ["Year"] if (np.diff([each[0] for each in parts]) == 1).all() else []
    if all(re.fullmatch(r"(?:1[6-9]|20|21)\d{2}(?:0[1-9]|1[0-2])", cell) for cell in first):
        months = [12 * int(cell[:4]) + int(cell[4:]) for cell in first]
        return ["date"] if (np.diff(months) == 1).all() else []
    if not blanks:
        return ["date"] if all(map(_is_full_date, first)) else []
    plain = r"\d+[-/.]\d+([-/.]\d+)?"
    dated = len(set(first)) == len(first) and all(re.fullmatch(plain, cell) and _DATE.fullmatch(cell) for cell in first)
    return ["date"] if dated and not all(map(_NUMBER.fullmatch, first)) else []


def _is_later(day: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return day > other


def _before(rows: Sequence[Sequence[str]], filled: Sequence[int], before: int) -> tuple[str, ...]:
    """Note on the rows before a header."""
    skipped = [each for each in filled if each < before]
    if not skipped:
        return ()
    what = f"its first {len(skipped)} lines, before the header, are" if skipped[1:] else "its first line is"
    return (f"{what} left out ({_shown(rows[skipped[0]])})",)


def _year_rows(rows: Sequence[Sequence[str]], filled: Sequence[int]) -> Header | None:
    """Header of a table without one, whose rows are a year and the values of its twelve months."""
    for place, number in enumerate(filled[:MOST_BEFORE]):
        few = [rows[each] for each in filled[place : place + 3]]
        years = [int(row[0]) if re.fullmatch(r"[12]\d{3}", row[0]) else 0 for row in few]
        if (
            len(few) == 3
            and all(len(row) == 13 and all(is_data(cell) or cell.lower() in _EMPTY for cell in row) for row in few)
            and years[0]
        ):
            if np.diff(years).tolist() != [1, 1]:
                continue
            above = rows[filled[place - 1]] if place else []
            if len(above) == 13 and is_header(above):
                return None
            return Header(["Year", *MONTHS], number, number, _before(rows, filled, number))
    return None


def _width(rows: Sequence[Sequence[str]]) -> tuple[int, int]:
    """Number of cells of most rows, wide ones counting more, and one past the last cell that any of these has filled."""
    counts = Counter(map(len, rows))
    width = max(counts, key=lambda cells: (cells * counts[cells], cells))
    last = (next((n for n in range(width, 0, -1) if row[n - 1]), 0) for row in rows if len(row) == width)
    return width, max(last)


def is_header(row: Sequence[str]) -> bool:
    """Return whether a row may hold the names of columns: the first is no number or date, at least half are not empty,
    and numbers among them, such as years, increase or decrease."""
    given = [cell for cell in row if cell]
    if (len(given) < 2 and (row[0] or not given)) or 2 * len(given) < len(row) or is_data(row[0]):
        return False
    numbers = [float(cell) for cell in given if re.fullmatch(r"-?\d+(\.\d+)?", cell)]
    dates = [cell for cell in given if is_data(cell)]
    if len(numbers) < len(dates):  # names of columns are dates, all of them different
        return len(set(dates)) == len(dates) > 2
    steps = np.diff(numbers)
    whole = all(number == int(number) for number in numbers)
    return bool((steps > 0).all() or (steps < 0).all()) and (whole or len(numbers) > 2)


def is_year(cell: str) -> bool:
    """Return whether a cell is a year."""
    return bool(re.fullmatch(r"(?:1[6-9]|20|21)\d{2}", cell))


def is_data(cell: str) -> bool:
    """Return whether a cell is a number or a date."""
    if not cell or _NUMBER.fullmatch(cell) or _DATE.fullmatch(cell):
        return bool(cell)
    match = _NAMED_MONTH.fullmatch(cell)
    return match is not None and month_number(match[1] or match[2]) is not None


def _names(block: Sequence[Sequence[str]]) -> tuple[list[str], int, tuple[str, ...]]:
    """Column names from the rows of a header, the number of the first row that they come from, and notes."""
    if len(block) == 1:
        return list(block[0]), 0, ()
    named = [bool(row[0]) and not any(row[1:]) for row in block]
    if named[-1] and any(block[0][1:]):  # pandas writes the name of an index below the levels of the columns
        last, levels = block[-1][0], [["", *row[1:]] for row in block[:-1]]
        names = _joined(levels)
        return [last, *names[1:]], 0, _level_notes(levels, names)
    timed = next((n for n, row in enumerate(block) if any(map(_TIMES.match, row))), 0)
    start = next((n for n, row in enumerate(block) if all(row[1:]) and len(set(row)) == len(row)), None)
    start = timed if start is None or (timed > start and all(block[timed])) else start
    row = list(block[start])
    groups = [each for each in block[:start] if sum(map(bool, each)) > 1]
    if groups and not all(all(each) for each in groups):
        levels = [*map(list, groups), row]
        names = _joined(levels)
        return names, block.index(groups[0]), _level_notes(levels, names)
    below = block[start + 1 :]
    if not all(row[1:]) and below and all(below[0][1:]):  # groups above names, with the time stamps named in the first
        levels = [row, list(below[0])]
        names = _joined(levels)
        names[0] = row[0] or below[0][0]
        return names, start, _level_notes(levels, names)
    if not row[0]:
        row[0] = next((each[0] for each in below if each[0]), "")
    notes = tuple(f"the row below its header is left out ({_shown(each)})" for each in below)
    return row, start, notes


def _joined(levels: Sequence[Sequence[str]]) -> list[str]:
    """Names joined from rows of which upper ones name groups of columns; one that all columns share is left out."""
    filled = []
    for number, row in enumerate(levels):
        cells, last = list(row), ""
        for n, cell in enumerate(cells[1:], 1):
            last = cell or last
            cells[n] = last if number < len(levels) - 1 else cell
        filled.append(cells)
    kept = [row for row in filled if len(set(row[1:])) > 1] or filled[-1:]
    names = [" ".join(dict.fromkeys(filter(None, cells))) for cells in zip(*kept, strict=True)]
    names[0] = next((row[0] for row in reversed(filled) if row[0]), "")
    return names


def _level_notes(levels: Sequence[Sequence[str]], names: Sequence[str]) -> tuple[str, ...]:
    if len(levels) < 2:
        return ()
    return (f"the {len(levels)} rows of its header are joined, as in '{quote(names[1])}'",)


def _shown(row: Sequence[str]) -> str:
    given = [cell for cell in row if cell]
    return ", ".join(f"'{quote(cell)}'" for cell in given[:SHOWN]) + ", ..." * (len(given) > SHOWN)


def without_footer(frame: pd.DataFrame, words: Collection[str] = (), above: Sequence[str] = ()) -> pd.DataFrame:
    """The frame without remarks and totals below its rows; a note quotes them. The columns `words` stay text, and
    `above` are cells of the first column above the frame."""
    rows = len(frame)
    if rows + len(above) < 2 or frame.shape[1] < 2 or not rows or is_numeric_dtype(frame.dtypes.iloc[0]):
        return frame
    last = frame.iloc[-1, 0]
    if isinstance(last, str) and is_data(last.strip()):  # as in most tables
        return frame
    start = max(0, rows - MOST_FOOTERS - ABOVE)
    end = frame.iloc[start:]
    first = as_text(end.iloc[:, 0]).where(end.iloc[:, 0].notna(), "").str.strip().tolist()
    before = [*above, *first]
    last = next((n for n in range(len(before), 0, -1) if is_data(before[n - 1])), 0)  # one past the last dated row
    dated = 2 * sum(map(is_data, before[max(0, last - ABOVE) : last])) > min(last, ABOVE)
    stop = len(end)
    while stop + len(above) > 1 and stop and len(end) - stop < MOST_FOOTERS:
        others = [str(cell).strip() for cell in end.iloc[stop - 1, 1:] if not pd.isna(cell)]
        total = dated and not first[stop - 1] and bool(others) and _holds_sums(frame, start + stop - 1)
        if not total and not _is_footer(first[stop - 1], others, dated):
            break
        first[stop - 1] = first[stop - 1] or ", ".join(others)
        stop -= 1
    if stop == len(end):
        return frame
    gone = [cell for cell in first[stop:] if cell]
    kept = frame.iloc[: start + stop]
    kept = kept.assign(**{str(name): _numeric(kept[name]) for name in kept.columns if name not in words})
    what = f"its last {len(end) - stop} rows are" if len(end) - stop > 1 else "its last row is"
    shown = ", ".join(f"'{quote(cell[:60])}'" for cell in gone[:2]) + ", ..." * (len(gone) > 2)
    note = f"{what} left out as a footer ({shown or 'empty'})"
    kept = kept.infer_objects()
    kept.attrs = {**frame.attrs, NOTES: (*frame.attrs.get(NOTES, ()), note)}
    return kept


def without_headers(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame without rows that repeat its header between two others, as in files that were joined; a note says so."""
    names, first = list(map(str, frame.columns)), frame.iloc[:, 0]
    cells = first.cat.categories if isinstance(first.dtype, pd.CategoricalDtype) else first
    if is_numeric_dtype(first) or not (cells == names[0]).any():
        return frame
    rows = [row for row in np.flatnonzero(first == names[0]) if as_text(frame.iloc[row]).str.strip().tolist() == names]
    again = [row for row in rows if not row or frame.iloc[row - 1].notna().sum() > 1]  # no title of another table
    if not again:
        return frame
    kept = frame.drop(index=frame.index[again]).reset_index(drop=True)
    kept = kept.assign(**{name: _numeric(kept[name]) for name in names[1:]})
    what = "1 row that repeats" if len(again) == 1 else f"{len(again)} rows that repeat"
    kept.attrs = {**frame.attrs, NOTES: (*frame.attrs.get(NOTES, ()), f"{what} its header {are(len(again))} left out")}
    return kept


def _holds_sums(frame: pd.DataFrame, place: int) -> bool:
    """Return whether a row holds the sum of the rows above it in a column."""
    for n in range(1, frame.shape[1]):
        cells = as_text(frame.iloc[: place + 1, n]).str.replace(",", "")
        *above, total = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=np.float64)
        if len(above) > FEWEST and total and abs(np.nansum(above) - total) <= SAME * abs(total):
            return True
    return False


def _is_footer(cell: str, others: Sequence[str], dated: bool) -> bool:
    """Return whether a row is below the table, from its first cell and the filled ones of the others; `dated` tells
    whether the rows above begin with dates or numbers."""
    if not cell:
        return not others
    if is_data(cell):
        return False
    if cell.lower() in _EMPTY:
        return False
    if dated:  # words of a remark may be in several cells
        wordy = not any(map(_NUMBER.fullmatch, others)) and not any(other.lower() in _EMPTY for other in others)
        return wordy or bool(TOTALS.fullmatch(cell.rstrip(": ")) or _REMARKS.match(cell))
    return not others and bool(_REMARKS.match(cell))


def _numeric(column: pd.Series) -> pd.Series:
    """The column as numbers if text that is left has none but numbers."""
    if is_numeric_dtype(column.dtype) or pd.api.types.is_datetime64_any_dtype(column):
        return column
    cells = column.drop_duplicates().dropna()
    if not len(cells) or pd.to_numeric(as_text(cells), errors="coerce").isna().any():
        return column
    return pd.to_numeric(as_text(column), errors="coerce")
