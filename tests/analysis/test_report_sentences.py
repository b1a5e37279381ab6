"""Sentences of a report that depend on the run: the verdict at its top, and what its intervals are of."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from small_panels import panel_forecaster
from small_tables import small_table

from femts.analysis.report import report
from femts.data.loading import load_dataset
from femts.forecaster.forecaster import Forecaster
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


@pytest.mark.parametrize(
    ("model", "settings", "said"),
    [
        ("naive", {}, "Split-conformal intervals"),
        ("dlinear", {"training.loss": "pinball"}, "Learned quantiles"),
        pytest.param(
            *("auto_theta", {}, "The model's own intervals"),
            marks=pytest.mark.skipif(not find_spec("statsforecast"), reason="needs statsforecast"),
        ),
    ],
)
@pytest.mark.parametrize("panel", [False, True])
def test_intervals_are_said_to_be_what_they_are(
    model: str, settings: dict[str, object], said: str, panel: bool, tmp_path: Path
) -> None:
    forecaster: Forecaster
    if panel:
        forecaster = panel_forecaster(model, settings=settings)
    else:
        data = load_dataset(small_table())
        forecaster = train(data, model, 12, seq_len=24, device="cpu", max_steps=3, settings=settings)
    report(forecaster, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    openings = ("Split-conformal intervals", "Learned quantiles", "The model's own intervals")
    assert [each for each in openings if each in page] == [said]
