"""Public holidays of countries as features of dates, from the package holidays."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.data.roles import is_country
from femts.errors import UsageError
from femts.text import arguments, quote

Array = NDArray[np.float64]
AROUND = (0, 1, -1, -2)  # days after a date: whether it is a holiday, the day before one, or one or two days after one


def with_countries(stamps: pd.Index, countries: pd.Series) -> pd.MultiIndex:
    """Time stamps (n,) with the country (n,) whose holidays count at each, which travel together to `holiday_terms`."""
    return pd.MultiIndex.from_arrays([stamps, pd.Categorical(countries)])


def stamps_of(dates: pd.Index) -> pd.DatetimeIndex:
    """Time stamps (n,) of `dates` with or without countries."""
    return pd.DatetimeIndex(dates.get_level_values(0))


def holiday_terms(dates: pd.Index, where: str) -> list[Array]:
    """For each of `AROUND`, 1 where that day of the clock is a public holiday in `where`, otherwise 0, (n,); dates of
    `with_countries` have countries of their own instead.

    Raises:
        UsageError: The package is not installed, or does not know the country.
    """
    if isinstance(dates, pd.MultiIndex):
        made, stamps = np.zeros((len(AROUND), len(dates))), stamps_of(dates)
        for code, country in enumerate(dates.levels[1]):
            rows = dates.codes[1] == code
            made[:, rows] = holiday_terms(stamps[rows], country)
        return list(made)
    days = stamps_of(dates).tz_localize(None).normalize()
    years = range(int(days.year.min()) - 1, int(days.year.max()) + 2) if len(days) else range(0)
    found = pd.DatetimeIndex([day for year in years for day in _of_year(where, year)])
    return [(days + pd.Timedelta(days=after)).isin(found).astype(np.float64) for after in AROUND]


def check_countries(countries: pd.Series) -> None:
    """Raise UsageError if a series, by name, has no country or an unknown one; `countries` has the name of the column."""
    given, column = arguments({"holidays": str(countries.name)}), quote(countries.name)
    for series, country in countries.drop_duplicates().items():
        if is_country(country) and _is_known(country):
            continue
        if pd.isna(country):
            text = f"Series '{quote(series)}' has no country in the column '{column}'; enter one, or remove {given}."
        else:
            text = (
                f"Column '{column}' has '{quote(country)}' for series '{quote(series)}', which is no country that the package "
                f"holidays knows; enter one such as 'DE', or a part of one such as 'DE-BY', or remove {given}."
            )
        raise UsageError(text, argument="holidays", value=countries.name, remedy={"holidays": None})


def _is_known(country: str) -> bool:
    try:
        _of_year(country, 2000)
    except UsageError as error:
        if isinstance(error.__cause__, ImportError):
            raise
        return False
    return True


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
