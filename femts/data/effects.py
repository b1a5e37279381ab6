"""Effects of future covariates and the calendar on the targets: an additive model in closed form, removed before
forecasting.

A dynamic regression (Hyndman & Athanasopoulos, "Forecasting: Principles and Practice", chapter 10): the targets are the
sum of effects and a remainder. The model forecasts the remainder, and the effects over the horizon, which are known,
are added back. Columns act through piecewise linear functions, the calendar through hour-of-week and time-of-year
terms. The weights are a ridge regression of changes over one season, which excludes the level and the season itself,
because models capture these anyway. Penalties are chosen for each target by cross-validation on blocks of the training
rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.data.holidays import holiday_terms, stamps_of, with_countries
from femts.data.wall_clock import share_of_day
from femts.errors import UsageError
from femts.text import quote

Array = NDArray[np.float64]
MOST_ROWS = 2**16  # rows sampled for fitting, and rows computed at a time
DAY_WAVES, YEAR_WAVES = 4, 2
_ARRAYS = ("mean", "scale", "weight", "offset", "explained")


class DateTerms(NamedTuple):
    """Terms that follow from the time stamps.

    Attributes:
        calendar: whether there are hour-of-week and time-of-year terms.
        holidays: whose public holidays have terms: a country, or the column of countries; None for none.
    """

    calendar: bool = False
    holidays: str | None = None

    @property
    def any(self) -> bool:
        """Whether there are any."""
        return self.calendar or self.holidays is not None

    def of(self, dates: pd.Index | None) -> list[Array]:
        """The terms, (n,) each."""
        if dates is None or not self.any:
            return []
        waves = calendar_waves(stamps_of(dates)) if self.calendar else []
        return waves + ([] if self.holidays is None else holiday_terms(dates, self.holidays))


@dataclass(frozen=True, eq=False)
class Effects:
    """Effects of K future covariates, and of the calendar, on C channels in scaled units.

    Attributes:
        knots: for each column, the knots of its piecewise linear function, in raw units.
        mean: training mean of each column, (K,), used for its missing values.
        dated: terms of the time stamps.
        scale: standard deviation of the changes of the M terms in training, (M,).
        weight: (M, C).
        offset: mean effect in training, (C,), which is subtracted.
        explained: cross-validated fraction of the squared changes over a season that the effects explain, (C,).
        zone: time zone of the training time stamps, in which calendar features are computed; None without one.
    """

    knots: tuple[tuple[float, ...], ...]
    mean: Array
    dated: DateTerms
    scale: Array
    weight: Array
    offset: Array
    explained: Array
    zone: str | None = None

    def of(self, covariates: Array, dates: pd.Index | None) -> Array:
        """Effects (n, C) for `covariates` (n, K) in raw units and time stamps `dates` (n,), used by calendar features.

        Raises:
            UsageError: Time stamps have a time zone and those of training did not, or the other way round.
        """
        if self.dated.any and dates is not None:
            dates = in_zone(dates, self.zone)
        pieces = (slice(first, first + MOST_ROWS) for first in range(0, len(covariates), MOST_ROWS))
        terms = (self.terms(covariates[rows], None if dates is None else dates[rows]) for rows in pieces)
        return np.concatenate([each @ self.weight for each in terms]) - self.offset

    def terms(self, covariates: Array, dates: pd.Index | None) -> Array:
        """Standardised terms (n, M) for covariates (n, K)."""
        terms = list[Array]()
        for column, knots in zip(np.where(np.isnan(covariates), self.mean, covariates).T, self.knots, strict=True):
            terms += [column, *(np.maximum(column - knot, 0) for knot in knots)]
        return np.stack([*terms, *self.dated.of(dates)], axis=1) / self.scale

    def of_columns(self, targets: int) -> NDArray[np.bool_]:
        """Whether each column has an effect on any of the first `targets` channels, (K,)."""
        ends = np.cumsum([1 + len(each) for each in self.knots], dtype=np.int64)
        return np.array(
            [
                self.weight[stop - 1 - len(each) : stop, :targets].any()
                for stop, each in zip(ends, self.knots, strict=True)
            ],
            dtype=bool,
        )

    def of_dates(self, targets: int) -> bool:
        """Whether the time stamps have an effect on any of the first `targets` channels."""
        return bool(self.weight[sum(1 + len(each) for each in self.knots) :, :targets].any())

    def to_dict(self) -> dict[str, Any]:
        """Plain types for JSON."""
        arrays = {name: getattr(self, name).tolist() for name in _ARRAYS}
        zone = {} if self.zone is None else {"zone": self.zone}
        return {"knots": [list(knots) for knots in self.knots], **self.dated._asdict(), **arrays, **zone}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Effects:
        """The inverse of `to_dict`."""
        arrays = {name: np.asarray(record[name], dtype=np.float64) for name in _ARRAYS}
        knots = tuple(map(tuple, record["knots"]))
        dated = DateTerms(record["calendar"], record.get("holidays"))
        return cls(knots=knots, dated=dated, **arrays, zone=record.get("zone"))


def zone_of(dates: pd.Index) -> str | None:
    """Name of the time zone of `dates`, from which it can be restored; None without one.

    Raises:
        UsageError: The zone has no such name.
    """
    dates = stamps_of(dates)
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


def in_zone(dates: pd.Index, zone: str | None) -> pd.Index:
    """Convert `dates`, which may have countries, to `zone`; dates at midnight are days and need no conversion.

    Raises:
        UsageError: Only one of the two has a time zone.
    """
    if isinstance(dates, pd.MultiIndex):
        return with_countries(in_zone(stamps_of(dates), zone), dates.get_level_values(1))
    dates = pd.DatetimeIndex(dates)
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
    """Sine and cosine waves over the day, separately for each day of the week, and over the year."""
    year = dates.day_of_year.to_numpy() / 365.25
    hours = [np.ones(len(dates)), *_waves(share_of_day(dates), DAY_WAVES)]
    weekdays = [(dates.day_of_week == weekday) * wave for weekday in range(7) for wave in hours]
    return [*weekdays, *_waves(year, YEAR_WAVES)]


def _waves(phase: Array, count: int) -> list[Array]:
    return [wave(2 * np.pi * k * phase) for k in range(1, count + 1) for wave in (np.sin, np.cos)]
