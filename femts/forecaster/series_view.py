"""One series of a panel as a single table: a view of its forecaster, by which what is about single series works."""

from __future__ import annotations

from dataclasses import replace

from femts.config.arguments import check_text
from femts.data.dataset import Dataset
from femts.data.preprocess import Preprocess
from femts.errors import UsageError, suggest
from femts.forecaster.forecaster import Forecaster
from femts.forecaster.trained import Many
from femts.text import shown


def series_view(forecaster: Many, name: str) -> Forecaster:
    """View of the series `name`; see `PanelForecaster.of`."""
    stored = forecaster.preprocess.series
    if forecaster.preprocess.static is not None:
        raise UsageError("A model with static columns knows its series by them, and no single one; use it as a panel.")
    if check_text(name, "series") not in stored:
        raise UsageError(f"Series '{shown(name)}' was not in the training{suggest(name, stored)}")
    try:
        data = forecaster.training_data().series[name]
    except UsageError:  # it forecasts without them, too
        return view(forecaster, name, stored[name])
    return view(forecaster, name, stored[name], data)


def view(forecaster: Many, name: str, preprocess: Preprocess, data: Dataset | None = None) -> Forecaster:
    """View of a series that may be new, with the preprocessing that it has there."""
    schema = replace(forecaster.config.schema.wide(), panel=False)
    config = replace(forecaster.config, dataset=name, source=None, schema=schema)
    data = None if data is None else replace(data, schema=replace(data.schema, panel=False))
    record = forecaster.data if data is None else data.record
    intervals, freq = forecaster.intervals, forecaster.freq
    return Forecaster(forecaster.model, config, preprocess, freq, record, intervals=intervals, _dataset=data)
