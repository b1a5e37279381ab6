"""The verdict at the top of a report."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from femts.analysis.report import report
from femts.data.loading import load_dataset
from femts.training.train import train


def test_what_is_worse_than_the_naive_forecast_is_said_first(tmp_path: Path) -> None:
    wave = np.sin(np.arange(900) * np.pi / 12)
    noise = np.random.default_rng(0).normal(0, 0.1, 900)
    data = load_dataset(pd.DataFrame({"date": pd.date_range("2024-01-01", periods=900, freq="h"), "y": wave + noise}))
    report(train(data, "naive", 24, seq_len=48, device="cpu"), tmp_path / "worse.html")
    worse = (tmp_path / "worse.html").read_text()
    first = worse.index(
        '<p class="lead bad"><b>Worse than the seasonal naive forecast, which repeats the last 24 steps: '
    )
    assert first < worse.index("Mean absolute error in the units of the data") < worse.index("Test MSE")
    report(train(data, "ridge", 24, seq_len=48, device="cpu"), tmp_path / "better.html")
    better = (tmp_path / "better.html").read_text()
    assert "<b>Better than the seasonal naive forecast" in better and "lead bad" not in better
