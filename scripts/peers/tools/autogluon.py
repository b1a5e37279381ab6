"""AutoGluon-TimeSeries: the preset `high_quality` without pretrained models, whose weights are downloaded, trained once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
from autogluon.timeseries import TimeSeriesDataFrame, TimeSeriesPredictor

from scripts.peers.exchange import KEYS, QUANTILES, Windows, answer, named

PRETRAINED = ["Chronos", "Chronos2", "Toto", "Toto2"]


def forecasts(windows: Windows, settings: dict[str, Any]) -> Iterator[pd.DataFrame]:
    """Forecasts of each window by the weighted ensemble."""
    predictor = TimeSeriesPredictor(
        prediction_length=windows.horizon,
        freq=windows.freq,
        eval_metric="MASE",
        eval_metric_seasonal_period=windows.season,
        quantile_levels=QUANTILES,
        known_covariates_names=windows.covariates or None,
        path="models",
        verbosity=2,
    ).fit(
        _table(windows.history(1)),
        presets=settings["presets"],
        excluded_model_types=PRETRAINED,
        time_limit=windows.time_limit,
        random_seed=42,
    )
    settings["models"] = predictor.model_names()
    for window in range(1, windows.windows + 1):
        known = _table(windows.future(window)) if windows.covariates else None
        made = predictor.predict(_table(windows.history(window)), known_covariates=known, random_seed=42)
        frame = made.reset_index().set_axis([*KEYS, *made.columns], axis=1)
        yield named(frame, [str(q) for q in QUANTILES], "autogluon")


def _table(rows: pd.DataFrame) -> TimeSeriesDataFrame:
    renamed = rows.rename(columns={"y": "target"})
    return TimeSeriesDataFrame.from_data_frame(renamed, id_column="unique_id", timestamp_column="ds")


answer(forecasts, ["autogluon.timeseries", "torch", "pandas", "numpy"], presets="high_quality", excluded=PRETRAINED)
