#!/usr/bin/env python
"""Write the real series that come with statsmodels and matplotlib as tables, for configs/tasks/packages.yaml.

python scripts/package_data.py                # into configs/tasks/packages/
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd

FOLDER = Path(__file__).resolve().parent.parent / "configs" / "tasks" / "packages"


def _statsmodels(name: str) -> pd.DataFrame:
    import statsmodels.datasets as shipped

    data = getattr(shipped, name).load_pandas().data
    assert isinstance(data, pd.DataFrame)
    return data


def _matplotlib(name: str) -> Path:
    from matplotlib.cbook import get_sample_data

    return Path(get_sample_data(name, asfileobj=False))


def _yearly(name: str) -> pd.DataFrame:
    data = _statsmodels(name)
    return data.rename(columns={data.columns[0]: "date"}).astype({"date": int})


def _quarterly(name: str) -> pd.DataFrame:
    data = _statsmodels(name)
    stamps = data["year"].astype(int).astype(str) + " Q" + data["quarter"].astype(int).astype(str)
    return data.drop(columns=["year", "quarter"]).assign(date=stamps)


def _carbon_dioxide() -> pd.DataFrame:
    return _statsmodels("co2")["co2"].rename_axis("date").reset_index()


def _monthly_carbon_dioxide() -> pd.DataFrame:
    return _carbon_dioxide().set_index("date").resample("MS").mean().interpolate().reset_index()


def _sea() -> pd.DataFrame:
    data = _statsmodels("elnino").set_index("YEAR")
    months = pd.date_range(f"{data.index[0]:.0f}-01-01", periods=data.size, freq="MS")
    return pd.DataFrame({"date": months, "temperature": data.to_numpy().ravel()})


def _fertility() -> pd.DataFrame:
    data = _statsmodels("fertility").drop(columns=["Country Code", "Indicator Name", "Indicator Code"])
    long = data.melt("Country Name", var_name="ds", value_name="y").rename(columns={"Country Name": "unique_id"})
    long = long[long["ds"].str.isdigit() & long["y"].notna()]
    return long[long.groupby("unique_id")["y"].transform("size") >= 40].sort_values(["unique_id", "ds"])


def _electrical_equipment() -> pd.DataFrame:
    import statsmodels.datasets as shipped

    data = pd.read_csv(Path(shipped.__file__).parent / "elec_equip" / "elec_equip.csv")
    data = data.set_axis(["date", "turnover"], axis=1)
    return data.assign(date=pd.to_datetime(data["date"], format="%b-%d-%Y"))


def _stocks() -> pd.DataFrame:
    data = pd.read_csv(_matplotlib("Stocks.csv"), comment="#", parse_dates=["Date"]).rename(columns={"Date": "date"})
    return data[data["date"].dt.day == 1].drop_duplicates("date").dropna(axis=1)


def _google() -> pd.DataFrame:
    import numpy as np

    data = pd.DataFrame(np.load(_matplotlib("goog.npz"))["price_data"])[["date", "close", "volume"]]
    return data.set_index("date").asfreq("B").ffill().reset_index()


TABLES: dict[str, Callable[[], pd.DataFrame]] = {
    "nile": lambda: _yearly("nile"),
    "sunspots": lambda: _yearly("sunspots"),
    "macrodata": lambda: _quarterly("macrodata"),
    "interest_inflation": lambda: _quarterly("interest_inflation"),
    "co2_weekly": _carbon_dioxide,
    "co2_monthly": _monthly_carbon_dioxide,
    "sea_temperature": _sea,
    "fertility": _fertility,
    "electrical_equipment": _electrical_equipment,
    "stocks": _stocks,
    "google": _google,
}


def main() -> None:
    """Write each table as a file named after it."""
    FOLDER.mkdir(exist_ok=True)
    for name, make in TABLES.items():
        table = make()
        table.to_csv(FOLDER / f"{name}.csv", index=False)
        print(f"{FOLDER / name}.csv: {len(table)} rows, {len(table.columns)} columns")


if __name__ == "__main__":
    main()
