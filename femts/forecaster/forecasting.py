"""Forecasts from a user's table to a table, or from arrays to arrays."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from femts.config.values import check_steps
from femts.data.batch import Batch
from femts.data.dataset import Dataset
from femts.data.frequency import last_dates
from femts.data.preprocess import Preprocess
from femts.data.raw import raw_look_backs
from femts.errors import RunFailure, UsageError
from femts.evaluation.evaluator import windows_at_a_time
from femts.evaluation.intervals import with_bounds
from femts.explain.posterior import explainable, explanation
from femts.forecaster import inputs
from femts.forecaster.bounds import QuantileSpec, SeriesForecasts, raw_bounds
from femts.forecaster.scoring import calibrated
from femts.mixers.ops.precision import full_precision
from femts.models.base import Forecasts
from femts.text import quote

if TYPE_CHECKING:
    from femts.forecaster.forecaster import Forecaster

Array = NDArray[np.float64]
AT_A_TIME = 256  # series per batch

# A forked process lacks the threads that OpenMP started before and would wait for them forever.
os.register_at_fork(after_in_child=partial(torch.set_num_threads, 1))


def forecast_batch(forecaster: Forecaster, batch: Batch, steps: int) -> Forecasts:
    """Forecast `steps` steps of the windows in `batch`, in float32 as for scores, even within an autocast of the
    caller."""
    with torch.no_grad(), full_precision(batch.past.device.type):
        return forecaster.model.eval().forecasts(batch, steps)


def forecast_array(forecaster: Forecaster, look_backs: ArrayLike, steps: int, offsets: Array | None = None) -> Array:
    """Forecast `steps` steps from raw `look_backs` (B, L, C) and their `offsets` (B, L + steps, C): (B, steps, T) in
    raw units.

    Raises:
        UsageError: A shape is wrong, offsets are missing or not expected, or the model has several series.
    """
    preprocess = forecaster.preprocess
    if len(preprocess.series) > 1:
        raise UsageError("predict_array takes look-backs of a single series; select one with of(NAME) first.")
    if preprocess.static is not None:
        raise UsageError("predict_array does not support static covariates, which this model uses; use predict.")
    try:
        values = np.asarray(look_backs, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"The look-backs are a {type(look_backs).__name__} that is not numeric; pass an array of numbers."
        ) from error
    length, channels = forecaster.config.seq_len, len(forecaster.columns)
    if values.ndim != 3 or values.shape[1:] != (length, channels):
        expected = f"(windows, {length}, {channels})"
        raise UsageError(f"The look-backs have shape {values.shape}; this model takes {expected}.")
    if (offsets is None) != (preprocess.effects is None) or preprocess.known is not None:
        raise UsageError(
            "predict_array takes offsets= only if the effect of covariates is removed before the model; use predict, "
            "which handles this."
        )
    past = None if offsets is None else offsets[:, :length]
    scaled = torch.from_numpy(preprocess.transform(values, past)).float().to(forecaster.device)
    raw = raw_look_backs(preprocess, values, past) if forecaster.model.supports.raw else None
    seen = torch.from_numpy(~np.isnan(values)).to(forecaster.device)
    points = forecast_batch(forecaster, Batch(scaled, seen, raw=raw), steps).points[..., : len(forecaster.targets)]
    made = points.cpu().double().numpy()
    return preprocess.inverse(made, None if offsets is None else offsets[:, length:])


def forecast_table(
    forecaster: Forecaster,
    history: pd.DataFrame | Dataset,
    horizon: int | None,
    ends: QuantileSpec,
    future: inputs.Future | None,
    series: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Forecast the steps after `history`; see `Forecaster.predict`."""
    config, targets = forecaster.config, forecaster.targets
    steps = check_steps(config.pred_len if horizon is None else horizon)
    if any(ends):
        calibrated(forecaster).check(ends.needed, steps)
    past = inputs.read_history(forecaster, history, series)
    data, known = past.data, forecaster.preprocess.places(past.data.series) >= 0
    if data.freq is not None:
        inputs.warn_age(inputs.ends_of(data).max(), forecaster.until, data.freq, config)
    inputs.warn_stopped(data, config.pred_len)
    if any(ends):
        inputs.warn_short_series(data, known, config.seq_len)
    ahead = inputs.steps_ahead(data, config.known_steps(steps))
    named = inputs.scenarios(future)
    if named is None:
        in_advance = inputs.known_ahead(forecaster, data, future, ahead, steps)
        made = forecast_series(forecaster, data, ahead, in_advance).first(steps)
        table = _as_table(forecaster, past, made, ends)
    else:
        known_columns = {name: _scenario(forecaster, data, name, each, ahead, steps) for name, each in named.items()}
        parts = list[pd.DataFrame]()
        for name, in_advance in known_columns.items():
            made = forecast_series(forecaster, data, ahead, in_advance).first(steps)
            parts.append(_as_table(forecaster, past, made, ends))
            if inputs.SCENARIO in parts[-1].columns:
                raise UsageError(
                    f"The forecast has a column '{inputs.SCENARIO}' of its own, but that name is needed to "
                    "distinguish scenarios; pass one scenario at a time, or rename the column and train again."
                )
            parts[-1].insert(0, inputs.SCENARIO, name)
        table = pd.concat(parts, ignore_index=True)
    some = np.flatnonzero(known)
    inputs.warn_units(made.preprocess.at(some), [data.series[s] for s in some], made.recent[some], targets)
    inputs.warn_new_series(data.series, known)
    lost = data.series if config.schema.panel else targets
    gone = np.flatnonzero(made.ended.all(axis=1) if config.schema.panel else made.ended.T[:, 0])
    inputs.warn_ended([lost[each] for each in gone], config.seq_len)
    return table


