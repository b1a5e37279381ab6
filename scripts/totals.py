#!/usr/bin/env python
"""Measure the coverage of 80 % intervals of totals: over steps and series, with errors in common and without.

python scripts/totals.py                    # ten minutes on one core
python scripts/totals.py --panels tourism   # FEMTS_DATA has outside/tourism.csv
python scripts/totals.py --large            # seconds and memory for 30,000 series
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this checkout, also where another one is installed

import femts

STEPS, ORIGINS = 28, 4


def simulated(series: int, common: float, seed: int, rows: int = 500) -> pd.DataFrame:
    """Daily series with a week and autocorrelated errors, of which `common` is the part of the variance that all share."""
    random = np.random.default_rng(seed)
    shared, frames = random.standard_normal(rows), []
    for number in range(series):
        noise = np.sqrt(common) * shared + np.sqrt(1 - common) * random.standard_normal(rows)
        y = 20 + 5 * np.sin(np.arange(rows) * 2 * np.pi / 7 + number) + 3 * np.convolve(noise, [1, 0.5, 0.25], "same")
        frames.append(
            pd.DataFrame({"unique_id": f"s{number}", "ds": pd.date_range("2023-01-01", periods=rows), "y": y})
        )
    return pd.concat(frames)


def tourism() -> pd.DataFrame:
    """Quarterly trips in Australia by region and purpose, 304 series."""
    table = pd.read_csv(Path(os.environ["FEMTS_DATA"]) / "outside/tourism.csv")
    series = table["Region"] + "/" + table["State"] + "/" + table["Purpose"]
    return pd.DataFrame({"unique_id": series, "ds": pd.to_datetime(table["date_time"]), "y": table["Trips"]})


def covered(table: pd.DataFrame, model: str, steps: int, origins: int) -> Iterator[tuple[str, float]]:
    """Yield what share of the totals of each kind is inside its interval, at each of the last `origins`."""
    dates = np.sort(table["ds"].unique())
    first = dates[-origins * steps]
    forecaster = femts.train(femts.load_dataset(table[table["ds"] < first]), model, steps)
    for number in range(origins):
        start = dates[len(dates) - (origins - number) * steps]
        history, actual = table[table["ds"] < start], table[table["ds"] >= start].groupby("unique_id").head(steps)
        for horizon in sorted({1, max(2, steps // 4), steps}):
            until = actual.groupby("unique_id").head(horizon)
            for by, kind in ((None, "each series"), ("all", "all series")):
                made = forecaster.totals(history, by=by, horizon=horizon)
                if by is None:
                    true = until.groupby("unique_id", sort=False)["y"].sum().reindex(made["unique_id"]).to_numpy()
                else:
                    true = np.array([until["y"].sum()])
                inside = (made["y-lo-80"].to_numpy() <= true) & (true <= made["y-hi-80"].to_numpy())
                yield f"{kind}, {horizon} step{'s' * (horizon > 1)}", float(inside.mean())


def large(series: int = 30_000, rows: int = 200) -> None:
    """Print seconds and memory of 200 sample paths of many series."""
    random = np.random.default_rng(0)
    values = random.poisson(random.uniform(1, 20, (series, 1)), (series, rows)).astype(float)
    names = np.array([f"s{number}" for number in range(series)], dtype=object)
    days = pd.date_range("2024-01-01", periods=rows)
    table = pd.DataFrame({"unique_id": names.repeat(rows), "ds": np.tile(days, series), "y": values.ravel()})
    forecaster = femts.train(femts.load_dataset(table), "ridge", STEPS)

    def memory() -> float:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    before = memory()
    for by in ("all", None):
        began = time.process_time()
        made = forecaster.totals(table, over="week", by=by, n=200)
        print(f"{len(made)} totals: {time.process_time() - began:.0f} s; peak {memory():.0f} MiB, {before:.0f} before")


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--panels", nargs="+", default=["simulated"], choices=["simulated", "tourism"])
    parser.add_argument("--model", default="ridge")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--large", action="store_true")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    if asked.large:
        large()
        return
    for panel in asked.panels:
        shapes = (
            [(5, 0.0), (5, 0.7), (30, 0.0), (30, 0.7), (300, 0.0), (300, 0.7)] if panel == "simulated" else [(304, 0)]
        )
        for series, common in shapes:
            shares = defaultdict[str, list[float]](list)
            for seed in range(asked.seeds if panel == "simulated" else 1):
                table = simulated(series, common, seed) if panel == "simulated" else tourism()
                for kind, share in covered(table, asked.model, STEPS if panel == "simulated" else 8, ORIGINS):
                    shares[kind].append(share)
            cells = "; ".join(f"{kind} {100 * np.mean(each):.0f} % of {len(each)}" for kind, each in shares.items())
            print(f"{panel}, {series} series, {common:g} in common: {cells}", flush=True)


if __name__ == "__main__":
    main()
