"""Picture of a forecast and of the history before it, as `Forecaster.plot` draws it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

import pandas as pd

from femts.config.arguments import check_kind, check_names
from femts.data.check import check_frame
from femts.data.columns import match_columns
from femts.data.stamps import read_dates
from femts.forecaster.trained import Single
from femts.plotting import Picture, forecast_picture


class Drawing(TypedDict, total=False):
    """Further arguments of `Forecaster.plot`."""

    level: Sequence[float] | None
    future: pd.DataFrame | None
    actual: pd.DataFrame | None
    columns: Sequence[str] | None


def draw_forecast(
    forecaster: Single,
    history: pd.DataFrame,
    forecast: pd.DataFrame,
    actual: pd.DataFrame | None = None,
    columns: Sequence[str] | None = None,
) -> Picture:
    """Draw `forecast`, which `predict` made of `history`; the rest as in `Forecaster.plot`."""
    shown = None if columns is None else check_names(columns, "columns")
    if actual is not None:
        check_kind(actual, pd.DataFrame, "What happened", "give a DataFrame like the history")
    past, ahead = to_draw(forecaster, history), to_draw(forecaster, forecast)
    happened, season = None if actual is None else to_draw(forecaster, actual), forecaster.season
    return forecast_picture(past, ahead, happened, shown, season)


def to_draw(forecaster: Single, table: pd.DataFrame) -> pd.DataFrame:
    """A history or a forecast in wide form, its stamps in `date`, bounds as `NAME-lo-80`."""
    form = match_columns(table, forecaster.config.schema.form)
    if form.series not in table.columns:
        wide = table.rename(columns={form.time_of(table): "date"})
        if forecaster.freq is None or "date" not in wide.columns:
            return wide
        return wide.assign(date=read_dates(wide["date"], "The table to draw", forecaster.freq))
    names = [form.series, form.time or "ds"]
    parts = []
    for name in (form.value, *(c for c in table.columns if str(c).startswith(f"{form.value}-"))):
        values = table[[*names, name]].rename(columns={name: form.value})
        wide = check_frame(values, forecaster.config.schema, freq=forecaster.freq).set_index("date")
        parts.append(wide.add_suffix(str(name).removeprefix(form.value)))
    return pd.concat(parts, axis=1).reset_index()
