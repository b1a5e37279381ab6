"""Prophet at its defaults, with known covariates as regressors, fitted anew to each series before each window."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from prophet import Prophet

from scripts.peers.exchange import COLUMNS, KEYS, QUANTILES, Windows, answer


def forecasts(windows: Windows, settings: dict[str, Any]) -> Iterator[pd.DataFrame]:
    """Forecasts of each window, quantiles of the samples of the prediction."""
    for window in range(1, windows.windows + 1):
        history = dict(list(windows.history(window).groupby("unique_id")))
        for name, future in windows.future(window).groupby("unique_id"):
            np.random.seed(settings["seed"])
            model = Prophet(uncertainty_samples=settings["uncertainty_samples"])
            for covariate in windows.covariates:
                model.add_regressor(covariate)
            samples = model.fit(history[name], seed=settings["seed"]).predictive_samples(future)["yhat"]
            made = future[KEYS].reset_index(drop=True)
            made[COLUMNS] = np.quantile(samples, QUANTILES, axis=1).T
            yield made.assign(model="prophet")


answer(forecasts, ["prophet", "pandas", "numpy"], uncertainty_samples=1000, seed=42)
