"""Tables of Eurostat, whose first column joins several and whose numbers have flags."""

from __future__ import annotations

import re

import pandas as pd
from pandas.api.types import is_numeric_dtype

from femts.data.stamps import as_text

_HEADER = re.compile(r"[\w-]+(?:,[\w-]+)*\\(?:time|time_period)", re.IGNORECASE)
_FLAGGED = r"\s*([-+]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)\s+[a-z]{1,4}\s*|\s*([-+]?\d+(?:\.\d+)?)\s*"
_GAP = r"\s*:?\s*[a-z]{0,4}\s*"


def is_eurostat(header: list[str]) -> bool:
    """Return whether the first name of a header joins several, as in `freq,unit,geo\\TIME_PERIOD`."""
    return bool(header) and bool(_HEADER.fullmatch(header[0].strip()))


def unjoined(frame: pd.DataFrame) -> pd.DataFrame:
    """A table with the parts of its first column as columns, and numbers without flags, NaN where they are missing."""
    names = str(frame.columns[0]).strip().rpartition("\\")[0].split(",")
    parts = as_text(frame.iloc[:, 0]).str.split(",", n=len(names) - 1, expand=True)
    columns = {name: parts[n].str.strip() if n in parts else None for n, name in enumerate(names)}
    columns |= {str(name).strip(): _numbers(frame[name]) for name in frame.columns[1:]}
    made = pd.DataFrame(columns)
    made.attrs = frame.attrs
    return made


def _numbers(column: pd.Series) -> pd.Series:
    if is_numeric_dtype(column):
        return column
    text = as_text(column)
    if not text.dropna().str.fullmatch(f"{_FLAGGED}|{_GAP}").all():
        return column  # refused later
    return pd.to_numeric(text.str.extract(r"([-+]?\d[\d.eE+-]*)", expand=False), errors="coerce")
