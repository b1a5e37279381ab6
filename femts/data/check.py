"""Validation of users' tables; errors are one sentence that says what is wrong and where."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.data.column_names import ROW
from femts.data.columns import DOUBTS, is_named_date
from femts.data.describe import count
from femts.data.pieces import columns_at_once
from femts.data.schema import Schema
from femts.data.stamps import are_clocks, as_text, whole_numbers
from femts.data.units import measured, share_unit
from femts.errors import TableFault, UsageError
from femts.text import Blank, arguments, quote

_THOUSANDS_BY_POINTS = r"[+-]?\d{1,3}(?:\.\d{3})+"
_BLANK = "[ '\u2019\u00a0\u202f]"
_THOUSANDS_BY_BLANKS = rf"[+-]?(?!0)\d{{1,3}}(?:{_BLANK}\d{{3}})+(?:[.,]\d+)?"
LARGEST = 3.4e38  # largest number in single precision
_THOUSANDS = re.compile(
    r"[+-]?\d{1,3}(?:(,\d{3})+\.\d+|(\.\d{3})+,\d+|([.,]\d{3}){2,}|([ '\u00a0\u202f]\d{3})+([.,]\d+)?)"
)


WITH_UNIT = re.compile(r"[€$£]?\s*[+-]?\d[\d.,]*\s*[a-zA-Z%°µ€$£][a-zA-Z0-9%°µ€$£²³/]{0,7}|[€$£]\s*[+-]?\d[\d.,]*")
CURRENCIES = "€$£¥"
_AMOUNT = re.compile(
    rf"^(?P<opening>\(?)\s*(?P<sign>[+-]?)\s*(?P<before>[{CURRENCIES}]?)\s*(?P<digits>\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|\d+(?:\.\d+)?)"
    rf"\s*(?P<after>[%{CURRENCIES}]?)\s*\)?[*#\u2020\u2021]*$"
)
MOST_WORDS = 5  # distinct words among numbers that a message offers to read as missing
_NO_WORD = r"[\W_]+"  # such as *** or ...
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
    "not available",
    "no data",
    "missing",
    "nil",
    r"\n",
    "-",
    "--",
    "\u2013",
    "?",
    ".",
)


def without_stamps(frame: pd.DataFrame, schema: Schema, where: str) -> UsageError:
    """Error for a table whose time stamp column is unknown."""
    names = schema.form
    time = names.time_of(frame)
    numbers = (frame.iloc[:, n] for n in range(frame.shape[1]) if pd.api.types.is_numeric_dtype(frame.iloc[:, n]))
    may_count = any(is_named_date(each.name) or whole_numbers(each) is not None for each in numbers)
    others = {key: name for key, name in names.given().items() if key != "time"}
    remedy = {"columns": others or None} if names.time is not None else {"columns": {**others, "time": ROW}}
    fault = f"{where} has no '{quote(time)}' column (it has {listed(frame.columns)})"
    advice = (
        f"; rename the time stamp column, or name it with {arguments({'columns': {'time': Blank('NAME')}})} when training; "
        f"if rows have no stamps but are in time order, number them with {arguments({'columns': {**others, 'time': ROW}})}; or provide the "
        f"columns {names.series}, {names.time or 'ds'}, {names.value}."
    )
    if names.time is None and may_count:
        return UsageError(fault + advice)
    blame: dict[str, Any] = {} if names.time is None else {"argument": "columns", "value": names.given()}
    return TableFault(fault, advice, remedy, **blame)


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
    """Return the value columns as float64 with names of type str, in the order of `columns` if given; see
    `checked_numbers`."""
    names = list(map(str, frame.columns)) if columns is None else list(columns)
    return pd.DataFrame(checked_numbers(frame, columns, where, na), columns=names, copy=False)


def checked_numbers(
    frame: pd.DataFrame, columns: Sequence[str] | None = None, where: str = "The frame", na: Sequence[float] = ()
) -> NDArray[np.float64]:
    """Return the numbers (N, K) of the value columns, in the order of `columns` if given.

    Missing values, and the numbers `na`, become NaN.

    Raises:
        UsageError: The columns differ from `columns`, or a cell is text, infinite or beyond float32; the message says
            which.
    """
    if not all(type(name) is str for name in frame.columns):
        frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    check_unique(frame.columns, where)
    if columns is not None:
        missing = [c for c in columns if c not in frame.columns]
        unknown = [c for c in frame.columns if c not in columns]
        if missing or unknown:
            differences = [f"lacks {listed(missing)}"] * bool(missing) + [f"has {listed(unknown)} besides"] * bool(
                unknown
            )
            what = " and ".join(differences)
            raise UsageError(f"{where} {what}; give the columns of the training data, {listed(columns)}.")
        frame = frame if list(frame.columns) == list(columns) else frame[list(columns)]
    if not len(frame.columns):
        raise UsageError(f"{where} has no value columns; add at least one column of numbers.")
    numbers = _all_numbers(frame, where, na)
    ends = [bound.reduce(numbers, axis=None, initial=0.0) for bound in (np.fmin, np.fmax)]  # without a copy
    if max(map(abs, ends)) > LARGEST:
        raise _too_large(numbers, frame.columns, where)
    return numbers


def _too_large(numbers: NDArray[np.float64], columns: pd.Index, where: str) -> UsageError:
    """The error for infinite `numbers` (N, K) or, if there are none, for those beyond single precision."""
    infinite = np.isinf(numbers)
    row, column = np.argwhere(infinite if infinite.any() else np.abs(numbers) > LARGEST)[0]
    place = f"in column '{quote(columns[column])}' at data row {row + 1}"
    if not infinite.any():
        return UsageError(
            f"{where} has {numbers[row, column]:g} {place}, which exceeds single precision ({LARGEST:g}); use a larger unit, "
            "or leave the cell empty."
        )
    return TableFault(
        f"{where} has {count(int(infinite.sum()), 'infinite cell')}, the first {place}",
        "; replace them by numbers, or leave them empty.",
        column=str(columns[column]),
    )


def check_unique(names: Sequence[str], where: str) -> None:
    """Raise UsageError if two columns have the same name."""
    seen = set[str]()
    for name in names:
        if name in seen:
            raise UsageError(f"{where} has two columns named '{quote(name)}'; rename one.")
        seen.add(name)


def listed(names: Sequence[Any]) -> str:
    """The first of `names` in quotation marks, and how many more there are."""
    some = ", ".join(f"'{quote(name)}'" for name in list(names)[:6]) or "nothing"
    return some if len(names) <= 6 else f"{some} and {len(names) - 6} more"


def parsed(column: pd.Series, na: Sequence[float] = ()) -> tuple[NDArray[np.float64], NDArray[np.bool_] | None]:
    """Numbers of a column, (N,), NaN for missing values (also text such as `-`) and for the numbers in `na`; and a mask
    of other text, None if there is none."""
    if isinstance(column.dtype, pd.SparseDtype):
        column = column.sparse.to_dense()
    kind = column.dtype
    if pd.api.types.is_bool_dtype(kind) or (pd.api.types.is_numeric_dtype(kind) and kind.kind != "c"):
        return _without(column.to_numpy(dtype=np.float64, na_value=np.nan), na, kind), None
    text = as_text(column)  # otherwise dates and the like would become their internal numbers
    numbers = pd.to_numeric(text, errors="coerce")
    if numbers.isna().any() and (pointed := with_decimal_points(text)) is not None:
        text, numbers = pointed, pd.to_numeric(pointed, errors="coerce")
    bare = text.str.strip().str.lower()
    unread = (numbers.isna() & column.notna() & ~(bare.isin(MISSING) | bare.str.fullmatch(_NO_WORD))).to_numpy()
    if unread.any() and (amounts := _amounts(bare[unread])) is not None:
        numbers, unread = numbers.where(~unread, amounts.reindex(numbers.index)), np.zeros(len(text), dtype=np.bool_)
    elif unread.any() and numbers.isna().all() and (found := measured(text[unread].str.strip())) is not None:
        numbers[unread], unread = found.numbers, np.zeros(len(text), dtype=np.bool_)
    return _without(numbers.to_numpy(dtype=np.float64), na), unread if unread.any() else None


def with_decimal_points(text: pd.Series) -> pd.Series | None:
    """Cells such as 1.234,56, 1 234,56 and 7,5 as 1234.56 and 7.5; None unless every blank within a number, or else every
    point, separates thousands, which is clear if a number has both marks."""
    cells = text.drop_duplicates().str.strip()
    spaced = cells[cells.str.contains(rf"\d{_BLANK}\d", regex=True)]
    if len(spaced) and spaced.str.fullmatch(_THOUSANDS_BY_BLANKS).all():
        whole = text.str.replace(rf"(?<=\d){_BLANK}(?=\d)", "", regex=True)
        commas, points = (cells.str.contains(rf"\d\{mark}\d").any() for mark in ",.")
        return None if commas and points else whole.str.replace(r"(?<=\d),(?=\d)", ".", regex=True)
    pointed = cells[cells.str.contains(r"\d\.|\.\d", regex=True)]
    if not pointed.str.fullmatch(rf"{_THOUSANDS_BY_POINTS},\d+").any():
        return None
    if not pointed.str.fullmatch(rf"{_THOUSANDS_BY_POINTS}(?:,\d+)?").all():
        return None
    return text.str.replace(r"(?<=\d)\.(?=\d)", "", regex=True).str.replace(",", ".", regex=False)


def _amounts(text: pd.Series) -> pd.Series | None:
    """Numbers in `text` such as $1,234.50, (1,234.50), 12 % or 14.3*; None unless all cells are, and commas certainly
    separate thousands."""
    parts = text.str.extract(_AMOUNT)
    if parts["digits"].isna().any():
        return None
    commas = parts["digits"].str.count(",")
    sure = (
        (commas > 1)
        | (parts["digits"].str.contains(".", regex=False))
        | parts["before"].ne("")
        | parts["after"].isin(list(CURRENCIES))
    )
    if commas.any() and not sure[commas > 0].any():
        return None
    minus = parts["sign"].eq("-") | parts["opening"].eq("(")
    return parts["digits"].str.replace(",", "").astype(np.float64) * np.where(minus, -1.0, 1.0)


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
            rows = seen.setdefault(name, {})
            if "" in rows:
                continue
            cells = piece[name].dropna().drop_duplicates().str.strip()
            cells = cells[cells.str.lower() != "nan"]
            if not cells.str.fullmatch(doubtful).all():
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
    if dtype is None or not pd.api.types.is_float_dtype(dtype) or dtype.itemsize >= 8:
        return list(na)
    with np.errstate(over="ignore"):
        held = np.array(na).astype(f"f{dtype.itemsize}").astype(np.float64)
    return held[np.isfinite(held)].tolist()


def _without(numbers: NDArray[np.float64], na: Sequence[float], dtype: Any = None) -> NDArray[np.float64]:
    """Numbers with NaN in place of the numbers `na`, as a column of `dtype` stores them."""
    return np.where(np.isin(numbers, sentinels(na, dtype)), np.nan, numbers) if na else numbers


def numbers_of(column: pd.Series, name: str, where: str, na: Sequence[float] = ()) -> NDArray[np.float64]:
    """Numbers of a column, NaN for missing values and those in `na`; UsageError for text that is not a number."""
    numbers, unread = parsed(column, na)
    check_marks(column, name, where)
    if unread is not None:
        row = int(np.argmax(unread))
        text = quote(column.iloc[row])
        remedy = "enter a number, or leave the cell empty"
        cells = as_text(column[unread]).str.strip()
        if share_unit(cells) and measured(cells) is None:
            remedy = "write its numbers with decimals, or without thousands separators, to tell one from the other"
        elif _THOUSANDS.fullmatch(text.strip()) or re.fullmatch(r"[+-]?\d{1,3},\d{3}", text.strip()):
            remedy = "remove thousands separators"
        elif WITH_UNIT.fullmatch(text.strip()):
            remedy = "write numbers without units, or all with the same"
        elif words := words_among_numbers(column):
            given = [*map(_short, na), *words]
            remedy = f"if such text means a missing value, give {arguments({'na': given})}; otherwise {remedy}"
        fault = f"{where} has the text '{text}' in column '{quote(name)}' at data row {row + 1}"
        if _AMOUNT.match(text.strip().lower()) or WITH_UNIT.fullmatch(text.strip()):
            raise UsageError(f"{fault}; {remedy}.")  # which is read as a number if the other rows are alike
        raise TableFault(fault, f"; {remedy}.", column=name)
    return numbers


def words_among_numbers(column: pd.Series) -> list[str]:
    """The few words without digits in a column that otherwise has numbers; none if it has other text."""
    numbers, unread = parsed(column)
    if unread is None or not np.isfinite(numbers).any():
        return []
    words = as_text(column[unread]).str.strip().drop_duplicates()
    return words.tolist() if len(words) <= MOST_WORDS and not words.str.contains(r"[\d'\[\]]").any() else []


def _short(number: float) -> float:
    return int(number) if number == int(number) else number


def _all_numbers(frame: pd.DataFrame, where: str, na: Sequence[float]) -> NDArray[np.float64]:
    """Numbers of all columns, converted together per data type, because there may be very many columns, and without a
    copy, because there may be very many rows."""
    numbers = np.empty(frame.shape)
    kinds = frame.dtypes.to_numpy()
    for kind in dict.fromkeys(kinds):
        (places,) = np.nonzero(kinds == kind)
        if isinstance(kind, np.dtype) and kind.kind in "biuf":
            each = columns_at_once(len(frame))
            for some in (places[first : first + each] for first in range(0, len(places), each)):
                alike = frame if len(some) == len(kinds) else frame.iloc[:, some]
                numbers[:, some] = _without(alike.to_numpy(np.float64), na, kind) if na else alike.to_numpy()
            continue
        for place in places:
            numbers[:, place] = numbers_of(frame.iloc[:, place], frame.columns[place], where, na)
    return numbers
