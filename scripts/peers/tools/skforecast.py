"""skforecast: LightGBM with lags, rolling features and the calendar, one forecaster for all series, standardised,
trained once. Conformal intervals come from the errors of a trial that leaves out the last rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import pandas as pd
from lightgbm import LGBMRegressor
from skforecast.preprocessing import CalendarFeatures, RollingFeatures
from skforecast.recursive import ForecasterRecursive, ForecasterRecursiveMultiSeries
from sklearn.preprocessing import StandardScaler

from scripts.peers.exchange import KEYS, LEVELS, Windows, answer, from_levels

Series: TypeAlias = dict[str, pd.Series]
Known: TypeAlias = dict[str, pd.DataFrame]


def forecasts(windows: Windows, settings: dict[str, Any]) -> Iterator[pd.DataFrame]:
    """Forecasts of each window from the rows before it, without training."""
    horizon, known = windows.horizon, dict[str, pd.DataFrame]()
    if windows.covariates:
        known = {name: own[windows.covariates] for name, own in _indexed(windows.rows, windows)}
    series = _series(windows, 1)
    shortest = min(len(each) for each in series.values())
    held = max(1, min(settings["most_windows"], shortest // 3 // horizon))
    lags = max(2, min(max(windows.season, settings["fewest_lags"]), (shortest - held * horizon) // 2))
    settings |= {"lags": lags, "dates": windows.dates, "calibration_windows": held}

    trial = _fitted({name: y[: -held * horizon] for name, y in series.items()}, known, windows, lags)
    cut = [{name: y[: -ahead * horizon] for name, y in series.items()} for ahead in range(held, 0, -1)]
    tried = pd.concat(_predicted(trial, "predict", each, known, horizon) for each in cut)
    predicted = {name: own.set_index("ds")["pred"] for name, own in tried.groupby("unique_id")}
    actual = {name: series[name][own.index] for name, own in predicted.items()}
    model = _fitted(series, known, windows, lags)
    if len(series) > 1:
        model.set_out_sample_residuals(actual, predicted, random_state=42)
    else:
        model.set_out_sample_residuals(*actual.values(), *predicted.values(), random_state=42)
    for window in range(1, windows.windows + 1):
        rows, made = _series(windows, window), pd.DataFrame()
        for level in LEVELS:
            options = {"method": "conformal", "interval": level / 100, "use_in_sample_residuals": False}
            own = _predicted(model, "predict_interval", rows, known, horizon, **options)
            made = own[[*KEYS, "pred"]] if made.empty else made
            made = made.assign(**{f"pred-lo-{level}": own["lower_bound"], f"pred-hi-{level}": own["upper_bound"]})
        yield from_levels(made, "pred").assign(model="skforecast")


def _indexed(rows: pd.DataFrame, windows: Windows) -> Iterator[tuple[str, pd.DataFrame]]:
    for name, own in rows.groupby("unique_id"):
        yield str(name), own.set_index(pd.DatetimeIndex(own["ds"], freq=windows.freq))


def _series(windows: Windows, window: int) -> Series:
    return {name: own["y"] for name, own in _indexed(windows.history(window, filled=True), windows)}


def _fitted(series: Series, known: Known, windows: Windows, lags: int) -> Any:
    """A forecaster trained on one or several series."""
    features = [name.replace("dayofweek", "day_of_week") for name in windows.dates]
    choices = {
        "estimator": LGBMRegressor(random_state=42, verbosity=-1, n_jobs=1),
        "lags": lags,
        "window_features": RollingFeatures(["mean", "std"], lags),
        "calendar_features": CalendarFeatures(features) if features else None,
    }
    exog = {name: known[name].loc[y.index] for name, y in series.items()} if known else None
    if len(series) > 1:
        model = ForecasterRecursiveMultiSeries(**choices, transformer_series=StandardScaler())
        model.fit(series, exog)
    else:
        ((name, y),) = series.items()
        model = ForecasterRecursive(**choices)
        model.fit(y, exog[name] if exog else None)
    return model


def _predicted(model: Any, ask: str, series: Series, known: Known, horizon: int, **options: Any) -> pd.DataFrame:
    """What `ask`, a method of the forecaster, returns from the last rows, with `unique_id` and `ds`, for series by their ends."""
    made = list[pd.DataFrame]()
    for end in {y.index[-1]: None for y in series.values()}:
        last = pd.DataFrame({name: y[-model.window_size :] for name, y in series.items() if y.index[-1] == end})
        exog = {name: known[name][known[name].index > end][:horizon] for name in last} if known else None
        if isinstance(model, ForecasterRecursive):
            (name,) = last
            own = getattr(model, ask)(horizon, last[name], exog[name] if exog else None, **options)
            own = pd.DataFrame(own).assign(level=name)
        else:
            own = getattr(model, ask)(horizon, list(last), last, exog, **options)
        made.append(own.rename_axis("ds").reset_index().rename(columns={"level": "unique_id"}))
    return pd.concat(made, ignore_index=True)


answer(
    forecasts,
    ["skforecast", "lightgbm", "scikit-learn", "pandas", "numpy"],
    fewest_lags=12,
    most_windows=10,
    intervals="conformal",
)
