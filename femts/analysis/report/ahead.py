"""The forecast of the steps after the data, small enough to be embedded in a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from femts.analysis.report.samples import (
    MOST_VALUES,
    MOST_WINDOWS,
    pack,
    packed_stamps,
    shown_levels,
)
from femts.data.dataset import Dataset
from femts.data.describe import shown_past
from femts.data.frequency import last_dates
from femts.forecaster.bounds import QuantileSpec, raw_bounds
from femts.forecaster.forecaster import Forecaster
from femts.forecaster.forecasting import forecast_open
from femts.forecaster.inputs import future_values, steps_ahead


def forecast_ahead(
    forecaster: Forecaster, data: Dataset, ranked: Sequence[str], future: pd.DataFrame | None = None
) -> dict[str, Any] | None:
    """Forecast of the steps after the last row of `data` for the page's script, as by `Forecaster.predict`.

    Args:
        forecaster: the deployed forecaster, which is the refitted one if there is one.
        data: its data.
        ranked: names of the series to forecast, of which evenly spaced ones are selected if there are too many for a
            page; those with a value in their look-back come first, because others have no forecast.
        future: future covariates of the steps after the data; None takes those of the rows after its last readings.

    Returns:
        As `sample_windows`: one window per series, without actual values; None if future covariates are needed
        and not known.
    """
    config, schema = forecaster.config, forecaster.config.schema
    past, steps = min(config.seq_len, shown_past(config.pred_len, data.season)), config.pred_len
    planned = data.ahead is not None and data.ahead.steps >= steps
    if schema.roles.future and future is None and not planned:
        return None
    levels = shown_levels(forecaster)
    each = past + (2 + 2 * len(levels)) * steps
    if schema.panel:
        ranked = _with_values(data, ranked, config.seq_len)
        most = max(1, min(MOST_WINDOWS, MOST_VALUES // each, len(ranked)))
        chosen = np.unique(np.linspace(0, len(ranked) - 1, most).round().astype(int))
        data = data.take(np.array([data.series.index(ranked[place]) for place in chosen]))
    if data.stamps is None:
        data = replace(data, stamps=pd.RangeIndex(len(data.values)))
    channels = min(len(forecaster.targets), max(1, MOST_VALUES // (each * len(data))))
    ahead = steps_ahead(data, config.known_steps(steps))
    in_advance = future_values(forecaster, data, future, ahead, steps)
    made = forecast_open(forecaster, data, ahead, in_advance, steps)
    points = made.raw()
    bounds = raw_bounds(forecaster, made, points, QuantileSpec(tuple(levels))) if levels else {}
    windows = []
    for series, forecast in enumerate(points):
        begin, stop = data.spans[series].tolist()
        first = max(begin, stop - past)
        before = np.full((past, len(forecaster.targets)), np.nan)
        before[past - (stop - first) :] = data.values[first:stop, : len(forecaster.targets)]
        values = np.concatenate([before, np.full_like(forecast, np.nan), forecast])
        ends = {f"{level:g}": [bounds[f"{side}-{level:g}"][series] for side in ("lo", "hi")] for level in levels}
        windows.append(
            {
                "stamps": packed_stamps(
                    _before(data, first, stop, past).append(made.stamps[series * steps : (series + 1) * steps])
                ),
                "series": pack(values.T[:channels]),
                "bounds": {level: pack(np.concatenate(both).T[:channels]) for level, both in ends.items()},
                **({"name": data.series[series]} if schema.panel else {}),
            }
        )
    return {
        "channels": channels,
        "past": past,
        "horizon": steps,
        "time": "date" if isinstance(data.stamps, pd.DatetimeIndex) else "number",
        "levels": [f"{level:g}" for level in levels],
        "happened": False,
        "windows": windows,
    }


def _with_values(data: Dataset, names: Sequence[str], look_back: int) -> Sequence[str]:
    """Those of the series `names` that have a value in their last `look_back` rows; all if none has."""
    places = {name: place for place, name in enumerate(data.series)}

    def has_values(name: str) -> bool:
        first, stop = data.spans[places[name]].tolist()
        return not np.isnan(data.values[max(first, stop - look_back) : stop, : data.n_targets]).all()

    return [name for name in names if has_values(name)] or names


def _before(data: Dataset, first: int, stop: int, past: int) -> pd.Index:
    """Time stamps of the `past` rows up to `stop`; extrapolated for rows before `first`."""
    assert data.stamps is not None
    if data.freq is None:
        return pd.Index(np.arange(stop - past, stop))
    return last_dates(data.stamps[first:stop], data.freq, past)
