"""Time `femts forecast`, cold and on one core, on tables of several sizes, beside other models that need no training.

    python -m scripts.bench.forecast [--models fem_zero,seasonal_naive,auto_ets] [--series]

Each table has hourly columns with a day, a week, noise and a drift. Its last 24 rows are held out. A row has seconds of
the whole command, from the shell to the written file, its peak memory, and the MASE of the held-out rows. A command is
stopped after five minutes. `--series` adds a long table of 30,000 series of 200 days.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

SHAPES = [(rows, columns) for rows in (40, 400, 5_000, 50_000) for columns in (1, 50)]
HORIZON, DAY = 24, 24
LONGEST = 300.0  # seconds


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m scripts.bench.forecast", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--models", default="fem_zero,simple_ensemble,seasonal_naive,auto_ets")
    parser.add_argument("--series", action="store_true", help="add a table of 30,000 series")
    options = parser.parse_args()
    print("| table | model | seconds | CPU | MiB | MASE |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        for label, table, actual, season in _tables(options.series):
            path, out = Path(name) / "in.csv", Path(name) / "out.csv"
            table.to_csv(path, index=False)
            for model in options.models.split(","):
                out.unlink(missing_ok=True)
                wall, processor, memory = _run(["forecast", str(path), "--model", model, "-o", str(out)])
                error = _mase(table, actual, pd.read_csv(out), season) if out.exists() else float("nan")
                print(f"| {label} | {model} | {wall:.1f} | {processor:.1f} | {memory:.0f} | {error:.3f} |", flush=True)


def _tables(series: bool) -> Iterator[tuple[str, pd.DataFrame, np.ndarray, int]]:
    """Label, table, the values that follow it (HORIZON, C) and the season."""
    rng = np.random.default_rng(0)
    for rows, columns in SHAPES:
        t = np.arange(rows + HORIZON)[:, None]
        phase, drift = rng.uniform(0, 6, columns), rng.normal(size=(len(t), columns)).cumsum(0) * 0.05
        values = (
            20 + 3 * np.sin(t * np.pi / 12 + phase) + 2 * np.sin(t * np.pi / 84) + drift + rng.normal(size=drift.shape)
        )
        table = pd.DataFrame(values[:rows].round(3), columns=[f"x{i}" for i in range(columns)])
        table.insert(0, "date", pd.date_range("2015-01-01", periods=rows, freq="h"))
        yield f"{rows:,} x {columns}", table, values[rows:], DAY
    if series:
        count, rows = 30_000, 200
        t = np.arange(rows + HORIZON)
        values = 20 + 50 * rng.random((count, 1)) + 5 * rng.random((count, 1)) * np.sin(2 * np.pi * t / 7)
        values = (values + 2 * rng.normal(size=values.shape)).round(2)
        table = pd.DataFrame(
            {
                "unique_id": np.repeat([f"s{i:05d}" for i in range(count)], rows),
                "ds": np.tile(pd.date_range("2024-01-01", periods=rows, freq="D").strftime("%Y-%m-%d"), count),
                "y": values[:, :rows].ravel(),
            }
        )
        yield "30,000 series x 200", table, values[:, rows:].T, 7


def _run(arguments: list[str]) -> tuple[float, float, float]:
    """Wall seconds, processor seconds and MiB of a command of femts."""
    began = time.monotonic()
    command = [sys.executable, "-m", "femts", *arguments, "--horizon", str(HORIZON), "--level", "none"]
    process = subprocess.Popen(
        command,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    timer = threading.Timer(LONGEST, process.kill)
    timer.start()
    _, _, used = os.wait4(process.pid, 0)
    timer.cancel()
    return time.monotonic() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def _mase(table: pd.DataFrame, actual: np.ndarray, forecast: pd.DataFrame, season: int) -> float:
    if "unique_id" in table.columns:
        past = table["y"].to_numpy().reshape(-1, 200).T
        made = forecast["y"].to_numpy().reshape(-1, HORIZON).T
    else:
        past, made = (each.drop(columns="date").to_numpy() for each in (table, forecast))
    scale = np.abs(past[season:] - past[:-season]).mean(0)
    return float((np.abs(actual - made) / scale).mean())


if __name__ == "__main__":
    main()
