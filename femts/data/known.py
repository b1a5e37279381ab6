"""Future covariates and calendar features as inputs of models that read them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.tseries.frequencies import to_offset

from femts.data.effects import in_zone, zone_of
from femts.data.holidays import holiday_terms, stamps_of
from femts.data.roles import Roles
from femts.data.wall_clock import share_of_day

Array = NDArray[np.float64]

HOLIDAY_MARKS = 2
HOLIDAY, AFTER_HOLIDAY = "holiday ", "after holiday "  # before the name of a country, or of the column of countries
# Calendar features, shortest cycle first, with the longest step in days between rows for which each is computed.
MARKS = {"hour": 0.999, "weekday": 3.0, "monthday": 7.0, "yearday": math.inf}


class Supports(Protocol):
    """What a model can read; see `femts.models.base.Supports`."""

    @property
    def known(self) -> bool: ...
    @property
    def calendar(self) -> bool: ...
    @property
    def dated(self) -> bool: ...


class Reads(NamedTuple):
    """How future covariates and calendar features reach a model.

    Attributes:
        columns: whether the model reads the columns of `Roles.future`.
        calendar: number of calendar features that the model reads: those of holidays, then those of the shortest cycles.
        effect: whether their linear effect is subtracted before the model and added back.
    """

    columns: bool = False
    calendar: int = 0
    effect: bool = True

    @classmethod
    def of(cls, roles: Roles, supports: Supports, covariates: str, calendar: int) -> Reads:
        """How a model handles columns with `roles` under the setting `training.covariates`, if it `supports` them.

        `calendar` is the number of calendar features that there are for it.
        """
        if covariates == "regress":
            return cls()
        asked = supports.dated if roles.calendar is None else roles.calendar
        most = calendar if asked else HOLIDAY_MARKS * (roles.holidays is not None)
        dated = min(calendar, most) * (supports.known or supports.calendar)
        return cls(bool(roles.future) and supports.known, dated, covariates == "auto")

    @property
    def any(self) -> bool:
        """Whether the model reads any of them."""
        return self.columns or self.calendar > 0


EFFECT_ALONE = Reads()


@dataclass(frozen=True, eq=False)
class KnownInputs:
    """Encoding of K future covariates and of calendar features, fitted to the training rows of all series and stored
    with the model.

    Attributes:
        mean, scale: of each column, (K,); missing values are replaced by the mean.
        marks: calendar features, two inputs each: `holiday DE`, whether the day is one in this country or before one, and
            `after holiday DE`, whether it is one or two days after one; then the sine and cosine of `hour` of the day,
            `weekday`, `monthday` and `yearday`.
        zone: time zone of the training time stamps, in which calendar features are computed; None without one.
    """

    mean: Array
    scale: Array
    marks: tuple[str, ...] = ()
    zone: str | None = None

    @property
    def width(self) -> int:
        """Number of model inputs."""
        return len(self.mean) + 2 * len(self.marks)

    @classmethod
    def fit(cls, covariates: Array, stamps: pd.Index | None, marks: tuple[str, ...]) -> KnownInputs:
        """Fit to `covariates` (n, K), NaN where missing, and their `stamps`, needed only for calendar features."""
        observed = [column[~np.isnan(column)] for column in covariates.T]
        mean = np.array([column.mean() if len(column) else 0.0 for column in observed])
        scale = np.array([column.std() if len(column) and column.std() > 0 else 1.0 for column in observed])
        return cls(mean, scale, marks, zone_of(stamps) if marks and stamps is not None else None)

    def of_columns(self) -> KnownInputs:
        """The same without calendar features, which are the last inputs."""
        return self.with_calendar(0)

    def with_calendar(self, features: int) -> KnownInputs:
        """The same with the first calendar `features` only."""
        return replace(self, marks=self.marks[:features], zone=self.zone if features else None)

    @classmethod
    def width_of(cls, reads: Reads, columns: int) -> int:
        """Number of inputs for `reads` and a number of `columns`, before fitting."""
        return columns * reads.columns + 2 * reads.calendar

    def encode(self, covariates: Array, stamps: pd.Index | None) -> NDArray[np.float32]:
        """Inputs (n, width) for `covariates` (n, K or more) and `stamps` (n,), with countries if holidays differ by
        series.

        Raises:
            UsageError: Time stamps have a time zone and those of training did not, or the other way round.
        """
        scaled = np.nan_to_num((covariates[:, : len(self.mean)] - self.mean) / self.scale)
        parts = [scaled]
        if self.marks and stamps is not None:
            parts.append(_calendar(in_zone(stamps, self.zone), self.marks))
        return np.concatenate(parts, axis=1, dtype=np.float32)

    def to_dict(self) -> dict[str, Any]:
        """Plain types for JSON."""
        zone = {} if self.zone is None else {"zone": self.zone}
        return {"mean": self.mean.tolist(), "scale": self.scale.tolist(), "marks": list(self.marks), **zone}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> KnownInputs:
        """The inverse of `to_dict`."""
        mean, scale = (np.asarray(record[name], dtype=np.float64) for name in ("mean", "scale"))
        return cls(mean, scale, tuple(record["marks"]), record.get("zone"))


def calendar_marks(freq: str | None, holidays: str | None = None) -> tuple[str, ...]:
    """Features of the `holidays` of a country, and calendar features that vary between steps of `freq`; none for steps
    that are not dates."""
    if freq is None or freq.isdecimal():
        return ()
    stamps = pd.date_range("2001-01-01", periods=3, freq=to_offset(freq))
    days = (stamps[2] - stamps[1]) / pd.Timedelta(days=1)
    own = () if holidays is None else (f"{HOLIDAY}{holidays}", f"{AFTER_HOLIDAY}{holidays}")
    return (*own, *(name for name, longest in MARKS.items() if days <= longest))


def _calendar(dates: pd.Index, marks: tuple[str, ...]) -> Array:
    """Both inputs of each feature, (n, 2 marks)."""
    stamps = stamps_of(dates)
    phases = {
        "hour": lambda: share_of_day(stamps),
        "weekday": lambda: stamps.day_of_week / 7,
        "monthday": lambda: (stamps.day - 1) / stamps.days_in_month,
        "yearday": lambda: (stamps.day_of_year - 1) / 365.25,
    }
    made = list[Array]()
    for mark in marks:
        if mark in phases:
            angle = 2 * np.pi * np.asarray(phases[mark](), dtype=np.float64)
            made += [np.sin(angle), np.cos(angle)]
        else:
            today, before, *after = holiday_terms(dates, mark.rpartition(" ")[2])
            made += [today, before] if mark.startswith(HOLIDAY) else after
    return np.stack(made, axis=1)
