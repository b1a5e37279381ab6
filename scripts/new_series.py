#!/usr/bin/env python
"""Forecast series as if they had no history, from the others, and compare with the mean of the others' last season.

python scripts/new_series.py    # five minutes on one core; FEMTS_DATA has outside/tourism.csv and m4_weekly_60.csv

Twenty series of each panel are left out in turn, ten at a time. Errors are means over these series of the absolute error
relative to the mean of the values, and `covered` is the share of values inside the 80 % interval.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this checkout, also where another one is installed

import femts

DATA = Path(os.environ.get("FEMTS_DATA", ""))


class Panel(NamedTuple):
    """A panel with the columns unique_id, ds, y and static ones."""

    table: pd.DataFrame
    static: list[str]
    steps: int
    season: int


def tourism() -> Panel:
    """Quarterly trips in Australia by region and purpose."""
    table = pd.read_csv(DATA / "outside/tourism.csv").rename(columns={"date_time": "ds", "Trips": "y"})
    table["unique_id"] = table["Region"] + "/" + table["Purpose"]
    return Panel(
        table[["unique_id", "ds", "y", "State", "Purpose"]].assign(ds=pd.to_datetime(table["ds"])),
        ["State", "Purpose"],
        8,
        4,
    )


def weekly() -> Panel:
    """Sixty weekly series of the M4 competition, which have nothing in common."""
    table = pd.read_csv(DATA / "outside/m4_weekly_60.csv")
    last = table.groupby("unique_id").cumcount(ascending=False)
    table["ds"] = pd.Timestamp("2020-01-06") - pd.to_timedelta(7 * last, unit="D")  # series end on the same date
    return Panel(table[["unique_id", "ds", "y"]], [], 13, 1)


def shops() -> Panel:
    """Poisson sales of 60 shops in three regions and two sizes."""
    random, frames, rows = np.random.default_rng(0), [], 400
    for number in range(60):
        region, size = number % 3, number % 2
        rate = 8 * 2**region * (1 + 2 * size) * np.exp(0.2 * random.standard_normal())
        sales = random.poisson(rate * np.exp(0.3 * np.sin(np.arange(rows) * 2 * np.pi / 7)))
        days = pd.date_range("2024-01-01", periods=rows)
        one = {"unique_id": f"s{number}", "ds": days, "y": sales, "region": f"r{region}", "size": f"z{size}"}
        frames.append(pd.DataFrame(one))
    return Panel(pd.concat(frames), ["region", "size"], 28, 7)


def measure(panel: Panel) -> tuple[float, float, float]:
    """Mean relative errors of the forecasts and of the mean of others, and the share of values inside."""
    table, static, steps, season = panel
    names, rows = sorted(table["unique_id"].unique()), list[tuple[float, float, float]]()
    chosen = np.random.default_rng(1).permutation(names)[:20]
    for out in (chosen[:10], chosen[10:]):
        rest = table[~table["unique_id"].isin(out)]
        ahead = rest.groupby("unique_id").cumcount(ascending=False) < steps
        known = {"static_covariates": static} if static else {}
        data = femts.load_dataset(rest[~ahead], target="y", **known)
        new = table[table["unique_id"].isin(out)].drop_duplicates("unique_id")[["unique_id", *static]]
        made = femts.train(data, "boost" if static else "ridge", steps).predict(rest[~ahead], level=[80], new=new)
        for name in out:
            actual = table[table["unique_id"] == name]["y"].to_numpy()[-steps:]
            forecast = made[made["unique_id"] == name]
            same = rest[~ahead].merge(new[new["unique_id"] == name][static]) if static else rest[~ahead]
            last = same.groupby("unique_id")["y"].apply(lambda y: np.resize(y.to_numpy()[-season:], steps))
            inside = (forecast["y-lo-80"].to_numpy() <= actual) & (actual <= forecast["y-hi-80"].to_numpy())
            errors = (
                np.abs(each - actual).mean() / np.abs(actual).mean()
                for each in (forecast["y"], np.mean(np.stack(list(last)), axis=0))
            )
            rows.append((*errors, inside.mean()))
    forecast_error, others_error, covered = np.mean(rows, axis=0).tolist()
    return forecast_error, others_error, covered


def main() -> None:
    """Print a line for each panel."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for panel in (tourism, weekly, shops):
        forecast, others, covered = measure(panel())
        print(
            f"{panel.__name__}: error {forecast:.3f}, mean of others {others:.3f}; covered {100 * covered:.0f} %",
            flush=True,
        )


if __name__ == "__main__":
    main()
