"""Steps on the calendar and wall clock of a time zone, where clocks are set forward and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.tseries.frequencies import to_offset

NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}  # in a unit of time stamps
_HOUR, _DAY = 3600 * 10**9, 24 * 3600 * 10**9  # nanoseconds


def instants(wall: pd.DatetimeIndex, zone: Any) -> pd.DatetimeIndex:
    """Times at which clocks of `zone` show `wall` times: the first of two where clocks are set back, and the moment of
    the change where they are set forward past it."""
    return wall.tz_localize(zone, ambiguous=np.ones(len(wall), dtype=np.bool_), nonexistent="shift_forward")


def follows_clock(freq: str) -> bool:
    """Return whether steps of `freq` begin at times of the wall clock, as days and steps of several hours do, rather
    than at equal distances."""
    offset = to_offset(freq)
    if not isinstance(offset, pd.offsets.Tick) or isinstance(offset, pd.offsets.Day):
        return True
    return offset.nanos > _HOUR and _DAY % offset.nanos == 0


def share_of_day(stamps: pd.DatetimeIndex) -> NDArray[np.float64]:
    """Part of the day, from 0 to 1, that clocks show at `stamps`, (n,)."""
    day = _DAY // NANOSECONDS[stamps.unit]
    return stamps.tz_localize(None).asi8 % day / day


def dates_at(freq: str, start: Any = None, end: Any = None, periods: int | None = None) -> pd.DatetimeIndex:
    """Time stamps as of `pandas.date_range`, for two of `start`, `end` and `periods`.

    In a time zone, steps that `follows_clock` are those of the wall clock, unless they are hours that do not count from
    midnight.
    """
    one = start if start is not None else end
    if one.tz is None or not follows_clock(freq) or (anchor := _anchor(one, freq)) is None:
        return pd.date_range(start, end, periods, freq=freq)
    if periods is None:
        found = instants(pd.date_range(anchor, end.tz_localize(None), freq=freq), one.tz).unique()
        return found[(found >= start) & (found <= end)]
    if start is None:
        return instants(pd.date_range(end=anchor, periods=periods, freq=freq), one.tz)
    return instants(pd.date_range(anchor, periods=periods, freq=freq), one.tz)


def _anchor(stamp: pd.Timestamp, freq: str) -> pd.Timestamp | None:
    """The time on the wall clock of a step that begins at `stamp`, which differs from what it shows if clocks are set
    forward then; None for hours that do not count from midnight."""
    offset, wall = to_offset(freq), stamp.tz_localize(None)
    even = isinstance(offset, pd.offsets.Tick) and not isinstance(offset, pd.offsets.Day)
    begin = wall.floor(offset) if even else wall.normalize()
    if begin == wall or instants(pd.DatetimeIndex([begin]), stamp.tz)[0] == stamp:
        return begin
    return None if even else wall
