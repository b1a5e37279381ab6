"""Time commands in new processes, from the shell to their end, on a table of 2,000 hours and three columns.

    python -m scripts.bench.cold [--turns 10] [--commands help "predict ridge"]

A row has the median and the longest wall time in seconds, and the highest memory in MiB.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from femts.text import table

TRAINED = "ridge", "boost", "fem_sm"
TRAIN = ["train", "--dataset", "hours.csv", "--horizon", "24", "--max-steps", "20", "--model"]
COMMANDS = {
    "help": ["--help"],
    **{f"predict {model}": ["predict", model, "hours.csv", "-o", "forecast.csv"] for model in TRAINED},
    "forecast": ["forecast", "hours.csv", "-o", "forecast.csv"],
    "train dlinear": [*TRAIN, "dlinear", "--overwrite", "--out", "dlinear"],
}


def timed(arguments: Sequence[str], folder: Path) -> tuple[float, float]:
    """Wall seconds and highest MiB of `femts` with `arguments`, run in `folder`."""
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "femts", *arguments], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, arguments)
    return time.monotonic() - began, used.ru_maxrss / 1024


def main(argv: Sequence[str] | None = None) -> None:
    """Print a row for each command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--commands", nargs="+", choices=COMMANDS, default=list(COMMANDS))
    options, rows = parser.parse_args(argv), []
    with tempfile.TemporaryDirectory() as name:
        folder, hours, rng = Path(name), np.arange(2000), np.random.default_rng(0)
        values = 10 + 3 * np.sin(2 * np.pi * hours[:, None] / 24 + np.arange(3)) + rng.normal(0, 0.5, (2000, 3))
        stamps = pd.date_range("2024", periods=2000, freq="h", name="date")
        pd.DataFrame(values, columns=["a", "b", "c"], index=stamps).to_csv(folder / "hours.csv")
        for model in TRAINED:
            if f"predict {model}" in options.commands:
                timed([*TRAIN, model, "--out", model], folder)
        for command in options.commands:
            seconds, memory = zip(*(timed(COMMANDS[command], folder) for _ in range(options.turns)), strict=True)
            rows.append([command, f"{np.median(seconds):.2f}", f"{max(seconds):.2f}", f"{max(memory):.0f}"])
    print(table(["command", "median s", "longest s", "MiB"], rows))


if __name__ == "__main__":
    main()
