"""Plot of a forecast and the history before it, for `Forecaster.plot`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypedDict

import numpy as np
import pandas as pd

from femts.config.arguments import check_names
from femts.data.columns import match_columns
from femts.data.dataset import Dataset
from femts.data.frequency import grid_of
from femts.data.normalise import normalise
from femts.data.roles import NO_ROLES
from femts.data.stamps import read_dates
from femts.errors import UsageError, suggest
from femts.forecaster.inputs import SCENARIO, Future, read_columns, read_history, scenarios
from femts.plotting import MOST_PANELS, Picture, Strip, forecast_picture, strips_picture

if TYPE_CHECKING:
    from femts.forecaster.forecaster import Forecaster


NOTHING_HAPPENED = "What happened has no row at the steps of the forecast; give rows after the history."


class Drawing(TypedDict, total=False):
    """Keyword arguments of `Forecaster.plot`."""

    level: Sequence[float] | None
    future: Future | None
    actual: pd.DataFrame | Dataset | None
    columns: Sequence[str] | None
    series: Sequence[str] | None


def draw_forecast(
    forecaster: Forecaster, history: pd.DataFrame | Dataset, forecast: pd.DataFrame, drawn: Drawing | None = None
) -> Picture:
    """Draw `forecast`, the result of `predict` for `history`; see `Forecaster.plot`."""
    drawn = drawn or {}
    actual, panel = drawn.get("actual"), forecaster.config.schema.panel
    kind, other = ("series", "columns") if panel else ("columns", "series")
    if drawn.get(other) is not None:
        text = f"Argument '{other}' does not apply to a plot of this forecast; use {kind}."
        raise UsageError(text, argument=other, value=drawn.get(other), remedy={other: None})
    given = drawn.get(kind)
    named = None if given is None else check_names(given, kind)  # type: ignore[arg-type]
    several, forecasts = scenarios(drawn.get("future")), {"": forecast}
    if several is not None:
        rows = forecast.groupby(SCENARIO, sort=False)
        forecasts = {name: rows.get_group(name).drop(columns=SCENARIO).reset_index(drop=True) for name in several}
    if panel:
        return _series_picture(forecaster, history, forecasts, actual, named)
    ahead = {name: _wide_forecast(forecaster, each) for name, each in forecasts.items()}
    first = next(iter(ahead.values()))
    past = read_columns(forecaster, history, "The history", forecaster.targets, 2 * max(len(first), forecaster.season))
    ahead = {name: _with_gaps(each, past, forecaster.freq) for name, each in ahead.items()}
    happened = None
    if actual is not None:
        shown = [name for name in named or forecaster.targets if name in forecaster.targets]
        happened = read_columns(forecaster, actual, "What happened", shown)
        if "date" in happened:
            happened = happened[happened["date"].isin(first["date"])]
        if not len(happened):
            raise UsageError(NOTHING_HAPPENED)
    return forecast_picture(past, ahead, happened, named, forecaster.season)


def _wide_forecast(forecaster: Forecaster, table: pd.DataFrame) -> pd.DataFrame:
    """A forecast in wide form, with time stamps in `date` and bounds as `NAME-lo-80`."""
    form = match_columns(table, forecaster.config.schema.form)
    if form.series not in table.columns:
        wide = table.rename(columns={form.time_of(table): "date"})
        if forecaster.freq is None or "date" not in wide.columns:
            return wide
        return wide.assign(date=read_dates(wide["date"], "The forecast", forecaster.freq))
    schema = replace(forecaster.config.schema, form=form, roles=NO_ROLES, aggregate=None)
    names, parts = [form.series, form.time or "ds"], []
    for name in (form.value, *(c for c in table.columns if str(c).startswith(f"{form.value}-"))):
        values = table[[*names, name]].rename(columns={name: form.value})
        data = normalise(values, schema, "The forecast", columns=forecaster.targets, freq=forecaster.freq)
        ends = [target + str(name).removeprefix(form.value) for target in forecaster.targets]
        parts.append(pd.DataFrame(data.values, pd.Index(data.stamps, name="date"), ends))
    return pd.concat(parts, axis=1).reset_index()


def _with_gaps(forecast: pd.DataFrame, past: pd.DataFrame, freq: str | None) -> pd.DataFrame:
    """The forecast with empty rows at the steps that it leaves out, so that no line is drawn across them."""
    if freq is None or "date" not in forecast or "date" not in past:
        return forecast
    dates = pd.Index([past["date"].iloc[-1], *forecast["date"]])
    steps = grid_of(dates, freq)[1:]
    if not dates[1:].isin(steps).all() or len(steps) == len(forecast):
        return forecast
    return forecast.set_index("date").reindex(steps).rename_axis("date").reset_index()


def _series_picture(
    forecaster: Forecaster,
    history: pd.DataFrame | Dataset,
    forecasts: Mapping[str, pd.DataFrame],
    actual: pd.DataFrame | Dataset | None,
    named: Sequence[str] | None,
) -> Picture:
    past = read_history(forecaster, history).data
    happened = None if actual is None else read_history(forecaster, actual).data
    each = {scenario: _by_series(forecaster, forecast, past.series) for scenario, forecast in forecasts.items()}
    ahead = next(iter(each.values()))
    missing = next((name for name in named or () if name not in ahead), None)
    if missing is not None:
        raise UsageError(f"The forecast has no series '{missing}'{suggest(missing, ahead)}")
    after = {name: _after(happened, name, rows) for name, rows in ahead.items()}
    if happened is not None and all(after[name] is None for name in named or after):
        raise UsageError(NOTHING_HAPPENED)
    target, strips = forecaster.targets[0], []
    chosen, why = (named, "") if named else _worth_seeing(ahead, after, target)
    for name in chosen:
        before = _frame(past, name)
        rows = {scenario: _with_gaps(series[name], before, past.freq) for scenario, series in each.items()}
        strips.append(Strip(name, target, before, rows, after[name]))
    return strips_picture(strips, past.season, why)


def _worth_seeing(
    ahead: Mapping[str, pd.DataFrame], after: Mapping[str, pd.DataFrame | None], target: str
) -> tuple[Sequence[str], str]:
    """Names of the series to draw if there are too many for a picture, and what is said of them: the largest forecasts;
    if it is known what happened, the largest errors relative to the size; and typical ones."""
    sizes = pd.Series({name: rows[target].abs().mean() for name, rows in ahead.items()}, dtype=float)
    if len(sizes) <= MOST_PANELS:  # series that have ended come last, because there is nothing to draw for them
        return sorted(ahead, key=lambda name: bool(np.isnan(sizes[name]))), ""
    errors = pd.Series(
        {
            name: (ahead[name].set_index("date")[target] - rows.set_index("date")[target]).abs().mean()
            for name, rows in after.items()
            if rows is not None
        },
        dtype=float,
    )
    each = MOST_PANELS // 3 if len(errors) else MOST_PANELS // 2
    order = sizes.sort_values(ascending=False, kind="stable")  # without a forecast at the end
    relative = (errors / sizes).dropna().drop(order.index[:each], errors="ignore").nlargest(each)
    chosen = [*order.index[:each], *relative.index]
    others = order.drop(chosen)
    others = others.dropna() if others.count() >= MOST_PANELS - len(chosen) else others
    typical = np.linspace(0, len(others) - 1, MOST_PANELS - len(chosen)).round().astype(int)
    kinds = [f"{each} largest", *[f"{len(relative)} with the largest relative errors"] * (len(relative) > 0)]
    said = f"{', '.join(kinds)} and {len(typical)} typical of {len(sizes)} series"
    return [*chosen, *others.index[typical]], said


def _by_series(forecaster: Forecaster, forecast: pd.DataFrame, series: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Rows of a long or wide forecast by series, with `date` and the targets with their bounds."""
    form, target = forecaster.config.schema.form, forecaster.targets[0]
    if form.series in forecast.columns:
        named = forecast.rename(columns={form.time or "ds": "date"})
        return {str(name): rows.drop(columns=form.series) for name, rows in named.groupby(form.series, sort=False)}
    names = [str(name) for name in forecast.columns if name in series]
    width, ahead = (forecast.shape[1] - 1) // len(names), dict[str, pd.DataFrame]()
    for number, name in enumerate(names):
        rows = forecast.iloc[:, 1 + number * width : 1 + (number + 1) * width]
        ahead[name] = rows.set_axis([target + str(each).removeprefix(name) for each in rows], axis=1)
        ahead[name].insert(0, "date", forecast.iloc[:, 0])
    return ahead


def read_of_one(
    forecaster: Forecaster, history: pd.DataFrame, explanation: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """History and explanation of a single series in the form that `plot_explanation` expects, with the series as
    column."""
    name, value = explanation["series"].iloc[0], forecaster.targets[0]
    past = _frame(read_history(forecaster, history).data, name)
    chosen = explanation[explanation["channel"] == value]
    return past.rename(columns={value: name}), chosen.assign(channel=name)


def _frame(data: Dataset, name: str) -> pd.DataFrame:
    one = data[name]
    return pd.DataFrame(one.values, columns=list(one.columns)).assign(date=one.stamps)


def _after(happened: Dataset | None, name: str, forecast: pd.DataFrame) -> pd.DataFrame | None:
    """Actual values of a series at the forecast steps; None if there are none."""
    if happened is None or name not in happened.series:
        return None
    rows = _frame(happened, name)
    rows = rows[rows["date"].isin(forecast["date"])]
    return rows if len(rows) else None
