"""What to tell a user whose table cannot be forecast as it is."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd

from femts.data.categories import MOST_CATEGORIES
from femts.data.check import WITH_UNIT, listed, words_of
from femts.data.columns import whole_numbers
from femts.data.rows import Rows
from femts.data.stamps import as_text
from femts.errors import UsageError
from femts.text import quote

MOST_KEYS = 6  # columns tried as numbers of series


def check_words(rows: Rows) -> None:
    """Raise UsageError for text columns in a wide table, which may be series names of a long one."""
    names, where = rows.schema.form, rows.where
    keys = [name for name in names.keys if name in rows.columns] if names.series in rows.columns else []
    frame = rows.frame.drop(columns=[names.series] if keys else [])
    words = words_of(frame)
    if not words:
        return
    numbers = [name for name in frame.columns if name not in (names.series, *keys, *words)]
    if rows.stamps.has_duplicates and numbers:
        text = f"{where} has several rows per date and text in {listed(words)}; if the text names"
        raise several_per_date(text, rows, series_keys(rows, keys or words))
    row = int(frame[words[0]].notna().to_numpy().argmax())
    first = [quote(name) for name in numbers[:6]]
    covariate = ", declare it as a covariate (past_covariates or future_covariates)" * (
        as_text(frame[words[0]]).nunique() <= MOST_CATEGORIES
    )
    leave = f"{covariate}, or name the columns to forecast with target={first}"
    text = quote(frame[words[0]].iloc[row])
    unit = "write numbers without units, or " * bool(WITH_UNIT.fullmatch(text.strip()))
    raise UsageError(
        f"{where} has the text '{text}' in column '{quote(words[0])}' at data row {row + 1}; {unit}remove the column"
        f"{leave if numbers else ''}."
    )


def series_keys(rows: Rows, words: Sequence[str]) -> list[str]:
    """The columns of a long table that may name its series: `words`, and at most two of whole numbers if these are
    needed to tell all rows of a time stamp apart; without `words`, none unless many time stamps repeat."""
    frame, stamps = rows.frame, pd.Series(rows.stamps, rows.frame.index, name="stamps")
    numbers = [name for name in frame.columns if name not in words]
    counts = {name: frame[name].nunique() for name in numbers if whole_numbers(frame[name]) is not None}
    whole = sorted([name for name in counts if 3 * counts[name] <= len(frame)], key=counts.__getitem__)[:MOST_KEYS]
    if not words and 4 * np.count_nonzero(stamps.duplicated()) < len(frame):
        return []
    choices = [[*words, *more] for n in range(3) for more in itertools.combinations(whole, n) if n < len(numbers)]
    keys = [each for each in choices if each and not pd.concat([stamps, frame[each]], axis=1).duplicated().any()]
    return min(keys, key=lambda each: (len(each), len(frame[each].drop_duplicates())), default=list(words))


def several_per_date(text: str, rows: Rows, keys: Sequence[str]) -> UsageError:
    """Error for a long table that is read as a wide one; `text` begins the message."""
    frame = rows.frame
    values = [name for name in frame.columns if name not in (*keys, *words_of(frame))]
    counters = [name for name in values if frame[name].is_unique and whole_numbers(frame[name]) is not None]
    target = next((name for name in values if name not in counters), values[0])
    return UsageError(
        f"{text} the series, use columns={{'time': '{quote(rows.time)}', 'series': '{quote('+'.join(keys))}'}}, "
        f"target='{quote(target)}'."
    )
