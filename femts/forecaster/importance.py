"""Permutation importance of what a forecaster reads: how much its error rises when one input is exchanged between
windows (Breiman, "Random Forests", Machine Learning 2001; Fisher, Rudin & Dominici, "All Models are Wrong, but Many are
Useful", JMLR 2019).

Inputs are exchanged in the rows that windows are cut out of, before any preprocessing, so that whatever reads them reads
the exchanged ones: the model, and the linear effect of known columns that is taken off before it and put back after it.
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
from femts.errors import UsageError, suggest
from femts.evaluation.block_bootstrap import mean_interval
from femts.forecaster.forecasting import forecast_series
from femts.forecaster.scoring import scored_part
from femts.models.base import Exchanged
from femts.text import shown

if TYPE_CHECKING:
    from femts.forecaster.forecaster import Forecaster

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]

WINDOWS, REPEATS = 128, 5
FITS, REPEATED_FITS = 12, 2  # the same of a model that is fitted to each look-back, or is as slow
MOST_BLOCKS = 8  # of lags; the last one holds all older ones
MOST_COLUMNS = 32
KINDS = {
    "column": "the look-back of one column",
    "lags": "lags, of all columns",
    "future": "known in advance",
    "calendar": "the calendar",
    "static": "static",
    "feature": "made of the look-back by the model",
}  # of inputs, in words
NO_ERROR = 1e-12  # squared, in scaled units: what rounding leaves


@dataclass(frozen=True, eq=False)
class Cut:
    """W windows before any preprocessing: L steps of look-back, and H to come.

    Attributes:
        values: (W, L, C) raw units, NaN where missing or before the series began.
        covariates: what is known in advance, (W, L + H, K).
        when: rows of the data set whose stamps the steps have, (W, L + H).
        static: one row for each window; None without static columns.
    """

    values: Array
    covariates: Array
    when: Numbers
    static: pd.DataFrame | None


class Input(NamedTuple):
    """An input that is permuted.

    Attributes:
        kind: one of `KINDS`.
        name: of it within its kind.
        exchange: a cut with this input of the windows `others` (W,), whose look-backs `foreign` (W, L, C) holds in the
            units of the windows that get them.
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
    most = (
        min(usual[0], of.model.most_windows or usual[0])
        if windows is None
        else check_count(windows, "Argument 'windows'", 2)
    )
    times = usual[1] if repeats is None else check_count(repeats, "Argument 'repeats'")
    rng = np.random.default_rng(check_count(seed, "Argument 'seed'", 0))
    index = _spread(len(every), most, rng)
    if len(index) < 2:
        raise UsageError(
            f"The {part} part has {len(every)} windows and {most} are taken, so there are no two whose inputs could be "
            "exchanged; take another part, a shorter horizon or more windows."
        )
    length, targets = of.config.seq_len, len(of.targets)
    rows, when = (each.cpu().numpy() for each in every.rows_of(torch.from_numpy(index)))
    series = every.series_of(torch.from_numpy(index)).cpu().numpy()
    values = np.where((rows == when)[:, :length, None], data.values[when[:, :length]], np.nan)
    cut = Cut(values, data.covariates[when], when, None if data.static is None else data.static.iloc[series])
    units = of.preprocess.take(of.preprocess.places([data.series[number] for number in series]))
    ahead = slice(length, length + every.pred_len)
    truth = units.scale(data.values[when[:, ahead]])[..., :targets]
    counted = ~np.isnan(truth)
    for mask in (every.scored(torch.from_numpy(index)), every.counts(torch.from_numpy(index))):
        counted &= True if mask is None else mask.cpu().numpy()

    def errors(of_cut: Cut, exchanged: Exchanged | None = None) -> Array:
        """Sums of the squared errors of each window, (W,)."""
        of.model.exchanged = exchanged
        try:
            made = _forecast(of, data, series, of_cut, every.pred_len)
        finally:
            of.model.exchanged = None
        return np.where(counted, (made - truth) ** 2, 0.0).sum((1, 2))

    base = errors(cut)
    if not base.sum() > NO_ERROR * counted.sum():
        raise UsageError(f"These forecasts of the {part} part make no error, which none could be compared with.")
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
    """An input in words."""
    return f"lags {name.replace('-', ' to ')}" if kind == "lags" else shown(name)


def percent_label(rise: float) -> str:
    """A rise in percent."""
    return f"{100 * rise:+.{1 if abs(rise) < 0.0995 else 0}f} %"


def _spread(count: int, most: int, rng: np.random.Generator) -> Numbers:
    """Numbers of all of `count` windows, or one out of each of `most` equal parts: at even distances all could begin at
    the same hour, and an exchange of hours would change nothing."""
    if count <= most:
        return np.arange(count)
    edges = np.linspace(0, count, most + 1).astype(np.int64)
    return rng.integers(edges[:-1], edges[1:])


def _another_each(count: int, rng: np.random.Generator) -> Numbers:
    """For each of `count` windows the number of another one, each once."""
    order, others = rng.permutation(count), np.empty(count, dtype=np.int64)
    others[order] = np.roll(order, 1)
    return others


def _raw(units: Preprocess, scaled: Array, targets: int) -> Array:
    """Raw values of `scaled` ones (W, L, C): what is exchanged between series keeps its place in the scale of each."""
    return np.concatenate([units.restore(scaled[..., :targets]), units.scaler.inverse(scaled)[..., targets:]], axis=-1)


def _forecast(forecaster: Forecaster, data: Dataset, series: Numbers, cut: Cut, steps: int) -> Array:
    """Forecasts (W, steps, T) of `cut` in scaled units, as they are scored; `series` (W,) says of which its windows are."""
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
    """Inputs of a forecaster in the order in which they are shown."""
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
    if roles.calendar:
        yield Input("calendar", "calendar", lambda cut, others, _: replace(cut, when=cut.when[others]))
    for name in () if data.static is None else map(str, data.static.columns):
        yield Input("static", name, _exchange_static(name))


def _chosen(columns: Sequence[str] | None, listed: Sequence[str]) -> Sequence[str]:
    if columns is None:
        return listed[:MOST_COLUMNS]
    chosen = check_names(columns, "columns")
    for name in chosen:
        if name not in listed:
            raise UsageError(f"The model reads no column '{shown(name)}'{suggest(name, listed)}")
    return chosen


def _blocks(forecaster: Forecaster, season: int) -> list[tuple[int, int]]:
    """Blocks of lags, the first and the last lag of each, from the most recent on: a season long, or without one a
    horizon."""
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
