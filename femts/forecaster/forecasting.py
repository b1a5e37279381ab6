"""Forecasts from a user's table to a table, or from arrays to arrays."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike, NDArray

from femts.config.values import check_steps
from femts.data.batch import Batch
from femts.data.dataset import Dataset
from femts.data.describe import count
from femts.data.frequency import last_dates, season_of
from femts.data.preprocess import Preprocess
from femts.data.schema import check_outliers
from femts.data.splits import Split
from femts.data.windows import Windows, resident
from femts.errors import GapWarning, RunFailure, UsageError, warn
from femts.evaluation.evaluator import windows_at_a_time
from femts.evaluation.intervals import with_bounds
from femts.explain.experts import weights_of_experts
from femts.explain.posterior import explainable, explanation
from femts.forecaster import inputs
from femts.forecaster.bounds import OddReading, QuantileSpec, SeriesForecasts, raw_bounds
from femts.forecaster.scoring import calibrated
from femts.mixers.ops.precision import full_precision
from femts.models.base import Forecasts
from femts.models.fem_zero import FemZero
from femts.text import arguments, marked, quote

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


def forecast_array(forecaster: Forecaster, look_backs: ArrayLike, steps: int) -> Array:
    """Forecast `steps` steps from raw `look_backs` (B, L, C): (B, steps, T) in raw units.

    Raises:
        UsageError: The shape is wrong, or the model needs more than the values of a single series.
    """
    preprocess = forecaster.preprocess
    if len(preprocess.series) > 1:
        raise UsageError("predict_array takes look-backs of a single series; select one with of(NAME) first.")
    if preprocess.static is not None or preprocess.effects is not None or preprocess.known is not None:
        raise UsageError(
            "predict_array takes values alone, but this model also reads covariates or dates; use predict."
        )
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
    if not len(values):
        return np.empty((0, steps, len(forecaster.targets)))
    count, rows = len(values), np.arange(len(values) + 1) * length
    data = Dataset(
        name="look-backs",
        values=values.reshape(-1, channels),
        spans=np.stack([rows[:-1], rows[1:]], axis=1),
        series=tuple(map(str, range(count))),
        stamps=None,
        columns=forecaster.columns,
        freq=None,
        season=1,
        split=Split(np.zeros((count, 3, 2), dtype=np.int64)),
        sha256="",
        covariates=np.empty((count * length, 0)),
    )
    preprocess = preprocess.take(np.zeros(count, dtype=np.int64))
    ahead, in_advance = pd.RangeIndex(count * steps), np.empty((count, steps, 0))
    points = _forecasts(forecaster, _windows(forecaster, preprocess, data, ahead, in_advance)).points
    return preprocess.inverse(points[..., : len(forecaster.targets)].cpu().double().numpy())


def forecast_table(
    forecaster: Forecaster,
    history: pd.DataFrame | Dataset,
    horizon: int | None,
    ends: QuantileSpec,
    future: inputs.Future | None,
    series: Sequence[str] | None = None,
    outliers: str | None = None,
) -> pd.DataFrame:
    """Forecast the steps after `history`; see `Forecaster.predict`."""
    return forecast_history(forecaster, history, horizon, ends, future, series, outliers)[2]


def forecast_history(
    forecaster: Forecaster,
    history: pd.DataFrame | Dataset,
    horizon: int | None,
    ends: QuantileSpec,
    future: inputs.Future | None,
    series: Sequence[str] | None,
    outliers: str | None,
) -> tuple[inputs.History, int, pd.DataFrame]:
    """As `forecast_table`, after the history that was read and the number of steps."""
    forecaster = treating(forecaster, outliers)
    past, steps, ahead = _read(forecaster, history, horizon, ends.needed, series, future)
    named = inputs.scenarios(future)
    if named is None:
        in_advance = inputs.future_values(forecaster, past.data, future, ahead, steps)
        made = _after(forecaster, past.data, in_advance, steps, ahead)
        table = _as_table(forecaster, past, made, ends)
    else:
        tables = {name: _scenario(forecaster, past.data, name, each, ahead, steps) for name, each in named.items()}
        parts = list[pd.DataFrame]()
        for name, in_advance in tables.items():
            made = _after(forecaster, past.data, in_advance, steps, ahead)
            parts.append(_as_table(forecaster, past, made, ends))
            if inputs.SCENARIO in parts[-1].columns:
                raise UsageError(
                    f"The forecast has a column '{inputs.SCENARIO}' of its own, but that name is needed to "
                    "distinguish scenarios; pass one scenario at a time, or rename the column and train again."
                )
            parts[-1].insert(0, inputs.SCENARIO, name)
        table = pd.concat(parts, ignore_index=True)
    _warn(forecaster, past.data, made, any(ends))
    return past, steps, table


def forecast_once(
    forecaster: Forecaster,
    history: pd.DataFrame | Dataset,
    horizon: int | None,
    future: inputs.Future | None,
    series: Sequence[str] | None,
    outliers: str | None,
) -> tuple[inputs.History, SeriesForecasts]:
    """The history that was read, and the forecasts of a single scenario after it, whose intervals are calibrated; see
    `Forecaster.predict`."""
    forecaster = treating(forecaster, outliers)
    past, steps, ahead = _read(forecaster, history, horizon, (), series, future)
    calibrated(forecaster).check((), steps)
    if inputs.scenarios(future) is not None:
        raise UsageError("Sample paths are drawn for one scenario at a time; pass one table of future covariates.")
    in_advance = inputs.future_values(forecaster, past.data, future, ahead, steps)
    made = _after(forecaster, past.data, in_advance, steps, ahead)
    _warn(forecaster, past.data, made, True)
    return past, made


def _read(
    forecaster: Forecaster,
    history: pd.DataFrame | Dataset,
    horizon: int | None,
    levels: Sequence[float],
    series: Sequence[str] | None,
    future: inputs.Future | None,
) -> tuple[inputs.History, int, pd.Index]:
    """The history, the number of steps to forecast, and the time stamps for which covariates are read."""
    config = forecaster.config
    steps = check_steps(config.pred_len if horizon is None else horizon)
    if levels:
        calibrated(forecaster).check(levels, steps)
    past = inputs.read_history(forecaster, history, series, future)
    if past.data.freq is not None:
        inputs.warn_age(inputs.ends_of(past.data).max(), forecaster.until, past.data.freq, config)
    inputs.warn_stopped(past.data, config.pred_len)
    return past, steps, inputs.steps_ahead(past.data, config.known_steps(steps))


def _after(forecaster: Forecaster, data: Dataset, in_advance: Array, steps: int, ahead: pd.Index) -> SeriesForecasts:
    """As `forecast_open`; raises UsageError if no step is left."""
    made = forecast_open(forecaster, data, ahead, in_advance, steps)
    if made.left_out.all():
        week = inputs.steps_ahead(data, steps + 7 * season_of(data.freq))  # or longer, which has times with values
        needed = {"horizon": int(inputs.closed(forecaster, data, week).all(axis=(0, 2)).argmin()) + 1}
        text = f"The history never has a value at the times of the {count(steps, 'step')} after it"
        text = f"{text}; ask for at least {arguments(needed)}."
        raise UsageError(text, argument="horizon", value=steps, remedy=needed)
    return made


def _warn(forecaster: Forecaster, data: Dataset, made: SeriesForecasts, bounded: bool) -> None:
    """Warn about what a user of the forecasts `made` should know; `bounded` ones have intervals."""
    config, targets, known = forecaster.config, forecaster.targets, forecaster.preprocess.places(data.series) >= 0
    inputs.warn_without_effect(forecaster)
    if bounded:
        inputs.warn_short_series(data, known, config.seq_len)
    some = np.flatnonzero(known)
    inputs.warn_units(made.preprocess.at(some), [data.series[s] for s in some], made.recent[some], targets)
    inputs.warn_new_series(data.series, known)
    if made.odd:
        warn(f"{marked(inputs.odd_note(made.odd))}.", GapWarning)
    if bounded:
        inputs.warn_unlike(made)
    inputs.warn_closed(made)
    lost = data.series if config.schema.panel else targets
    gone = np.flatnonzero(made.ended.all(axis=1) if config.schema.panel else made.ended.T[:, 0])
    if len(gone):
        warn(f"{marked(inputs.ended_note([lost[each] for each in gone], config.seq_len))}.", GapWarning)


def treating(forecaster: Forecaster, outliers: str | None) -> Forecaster:
    """The forecaster, treating readings far outside the usual range as asked; None is as in training."""
    asked, fitted = check_outliers(outliers), forecaster.preprocess.outliers
    if fitted is None and asked == "missing":
        fault = "This run was trained with all readings kept, so it does not know which are outliers"
        text = f"{fault}; train again with {arguments({'outliers': 'missing'})}."
        raise UsageError(text, argument="outliers", value=outliers, remedy={"outliers": None})
    if fitted is None or asked is None:
        return forecaster
    kept = replace(fitted, keep=asked == "keep")
    return replace(forecaster, preprocess=replace(forecaster.preprocess, outliers=kept))


def _scenario(
    forecaster: Forecaster, data: Dataset, name: str, future: pd.DataFrame, ahead: pd.Index, steps: int
) -> Array:
    """Future covariates of the scenario `name`; see `future_values`."""
    try:
        return inputs.future_values(forecaster, data, future, ahead, steps, name)
    except UsageError as error:
        raise UsageError(f"Scenario '{quote(name)}': {error.marked}", argument="future", value=future) from error


def _as_table(forecaster: Forecaster, past: inputs.History, made: SeriesForecasts, ends: QuantileSpec) -> pd.DataFrame:
    """The forecasts `made` for `past`, with their bounds, in the form of the history."""
    config, targets, data = forecaster.config, forecaster.targets, past.data
    points, ahead = made.raw(), made.stamps
    steps = points.shape[1]
    bounds = raw_bounds(forecaster, made, points, ends) if any(ends) else {}
    flat = {name: each.reshape(-1, len(targets)) for name, each in bounds.items()}
    forecast = with_bounds(pd.DataFrame(points.reshape(-1, len(targets)), columns=list(targets)), flat)
    kept = ~made.left_out
    if not config.schema.panel:
        forecast.insert(0, "step" if data.freq is None else "date", ahead)
        return past.named(forecast[kept[0]].reset_index(drop=True), config.schema.form, targets)
    if past.wide:
        parts = [forecast[s * steps : (s + 1) * steps].reset_index(drop=True) for s in range(len(data))]
        named = [
            part.rename(columns=lambda column, name=name: name + str(column).removeprefix(targets[0]))
            for part, name in zip(parts, data.series, strict=True)
        ]
        wide = pd.concat(named, axis=1)
        wide.insert(0, past.time, ahead[:steps])
        return wide[kept.any(axis=0)].reset_index(drop=True)
    forecast.insert(0, past.time, ahead)
    forecast.insert(0, config.schema.form.series, np.repeat(np.array(data.series, dtype=object), steps))
    return forecast[kept.ravel()].reset_index(drop=True)


def windows_ahead(
    forecaster: Forecaster, data: Dataset, ahead: pd.Index, in_advance: Array
) -> tuple[Preprocess, Dataset, Windows]:
    """One window for each series of `data`, whose forecast begins after its last row.

    Args:
        forecaster: a trained forecaster.
        data: the series up to their forecast origins.
        ahead: time stamps of the same number of steps after the end of each series, series by series.
        in_advance: future covariates of these steps, (S, steps, K).

    Returns:
        The preprocessing of the S series, the rows that are read, and the windows on the forecaster's device. A single
        table that is shorter than the look-back is preceded by its first season, unless the model reads raw values.
    """
    length = forecaster.config.seq_len
    preprocess = forecaster.preprocess.for_series(data)
    preprocess = replace(preprocess, domain=preprocess.domain.admitting(data.values[:, : len(forecaster.targets)]))
    if not data.schema.panel and not forecaster.model.supports.raw:
        data = data.preceded(length)
    data = data.recent(length + preprocess.reach)
    return preprocess, data, _windows(forecaster, preprocess, data, ahead, in_advance)


def _windows(
    forecaster: Forecaster, preprocess: Preprocess, data: Dataset, ahead: pd.Index, in_advance: Array
) -> Windows:
    """As `windows_ahead`, for `data` with their own `preprocess`."""
    length, steps, longer = forecaster.config.seq_len, len(ahead) // len(data), data.continued(ahead, in_advance)
    first, stop = longer.spans.T
    spans = np.stack([first, stop, stop - steps - length, np.ones_like(stop)], axis=1)
    return Windows(resident(longer, preprocess), length, steps, torch.from_numpy(spans)).to(forecaster.device)


def _forecasts(forecaster: Forecaster, windows: Windows) -> Forecasts:
    """Forecasts of `windows`, one for each series, in scaled units."""
    pieces = [
        forecast_batch(forecaster, windows.batch(some), windows.pred_len)
        for some in torch.arange(len(windows.spans)).split(windows_at_a_time(windows.rows, AT_A_TIME))
    ]
    return Forecasts.joined(pieces)


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
    preprocess, read, windows = windows_ahead(forecaster, data, ahead, in_advance)
    scaled = _forecasts(forecaster, windows)
    if not bool(scaled.points[..., : len(forecaster.targets)].isfinite().all()):
        raise RunFailure(
            "The forecast contains NaN or infinity; train again with a lower training.lr, or with other data."
        )
    series, steps = np.arange(len(data)).repeat(windows.pred_len), windows.pred_len
    flat = in_advance.reshape(len(ahead), -1)  # in full precision, unlike the effects of windows
    dates = data.dates(None if data.stamps is None else ahead, series)
    offsets = preprocess.offsets(flat, dates, series, "The history")
    recent, every = read.look_backs(windows.seq_len), torch.arange(len(data))
    odd = windows.odd(every)
    return SeriesForecasts(
        data.series,
        preprocess,
        recent if odd is None else np.where(odd.cpu().numpy(), np.nan, recent),
        ahead,
        scaled,
        None if offsets is None else offsets.reshape(len(data), steps, -1),
        len(forecaster.targets),
        () if odd is None else OddReading.all(read, odd.cpu().numpy()),
        windows.context(every).unlike,
    )


def forecast_open(
    forecaster: Forecaster, data: Dataset, ahead: pd.Index, in_advance: Array, steps: int
) -> SeriesForecasts:
    """As `forecast_series`, for the first `steps` steps, without those at times at which a series never has a value."""
    made = forecast_series(forecaster, data, ahead, in_advance).first(steps)
    return replace(made, closed=inputs.closed(forecaster, data, made.stamps))


def explain_table(
    forecaster: Forecaster, history: pd.DataFrame | Dataset, series: Sequence[str] | None = None
) -> pd.DataFrame:
    """Explain the forecast of the steps after `history`; see `Forecaster.explain`."""
    model, length = forecaster.model, forecaster.config.seq_len
    if not isinstance(model, FemZero):
        model = explainable(model, forecaster.config.model)
    data = inputs.read_history(forecaster, history, series).data
    steps = forecaster.config.pred_len
    last = data.known(np.repeat(data.spans[:, 1:] - 1, steps, axis=1))
    windows, tables = windows_ahead(forecaster, data, inputs.steps_ahead(data, steps), last)[2], list[pd.DataFrame]()
    for number, (first, stop) in enumerate(data.spans.tolist()):
        assert data.stamps is not None
        when = data.stamps[first:stop]
        when = when[-length:] if data.freq is None else last_dates(when, data.freq, length)
        batch = windows.batch(torch.tensor([number]))
        if isinstance(model, FemZero):
            table = weights_of_experts(model, batch, forecaster.columns)
        else:
            table = explanation(model, batch, forecaster.columns, when)
        if data.schema.panel:
            table.insert(0, "series", data.series[number])
        tables.append(table)
    return pd.concat(tables, ignore_index=True)
