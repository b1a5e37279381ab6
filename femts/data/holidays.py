"""Public holidays of a country as features of dates, from the package holidays."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.errors import UsageError
from femts.text import quote

Array = NDArray[np.float64]
AROUND = (0, 1, -1, -2)  # days after a date: whether it is a holiday, the day before one, or one or two days after one


def holiday_terms(dates: pd.DatetimeIndex, where: str) -> list[Array]:
    """For each of `AROUND`, 1 where that day of the clock is a public holiday in `where`, otherwise 0, (n,).

    Raises:
        UsageError: The package is not installed, or does not know the country.
    """
    days = dates.tz_localize(None).normalize()
    years = range(int(days.year.min()) - 1, int(days.year.max()) + 2) if len(days) else range(0)
    found = pd.DatetimeIndex([day for year in years for day in _of_year(where, year)])
    return [(days + pd.Timedelta(days=after)).isin(found).astype(np.float64) for after in AROUND]


@cache
def _of_year(where: str, year: int) -> tuple[pd.Timestamp, ...]:
    try:
        import holidays
    except ImportError as error:
        text = "Holidays need the package holidays; run pip install 'femts[holidays]'."
        raise UsageError(text, argument="holidays", value=where) from error
    country, _, part = where.partition("-")
    try:
        found = holidays.country_holidays(country, subdiv=part or None, years=year)
    except NotImplementedError as error:
        text = f"The package holidays does not know '{quote(where)}'; use a country such as 'DE' or a part of it such as 'DE-BY'."
        raise UsageError(text, argument="holidays", value=where, remedy={"holidays": None}) from error
    return tuple(map(pd.Timestamp, found))
