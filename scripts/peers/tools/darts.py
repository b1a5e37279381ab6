"""Darts: `LightGBMModel` with a model for each step and quantile, as in its guide to regression models, for all series,
each scaled, trained once. Where these would be many, the guide's `multi_models=False` trains one for all steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
from darts import TimeSeries
from darts.dataprocessing.transformers import Scaler
from darts.models import LightGBMModel

from scripts.peers.exchange import COLUMNS, QUANTILES, Windows, answer


def forecasts(windows: Windows, settings: dict[str, Any]) -> Iterator[pd.DataFrame]:
    """Forecasts of each window; the model reads the rows before it without training."""
    first, horizon = windows.history(1, filled=True), windows.horizon
    shortest = first.groupby("unique_id").size().min()
    lags = max(1, min(max(windows.season, settings["fewest_lags"]), int(shortest - horizon) // 2))
    settings |= {"lags": lags, "dates": windows.dates, "multi_models": len(first) * horizon <= settings["most_rows"]}
    known = range(horizon) if windows.covariates else range(1) if windows.dates else None
    model = LightGBMModel(
        lags=lags,
        lags_future_covariates=list(known) if known else None,
        output_chunk_length=horizon,
        add_encoders={"cyclic": {"future": windows.dates}} if windows.dates else None,
        likelihood="quantile",
        quantiles=QUANTILES,
        multi_models=settings["multi_models"],
        random_state=42,
        verbose=-1,
        n_jobs=1,
    )
    scaler = Scaler()
    series = scaler.fit_transform(list(_series(first, windows, ["y"]).values()))
    model.fit(series, future_covariates=_known(windows, 1))
    for window in range(1, windows.windows + 1):
        history = _series(windows.history(window, filled=True), windows, ["y"])
        made = model.predict(
            horizon,
            series=scaler.transform(list(history.values())),
            future_covariates=_known(windows, window),
            predict_likelihood_parameters=True,
        )
        samples = [TimeSeries.from_times_and_values(each.time_index, each.values()[:, None]) for each in made]
        for name, each in zip(history, scaler.inverse_transform(samples), strict=True):
            frame = pd.DataFrame(each.all_values()[:, 0], columns=COLUMNS)
            yield frame.assign(unique_id=name, ds=each.time_index, model="darts")


def _series(rows: pd.DataFrame, windows: Windows, columns: list[str]) -> dict[str, TimeSeries]:
    return {
        str(name): TimeSeries.from_dataframe(own, "ds", columns, freq=windows.freq)
        for name, own in rows.groupby("unique_id")
    }


def _known(windows: Windows, window: int) -> list[TimeSeries] | None:
    """Known covariates until the end of a window, None if there are none."""
    rows = windows.rows[windows.rows["window"] <= window]
    return list(_series(rows, windows, windows.covariates).values()) if windows.covariates else None


answer(forecasts, ["darts", "lightgbm", "pandas", "numpy"], fewest_lags=12, most_rows=100_000)
