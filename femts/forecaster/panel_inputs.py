"""Steps to come of the series of a panel, what is known of them in advance, and what is to be said of the series."""

from __future__ import annotations

import warnings
from collections.abc import Container, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.data.check import check_unique, check_values
from femts.data.columns import to_frame
from femts.data.frequency import future_dates, past_date
from femts.data.panel import Panel
from femts.data.panel_series import number_series
from femts.data.stamps import read_dates
from femts.errors import AgeWarning, GapWarning, UsageError
from femts.forecaster.inputs import check_clock, check_known
from femts.text import shown

WHERE = "The table of known columns"


def ends_of(panel: Panel) -> list[Any]:
    """The last stamp of each series."""
    return [data.dates[-1] for data in panel.series.values() if data.dates is not None]


def steps_ahead(panel: Panel, steps: int) -> list[pd.Index]:
    """The stamps of `steps` steps after the end of each series."""
    ends = ends_of(panel)
    ahead = {last: future_dates(last, panel.freq, steps) for last in dict.fromkeys(ends)}
    return [ahead[last] for last in ends]


def tell_stopped(panel: Panel, most: int) -> None:
    """Warn of series that end more than `most` steps before the last one does: their forecasts are of the past."""
    ends = ends_of(panel)
    last = max(ends)
    first = past_date(last, panel.freq, most)
    stopped = [(name, end) for name, end in zip(panel.series, ends, strict=True) if end < first]
    if stopped:
        name, end = stopped[0]
        text = (
            f"{len(stopped)} of {len(ends)} series ended more than {most} steps before {last}, the first "
            f"'{shown(name)}' at {end}; a forecast begins where its series ends."
        )
        warnings.warn(text, AgeWarning, stacklevel=5)


def tell_young(panel: Panel, learned: Container[str], length: int) -> None:
    """Warn of series of which less is known than intervals take for granted: `learned` ones shorter than a season, and
    others, whose scale is that of their own rows, shorter than the look-back of `length`."""
    enough = {name: min(length, panel.season) if name in learned else length for name in panel.series}
    young = [(name, len(data.values)) for name, data in panel.series.items() if len(data.values) < enough[name]]
    if young:
        name, rows = young[0]
        text = (
            f"{len(young)} of {len(enough)} series are too short for intervals that hold, the first '{shown(name)}' of "
            f"{rows} rows; read them as too narrow up to {length} rows."
        )
        warnings.warn(text, GapWarning, stacklevel=5)


def known_ahead_of(
    panel: Panel, future: pd.DataFrame | None, ahead: Sequence[pd.Index], freq: str | None
) -> NDArray[np.float64] | None:
    """The columns known in advance at the stamps `ahead` of each series, (S, steps, K), from a user's long table.

    None where nothing is known in advance; K is 0 where the calendar alone is.

    Raises:
        UsageError: the table is missing or lacks one of these values, which nobody may guess; or it is not wanted.
    """
    roles, steps = panel.schema.roles, len(ahead[0])
    names = roles.future
    needed = f"{', '.join(map(shown, names))} for the {steps} steps after the end of each series"
    future = check_known(future, names, needed)
    if future is None:
        return np.empty((len(ahead), steps, 0)) if roles.calendar else None
    index = pd.MultiIndex.from_arrays(
        [np.repeat(np.array(list(panel.series), dtype=object), steps), ahead[0].append(list(ahead[1:]))]
    )
    values = _table(future, panel, freq, index).reindex(index).to_numpy(dtype=np.float64)
    missing = np.argwhere(np.isnan(values))
    if len(missing):
        row, column = missing[0]
        series, stamp = index[row]
        raise UsageError(
            f"{WHERE} has no '{shown(names[column])}' of series '{shown(series)}' at {stamp}; give {needed}."
        )
    return values.reshape(len(ahead), steps, len(names))


def _table(future: pd.DataFrame, panel: Panel, freq: str | None, needed: pd.MultiIndex) -> pd.DataFrame:
    """The known columns by series and stamp, where these are `needed`; nothing is asked of the other rows."""
    form, names = panel.schema.form, panel.schema.roles.future
    frame = to_frame(future, WHERE, form)
    frame = frame.set_axis([str(column) for column in frame.columns], axis=1)
    check_unique(frame.columns, WHERE)
    time = form.time or "ds"
    lacking = next((name for name in (form.series, time, *names) if name not in frame.columns), None)
    if lacking is not None:
        raise UsageError(f"{WHERE} has no column '{shown(lacking)}'; give {form.series}, {time}, {', '.join(names)}.")
    codes, series = number_series(frame[form.series], WHERE)
    dates = read_dates(frame[time], WHERE, freq)
    check_clock(dates, needed.levels[1], WHERE)
    keys = np.array(series, dtype=object)[codes] if series else np.empty(0, dtype=object)
    stamped = pd.MultiIndex.from_arrays([keys, dates])
    rows = np.asarray(stamped.isin(needed))
    where = WHERE if rows.all() else f"{WHERE} ({int(rows.sum())} rows for these steps)"
    values = check_values(frame.loc[rows, list(names)], names, where, panel.schema.na)
    table = values.set_axis(stamped[rows], axis=0)
    again = table.index.duplicated()
    if again.any():
        row = int(np.argmax(again))
        key, stamp = table.index[row]
        raise UsageError(f"{where} gives series '{shown(key)}' twice at {stamp} (data row {row + 1}); keep one.")
    return table
