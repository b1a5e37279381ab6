"""Permutation importance of the inputs of a forecaster: the increase of its error when an input is exchanged between
windows (Breiman, "Random Forests", Machine Learning 2001; Fisher, Rudin & Dominici, "All Models are Wrong, but Many are
Useful", JMLR 2019).

Inputs are exchanged in the raw rows of the windows, before any preprocessing, so that everything that reads them sees
the exchanged values: the model, and the linear effect of future covariates that is removed before it and added back
after it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from femts.config.arguments import check_names
from femts.config.values import check_count
from femts.data.categories import origins
from femts.data.dataset import Dataset
from femts.data.preprocess import Preprocess
from femts.data.splits import Split
from femts.errors import UsageError, nearest, suggest
from femts.evaluation.block_bootstrap import mean_interval
from femts.forecaster.forecasting import forecast_series
from femts.forecaster.scoring import scored_part
from femts.models.base import Exchanged
from femts.text import quote

if TYPE_CHECKING:
    from femts.forecaster.forecaster import Forecaster

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]

WINDOWS, REPEATS = 128, 5
FITS, REPEATED_FITS = 12, 2  # the same for models that are fitted to each look-back, or are as slow
MOST_BLOCKS = 8  # of lags; the last one contains all older lags
MOST_COLUMNS = 32
KINDS = {
    "column": "the look-back of one column",
    "lags": "lags of all columns",
    "future": "future covariate",
    "calendar": "the calendar",
    "static": "static covariate",
    "feature": "computed from the look-back",
}  # kinds of inputs, with their descriptions
NO_ERROR = 1e-12  # squared error in scaled units below which only rounding is left


@dataclass(frozen=True, eq=False)
class Cut:
    """W windows before any preprocessing, with look-back L and horizon H.

    Attributes:
        values: (W, L, C) in raw units, NaN for missing values and before a series began.
        covariates: future covariates, (W, L + H, K).
        when: rows of the dataset that give the time stamps of the steps, (W, L + H).
        static: one row for each window; None without static covariates.
    """

    values: Array
    covariates: Array
    when: Numbers
    static: pd.DataFrame | None


class Input(NamedTuple):
    """An input to permute.

    Attributes:
        kind: one of `KINDS`.
        name: its name within its kind.
        exchange: returns a cut with this input taken from the windows `others` (W,), whose look-backs `foreign`
            (W, L, C) are given in the units of the receiving windows.
    """

    kind: str
    name: str
    exchange: Callable[[Cut, Numbers, Array], Cut]


def permutation_importance(
    forecaster: Forecaster,
    part: str = "val",
    windows: int | None = None,
    columns: Sequence[str] | None = None,
    repeats: int | None = None,
    seed: int = 0,
    dataset: object = None,
) -> pd.DataFrame:
    """Importance of each input of `forecaster`; see `Forecaster.importance`."""
    of, every, data = scored_part(forecaster, part, None, dataset)
    usual = (FITS, REPEATED_FITS) if of.model.supports.raw else (WINDOWS, REPEATS)
    most = min(usual[0], of.model.most_windows or usual[0]) if windows is None else check_count(windows, "windows", 2)
    times = usual[1] if repeats is None else check_count(repeats, "repeats")
    rng = np.random.default_rng(check_count(seed, "seed", 0))
    index = _spread(len(every), most, rng)
    if len(index) < 2:
        raise UsageError(
            f"The {part} split has {len(every)} windows, of which {most} are used, but permuting inputs needs two; use "
            "another part, a shorter horizon or more windows."
        )
    length, targets = of.config.seq_len, len(of.targets)
    rows, when = (each.cpu().numpy() for each in every.rows_of(torch.from_numpy(index)))
    series = every.series_of(torch.from_numpy(index)).cpu().numpy()
    values = np.where((rows == when)[:, :length, None], data.values[when[:, :length]], np.nan)
    odd = every.odd(torch.from_numpy(index))  # found once, as finding them takes longer than most forecasts
    values = values if odd is None else np.where(odd.cpu().numpy(), np.nan, values)
    of = replace(of, preprocess=replace(of.preprocess, outliers=None))
    cut = Cut(values, data.known(when), when, None if data.static is None else data.static.iloc[series])
    units = of.preprocess.take(of.preprocess.places([data.series[number] for number in series]))
    ahead = slice(length, length + every.pred_len)
    truth = units.scale(data.values[when[:, ahead]])[..., :targets]
    counted = ~np.isnan(truth)
    for mask in (every.scored(torch.from_numpy(index)), every.counts(torch.from_numpy(index))):
        counted &= True if mask is None else mask.cpu().numpy()

    def errors(of_cut: Cut, exchanged: Exchanged | None = None) -> Array:
        """Sums of squared errors per window, (W,)."""
        of.model.exchanged = exchanged
        try:
            made = _forecast(of, data, series, of_cut, every.pred_len)
        finally:
            of.model.exchanged = None
        return np.where(counted, (made - truth) ** 2, 0.0).sum((1, 2))

    base = errors(cut)
    if not base.sum() > NO_ERROR * counted.sum():
        raise UsageError(f"These forecasts of the {part} split have zero error, so importance cannot be computed.")
    inputs, groups, scaled = list(_inputs(of, data, columns)), of.model.groups, units.scale(values)
    rises = np.zeros((len(inputs) + len(groups), len(index)))
    for turn in range(times):
        others = _another_each(len(index), rng)
        foreign = _raw(units, scaled[others], targets)
        for number, one in enumerate(inputs):
            rises[number] += (errors(one.exchange(cut, others, foreign)) - base) / times
        for number, group in enumerate(groups, len(inputs)):
            rises[number] += (errors(cut, Exchanged(group, seed + turn)) - base) / times
    relative = rises / base.mean()
    block = min(math.ceil(every.pred_len * len(index) / len(every)), len(index) // 2)
    ends = [mean_interval(each, block) for each in relative]
    named = [*((each.kind, each.name) for each in inputs), *(("feature", group) for group in groups)]
    table = dict(zip(("kind", "input"), zip(*named, strict=True), strict=True))
    low, high = np.array(ends).T
    return pd.DataFrame({**table, "rise": relative.mean(1), "low": low, "high": high}).assign(windows=len(index))


def importance_label(kind: str, name: str) -> str:
    """Description of an input."""
    return f"lags {name.replace('-', ' to ')}" if kind == "lags" else quote(name)


def percent_label(rise: float) -> str:
    """Format an increase in percent."""
    return f"{100 * rise:+.{1 if abs(rise) < 0.0995 else 0}f} %"


def _spread(count: int, most: int, rng: np.random.Generator) -> Numbers:
    """Indices of all `count` windows, or of one random window in each of `most` equal parts: evenly spaced windows
    could all start at the same hour, so that an exchange of hours would have no effect."""
    if count <= most:
        return np.arange(count)
    edges = np.linspace(0, count, most + 1).astype(np.int64)
    return rng.integers(edges[:-1], edges[1:])


def _another_each(count: int, rng: np.random.Generator) -> Numbers:
    """A random derangement: for each of `count` windows the index of another one, each used once."""
    order, others = rng.permutation(count), np.empty(count, dtype=np.int64)
    others[order] = np.roll(order, 1)
    return others


def _raw(units: Preprocess, scaled: Array, targets: int) -> Array:
    """Raw values of `scaled` (W, L, C): values exchanged between series keep their position in the scale of each."""
    return np.concatenate([units.restore(scaled[..., :targets]), units.scaler.inverse(scaled)[..., targets:]], axis=-1)


def _forecast(forecaster: Forecaster, data: Dataset, series: Numbers, cut: Cut, steps: int) -> Array:
    """Forecasts (W, steps, T) of `cut` in scaled units, as they are scored; `series` (W,) gives the series of each
    window."""
    windows, length, channels = cut.values.shape
    begin = np.arange(windows) * length
    look_backs = replace(
        data,
        values=cut.values.reshape(windows * length, channels),
        spans=np.stack([begin, begin + length], axis=1),
        series=tuple(data.series[number] for number in series),
        stamps=None if data.stamps is None else data.stamps[cut.when[:, :length].ravel()],
        covariates=cut.covariates[:, :length].reshape(windows * length, cut.covariates.shape[2]),
        static=cut.static,
        split=Split(np.zeros((windows, 3, 2), dtype=np.int64)),
    )
    later = cut.when[:, length:].ravel()
    ahead = pd.RangeIndex(len(later)) if data.stamps is None else data.stamps[later]
    made = forecast_series(forecaster, look_backs, ahead, cut.covariates[:, length:]).first(steps)
    return made.in_units_of(made.preprocess).points.numpy()


def _inputs(forecaster: Forecaster, data: Dataset, columns: Sequence[str] | None) -> Iterator[Input]:
    """Inputs of a forecaster in display order."""
    roles, form = data.schema.roles, data.schema.form
    listed, length = origins(data.columns, form), forecaster.config.seq_len
    for name in _chosen(columns, listed):
        some = [place for place, column in enumerate(data.columns) if origins([column], form) == (name,)]
        yield Input("column", name, _exchange_values(slice(None), some))
    for recent, oldest in _blocks(forecaster, data.season):
        steps = slice(length - oldest, length - recent + 1)
        yield Input("lags", f"{recent}-{oldest}", _exchange_values(steps, list(range(len(data.columns)))))
    for name in origins(roles.future, form):
        some = [place for place, column in enumerate(roles.future) if origins([column], form) == (name,)]
        yield Input("future", name, _exchange_known(some))
    if roles.calendar or roles.holidays or forecaster.config.reads.calendar:
        yield Input("calendar", "calendar", lambda cut, others, _: replace(cut, when=cut.when[others]))
    for name in roles.static:
        yield Input("static", name, _exchange_static(name))


def _chosen(columns: Sequence[str] | None, listed: Sequence[str]) -> Sequence[str]:
    if columns is None:
        return listed[:MOST_COLUMNS]
    chosen = check_names(columns, "columns")
    for name in chosen:
        if name not in listed:
            text = f"The model reads no column '{quote(name)}'{suggest(name, listed)}"
            raise UsageError(text, argument="columns", value=columns, remedy={"columns": nearest(name, listed)})
    return chosen


def _blocks(forecaster: Forecaster, season: int) -> list[tuple[int, int]]:
    """First and last lag of each block, from the most recent on: a season long, or one horizon without a season."""
    length = forecaster.config.seq_len
    size = min(length, season if season > 1 else forecaster.config.pred_len)
    firsts = range(1, length + 1, size)[:MOST_BLOCKS]
    return list(zip(firsts, [first - 1 for first in firsts[1:]] + [length], strict=True))


def _exchange_values(steps: slice, columns: list[int]) -> Callable[[Cut, Numbers, Array], Cut]:
    def exchange(cut: Cut, others: Numbers, foreign: Array) -> Cut:
        values = cut.values.copy()
        values[:, steps, columns] = foreign[:, steps, columns]
        return replace(cut, values=values)

    return exchange


def _exchange_known(columns: list[int]) -> Callable[[Cut, Numbers, Array], Cut]:
    def exchange(cut: Cut, others: Numbers, foreign: Array) -> Cut:
        covariates = cut.covariates.copy()
        covariates[..., columns] = covariates[others][..., columns]
        return replace(cut, covariates=covariates)

    return exchange


def _exchange_static(name: str) -> Callable[[Cut, Numbers, Array], Cut]:
    def exchange(cut: Cut, others: Numbers, foreign: Array) -> Cut:
        assert cut.static is not None
        return replace(
            cut, static=cut.static.assign(**{name: cut.static[name].iloc[others].set_axis(cut.static.index)})
        )

    return exchange
