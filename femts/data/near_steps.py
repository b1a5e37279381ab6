"""Time stamps close to even steps, as of a logger that is seconds late, moved onto these steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.tseries.frequencies import to_offset

from femts.data.pieces import slices
from femts.data.wall_clock import NANOSECONDS, follows_clock, instants

# How far a time stamp may be off: a share of the step, or a few seconds of shorter ones, and never more nanoseconds.
SHARE, FEW, SHARE_OF_SHORT, MOST = 0.01, 10 * 10**9, 0.05, 300 * 10**9
SAMPLES = (1000, 100_000)  # first rows, which show most uneven distances
DRIFT = 0.25  # of a step, over all time stamps, if each distance is right
_MS, _S = 10**6, 10**9
_MINUTE, _HOUR, _DAY = 60 * _S, 3600 * _S, 24 * 3600 * _S
_WEEK = 7 * _DAY
# Units of steps, and of the times at which they begin, the longest first.
_UNITS = (_WEEK, _DAY, _HOUR, _MINUTE, _S, 100 * _MS, 10 * _MS, _MS)
_BEGINNINGS = (
    *(_DAY // n for n in (1, 2, 3, 4, 6, 8, 12, 24, 48, 72, 96, 144, 288, 720, 1440)),
    *(_S * n for n in (30, 20, 15, 10, 5, 2, 1)),
    *(500 * _MS, 100 * _MS, 10 * _MS, _MS),
)
WEEKDAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
_MONDAY = 4 * _DAY  # 1970-01-05

Numbers = NDArray[np.int64]


class _Step(NamedTuple):
    """A step of constant length on the clock, in nanoseconds; weeks may begin on a given day, from 0 for Monday."""

    length: int
    weekday: int | None = None

    @property
    def tolerance(self) -> int:
        few = min(FEW, int(SHARE_OF_SHORT * self.length))
        return min(max(few, int(SHARE * self.length)), MOST)

    @classmethod
    def of(cls, freq: str) -> _Step | None:
        """That of a pandas frequency; None for months, business hours and the like."""
        offset = to_offset(freq)
        if isinstance(offset, pd.offsets.Week):
            return cls(offset.n * _WEEK, offset.weekday)
        if isinstance(offset, pd.offsets.Day):  # a Tick in pandas 2
            return cls(offset.n * _DAY)
        if offset.rule_code == "B":
            return cls(_DAY)
        return cls(int(offset.nanos)) if isinstance(offset, pd.offsets.Tick) else None


def near_even(dates: pd.DatetimeIndex) -> pd.DatetimeIndex | None:
    """Sorted, distinct `dates` moved onto the even steps that they are close to; None if they are not close to any, or
    if two of them are close to the same one."""
    distances = np.diff(_clock(dates, walls=False))
    median = int(np.median(distances)) if len(distances) else 0
    for unit in _UNITS:
        step = _Step(round(median / unit) * unit)
        if step.length and abs(median - step.length) <= 2 * step.tolerance:
            times = _clock(dates, _on_wall(step))
            moved = _moved(times, step)
            if moved is not None and (np.diff(moved) > 0).all():
                return _stamps(moved, dates, _on_wall(step))
    days = near_midnights(dates)
    return days if days.is_unique else None


def near_midnights(dates: pd.DatetimeIndex) -> pd.DatetimeIndex:
    """Midnights that all `dates` are seconds before or after; unchanged if any is not."""
    times = _clock(dates, walls=True)
    moved = (times + _DAY // 2) // _DAY * _DAY
    if not len(dates) or (np.abs(moved - times) > MOST).any() or (moved == times).all():
        return dates
    return _stamps(moved, dates, walls=True)


def onto_steps(dates: pd.DatetimeIndex, freq: str) -> tuple[pd.DatetimeIndex, tuple[str, ...]]:
    """Dates in any order, of one or several series, moved onto the steps of `freq` that they are close to, and a note;
    unchanged if they are at even distances already, or not close."""
    if not len(dates) or freq.isdecimal() or isinstance(to_offset(freq), pd.offsets.BusinessHour):
        return dates, ()
    step = _Step.of(freq)
    if step is None:
        days = near_midnights(dates)
        return days, () if days is dates else (_note(dates, days, freq),)
    walls = follows_clock(freq)
    if _are_even(dates[: SAMPLES[0]], step, walls) and _are_even(dates, step, walls):
        return dates, ()
    uneven = (_moved(np.unique(_clock(dates[:rows], walls)), step) is None for rows in SAMPLES)
    if any(uneven):
        return dates, ()
    times = _clock(dates, walls)
    distinct, rows = np.unique(times, return_inverse=True)
    moved = _moved(distinct, step)
    if moved is None or (moved == distinct).all():
        return dates, ()
    stamps = _stamps(moved, dates, walls)[rows]
    return stamps, (_note(dates, stamps, freq),)


def _are_even(dates: pd.DatetimeIndex, step: _Step, walls: bool) -> bool:
    """Whether all distances are whole steps, found without converting all `dates` to nanoseconds."""
    length, rest = divmod(step.length, NANOSECONDS[dates.unit])
    if rest:
        return False
    times = (dates.tz_localize(None) if walls and dates.tz is not None else dates).asi8
    begin = times[0] % length
    # Most tables have all rows in order, which differences show in less than half the time. Pieces need less memory.
    pieces = (times[max(0, rows.start - 1) : rows.stop] for rows in slices(len(times)))
    return all((np.diff(each) == length).all() or (each % length == begin).all() for each in pieces)


def _note(dates: pd.DatetimeIndex, stamps: pd.DatetimeIndex, freq: str) -> str:
    off = np.abs((stamps.as_unit("ns") - dates.as_unit("ns")).asi8)
    row = int(np.argmax(off))
    most = str(pd.Timedelta(int(off[row]), "ns").round("ms")).removeprefix("0 days ")
    return f"its stamps are up to {most} off the step '{freq}' and are read as such ({dates[row]} as {stamps[row]})"


def _on_wall(step: _Step) -> bool:
    return step.length > _HOUR and (_DAY % step.length == 0 or step.length % _DAY == 0)


def _clock(dates: pd.DatetimeIndex, walls: bool) -> Numbers:
    """Nanoseconds since 1970, on the clocks of the time zone or in UTC."""
    return (dates.tz_localize(None) if walls else dates).asi8 * NANOSECONDS[dates.unit]


def _stamps(times: Numbers, like: pd.DatetimeIndex, walls: bool) -> pd.DatetimeIndex:
    """The inverse of `_clock`, in the unit and time zone of `like`."""
    made = pd.DatetimeIndex(times.view("M8[ns]"))
    if like.tz is not None:
        made = instants(made, like.tz) if walls else made.tz_localize("UTC").tz_convert(like.tz)
    return made.as_unit(like.unit)


def _moved(times: Numbers, step: _Step) -> Numbers | None:
    """Sorted `times` moved onto even steps, None if any distance is not close to a whole number of them, or if they
    drift away from these."""
    distances = np.diff(times)
    counts = (distances + step.length // 2) // step.length
    if not len(times) or (np.abs(distances - counts * step.length) > 2 * step.tolerance).any():
        return None
    for moved in (*_from_usual_beginnings(times, step), *_from_whole_steps(times, step)):
        if (np.diff(moved) == counts * step.length).all():
            return moved
    return None


def _from_usual_beginnings(times: Numbers, step: _Step) -> Iterator[Numbers]:
    """Steps that begin at a full hour, minute or the like, at which all `times` are within the tolerance."""
    for unit in _BEGINNINGS:
        if step.length % unit == 0 and (unit >= _HOUR or step.length < _WEEK):
            moved = (times + unit // 2) // unit * unit
            near = (np.abs(moved - times) <= step.tolerance).all()
            if near and step.weekday in (None, int((moved[0] - _MONDAY) // _DAY % 7)):
                yield moved


def _from_whole_steps(times: Numbers, step: _Step) -> Iterator[Numbers]:
    """Steps that divide the day, or days, in which all `times` lie, or weeks from the midnight nearest to them; they
    may drift."""
    length = step.length
    if length % _WEEK == 0:
        day = (int(times[len(times) // 2]) + _DAY // 2) // _DAY * _DAY
        if step.weekday is not None:
            day += ((step.weekday - (day - _MONDAY) // _DAY + 3) % 7 - 3) * _DAY
        moved = day + (times - day + length // 2) // length * length
        off = np.abs(moved - times).max()
    elif _DAY % length == 0 or length % _DAY == 0:
        begin = (int(times[0]) + step.tolerance) // min(length, _DAY) * min(length, _DAY)
        moved = begin + (times + step.tolerance - begin) // length * length
        off = np.ptp(times - moved)
    else:
        return
    apart = np.diff(times) - np.diff(moved)
    if off <= DRIFT * length and (np.abs(apart) <= step.tolerance).all():
        yield moved
