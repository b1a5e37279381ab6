"""Tables that tests write as files."""

from __future__ import annotations

import numpy as np
import pandas as pd


def small_table(rows: int = 300, columns: tuple[str, ...] = ("load", "heat")) -> pd.DataFrame:
    """Deterministic hourly waves with a little noise."""
    rng, hour = np.random.default_rng(1), np.arange(rows)
    table = {name: np.sin(2 * np.pi * hour / 24 + i) + 0.1 * rng.normal(size=rows) for i, name in enumerate(columns)}
    return pd.DataFrame({"date": pd.date_range("2024-01-01", periods=rows, freq="h"), **table})
