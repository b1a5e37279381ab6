"""Words that stand for missing values in columns of numbers."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

# In lower case. Each means in any column of numbers that there is none; others, such as `calm`, `trace` or `closed`, may
# stand for a value.
MARKS = frozenset(
    (
        *("mq", "manquant", "manquante", "n.d.", "n.d", "nd", "n/d", "nv", "n.v.", "s/d", "sin dato", "sin datos", "m"),
        *("k.a.", "k. a.", "ausfall", "keine daten", "kein wert", "kein wert vorhanden", "no value", "nodata", "(na)"),
        *("err", "error", "fehler", "invalid", "bad", "fault", "failed", "failure", "offline"),
        *("unavailable", "unknown"),
        *("#n/v", "#nv", "#n/d", "#wert!", "#value!", "#div/0!", "#ref!", "#num!", "#null!", "#name?"),
    )
)


SOME = 50  # distinct cells that show whether a column may have numbers
FEWEST, FEWEST_WHOLE = 3, 20  # distinct numbers beside marks; more if all are whole, because they may be names


def known_marks(frame: pd.DataFrame) -> dict[str, list[str]]:
    """Columns by each of `MARKS` in them, as it is written, that otherwise have numbers or no cells."""
    found = dict[str, list[str]]()
    for place, name in enumerate(map(str, frame.columns)):
        column = frame.iloc[:, place]
        if is_numeric_dtype(column) or column.dtype.kind in "mM":
            continue
        try:
            cells = (
                column.dtype.categories if isinstance(column.dtype, pd.CategoricalDtype) else pd.unique(column.dropna())
            )
        except TypeError:  # cells that cannot be compared, such as lists
            continue
        some = pd.Series(cells[:SOME], dtype=object)  # most columns of text begin with neither
        if not (_numbers(some).notna() | some.isin(MARKS)).any():
            continue
        text = pd.Series(cells, dtype=object)
        words = text[[isinstance(cell, str) and cell.strip().lower() in MARKS for cell in text]]
        if not len(words):
            continue
        numbers = _numbers(text.drop(words.index))
        whole = bool((numbers == np.floor(numbers)).all())
        if numbers.notna().all() and len(numbers) >= (FEWEST_WHOLE if whole else FEWEST):
            for word in words.str.strip().drop_duplicates():
                found.setdefault(word, []).append(name)
    return found


def without_marks(frame: pd.DataFrame, marks: Collection[str], keep: Collection[str | None] = ()) -> pd.DataFrame:
    """The frame with cells that are one of the words `marks`, in any case, missing, and columns of which only numbers are
    left as numbers; the columns `keep` are unchanged."""
    if not marks:
        return frame
    lower, made = {mark.strip().lower() for mark in marks}, dict[int, pd.Series]()
    for place, name in enumerate(frame.columns):
        column = frame.iloc[:, place]
        if str(name) in keep or is_numeric_dtype(column) or column.dtype.kind in "mM":
            continue
        codes, cells = pd.factorize(column)
        bare = pd.Series(cells, dtype=object).map(lambda cell: cell.strip().lower() if isinstance(cell, str) else cell)
        marked = bare.isin(lower).to_numpy(dtype=bool)
        if not marked.any():
            continue
        left = pd.Series(np.asarray(cells, dtype=object)).where(~marked, None)
        numbers = _numbers(left)
        coded = left.map(lambda cell: isinstance(cell, str) and cell.strip()[:1] == "0" and cell.strip().isdigit())
        whole = (numbers.notna().to_numpy() | marked).all() and not (coded & (left != "0")).any()
        values = (numbers if whole else left).reindex(codes).to_numpy()  # a missing cell has code -1
        made[place] = pd.Series(values, index=column.index)
    if not made:
        return frame
    kept = frame.copy(deep=False)
    for place, column in made.items():
        kept.isetitem(place, column)
    kept.attrs = frame.attrs
    return kept


def _numbers(cells: pd.Series) -> pd.Series:
    """Cells as numbers, NaN where they are none; as text, because pandas fails on whole numbers beyond float64."""
    return pd.to_numeric(cells.map(str, na_action="ignore"), errors="coerce")
