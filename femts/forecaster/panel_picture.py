"""Picture of the forecasts of a panel, as `PanelForecaster.plot` draws it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

import pandas as pd

from femts.config.arguments import check_kind, check_names
from femts.data.panel import Panel
from femts.errors import UsageError, suggest
from femts.forecaster.panel_forecasting import read_history
from femts.forecaster.trained import Many
from femts.plotting import MOST_PANELS, Picture, Strip, strips_picture


class PanelDrawing(TypedDict, total=False):
    """Further arguments of `PanelForecaster.plot`."""

    level: Sequence[float] | None
    future: pd.DataFrame | None
    actual: pd.DataFrame | None
    series: Sequence[str] | None


def draw_panel(
    forecaster: Many,
    history: pd.DataFrame,
    forecast: pd.DataFrame,
    actual: pd.DataFrame | None = None,
    series: Sequence[str] | None = None,
) -> Picture:
    """Draw `forecast`, which `predict` made of `history`; the rest as in `PanelForecaster.plot`."""
    named = None if series is None else check_names(series, "series")
    if actual is not None:
        check_kind(actual, pd.DataFrame, "What happened", "give a DataFrame like the history")
    form = forecaster.config.schema.form
    past = read_history(forecaster, history)
    happened = None if actual is None else read_history(forecaster, actual)
    ahead = {str(name): rows for name, rows in forecast.groupby(form.series, sort=False)}
    missing = next((name for name in named or () if name not in ahead), None)
    if missing is not None:
        raise UsageError(f"The forecast has no series '{missing}'{suggest(missing, ahead)}")
    strips = []
    for name in named or list(ahead)[:MOST_PANELS]:
        rows = ahead[name].drop(columns=form.series).rename(columns={form.time or "ds": "date"})
        strips.append(Strip(name, forecaster.targets[0], _frame(past, name), rows, _after(happened, name, rows)))
    return strips_picture(strips, past.season, left_out=0 if named else len(ahead) - len(strips))


def read_of_one(
    forecaster: Many, history: pd.DataFrame, explanation: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """History and explanation of a single series as `plot_explanation` takes them, the series as their column."""
    name, value = explanation["series"].iloc[0], forecaster.targets[0]
    past = _frame(read_history(forecaster, history), name)
    chosen = explanation[explanation["channel"] == value]
    return past.rename(columns={value: name}), chosen.assign(channel=name)


def _frame(panel: Panel, name: str) -> pd.DataFrame:
    data = panel.series[name]
    return pd.DataFrame(data.values, columns=list(data.columns)).assign(date=data.dates)


def _after(happened: Panel | None, name: str, forecast: pd.DataFrame) -> pd.DataFrame | None:
    """Rows of the series at the steps that are forecast; None where there is none."""
    if happened is None or name not in happened.series:
        return None
    rows = _frame(happened, name)
    rows = rows[rows["date"].isin(forecast["date"])]
    return rows if len(rows) else None