def _scenario(
    forecaster: Forecaster, data: Dataset, name: str, future: pd.DataFrame, ahead: pd.Index, steps: int
) -> Array:
    """Future covariates of the scenario `name`; see `known_ahead`."""
    try:
        return inputs.known_ahead(forecaster, data, future, ahead, steps)
    except UsageError as error:
        raise UsageError(f"Scenario '{quote(name)}': {error}") from error


def _as_table(forecaster: Forecaster, past: inputs.History, made: SeriesForecasts, ends: QuantileSpec) -> pd.DataFrame:
    """The forecasts `made` for `past`, with their bounds, in the form of the history."""
    config, targets, data = forecaster.config, forecaster.targets, past.data
    points, ahead = made.raw(), made.stamps
    steps = points.shape[1]
    bounds = raw_bounds(forecaster, made, points, ends) if any(ends) else {}
    flat = {name: each.reshape(-1, len(targets)) for name, each in bounds.items()}
    forecast = with_bounds(pd.DataFrame(points.reshape(-1, len(targets)), columns=list(targets)), flat)
    if not config.schema.panel:
        forecast.insert(0, "step" if data.freq is None else "date", ahead)
        return past.named(forecast, config.schema.form, targets)
    if past.wide:
        parts = [forecast[s * steps : (s + 1) * steps].reset_index(drop=True) for s in range(len(data))]
        named = [
            part.rename(columns=lambda column, name=name: name + str(column).removeprefix(targets[0]))
            for part, name in zip(parts, data.series, strict=True)
        ]
        wide = pd.concat(named, axis=1)
        wide.insert(0, past.time, ahead[:steps])
        return wide
    forecast.insert(0, past.time, ahead)
    forecast.insert(0, config.schema.form.series, np.repeat(np.array(data.series, dtype=object), steps))
    return forecast


@dataclass(frozen=True, eq=False)
class LookBacks:
    """Last rows of S series, as model inputs.

    Attributes:
        preprocess: preprocessing of the S series.
        recent: (S, L, C) in raw units, NaN for missing values and before a series began.
        batch: the same as windows without futures, with the known inputs of the forecast steps.
        offsets: offsets of the forecast steps (S, steps, C); None without future covariates.
    """

    preprocess: Preprocess
    recent: Array
    batch: Batch
    offsets: Array | None


