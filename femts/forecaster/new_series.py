"""Forecasts of series without history, from the forecasts of those like them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.config.arguments import check_names
from femts.data.column_names import ColumnNames
from femts.data.columns import BETWEEN, with_keys
from femts.data.describe import names
from femts.data.stamps import as_text
from femts.errors import GapWarning, UsageError, warn
from femts.evaluation.intervals import with_bounds
from femts.evaluation.quantiles import ends_of
from femts.forecaster import inputs
from femts.forecaster.bounds import QuantileSpec, SeriesForecasts, sample_paths
from femts.forecaster.forecasting import forecast_history, forecast_open, treating
from femts.text import argument, quote

if TYPE_CHECKING:
    from femts.forecaster.forecaster import Forecaster

MOST_LIKE, PATHS, SEED = 50, 2000, 0  # series whose forecasts are taken, sample paths of all together, and their seed
Array = NDArray[np.float64]


class NewSeries(NamedTuple):
    """A series without history.

    Attributes:
        name: its name.
        row: static covariates and parts of the name that are known.
        stamps: time stamps (P,) of its forecast.
        alike: numbers (n,) of the known series that are like it.
        made: forecasts of these with the future covariates of the new one.
    """

    name: str
    row: pd.Series
    stamps: pd.Index
    alike: NDArray[np.intp]
    made: SeriesForecasts

    @property
    def absent(self) -> NDArray[np.bool_]:
        """Mask (P, T) of the steps at which none of these has a forecast."""
        return np.asarray(self.made.absent.all(axis=0))


def forecast_with_new(
    forecaster: Forecaster,
    history: object,
    horizon: int | None,
    ends: QuantileSpec,
    future: inputs.Future | None,
    series: Sequence[str] | None,
    outliers: str | None,
    new: Sequence[str] | pd.DataFrame,
) -> pd.DataFrame:
    """The forecasts of `Forecaster.predict`, and after them those of the series `new`.

    A new series is as likely to behave like one as like another of those that share most of its static texts and parts
    of its name, each of which is forecast with the future covariates of the new one. Its forecast is the median of their
    sample paths, and its intervals are between the quantiles of these, at a level of (n + 1) / n times the one asked for,
    because the n series are a sample (as in split-conformal prediction).

    Raises:
        UsageError: The model is not of a panel, or the names cannot be used.
    """
    check_panel(forecaster, new)
    if inputs.scenarios(future) is not None:
        raise UsageError("New series are forecast for one scenario at a time; pass one table of future covariates.")
    past, steps, table = forecast_history(forecaster, history, horizon, ends, future, series, outliers)  # type: ignore[arg-type]
    every = series_like(treating(forecaster, outliers), past, new, steps, future)  # type: ignore[arg-type]
    return pd.concat([table, *(_as_rows(forecaster, past.time, each, ends) for each in every)], ignore_index=True)


def check_panel(forecaster: Forecaster, new: object) -> None:
    """Raise UsageError if there can be no `new` series."""
    if not forecaster.config.schema.panel:
        text = f"This model was trained on a single table, so there are no new series; omit {argument('new')}."
        raise UsageError(text, argument="new", value=new, remedy={"new": None})


def series_like(
    forecaster: Forecaster,
    past: inputs.History,
    new: object,
    steps: int,
    future: pd.DataFrame | None,
    groups: pd.DataFrame | None = None,
) -> list[NewSeries]:
    """The `new` series with forecasts of those like them, which a `GapWarning` says; texts in `groups` (S rows) count as
    static ones.

    Raises:
        UsageError: The model is not of a panel, the names cannot be used, or the history is not in long form.
    """
    check_panel(forecaster, new)
    if past.wide:
        raise UsageError("New series need a history in long form, with a column of series names; give it in this form.")
    form = forecaster.config.schema.form
    table = _table(new, past, form)
    alike = _alike(table, past, form, groups)
    last = inputs.ends_of(past.data)
    current = np.flatnonzero(last == last.max())  # others have ended
    made, shared = list[NewSeries](), list[str]()
    for (name, same), (_, row) in zip(alike.items(), table.iterrows(), strict=True):
        chosen = current if same is None else current[same[current]]
        if same is not None and len(chosen):
            shared.append(name)
        chosen = chosen if len(chosen) else current
        some = chosen[np.unique(np.linspace(0, len(chosen) - 1, MOST_LIKE).round().astype(int))]
        made.append(NewSeries(name, row, *_forecasts(forecaster, past, name, some, steps, future)))
    for some, of in (
        (shared, "the most similar series"),
        ([name for name in alike if name not in shared], "all series"),
    ):
        if some:
            warn(
                f"No history is known of {names(tuple(some))}; the forecast is that of {of}, and the intervals are as "
                "wide as these differ.",
                GapWarning,
            )
    return made


def paths_like(every: Sequence[NewSeries], forecaster: Forecaster, count: int, seed: int) -> Iterator[Array]:
    """Yield `count` sample paths (N, P, T) of new series, drawn together with those of `sample_paths` with this `seed`.

    A path of a new series is the mean of the paths of the n series like it, which have the errors of the same origins as
    those of all others, and the difference between one of these and the mean of the n - 1 others. New series choose it
    with common random weights (the Bayesian bootstrap; Rubin, Annals of Statistics 1981): they differ together from the
    known ones, because the mean of n series is uncertain, so their sum has a wider interval than if they differed
    independently.
    """
    drawn = [sample_paths(forecaster, each.made, count, seed) for each in every]
    known = 1 + max(int(each.alike.max()) for each in every)
    for number, of_each in enumerate(zip(*drawn, strict=True)):
        random = np.random.default_rng((seed, number, 1))
        weights, paths = random.standard_exponential(known), list[Array]()
        for new, path in zip(every, of_each, strict=True):
            n, mean = len(path), path.mean(axis=0)
            one = random.choice(n, p=weights[new.alike] / weights[new.alike].sum())
            paths.append(new.made.preprocess.domain.clip(mean + (path[one] - mean) * n / max(1, n - 1)))
        yield np.stack(paths)


def _table(new: object, past: inputs.History, form: ColumnNames) -> pd.DataFrame:
    """A row for each `new` series: its name, and static covariates and parts of the name as far as they are known."""
    table = (
        with_keys(new, form) if isinstance(new, pd.DataFrame) else pd.DataFrame({form.series: check_names(new, "new")})
    )
    if form.series not in table.columns:
        listed = ", ".join(f"'{quote(each)}'" for each in form.keys or (form.series,))
        raise UsageError(
            f"The table of new series has no column {listed} with their names; add it.", argument="new", value=new
        )
    table = table.assign(**{form.series: as_text(table[form.series])}).drop_duplicates(form.series)
    known = next((name for name in table[form.series] if name in past.data.series), None)
    if known is not None:
        text = f"Series '{quote(known)}' has a history, so it is not new; leave it out of {argument('new')}."
        raise UsageError(text, argument="new", value=new)
    own = table[form.series].str.split(BETWEEN, expand=True, regex=False)
    if own.shape[1] == len(form.keys):
        table = table.assign(**{key: own[k] for k, key in enumerate(form.keys) if key not in table.columns})
    return table


def _alike(
    table: pd.DataFrame, past: inputs.History, form: ColumnNames, groups: pd.DataFrame | None
) -> dict[str, NDArray[np.bool_] | None]:
    """For each new series in `table`, a mask (S,) of the known ones that share most texts of its static columns and most
    parts of its name, if several columns name the series; None if none shares any."""
    static = past.data.static if past.data.static is not None else pd.DataFrame(index=list(past.data.series))
    if groups is not None:
        static = static.join(groups[groups.columns.difference([*static.columns, *form.keys])].set_axis(static.index))
    texts = {name: static[name].to_numpy() for name in static if static[name].dtype == object}
    parts = np.array([name.split(BETWEEN) for name in past.data.series], dtype=object) if form.keys else None
    made = dict[str, NDArray[np.bool_] | None]()
    for _, row in table.iterrows():
        shared = np.zeros(len(past.data), dtype=np.int64)
        for name, each in texts.items():
            shared += each == str(row.get(name))
        own = str(row[form.series]).split(BETWEEN)
        if parts is not None and parts.ndim == 2 and len(own) == parts.shape[1]:
            shared += (parts == np.array(own, dtype=object)).sum(axis=1)
        countries = past.data.schema.roles.country_column
        if countries is not None:  # the forecasts of others know the holidays of their own country only
            same = texts[countries] == row.get(countries)
            shared = np.where(same, shared, 0) if same.any() else shared
        made[row[form.series]] = shared == shared.max() if shared.any() else None
    return made


def _forecasts(
    forecaster: Forecaster,
    past: inputs.History,
    name: str,
    some: NDArray[np.intp],
    steps: int,
    future: pd.DataFrame | None,
) -> tuple[pd.Index, NDArray[np.intp], SeriesForecasts]:
    """Time stamps of the new series, the series `some`, and their forecasts with its future covariates."""
    data = past.data.take(some)
    one = replace(past.data.take(some[:1]), series=(name,))
    ahead = inputs.steps_ahead(one, forecaster.config.known_steps(steps))
    in_advance = inputs.future_values(forecaster, one, future, ahead, steps)
    every = inputs.steps_ahead(data, forecaster.config.known_steps(steps))
    made = forecast_open(forecaster, data, every, np.repeat(in_advance, len(data), axis=0), steps)
    return ahead[:steps], some, made


def _as_rows(forecaster: Forecaster, time: str, new: NewSeries, ends: QuantileSpec) -> pd.DataFrame:
    """The forecast of a new series from the sample paths of those like it."""
    alike = len(new.alike)
    paths = np.concatenate(list(sample_paths(forecaster, new.made, math.ceil(PATHS / alike), SEED)))

    def quantile(each: float) -> Array:
        further = np.clip(0.5 + (each - 0.5) * (alike + 1) / alike, 0, 1)
        return np.asarray(np.nanquantile(paths, further, axis=0))

    bounds = {}
    for level in ends.levels:
        for side, end in zip(("lo", "hi"), ends_of(level), strict=True):
            bounds[f"{side}-{level:g}"] = quantile(end)
    bounds |= {f"q-{100 * each:g}": quantile(each) for each in ends.quantiles}
    points = pd.DataFrame(np.nanmedian(paths, axis=0), columns=list(forecaster.targets))
    rows = with_bounds(points, bounds)
    rows.insert(0, time, new.stamps)
    rows.insert(0, forecaster.config.schema.form.series, new.name)
    return rows[~new.absent.all(axis=1)]
