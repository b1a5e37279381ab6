"""Test windows, small enough to be embedded in a page: look-back, actual values, forecast and what was read."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from femts.analysis.audit.checks import scored_forecasts
from femts.data.batch import Batch
from femts.data.dataset import Dataset
from femts.data.describe import shown_past
from femts.data.frequency import future_dates, last_dates
from femts.data.windows import Windows
from femts.errors import UsageError
from femts.explain.posterior import explainable, explained
from femts.forecaster.forecaster import Forecaster
from femts.forecaster.scoring import score_windows
from femts.models.base import Forecasts
from femts.models.fem import SegmentForecaster

MOST_WINDOWS = 24
MOST_VALUES = 700_000  # values per page, of three bytes each
SHOWN = (80.0, 95.0)  # percent; levels of the bands to draw, if calibrated
MISSING = 65535


def sample_windows(forecaster: Forecaster, data: Dataset, ranked: pd.DataFrame) -> dict[str, Any]:
    """A few test windows for the page's script, forecast as for scoring.

    For a single series, they are evenly spaced over the scored windows, including the first and the last one; if there
    are too many channels for the size of a page, only the first ones are included. For several series, they are the
    last windows of some series, including the worst and the best.

    Args:
        forecaster: forecaster to report on.
        data: its data.
        ranked: scores by series, the worst first.

    Returns:
        `channels` (number of channels included), `past` and `horizon` (steps), `time` (`date` or `number`), `levels`
        (of the bands, in percent), `happened` (whether the actual values are known), `why` (None, or why the model
        cannot be explained) and `windows`: `stamps` of the steps, `series` (past, actual values and forecast as one
        packed row per channel, raw units), `bounds` (by level, the lower and then the upper ones as one packed row per
        channel, raw units), and `read`, or for several series their `name`.
    """
    config, windows = forecaster.config, score_windows(forecaster, "test", None, data)
    past, steps = min(config.seq_len, shown_past(config.pred_len, data.season)), config.pred_len
    levels, several = shown_levels(forecaster), data.schema.panel
    each = past + (2 + 2 * len(levels)) * steps
    if several:
        most = max(1, min(MOST_WINDOWS, MOST_VALUES // each, len(ranked)))
        chosen = np.unique(np.linspace(0, len(ranked) - 1, most).round().astype(int))
        places = [data.series.index(name) for name in ranked["series"].iloc[chosen]]
        channels, numbers, (model, why) = 1, windows.ends.cpu().numpy()[places] - 1, (None, None)
    else:
        channels = max(1, min(len(forecaster.targets), MOST_VALUES // (4 * each)))
        scorable = windows_scored(forecaster, windows).numpy()
        many = max(1, min(MOST_WINDOWS, MOST_VALUES // (channels * each), len(scorable)))
        numbers = scorable[np.unique(np.linspace(0, len(scorable) - 1, many).round().astype(int))]
        model, why = _explained_model(forecaster)
    index = torch.from_numpy(numbers)
    scored, units = (
        scored_forecasts(forecaster.model, windows, index),
        forecaster.preprocess.at(windows.series_of(index).cpu().numpy()),
    )
    bounds, forecasts = sample_bounds(forecaster, windows, index, scored), scored.points.cpu().double().numpy()
    ends = {level: (units.inverse(low), units.inverse(high)) for level, (low, high) in bounds.items()}
    samples = []
    for place, (number, forecast) in enumerate(zip(numbers.tolist(), units.inverse(forecasts), strict=True)):
        series, row = windows.place(number)
        rows = np.arange(row - past, row + steps)
        begin = int(data.spans[series, 0])
        last = int(data.lengths[series]) - 1  # forecasts of short series extend past their end
        values = data.values[begin + rows.clip(0, last), : windows.n_targets]
        values = np.where(((rows >= 0) & (rows <= last))[:, None], values, np.nan)
        sample: dict[str, Any] = {
            "stamps": _stamps(data, series, rows),
            "series": pack(np.concatenate([values, forecast]).T[:channels]),
            "bounds": {
                level: pack(np.concatenate([low[place], high[place]]).T[:channels])
                for level, (low, high) in ends.items()
            },
        }
        sample |= {"name": data.series[series]} if several else {"row": row}
        if model is not None:
            starts = row - model.config.segment * np.arange(model.config.n_segments, 0, -1)
            starts = np.maximum(starts, row - config.seq_len)
            edges = np.stack([starts, np.append(starts[1:], row) - 1], axis=1).ravel()
            batch = windows.batch(torch.tensor([number], device=forecaster.device))
            sample["read"] = _read(model, batch, channels) | {"stamps": _stamps(data, series, edges)}
        samples.append(sample)
    return {
        "channels": channels,
        "past": past,
        "horizon": steps,
        "time": "date" if isinstance(data.stamps, pd.DatetimeIndex) else "number",
        "levels": list(bounds),
        "happened": True,
        "why": why,
        "windows": samples,
    }


def windows_scored(forecaster: Forecaster, windows: Windows) -> torch.Tensor:
    """Indices of the test `windows` that a report scores: all, or for a model that is fitted to each look-back those
    scored in training, whose fits are cached in the same process."""
    model, metrics = forecaster.model, forecaster.metrics
    fewer = model.supports.raw and "thinned" in metrics  # there was not enough time for all of them
    return windows.subsample(metrics["test"]["windows"] if fewer else model.most_windows)


def pack(rows: NDArray[Any]) -> list[list[float | str]]:
    """Pack each row of (rows, values) as its lowest value, a step size, and multiples of it above the lowest value as
    little-endian uint16 in base64; NaN is 65535."""
    packed: list[list[float | str]] = []
    for values in np.where(np.isfinite(rows), rows, np.nan).astype(np.float64):
        finite = values[~np.isnan(values)]
        low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
        step = (high - low) / (MISSING - 1) or 1.0
        whole = np.where(np.isnan(values), MISSING, np.round((values - low) / step)).astype("<u2")
        packed.append([low, step, base64.b64encode(whole.tobytes()).decode()])
    return packed


def sample_bounds(
    forecaster: Forecaster, windows: Windows, index: torch.Tensor, scored: Forecasts
) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Lower and upper bounds (B, P, T) in scaled units of the levels shown, around the forecasts `scored` of the
    windows `index` (B,)."""
    intervals, levels = forecaster.intervals, shown_levels(forecaster)
    if intervals is None or not levels:
        return {}
    context = windows.context(index)
    numbers = intervals.numbers(windows.names)
    context = context._replace(series=numbers[context.series], of_members=scored.of_members)
    ends = intervals.bounds(scored.points, context, scored.quantiles, forecaster.model.quantiles)
    return {f"{level:g}": (ends[level][0].numpy(), ends[level][1].numpy()) for level in levels}


