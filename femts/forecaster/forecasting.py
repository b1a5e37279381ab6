"""Forecasts of a forecaster, from a user's table to a table, or from arrays to arrays."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from femts.config.values import check_steps
from femts.data.grid import future_dates
from femts.data.limits import Limits
from femts.data.preprocess import Preprocess
from femts.data.raw import Raw, raw_rows
from femts.errors import RunFailure, UsageError
from femts.evaluation.intervals import Intervals, check_levels, with_bounds
from femts.evaluation.quantiles import check_quantiles, conformal_bounds, level_of
from femts.explain.posterior import explainable, explanation
from femts.forecaster.inputs import in_form_of, known_ahead, look_back, tell_age, tell_ended, tell_units
from femts.forecaster.scoring import calibrated
from femts.forecaster.trained import Single, Trained
from femts.mixers.ops.precision import full_precision
from femts.models.base import Forecasts

Array = NDArray[np.float64]

# A fork has none of the threads that OpenMP began before it, and would wait for them for ever.
os.register_at_fork(after_in_child=partial(torch.set_num_threads, 1))


class Ends(NamedTuple):
    """Ends of intervals that a user asks for.

    Attributes:
        levels: percent.
        quantiles: each an end of an interval; 0.5 is the forecast.
    """

    levels: tuple[float, ...]
    quantiles: tuple[float, ...]

    @classmethod
    def of(cls, level: Sequence[float] | None, quantiles: Sequence[float] | None) -> Ends:
        """The ends by what `predict` was given; UsageError for what is no level or quantile."""
        return cls(
            () if level is None else check_levels(level),
            () if quantiles is None else check_quantiles(quantiles),
        )

    @property
    def needed(self) -> tuple[float, ...]:
        """Levels that have to be calibrated."""
        return (*self.levels, *(level_of(q) for q in self.quantiles if q != 0.5))


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
    points = _array(scaled.points[0, :, : len(targets)])
    if not np.isfinite(points).all():
        raise RunFailure("The forecast is not finite; train again with a lower training.lr, or with other data.")
    forecast = pd.DataFrame(forecaster.preprocess.inverse(points, after), columns=list(targets))
    if any(ends):
        scaled = within(scaled, [forecaster.preprocess], len(targets), None if after is None else after[None])
        bounds = _scaled_bounds(scaled, forecaster, ends)
        raw = {name: forecaster.preprocess.inverse(bound, after) for name, bound in bounds.items()}
        forecast = with_bounds(forecast, raw)
    ended = np.asarray(np.isnan(past.values[past.before :, : len(targets)]).all(axis=0))
    forecast.loc[:, np.repeat(ended, forecast.shape[1] // len(targets))] = np.nan
    if ended.any():
        tell_ended([name for name, over in zip(targets, ended, strict=True) if over], len(past.when) - past.before)
    ahead = pd.DataFrame({"step" if freq is None else "date": when})
    return in_form_of(pd.concat([ahead, forecast], axis=1), past, config.schema.form, targets)


def explain_table(forecaster: Single, history: pd.DataFrame) -> pd.DataFrame:
    """Explain the forecast of what follows `history`; see `Forecaster.explain`."""
    model = explainable(forecaster.model, forecaster.config.model)
    past = look_back(history, forecaster.config, forecaster.columns, forecaster.freq)
    scaled = forecaster.preprocess.transform(
        past.values[None], forecaster.preprocess.offsets(past.covariates, past.when)
    )
    read, when = torch.from_numpy(scaled[:, past.before :]).float().to(forecaster.device), past.when[past.before :]
    return explanation(model, read, forecaster.columns, when)


def within(scaled: Forecasts, series: Sequence[Preprocess], targets: int, offsets: Array | None) -> Forecasts:
    """Forecasts of T targets as they are scored, and as intervals are around them: at the ends of the domain, where
    they leave it.

    Args:
        scaled: a forecast of each series.
        series: the preprocessing of each.
        targets: T.
        offsets: of the steps that are forecast (S, steps, C); None where there are none.
    """
    limits = Limits.of(series, targets)
    if limits is None:
        return scaled
    limits = limits if offsets is None else limits.without(torch.from_numpy(offsets[..., :targets]))
    points, quantiles = (
        None if each is None else limits.clip(each[..., :targets].cpu().double())
        for each in (scaled.points, scaled.quantiles)
    )
    assert points is not None
    return Forecasts(points, quantiles)


def _scaled_bounds(scaled: Forecasts, forecaster: Single, ends: Ends) -> dict[str, Array]:
    """Bounds (S, T) in scaled units beside the forecast, by name: `lo-80`, `hi-80`, `q-10`."""
    points = _array(scaled.points[0, :, : len(forecaster.targets)])
    pairs = {0.0: (points, points)}
    for level, (low, high) in scaled_ends(
        calibrated(forecaster), forecaster.model.quantiles, scaled, points.shape
    ).items():
        pairs[level] = low[0], high[0]
    return named_bounds(pairs, ends)


def named_bounds(pairs: Mapping[float, tuple[Array, Array]], ends: Ends) -> dict[str, Array]:
    """Ends by name, `lo-80`, `hi-80`, `q-10`, from the lower and the upper one of each level; 0
    stands for the forecast."""
    bounds = {f"{side}-{level:g}": pairs[level][k] for level in ends.levels for k, side in enumerate(("lo", "hi"))}
    return bounds | {f"q-{100 * q:g}": pairs[level_of(q)][q > 0.5] for q in ends.quantiles}


def scaled_ends(
    intervals: Intervals, learned: Sequence[float], scaled: Forecasts, shape: tuple[int, ...]
) -> dict[float, tuple[Array, Array]]:
    """Lower and upper ends (B, S, T) of each calibrated level, in scaled units.

    Args:
        intervals: of the forecaster.
        learned: quantiles that its model has learned; none for a mean.
        scaled: forecasts of B windows.
        shape: (S, T), steps and targets.
    """
    steps, targets = shape
    corrections = intervals.half_widths[:, :steps]
    if scaled.quantiles is None:
        points = _array(scaled.points[..., :targets])
        return {
            level: (points - width, points + width) for level, width in zip(intervals.levels, corrections, strict=True)
        }
    moved = conformal_bounds(scaled.quantiles[..., :targets], learned, intervals.levels, corrections)
    return {level: (low.numpy(), high.numpy()) for level, (low, high) in zip(intervals.levels, moved, strict=True)}


def _array(values: Tensor) -> Array:
    return values.cpu().double().numpy()