def look_backs(forecaster: Forecaster, data: Dataset, in_advance: Array, ahead: pd.Index) -> LookBacks:
    """The last rows of each series of `data`, with future covariates of the steps `ahead`, (S, steps, K).

    Gaps are filled with the last value before them, in these rows or earlier ones. For a single table that is shorter
    than the look-back, the rows before it repeat its first season, if it has one.
    """
    preprocess, length = forecaster.preprocess.for_series(data), forecaster.config.seq_len
    preprocess = replace(preprocess, domain=preprocess.domain.admitting(data.values[:, : len(forecaster.targets)]))
    rows = data.spans[:, 1:] - length + np.arange(length)
    first = data.spans[:, :1]
    there = rows >= first
    if not data.schema.panel and 1 < data.season <= data.rows:
        rows += data.season * -(-np.maximum(0, first - rows) // data.season)
    inside, rows = rows >= first, np.maximum(rows, first)
    recent = np.where(inside[..., None], data.values[rows], np.nan)
    before, after = _offsets(preprocess, data, rows, in_advance, ahead)
    carried = _carried(preprocess, data, recent, rows[:, 0])

    def where(series: int, row: int) -> tuple[str, int]:
        words = data.words(series) if data.schema.panel else "The history"
        return words, int(max(0, row - 1 + rows[series, 0] - first[series, 0]))

    values, taken = np.concatenate([carried[0][:, None], recent], axis=1), None
    if before is not None and carried[1] is not None:
        taken = np.concatenate([carried[1][:, None], before], axis=1)
    scaled = torch.from_numpy(preprocess.transform(values, taken, where)[:, 1:]).float()
    static = None
    if preprocess.static is not None and data.static is not None:
        static = torch.from_numpy(preprocess.static.encode(data.static)).to(forecaster.device)
    raw = None
    if forecaster.model.supports.raw:
        raw = raw_look_backs(preprocess, np.where(there[..., None], recent, np.nan), before)
    known = _known(preprocess, data, rows, in_advance, ahead)
    known = None if known is None else known.to(forecaster.device)
    seen = torch.from_numpy(~np.isnan(recent)).to(forecaster.device)
    return LookBacks(preprocess, recent, Batch(scaled.to(forecaster.device), seen, known, static, raw=raw), after)


def _known(
    preprocess: Preprocess, data: Dataset, rows: NDArray[np.int64], in_advance: Array, ahead: pd.Index
) -> Tensor | None:
    """Known inputs (S, L + steps, K) of the `rows` (S, L) of each series and of the forecast steps; None if there are
    none."""
    if preprocess.known is None:
        return None
    covariates, stamps = _rows_and_ahead(data, rows, in_advance, ahead)
    return torch.from_numpy(preprocess.known.encode(covariates, stamps)).unflatten(0, (len(rows), -1))


def _rows_and_ahead(
    data: Dataset, rows: NDArray[np.int64], in_advance: Array, ahead: pd.Index
) -> tuple[Array, pd.Index | None]:
    """Future covariates and time stamps of the `rows` (S, L) of each series and of the forecast steps, (S (L + steps),
    K) and of the same length."""
    (series, length), steps = rows.shape, len(ahead) // len(rows)
    covariates = np.concatenate([data.covariates[rows], in_advance], axis=1).reshape(series * (length + steps), -1)
    if data.stamps is None:
        return covariates, None
    later = len(data.stamps) + np.arange(series * steps).reshape(series, steps)
    return covariates, data.stamps.append(ahead)[np.concatenate([rows, later], axis=1).ravel()]


def _offsets(
    preprocess: Preprocess, data: Dataset, rows: NDArray[np.int64], in_advance: Array, ahead: pd.Index
) -> tuple[Array | None, Array | None]:
    """Offsets of the `rows` (S, L) of each series and of the forecast steps (S, steps, C); None without effects.

    Rows before a series began are missing, so their offsets do not matter.
    """
    if preprocess.effects is None:
        return None, None
    (series, length), (covariates, stamps) = rows.shape, _rows_and_ahead(data, rows, in_advance, ahead)
    numbers = np.repeat(np.arange(series), len(covariates) // series)
    offsets = preprocess.offsets(covariates, stamps, numbers, "The history")
    assert offsets is not None
    before, after = np.split(offsets.reshape(series, -1, offsets.shape[1]), [length], axis=1)
    return before, after


def _carried(
    preprocess: Preprocess, data: Dataset, recent: Array, begin: NDArray[np.int64]
) -> tuple[Array, Array | None]:
    """The last value (S, C) before the look-backs, which start at the rows `begin` (S,), for channels without a value
    in their first row, NaN for others; and its offsets, if there are effects."""
    values = np.full((len(data), recent.shape[2]), np.nan)
    offsets = None if preprocess.effects is None else np.zeros_like(values)
    for s, c in np.argwhere(np.isnan(recent[:, 0])).tolist():
        (valid,) = np.nonzero(~np.isnan(data.values[data.spans[s, 0] : begin[s], c]))
        if not len(valid):
            continue
        row = int(data.spans[s, 0] + valid[-1])
        values[s, c] = data.values[row, c]
        if offsets is not None:
            one, stamps = slice(row, row + 1), None if data.stamps is None else data.stamps[row : row + 1]
            taken = preprocess.offsets(data.covariates[one], stamps, np.array([s]), "The history")
            offsets[s, c] = 0.0 if taken is None else taken[0, c]
    return values, offsets


def forecast_series(forecaster: Forecaster, data: Dataset, ahead: pd.Index, in_advance: Array) -> SeriesForecasts:
    """Forecast the stamps `ahead` (S steps,) of each series of `data`.

    Args:
        forecaster: a trained forecaster.
        data: the series up to their forecast origins.
        ahead: the same number of steps after the end of each series, series by series.
        in_advance: future covariates of these steps, (S, steps, K).

    Raises:
        RunFailure: The forecast is not finite.
    """
    steps, ready = len(ahead) // len(data), look_backs(forecaster, data, in_advance, ahead)
    pieces = list[Forecasts]()
    for some in torch.arange(len(data)).split(windows_at_a_time(ready.batch.past[0], AT_A_TIME)):
        pieces.append(forecast_batch(forecaster, ready.batch.some(some), steps))
    quantiles = [piece.quantiles for piece in pieces if piece.quantiles is not None]
    scaled = Forecasts(torch.cat([piece.points for piece in pieces]), torch.cat(quantiles) if quantiles else None)
    if not bool(scaled.points[..., : len(forecaster.targets)].isfinite().all()):
        raise RunFailure(
            "The forecast contains NaN or infinity; train again with a lower training.lr, or with other data."
        )
    return SeriesForecasts(
        data.series, ready.preprocess, ready.recent, ahead, scaled, ready.offsets, len(forecaster.targets)
    )


def explain_table(
    forecaster: Forecaster, history: pd.DataFrame | Dataset, series: Sequence[str] | None = None
) -> pd.DataFrame:
    """Explain the forecast of the steps after `history`; see `Forecaster.explain`."""
    model, length = explainable(forecaster.model, forecaster.config.model), forecaster.config.seq_len
    data = inputs.read_history(forecaster, history, series).data
    steps = forecaster.config.pred_len if forecaster.config.reads.any else 0
    last = data.covariates[np.repeat(data.spans[:, 1:] - 1, steps, axis=1)]
    read, tables = look_backs(forecaster, data, last, inputs.steps_ahead(data, steps)).batch, list[pd.DataFrame]()
    for number, (first, stop) in enumerate(data.spans.tolist()):
        assert data.stamps is not None
        when = data.stamps[first:stop]
        when = when[-length:] if data.freq is None else last_dates(when, data.freq, length)
        table = explanation(model, read.some(torch.tensor([number])), forecaster.columns, when)
        if data.schema.panel:
            table.insert(0, "series", data.series[number])
        tables.append(table)
    return pd.concat(tables, ignore_index=True)