def _explained_model(forecaster: Forecaster) -> tuple[SegmentForecaster | None, str | None]:
    try:
        return explainable(forecaster.model, forecaster.config.model), None
    except UsageError as error:
        return None, str(error)


def _read(model: SegmentForecaster, batch: Batch, channels: int) -> dict[str, Any]:
    """Means over the layers, as plotted by `femts explain`: weights of N segments, alternating between all channels'
    and own."""
    layers = explained(model, batch)
    weights = torch.stack([layer.posterior for layer in layers]).mean(0).flatten(1)[:channels]
    beta = torch.stack([layer.temperature for layer in layers]).mean(0)[:channels]
    segments = torch.stack([layer.segments for layer in layers]).log().mean(0).exp()[:channels]
    numbers = {"beta": beta.tolist(), "segments": segments.tolist()}
    return {
        "weights": pack(weights.numpy()),
        **{k: [float(f"{v:.4g}") for v in values] for k, values in numbers.items()},
    }


def shown_levels(forecaster: Forecaster) -> list[float]:
    """Levels of the bands to draw; empty if the run has no intervals for its horizon."""
    intervals = forecaster.intervals
    if intervals is None or not intervals.levels or intervals.steps < forecaster.config.pred_len:
        return []
    return [level for level in SHOWN if level <= intervals.levels[-1]] or list(intervals.levels[-1:])


def _stamps(data: Dataset, series: int, rows: NDArray[np.int64]) -> list[int] | dict[str, int]:
    """Time stamps of `rows` of a series as integers: milliseconds of local time, the stamps themselves if they are
    numbers, or row numbers. Rows before and after the series have extrapolated stamps.

    Evenly spaced stamps are given by the first one and the step, which is shorter.
    """
    if data.stamps is None:
        return packed_stamps(pd.Index(rows))
    begin, after = int(data.spans[series, 0]), max(0, int(rows[-1]) + 1 - int(data.lengths[series]))
    within = rows[: len(rows) - after]
    if within[0] < 0 and data.freq is not None:
        stop = int(within[-1]) + 1
        stamps = last_dates(data.stamps[begin : begin + stop], data.freq, len(within))
    else:
        stamps = data.stamps[begin + within]
    if after and data.freq is not None:
        stamps = stamps.append(future_dates(stamps[-1], data.freq, after))
    return packed_stamps(stamps)


def packed_stamps(when: pd.Index) -> list[int] | dict[str, int]:
    """As `_stamps`, for the given time stamps."""
    dated = isinstance(when, pd.DatetimeIndex)
    numbers = when.tz_localize(None).as_unit("ms").asi8 if dated else when.to_numpy()
    steps = np.unique(np.diff(numbers))
    if len(steps) == 1:
        return {"first": int(numbers[0]), "step": int(steps[0])}
    return [int(number) for number in numbers]
