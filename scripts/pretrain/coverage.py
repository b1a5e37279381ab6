"""Measure how often the intervals of `fem_zero` cover what came, on forecasting tasks.

    python -m scripts.pretrain.coverage configs/tasks/fev.yaml configs/tasks/outside.yaml configs/tasks/packages.yaml

A row has the coverage in percent of intervals of 50, 80 and 95 %, over all windows, series, steps and columns of a task.
The data folder is that of FEMTS_DATA; tasks whose data are not there are left out, saying so.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from femts.analysis.rolling import rolling_forecasts
from femts.errors import UsageError
from femts.experiments.task_cell import TaskCell, _Training, make_task_cells
from femts.forecaster.bounds import QuantileSpec
from femts.training.zero_shot import ZERO_SHOT

LEVELS = (50.0, 80.0, 95.0)


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table."""
    torch.set_num_threads(1)
    print("| task | " + " | ".join(f"{level:g} %" for level in LEVELS) + " |\n|---|" + "---|" * len(LEVELS))
    rows = []
    for path in sys.argv[1:] if argv is None else argv:
        try:
            cells = make_task_cells([Path(path)], [ZERO_SHOT], [42], {}, None)
        except UsageError as error:
            print(f"{path} is left out: {error}", file=sys.stderr)
            continue
        for cell in (each for each in cells if each.model == ZERO_SHOT):
            rows.append(coverage(cell))
            print(f"| {cell.task.name} | " + " | ".join(f"{100 * share:.0f}" for share in rows[-1]) + " |", flush=True)
    print("| mean | " + " | ".join(f"{100 * share:.0f}" for share in np.mean(rows, axis=0)) + " |")


def coverage(cell: TaskCell) -> list[float]:
    """Share of the targets of a task within the intervals of each of `LEVELS`."""
    made = pd.concat(
        rolling_forecasts(data, _Training(cell, data, None, "cpu").origins(), cell.task.horizon, QuantileSpec(LEVELS))
        for data in cell.load(None)
    ).dropna(subset="actual")
    return [float(made["actual"].between(made[f"lo-{level:g}"], made[f"hi-{level:g}"]).mean()) for level in LEVELS]


if __name__ == "__main__":
    main()
