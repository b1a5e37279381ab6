"""A small panel of series that differ in length, scale and end, and forecasters of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from femts.data.loading import load_dataset
from femts.forecaster.forecaster import Forecaster
from femts.training.train import train

L, P = 14, 7
LENGTHS = {"long": 300, "short": 60, "young": 24, "tiny": 6}


def panel_table() -> pd.DataFrame:
    """Weekly waves of different sizes and lengths; `short` has two gaps."""
    parts = []
    for begin, (name, rows) in enumerate(LENGTHS.items()):
        rng, day = np.random.default_rng(begin), np.arange(10 * begin, 10 * begin + rows)
        values = 10 ** len(name) * (2 + np.sin(2 * np.pi * day / 7 + begin) + 0.1 * rng.normal(size=rows))
        dates = pd.date_range("2020-01-01", periods=400)[day]
        parts.append(pd.DataFrame({"unique_id": name, "ds": dates, "y": values}))
    parts[1].loc[[30, 50], "y"] = np.nan
    return pd.concat(parts, ignore_index=True)


def panel_forecaster(model: str, table: pd.DataFrame | None = None, **more: Any) -> Forecaster:
    """`model` trained on the panel for six steps."""
    usual: dict[str, Any] = {"pred_len": P, "seq_len": L, "max_steps": 6, "device": "cpu", "refit": False}
    return train(load_dataset(panel_table() if table is None else table, panel=True), model, **(usual | more))
