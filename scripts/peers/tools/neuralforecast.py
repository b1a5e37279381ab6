"""Nixtla's neuralforecast: N-HiTS with quantile outputs, trained once: a look-back of two horizons, and scaling, steps
and batches that `AutoNHITS` may choose, the cheaper ones, for its defaults take minutes on a core.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
from neuralforecast import NeuralForecast
from neuralforecast.losses.pytorch import MQLoss
from neuralforecast.models import NHITS

from scripts.peers.exchange import LEVELS, QUANTILES, Windows, answer, named

TRAINER = {"accelerator": "cpu", "logger": False, "enable_checkpointing": False, "enable_progress_bar": False}


def forecasts(windows: Windows, settings: dict[str, Any]) -> Iterator[pd.DataFrame]:
    """Forecasts of each window by one network for all series."""
    model = NHITS(
        h=windows.horizon,
        input_size=settings["look_back"] * windows.horizon,
        loss=MQLoss(quantiles=QUANTILES),
        scaler_type=settings["scaler_type"],
        max_steps=settings["max_steps"],
        windows_batch_size=settings["windows_batch_size"],
        futr_exog_list=windows.covariates or None,
        random_seed=42,
        **TRAINER,
    )
    library = NeuralForecast([model], freq=windows.freq)
    library.fit(windows.history(1, filled=True))
    ends = [*(f"NHITS-lo-{level:.1f}" for level in LEVELS[::-1]), "NHITS-median"]
    ends += [f"NHITS-hi-{level:.1f}" for level in LEVELS]
    for window in range(1, windows.windows + 1):
        future = windows.future(window) if windows.covariates else None
        yield named(library.predict(windows.history(window, filled=True), futr_df=future), ends, "neuralforecast")


answer(
    forecasts,
    ["neuralforecast", "torch", "pandas", "numpy"],
    model="NHITS",
    look_back=2,
    scaler_type="robust",
    max_steps=500,
    windows_batch_size=256,
)
