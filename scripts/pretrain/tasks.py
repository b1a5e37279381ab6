"""Score weights on lists of forecasting tasks, without training, by the protocol of `femts table --tasks`.

python -m scripts.pretrain.tasks results/pretrained/weights.safetensors configs/tasks/fev.yaml

Weights are chosen on held-out series; the tasks are scored at milestones only.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from femts.analysis.rolling_scores import QUANTILES
from femts.data.cutoffs import rows_before
from femts.data.dataset import Dataset
from femts.experiments.tasks import Task, read_tasks, resolve_source, score_forecasts
from scripts.pretrain.forecast import forecast
from scripts.pretrain.loop import load_network
from scripts.pretrain.network import Network


def score_task(network: Network, task: Task, sources: list[str]) -> dict[str, float]:
    """MASE and SQL of `network` on `task`, as means over its windows.

    Args:
        network: the network.
        task: the task.
        sources: its catalogue names or files.
    """
    tables = [task.load(source) for source in sources]
    frames = [
        pd.concat([_window(network, data, task, number) for number in range(task.windows)], ignore_index=True)
        for data in tables
    ]
    return score_forecasts(frames, tables, task)[["mase", "sql"]].mean().to_dict()


def _window(network: Network, data: Dataset, task: Task, number: int) -> pd.DataFrame:
    """The frame that `score_forecasts` reads, of one window of all series and targets."""
    stops = rows_before(data.lengths, task.windows, task.horizon, task.horizon)[:, number]
    series = np.flatnonzero(stops > 0)
    first = data.spans[series, 0]
    targets = range(data.n_targets)
    histories = [data.values[a : a + n, t] for a, n in zip(first, stops[series], strict=True) for t in targets]
    quantiles = forecast(network, histories, task.season or data.season, task.horizon)
    ahead = np.arange(task.horizon)
    actual = [data.values[a + n + ahead, t] for a, n in zip(first, stops[series], strict=True) for t in targets]
    frame = pd.DataFrame(
        {
            "series": np.repeat(np.array(data.series)[series], data.n_targets * task.horizon),
            "column": np.tile(np.repeat(data.columns[: data.n_targets], task.horizon), len(series)),
            "window": number + 1,
            "actual": np.concatenate(actual),
        }
    )
    return frame.join(pd.DataFrame(quantiles.reshape(-1, 9), columns=[f"q-{100 * q:g}" for q in QUANTILES]))


def main() -> None:
    torch.set_num_threads(1)
    network = load_network(Path(sys.argv[1]))
    for task, path in read_tasks([Path(name) for name in sys.argv[2:]]):
        scores = score_task(network, task, [resolve_source(each, path.parent, None) for each in task.data])
        print(f"{task.name} MASE {scores['mase']:.4f} SQL {scores['sql']:.4f}", flush=True)


if __name__ == "__main__":
    main()
