"""What a forecast is made from: the last rows of a user's table, checked, on their grid, and the way back into its form."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.data.form import USUAL, Form
from femts.data.frames import check_frame, check_values
from femts.data.recent import last_stamps
from femts.errors import GapWarning, UsageError
from femts.runs import RunConfig


@dataclass(frozen=True)
class LookBack:
    """The L steps that a model reads, C channels.

    Attributes:
        values: (L, C) float64, raw units, NaN where a value is missing.
        when: stamps of the L steps, or their numbers for data without stamps.
        time: what the table calls its stamps.
        long: the columns of a table in long form, in its order; empty for a wide one.
    """

    values: NDArray[np.float64]
    when: pd.Index
    time: str
    long: tuple[str, ...]


def look_back(history: pd.DataFrame, config: RunConfig, columns: Sequence[str], freq: str | None) -> LookBack:
    """The last `config.seq_len` steps of `history`, which has `columns` at the step `freq` (None without stamps).

    Raises:
        UsageError: the history cannot be used; the text says why.

    Warns:
        GapWarning: values are missing.
    """
    needed, form = config.seq_len, config.form
    if not isinstance(history, pd.DataFrame):
        raise UsageError(f"The history is a {type(history).__name__}; give a DataFrame with the training columns.")
    time, long = form.time_of(history), form.is_long(history)
    given = tuple(map(str, history.columns)) if long else ()
    if long:
        history = last_stamps([history], needed, freq, form)
        where = f"The recent history ({len(history)} rows)"
        history, form = check_frame(history, None, freq, where, config.na, form), USUAL
    if len(history) < needed:
        raise UsageError(f"The history has {len(history)} rows, but this model looks back {needed}; give that many.")
    recent = history.tail(needed)
    where = f"The recent history ({needed} rows)"
    if freq is None:
        values = check_values(recent, columns, where, config.na)
        last = history.index[-1]
        stop = int(last) + 1 if isinstance(last, (int, np.integer)) else len(history)
        when: pd.Index = pd.RangeIndex(stop - needed, stop)
    else:
        values = check_frame(recent, columns, freq, where, config.na, form).tail(needed)
        when = pd.Index(values.pop("date"))
    _tell_gaps(values, where)
    return LookBack(values.to_numpy(), when, time, given)


def in_form_of(forecast: pd.DataFrame, past: LookBack, form: Form, columns: Sequence[str]) -> pd.DataFrame:
    """A wide `forecast` (`date` or `step` first, then `columns`, each with its bounds) as the history was, under its names."""
    if not past.long:
        return forecast.rename(columns={"date": past.time})
    long = form.to_long(forecast, columns)
    return long[[*past.long, *long.columns[3:]]]


def _tell_gaps(values: pd.DataFrame, where: str) -> None:
    """Warn of missing values, and refuse a column without any."""
    missing = values.isna()
    for name in values.columns[missing.all()]:
        raise UsageError(f"{where} has no value in column '{name}'; at least one is needed to forecast from.")
    if missing.to_numpy().any():
        first = values.columns[missing.any()][0]
        warnings.warn(
            f"{where} lacks {int(missing.to_numpy().sum())} of {values.size} values, the first in column '{first}'; the last "
            "value before each is read instead.",
            GapWarning,
            stacklevel=4,
        )
