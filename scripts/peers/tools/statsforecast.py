"""Nixtla's statsforecast: four classical models with their own intervals, and the median of all four, fitted anew
before each window.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
from statsforecast import StatsForecast
from statsforecast.models import AutoARIMA, AutoCES, AutoETS, DynamicOptimizedTheta, SeasonalNaive

from scripts.peers.exchange import COLUMNS, KEYS, LEVELS, Windows, answer, from_levels

MODELS = ("AutoARIMA", "AutoETS", "AutoCES", "DynamicOptimizedTheta")


def forecasts(windows: Windows, settings: dict[str, Any]) -> Iterator[pd.DataFrame]:
    """Forecasts of each window, from the last rows of each series alone."""
    rows = windows.history(1).groupby("unique_id").size().max()
    season, settings["approximation"] = windows.season, bool(rows > 150 or windows.season > 12)  # as in R
    library = StatsForecast(
        [
            AutoARIMA(season_length=season, approximation=settings["approximation"]),
            AutoETS(season_length=season),
            AutoCES(season_length=season, alias="AutoCES"),
            DynamicOptimizedTheta(season_length=season),
        ],
        freq=windows.freq,
        fallback_model=SeasonalNaive(season_length=season),
    )
    for window in range(1, windows.windows + 1):
        history = windows.history(window, filled=True).groupby("unique_id").tail(settings["longest"])
        made = library.forecast(df=history[[*KEYS, "y"]], h=windows.horizon, level=LEVELS)
        each = pd.concat([from_levels(made, model) for model in MODELS])
        yield each
        yield each.groupby(KEYS, as_index=False)[COLUMNS].median().assign(model="statsforecast")


answer(forecasts, ["statsforecast", "pandas", "numpy"], models=MODELS, longest=1000)
