#!/usr/bin/env python
"""Compare three uses of future covariates (model inputs and linear effect, inputs only, effect only) on synthetic bike
rentals and on half-hourly electricity demand with temperature and holidays.

python scripts/known_covariates.py results/known-covariates.csv     # 36 trainings, about 50 minutes on one core
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this checkout, also where another one is installed

import femts

SEEDS = (1, 2, 3)
MODELS = ("fem_sm", "tide")
USES = ("auto", "model", "regress")


def bikes() -> tuple[pd.DataFrame, list[str]]:
    """Two years of synthetic hourly rentals: people commute on working days and ride for pleasure on others, less in
    rain, and most when it is warm but not hot, so that no covariate has a linear effect."""
    rng = np.random.default_rng(0)
    dates = pd.date_range("2021-01-01", periods=2 * 365 * 24, freq="h")
    hour, weekend = dates.hour.to_numpy(), (dates.day_of_week >= 5).astype(float)
    day = np.arange(len(dates)) / 24
    weather = np.zeros(len(dates))
    for k in range(1, len(dates)):
        weather[k] = 0.98 * weather[k - 1] + rng.normal()
    temperature = 12 - 10 * np.cos(2 * np.pi * day / 365) + 4 * np.sin(2 * np.pi * (hour - 9) / 24) + 0.8 * weather
    rain = np.maximum(0, rng.gamma(0.3, 2, len(dates)) - 1 + 0.1 * np.roll(weather, 12))
    holiday = np.repeat(rng.random(len(dates) // 24) < 0.03, 24).astype(float)
    free = np.maximum(weekend, holiday)
    commute = np.exp(-((hour - 8) ** 2) / 4) + np.exp(-((hour - 17.5) ** 2) / 6)
    leisure = np.exp(-((hour - 14) ** 2) / 20)
    comfort = np.exp(-((temperature - 22) ** 2) / 150)
    mean = 400 * ((1 - free) * commute + free * 0.8 * leisure) * comfort / (1 + 2 * rain) + 10
    table = {"date": dates, "rentals": rng.poisson(mean), "temperature": temperature, "rain": rain, "holiday": holiday}
    return pd.DataFrame(table), ["temperature", "rain", "holiday"]


def electricity() -> tuple[pd.DataFrame, list[str]]:
    """Electricity demand of Victoria, from the folder in FEMTS_DATA."""
    table = pd.read_csv(Path(os.environ["FEMTS_DATA"]) / "outside" / "vic_electricity.csv")
    table = table.rename(columns={table.columns[0]: "date"})[["date", "Demand", "Temperature", "Holiday"]]
    return table.assign(Holiday=table["Holiday"].astype(float)), ["Temperature", "Holiday"]


SETS: dict[str, tuple[Callable[[], tuple[pd.DataFrame, list[str]]], int, int]] = {
    "bikes": (bikes, 24, 168),
    "vic_electricity": (electricity, 48, 336),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--steps", type=int, default=1000)
    asked = parser.parse_args()
    rows = []
    for name, (made, pred_len, seq_len) in SETS.items():
        if name != "bikes" and "FEMTS_DATA" not in os.environ:
            print(f"{name}: skipped, FEMTS_DATA is not set")
            continue
        table, known = made()
        data = femts.load_dataset(table, future_covariates=known)
        for seed in SEEDS:
            for model, covariates in product(MODELS, USES):
                began = time.monotonic()
                settings = {"training.covariates": covariates, "training.seed": seed}
                run = femts.train(
                    data, model, pred_len, seq_len=seq_len, max_steps=asked.steps, settings=settings, refit=False
                )
                errors = {
                    f"{part}_{each}": run.metrics[part][each] for part in ("val", "test") for each in ("mse", "mae")
                }
                seconds = round(time.monotonic() - began)
                rows.append(
                    {"data": name, "model": model, "covariates": covariates, "seed": seed, **errors, "seconds": seconds}
                )
                pd.DataFrame(rows).to_csv(asked.file, index=False)
                print(rows[-1], flush=True)


if __name__ == "__main__":
    main()
