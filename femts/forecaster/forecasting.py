"""Forecasts of a forecaster, from a user's table to a table, or from arrays to arrays."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from femts.config.values import check_steps
from femts.data.frequency import future_dates
from femts.data.raw import Raw, raw_rows
from femts.errors import RunFailure, UsageError
from femts.evaluation.intervals import with_bounds
from femts.explain.posterior import explainable, explanation
from femts.forecaster.bounds import Ahead, Ends, raw_bounds
from femts.forecaster.inputs import in_form_of, known_ahead, look_back, tell_age, tell_ended, tell_units
from femts.forecaster.scoring import calibrated
from femts.forecaster.trained import Single, Trained
from femts.mixers.ops.precision import full_precision
from femts.models.base import Forecasts

Array = NDArray[np.float64]

# A fork has none of the threads that OpenMP began before it, and would wait for them for ever.
os.register_at_fork(after_in_child=partial(torch.set_num_threads, 1))


def forecast_scaled(
    forecaster: Single, values: Array, steps: int, offsets: Array | None = None, before: int = 0
) -> Forecasts:
    """Forecast `steps` from raw look-backs `values` (B, before + L, C), whose `offsets` begin with those of these rows.

    The first `before` rows are not read, but fill gaps after them.
    """
    past = None if offsets is None else offsets[:, : values.shape[1]]
    scaled = torch.from_numpy(forecaster.preprocess.transform(values, past)[:, before:]).float().to(forecaster.device)
    past = None if past is None else past[:, before:]
    raw = raw_rows(forecaster.preprocess, values[:, before:], past) if forecaster.model.reads_raw else None
    return forecast_model(forecaster, scaled, steps, raw)


def forecast_model(forecaster: Trained[Any, Any], scaled: Tensor, steps: int, raw: Raw | None = None) -> Forecasts:
    """Forecast `steps` from look-backs (B, L, C), those before scaling in `raw` for a model that reads these.

    In float32, as scores are, also within the autocast of a caller.
    """
    with torch.no_grad(), full_precision(scaled.device.type):
        return forecaster.model.eval().forecasts(scaled, steps, None if raw is None else raw.last())


def forecast_array(forecaster: Single, look_backs: ArrayLike, steps: int, offsets: Array | None = None) -> Array:
    """Forecast `steps` from raw `look_backs` (B, L, C) and their `offsets` (B, L + steps, C): (B, steps, T), raw units.

    Raises:
        UsageError: another shape, or offsets that are missing or not wanted.
    """
    try:
        values = np.asarray(look_backs, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"The look-backs are a {type(look_backs).__name__} that is no array of numbers; give one."
        ) from error
    length, channels = forecaster.config.seq_len, len(forecaster.columns)
    if values.ndim != 3 or values.shape[1:] != (length, channels):
        expected = f"(windows, {length}, {channels})"
        raise UsageError(f"The look-backs have shape {values.shape}; this model takes {expected}.")
    if (offsets is None) != (forecaster.preprocess.effects is None):
        raise UsageError(
            "predict_array takes offsets= for a model that was trained with columns known in advance, and for no "
            "other; use predict, which sees to it."
        )
    points = forecast_scaled(forecaster, values, steps, offsets).points[..., : len(forecaster.targets)]
    return forecaster.preprocess.inverse(_array(points), None if offsets is None else offsets[:, length:])


def forecast_table(
    forecaster: Single, history: pd.DataFrame, horizon: int | None, ends: Ends, future: pd.DataFrame | None
) -> pd.DataFrame:
    """Forecast what follows `history`; see `Forecaster.predict`."""
    config, freq, targets = forecaster.config, forecaster.freq, forecaster.targets
    steps = check_steps(config.pred_len if horizon is None else horizon)
    if any(ends):
        calibrated(forecaster).at(ends.needed, steps)
    past = look_back(history, config, forecaster.columns, freq)
    if freq is None:
        when: pd.Index = pd.RangeIndex(past.when[-1] + 1, past.when[-1] + 1 + steps)
    else:
        when = future_dates(past.when[-1], freq, steps)
        tell_age(past.when[-1], forecaster.until, freq, config)
    tell_units([("", forecaster.preprocess, past.values[past.before :])], targets)
    in_advance = np.concatenate([past.covariates, known_ahead(future, config, when, freq)])
    offsets = forecaster.preprocess.offsets(in_advance, past.when.append(when))
    after = None if offsets is None else offsets[len(past.when) :]
    offsets = None if offsets is None else offsets[None]
    scaled = forecast_scaled(forecaster, past.values[None], steps, offsets, past.before)
    known, recent = None if after is None else after[None], past.values[None, past.before :]
    ahead = Ahead([config.dataset], [forecaster.preprocess], recent, [when], scaled, known, len(targets))
    points = ahead.raw()
    if not np.isfinite(points).all():
        raise RunFailure("The forecast is not finite; train again with a lower training.lr, or with other data.")
    forecast = pd.DataFrame(points[0], columns=list(targets))
    if any(ends):
        bounds = raw_bounds(forecaster, ahead, points, ends)
        forecast = with_bounds(forecast, {name: bound[0] for name, bound in bounds.items()})
    ended = np.asarray(np.isnan(past.values[past.before :, : len(targets)]).all(axis=0))
    forecast.loc[:, np.repeat(ended, forecast.shape[1] // len(targets))] = np.nan
    if ended.any():
        tell_ended([name for name, over in zip(targets, ended, strict=True) if over], len(past.when) - past.before)
    stamps = pd.DataFrame({"step" if freq is None else "date": when})
    return in_form_of(pd.concat([stamps, forecast], axis=1), past, config.schema.form, targets)


def explain_table(forecaster: Single, history: pd.DataFrame) -> pd.DataFrame:
    """Explain the forecast of what follows `history`; see `Forecaster.explain`."""
    model = explainable(forecaster.model, forecaster.config.model)
    past = look_back(history, forecaster.config, forecaster.columns, forecaster.freq)
    scaled = forecaster.preprocess.transform(
        past.values[None], forecaster.preprocess.offsets(past.covariates, past.when)
    )
    read, when = torch.from_numpy(scaled[:, past.before :]).float().to(forecaster.device), past.when[past.before :]
    return explanation(model, read, forecaster.columns, when)


def _array(values: Tensor) -> Array:
    return values.cpu().double().numpy()
