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
from femts.data.describe import names
from femts.data.stamps import as_text
from femts.errors import GapWarning, UsageError, warn
from femts.evaluation.intervals import with_bounds
from femts.evaluation.quantiles import ends_of
from femts.forecaster import inputs
from femts.forecaster.bounds import QuantileSpec, sample_paths
from femts.forecaster.forecasting import forecast_history, forecast_series
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

    A new series is as likely to behave like one as like another of those with the same static covariates, each of which
    is forecast with the future covariates of the new one. Its forecast is the median of their sample paths, and its
    intervals are between the quantiles of these, at a level of (n + 1) / n times the one asked for, because the n series
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
    alike = _alike(new, past, schema.form.series)
    last = inputs.ends_of(past.data)
    current = np.flatnonzero(last == last.max())  # others have ended
    parts, unlike = [table], list[str]()
    for name, same in alike.items():
        chosen = current[same[current]]
        if not len(chosen):
            unlike.append(name)
            chosen = current
        some = chosen[np.unique(np.linspace(0, len(chosen) - 1, MOST_LIKE).round().astype(int))]
        stamps, paths = _paths(forecaster, past, name, some, steps, future)
        parts.append(_as_rows(forecaster, past.time, name, stamps, paths, ends, len(some)))
    warn(
        f"No history is known of {names(tuple(alike))}; the forecast is that of other series"
        f"{' with the same static covariates' * (past.data.static is not None)}, and the intervals are as wide as these "
        "differ.",
        GapWarning,
    )
    if unlike:
        warn(
            f"No series has the static covariates of {names(tuple(unlike))}; the forecast is that of all series.",
            GapWarning,
        )
    return pd.concat(parts, ignore_index=True)


def _alike(new: object, past: inputs.History, column: str) -> dict[str, NDArray[np.bool_]]:
    """For each new series, a mask (S,) of the known ones with the same texts in its static columns."""
    table = new if isinstance(new, pd.DataFrame) else pd.DataFrame({column: check_names(new, "new")})
    if column not in table.columns:
        raise UsageError(
            f"The table of new series has no column '{quote(column)}' with their names; add it.",
            argument="new",
            value=new,
        )
    table = table.assign(**{column: as_text(table[column])}).drop_duplicates(column)
    known = next((name for name in table[column] if name in past.data.series), None)
    if known is not None:
        text = f"Series '{quote(known)}' has a history, so it is not new; leave it out of {argument('new')}."
        raise UsageError(text, argument="new", value=new)
    static = past.data.static
    texts = [] if static is None else [name for name in static.columns if static[name].dtype == object]
    made = dict[str, NDArray[np.bool_]]()
    for _, row in table.iterrows():
        same = np.ones(len(past.data), dtype=np.bool_)
        for name in texts:
            if static is not None and name in table.columns and not pd.isna(row[name]):
                same &= (static[name] == str(row[name])).to_numpy()
        made[row[column]] = same
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
