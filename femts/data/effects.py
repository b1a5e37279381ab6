"""Effects of known columns and the calendar on the targets: an additive model in closed form, taken
off before any forecaster.

A dynamic regression (Hyndman & Athanasopoulos, "Forecasting: Principles and Practice", chapter 10):
the targets are a sum of effects and a remainder, the forecaster forecasts the remainder, and the
effects of the steps to come, which are known, are put back. Each column acts through a broken line,
the calendar through the hour of the week and the season of the year. The weights are a ridge
regression of changes over one season, in which levels and the season itself, which forecasters see
anyway, are no part; penalties are chosen for each target on blocks of the training rows that were
left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.errors import UsageError
from femts.text import quote

Array = NDArray[np.float64]
MOST_ROWS = 2**16  # that are fitted to, drawn from all, and that are computed at a time
DAY_WAVES, YEAR_WAVES = 4, 2
_ARRAYS = ("mean", "scale", "weight", "offset", "explained")


@dataclass(frozen=True, eq=False)
class Effects:
    """Effect of K known columns, and of the calendar, on C channels in scaled units.

    Attributes:
        knots: for each column, where its line breaks, in raw units.
        mean: of each column in training, which stands for its missing values, (K,).
        calendar: whether the stamps count as well.
        scale: of the M terms, the deviation of their changes in training, (M,).
        weight: (M, C).
        offset: mean effect in training, which is no part of it, (C,).
        explained: part of the squared changes over a season that the effects explain, in rows that were left out, (C,).
        zone: time zone of the stamps in training, whose hours and days a calendar has learned; None without one.
    """

    knots: tuple[tuple[float, ...], ...]
    mean: Array
    calendar: bool
    scale: Array
    weight: Array
    offset: Array
    explained: Array
    zone: str | None = None

    def of(self, covariates: Array, dates: pd.Index | None) -> Array:
        """Effects (n, C) at `covariates` (n, K), raw units, and the stamps `dates` (n,), for a calendar.

        Raises:
            UsageError: stamps with a time zone where the calendar has learned of some without, or the other way round.
        """
        if self.calendar:
            dates = in_zone(pd.DatetimeIndex(dates), self.zone)
        pieces = (slice(first, first + MOST_ROWS) for first in range(0, len(covariates), MOST_ROWS))
        terms = (self.terms(covariates[rows], None if dates is None else dates[rows]) for rows in pieces)
        return np.concatenate([each @ self.weight for each in terms]) - self.offset

    def terms(self, covariates: Array, dates: pd.Index | None) -> Array:
        """Terms that the weights are for: (n, K) to (n, M), standardised."""
        terms = list[Array]()
        for column, knots in zip(np.where(np.isnan(covariates), self.mean, covariates).T, self.knots, strict=True):
            terms += [column, *(np.maximum(column - knot, 0) for knot in knots)]
        if self.calendar:
            terms += calendar_waves(pd.DatetimeIndex(dates))
        return np.stack(terms, axis=1) / self.scale

    def to_dict(self) -> dict[str, Any]:
        """Plain types for JSON."""
        arrays = {name: getattr(self, name).tolist() for name in _ARRAYS}
        zone = {} if self.zone is None else {"zone": self.zone}
        return {"knots": [list(knots) for knots in self.knots], "calendar": self.calendar, **arrays, **zone}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Effects:
        """The inverse of `to_dict`."""
        arrays = {name: np.asarray(record[name], dtype=np.float64) for name in _ARRAYS}
        knots = tuple(map(tuple, record["knots"]))
        return cls(knots=knots, calendar=record["calendar"], **arrays, zone=record.get("zone"))


def zone_of(dates: pd.DatetimeIndex) -> str | None:
    """Name of the time zone of `dates`, by which it is found again; None without one.

    Raises:
        UsageError: the zone has no such name.
    """
    if dates.tz is None:
        return None
    name = str(dates.tz)
    try:
        same = dates.tz_convert(name).tz_localize(None).equals(dates.tz_localize(None))
    except (ValueError, LookupError, OSError):
        same = False
    if not same:
        raise UsageError(
            f"The time zone {quote(name)} of the stamps has no name, which calendar features need; convert them to a "
            "named one, such as Europe/Berlin or UTC."
        )
    return name


def in_zone(dates: pd.DatetimeIndex, zone: str | None) -> pd.DatetimeIndex:
    """The same instants on the clock of `zone`; midnights are days, which need none.

    Raises:
        UsageError: one of both has a time zone, and the other has none.
    """
    if dates.tz is not None and zone is not None:
        return dates.tz_convert(zone)
    days = dates.tz_localize(None)
    if (dates.tz is None) == (zone is None) or days.equals(days.normalize()):
        return days
    if zone is None:
        raise UsageError(
            f"The stamps have the time zone {dates.tz}, but the calendar features were trained on stamps without one; "
            "remove the time zone and use the same clock as in training."
        )
    raise UsageError(
        f"The stamps have no time zone, but the calendar features were trained on stamps in {zone}; add the time zone."
    )


def calendar_waves(dates: pd.DatetimeIndex) -> list[Array]:
    """Waves over the day, apart for each day of the week, and over the year."""
    day = (dates - dates.normalize()) / pd.Timedelta(days=1)
    year = dates.day_of_year.to_numpy() / 365.25
    hours = [np.ones(len(dates)), *_waves(np.asarray(day), DAY_WAVES)]
    weekdays = [(dates.day_of_week == weekday) * wave for weekday in range(7) for wave in hours]
    return [*weekdays, *_waves(year, YEAR_WAVES)]


def _waves(phase: Array, count: int) -> list[Array]:
    return [wave(2 * np.pi * k * phase) for k in range(1, count + 1) for wave in (np.sin, np.cos)]
