"""Nixtla's mlforecast with conformal intervals, trained once: LightGBM with all choices by `AutoMLForecast`, and with
the features of the end-to-end walkthrough of its documentation, standardised by series as its guide to targets does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import lightgbm
import optuna
import pandas as pd
from mlforecast import MLForecast
from mlforecast.auto import AutoLightGBM, AutoMLForecast
from mlforecast.lag_transforms import ExpandingMean, RollingMean
from mlforecast.target_transforms import Differences, LocalStandardScaler
from mlforecast.utils import PredictionIntervals

from scripts.peers.exchange import KEYS, LEVELS, Windows, answer, from_levels

AUTO, PLAIN = "mlforecast", "LightGBM of the walkthrough"


def forecasts(windows: Windows, settings: dict[str, Any]) -> Iterator[pd.DataFrame]:
    """Forecasts of each window; the rows of the windows before it are added without training."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    first, horizon = windows.history(1, filled=True), windows.horizon
    rows = first.groupby("unique_id").size()
    season = windows.season if rows.max() >= 4 * windows.season else 1
    spare = min(rows.max() // 2, rows.max() - 4 * season, rows.min() - season - 2) // horizon
    settings |= {"season": season, "date_features": windows.dates, "calibration_windows": max(2, min(10, int(spare)))}
    intervals = PredictionIntervals(n_windows=settings["calibration_windows"], h=horizon)
    plain = MLForecast(
        {PLAIN: lightgbm.LGBMRegressor(random_state=42, verbosity=-1, n_jobs=1)},
        freq=windows.freq,
        target_transforms=[Differences([season]), LocalStandardScaler()],
        lags=sorted({1, 2, 3, season, 2 * season}),
        lag_transforms={1: [ExpandingMean()], season: [RollingMean(2 * max(season, 2))]},
        date_features=windows.dates,
    )
    plain.fit(first, static_features=[], prediction_intervals=intervals)
    auto = AutoMLForecast(
        {AUTO: AutoLightGBM()},
        freq=windows.freq,
        season_length=season,
        fit_config=lambda trial: {"static_features": []},
    )
    auto.fit(
        first,
        n_windows=settings["validation_windows"],
        h=horizon,
        num_samples=settings["trials"],
        study_kwargs={"sampler": optuna.samplers.TPESampler(seed=42)},
        prediction_intervals=intervals,
    )
    fitted = {AUTO: auto.models_[AUTO], PLAIN: plain}
    for window in range(1, windows.windows + 1):
        future = windows.future(window) if windows.covariates else None
        for name, model in fitted.items():
            if window > 1:
                model.update(windows.history(window, filled=True).merge(windows.future(window - 1)[KEYS]))
            yield from_levels(model.predict(horizon, level=LEVELS, X_df=future), name)


answer(
    forecasts,
    ["mlforecast", "lightgbm", "optuna", "pandas", "numpy"],
    trials=20,
    validation_windows=2,
    lags="1, 2, 3, season, 2 seasons",
    lag_transforms="expanding mean, rolling mean of two seasons",
    target_transforms="seasonal differences, then standardised by series",
)
