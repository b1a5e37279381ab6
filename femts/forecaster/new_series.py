"""Forecasts of series without history, from the forecasts of those like them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

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
from femts.forecaster.bounds import QuantileSpec, sample_paths
from femts.forecaster.forecasting import forecast_history, forecast_series, treating
from femts.text import argument, quote

if TYPE_CHECKING:
    from femts.forecaster.forecaster import Forecaster

MOST_LIKE, PATHS, SEED = 50, 2000, 0  # series whose forecasts are taken, sample paths of all together, and their seed
Array = NDArray[np.float64]


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
    sample paths, and its intervals are between the quantiles of these, at a level of (n + 1) / n times the one asked for, because the n series
    are a sample (as in split-conformal prediction).

    Raises:
        UsageError: The model is not of a panel, or the names cannot be used.
    """
    schema = forecaster.config.schema
    if not schema.panel:
        text = f"This model was trained on a single table, so there are no new series; omit {argument('new')}."
        raise UsageError(text, argument="new", value=new, remedy={"new": None})
    if inputs.scenarios(future) is not None:
        raise UsageError("New series are forecast for one scenario at a time; pass one table of future covariates.")
    past, steps, table = forecast_history(forecaster, history, horizon, ends, future, series, outliers)  # type: ignore[arg-type]
    if past.wide:
        raise UsageError("New series need a history in long form, with a column of series names; give it in this form.")
    forecaster, alike = treating(forecaster, outliers), _alike(new, past, schema.form)
    last = inputs.ends_of(past.data)
    current = np.flatnonzero(last == last.max())  # others have ended
    parts, shared = [table], list[str]()
    for name, same in alike.items():
        chosen = current if same is None else current[same[current]]
        if same is not None and len(chosen):
            shared.append(name)
        chosen = chosen if len(chosen) else current
        some = chosen[np.unique(np.linspace(0, len(chosen) - 1, MOST_LIKE).round().astype(int))]
        stamps, paths = _paths(forecaster, past, name, some, steps, future)
        parts.append(_as_rows(forecaster, past.time, name, stamps, paths, ends, len(some)))
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
    return pd.concat(parts, ignore_index=True)


def _alike(new: object, past: inputs.History, form: ColumnNames) -> dict[str, NDArray[np.bool_] | None]:
    """For each new series, a mask (S,) of the known ones that share most texts of its static columns and most parts of
    its name, if several columns name the series; None if none shares any."""
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
    static = past.data.static if past.data.static is not None else pd.DataFrame(index=list(past.data.series))
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
        made[row[form.series]] = shared == shared.max() if shared.any() else None
    return made


def _paths(
    forecaster: Forecaster,
    past: inputs.History,
    name: str,
    some: NDArray[np.intp],
    steps: int,
    future: inputs.Future | None,
) -> tuple[pd.Index, Array]:
    """Time stamps and sample paths (N, P, T) of the series `some`, with the future covariates of the new one."""
    data = past.data.take(some)
    one = replace(past.data.take(some[:1]), series=(name,))
    ahead = inputs.steps_ahead(one, forecaster.config.known_steps(steps))
    in_advance = inputs.future_values(forecaster, one, future, ahead, steps)  # type: ignore[arg-type]
    every = inputs.steps_ahead(data, forecaster.config.known_steps(steps))
    made = forecast_series(forecaster, data, every, np.repeat(in_advance, len(data), axis=0)).first(steps)
    paths = np.stack(list(sample_paths(forecaster, made, math.ceil(PATHS / len(data)), SEED)))
    return ahead[:steps], paths.reshape(-1, *paths.shape[2:])


def _as_rows(
    forecaster: Forecaster, time: str, name: str, stamps: pd.Index, paths: Array, ends: QuantileSpec, alike: int
) -> pd.DataFrame:
    """The forecast of a new series from the `paths` of `alike` series."""

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
    rows.insert(0, time, stamps)
    rows.insert(0, forecaster.config.schema.form.series, name)
    return rows
