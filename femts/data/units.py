"""Units within cells, such as 4,7°C or 1,234 kWh, and scales, such as 57.32K beside 1.2M."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.data.marks import MARKS

_PLAIN = (  # only known ones, because letters behind a number may as well be part of a code
    r"(?:[KMGTP]iB?|KB|[kKMG]?bps|[kMGTPm\u00b5\u03bcunhcd]?(?:Wh|Wp|W|VAh|VArh|VAr|VA|Ah|A|V|Hz|Pa|bar|g|m|s|l|L|J|N|B|bit|eV|mol|\u2126|\u03a9)|"
    r"lx|lm|K|C|F|h|min|hrs?|days?|mph|kph|kmh|kn|kts?|knots|ft|in|inHg|mi|lbs?|oz|psi|gal|ppmv?|ppb|rpm|dBm?|mmHg|atm|ha|t|"
    r"USD|EUR|GBP|CHF|JPY|Euro|percent|Prozent|%|\u2030|(?:\u00b0|\u00ba|deg) ?[CFK]?|\u2103|\u2109)[23\u00b2\u00b3]?"
)
_MONEY = r"R\$|[\u20ac$\u00a3\u00a5\u20b9]"
_UNIT = rf"{_PLAIN}(?:[/\u00b7]{_PLAIN})?|{_MONEY}|kr|z\u0142"
_MARK = "|".join(re.escape(mark) for mark in sorted(MARKS, key=len, reverse=True))
_BETWEEN = "['\u2019 \u00a0\u202f]"  # what separates thousands and nothing else
_NUMBER = rf"\d[\d.,]*(?:{_BETWEEN}\d{{3}})*(?:[.,]\d+)?"
_CELL = (
    rf"^(?P<sign>[+-]?)\s*(?P<before>(?:{_MONEY}|USD|EUR|GBP|CHF|JPY)?)\s*"
    rf"(?:(?P<number>[+-]?{_NUMBER})|(?i:{_MARK}))\s*(?P<after>{_UNIT})?$"
)
SCALED = "K, M, B"  # the unit of numbers such as 57.32K beside 1.2M
_ZEROS = {"": "e0", "k": "e3", "m": "e6", "b": "e9", "bn": "e9"}
_SCALED = rf"^(?P<number>[+-]?\d+(?:\.\d+)?)\s?(?P<scale>(?i:{'|'.join(filter(None, reversed(_ZEROS)))}))?$"
_DOUBTFUL = r"[+-]?(?:[1-9]\d{0,2}[.,]\d{3}|\d{1,3})"  # the mark could be a decimal or a thousands separator


class Measured(NamedTuple):
    """Cells that are numbers with the same unit.

    Attributes:
        numbers: the numbers, (N,), NaN for marks of missing values.
        unit: the unit.
    """

    numbers: NDArray[np.float64]
    unit: str


def measured(text: pd.Series, unit: str | None = None) -> Measured | None:
    """Read cells that all have the same unit; None for other cells, and for marks that could separate decimals or
    thousands.

    Args:
        text: stripped cells, (N,), none of them missing.
        unit: the unit if it is known, so that there may be marks of missing values alone.
    """
    if unit in (None, SCALED) and (numbers := _scaled(text, unit is not None)) is not None:
        return Measured(numbers, SCALED)
    parts = _parts(text, unit)
    if parts is None:
        return None
    number = parts["number"]
    read = _read(number.dropna())
    if read is None:
        return None
    minus = np.where(parts["sign"] == "-", -1.0, 1.0)
    found = str(parts["unit"].dropna().iloc[0])
    return Measured(read.reindex(number.index).to_numpy(dtype=np.float64) * minus, found)


def share_unit(text: pd.Series) -> bool:
    """Return whether all cells are numbers with the same unit, even if their marks could separate decimals or thousands;
    arguments as in `measured`."""
    return _scaled(text) is not None or _parts(text) is not None


def _scaled(text: pd.Series, sure: bool = False) -> NDArray[np.float64] | None:
    """Numbers with K, M or B behind them for thousands, millions or billions; None for other cells and, unless that is
    `sure`, for a single letter, which may be a unit, except for K beside numbers below 1000 without one; and for K beside
    B, which may be bytes."""
    if not len(text) or not re.match(_SCALED, text.iloc[0]):
        return None
    parts = text.str.extract(_SCALED)
    if parts["number"].isna().any():
        return None
    scales = parts["scale"].fillna("").str.lower()
    plain = parts["number"][scales == ""].astype(np.float64)
    kinds = set(scales)
    several = len(kinds - {""}) > 1 and not ("k" in kinds and kinds & {"b", "bn"})
    if not (sure or several or (kinds == {"", "k"} and (plain.abs() < 1000).all())):
        return None
    return (parts["number"] + scales.map(_ZEROS)).to_numpy(dtype=np.float64)


def _parts(text: pd.Series, unit: str | None = None) -> pd.DataFrame | None:
    """Sign, number and unit of each cell, NaN where there is none; None unless all have the same unit."""
    if not len(text) or not re.match(_CELL, text.iloc[0]):
        return None
    parts = text.str.extract(_CELL)
    units = parts["before"].fillna("") + parts["after"].fillna("")
    parts["unit"] = units.where(parts["number"].notna() | units.ne(""))
    units = parts["unit"].dropna()
    if parts["before"].isna().any() or not (parts["number"].notna().any() or unit):
        return None
    return None if units.nunique() != 1 or units.iloc[0] == "" else parts


def _read(cells: pd.Series) -> pd.Series | None:
    """Numbers that may have separators of thousands; None if the marks could separate decimals or thousands."""
    spaced = cells.str.contains(_BETWEEN, regex=True)
    cells = cells.str.replace(_BETWEEN, "", regex=True)
    ends = {mark: cells.str.rfind(mark) for mark in ".,"}
    both = (ends["."] >= 0) & (ends[","] >= 0)
    used = [mark for mark in ".," if (ends[mark] >= 0).any()]
    thousands = [mark for mark in used if (cells.str.count(re.escape(mark)) > 1).any()]  # as in 1.234.567
    for mark, other in ((".", ","), (",", ".")):
        if both.any() and (ends[mark] < ends[other])[both].all():
            thousands.append(mark)
    thousands = list(dict.fromkeys(thousands))
    if len(thousands) > 1 or len(used) - len(thousands) > 1:
        return None
    decimal = next((mark for mark in used if mark not in thousands), "")
    for mark in thousands:
        whole = cells.str.partition(decimal)[0] if decimal else cells
        if not whole.str.fullmatch(rf"[+-]?(?:\d{{1,3}}(?:{re.escape(mark)}\d{{3}})+|\d+)").all():
            return None
        cells = cells.str.replace(mark, "", regex=False)
    if decimal and not thousands and not spaced.any() and cells.str.fullmatch(_DOUBTFUL).all():
        return None
    return pd.to_numeric(cells.str.replace(",", ".", regex=False), errors="coerce")
