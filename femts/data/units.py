"""Units within cells, such as 4,7°C or 12 kWh."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.data.marks import MARKS

_PLAIN = (  # only known ones, because letters behind a number may as well be part of a code
    r"(?:[kMGTPm\u00b5\u03bcunhcd]?(?:Wh|Wp|W|VAh|VArh|VAr|VA|Ah|A|V|Hz|Pa|bar|g|m|s|l|L|J|N|B|bit|eV|mol|\u2126|\u03a9)|"
    r"lx|lm|K|C|F|h|min|hrs?|days?|mph|kph|kmh|kn|kts?|knots|ft|in|inHg|mi|lbs?|oz|psi|gal|ppmv?|ppb|rpm|dBm?|mmHg|atm|ha|t|"
    r"USD|EUR|GBP|CHF|JPY|Euro|percent|Prozent|%|\u2030|(?:\u00b0|\u00ba|deg) ?[CFK]?|\u2103|\u2109)[23\u00b2\u00b3]?"
)
_UNIT = rf"{_PLAIN}(?:[/\u00b7]{_PLAIN})?|[\u20ac$\u00a3\u00a5]"
_MARK = "|".join(re.escape(mark) for mark in sorted(MARKS, key=len, reverse=True))
_CELL = rf"^(?P<before>[\u20ac$\u00a3\u00a5]?)\s*(?:(?P<number>[+-]?\d[\d.,]*)|(?i:{_MARK}))\s*(?P<after>{_UNIT})?$"
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
    if not len(text) or not re.match(_CELL, text.iloc[0]):
        return None
    parts = text.str.extract(_CELL)
    number, units = parts["number"], parts["before"].fillna("") + parts["after"].fillna("")
    units = units[number.notna() | units.ne("")]
    given = number.dropna()
    if parts["before"].isna().any() or not (len(given) or unit) or units.nunique() != 1 or units.iloc[0] == "":
        return None
    decimal = "," if given.str.contains(",", regex=False).any() else "."
    other = "." if decimal == "," else ","
    if given.str.contains(other, regex=False).any() or (given.str.count(re.escape(decimal)) > 1).any():
        return None
    if given.str.contains(decimal, regex=False).any() and given.str.fullmatch(_DOUBTFUL).all():
        return None
    read = pd.to_numeric(number.str.replace(",", ".", regex=False), errors="coerce")
    return Measured(read.to_numpy(dtype=np.float64), str(units.iloc[0]))
