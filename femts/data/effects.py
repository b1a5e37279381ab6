"""What known columns and the calendar do to the targets: an additive model in closed form, taken off before any forecaster.

A dynamic regression (Hyndman & Athanasopoulos, "Forecasting: Principles and Practice", chapter 10): the targets are a sum of
effects and a remainder, the forecaster forecasts the remainder, and the effects of the steps to come, which are known, are put
back. Each column acts through a broken line, the calendar through the hour of the week and the season of the year. The weights
are a ridge regression of changes over one season, in which levels and the season itself, which forecasters see anyway, are no
part; penalties are chosen for each target on blocks of the training rows that were left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.data.dataset import Dataset
from femts.data.scaler import Scaler

Array = NDArray[np.float64]
KNOTS = (0.2, 0.4, 0.6, 0.8)  # quantiles of a column, where its line may break
PENALTIES = np.logspace(-4, 3, 15)
BLOCKS = 5  # of the training rows, each left out in turn
WORTH = 0.05  # part of the squared changes; effects that explain less of them in rows left out are taken for none
MOST_ROWS = 2**16  # that are fitted to, drawn from all, and that are computed at a time
DAY_WAVES, YEAR_WAVES = 4, 2
_ARRAYS = ("mean", "scale", "weight", "offset", "explained")


@dataclass(frozen=True, eq=False)
class Effects:
    """Effect of K known columns, and of the calendar, on C channels in scaled units.

    Attributes:
        knots: for each column, where its line breaks, in raw units.
        mean: of each column in training, which stands for its missing values, (K,).
        calendar: whether the stamps count as well.
        scale: of the M terms, the deviation of their changes in training, (M,).
        weight: (M, C).
        offset: mean effect in training, which is no part of it, (C,).
        explained: part of the squared changes over a season that the effects explain, in rows that were left out, (C,).
    """

    knots: tuple[tuple[float, ...], ...]
    mean: Array
    calendar: bool
    scale: Array
    weight: Array
    offset: Array
    explained: Array

    def of(self, known: Array, dates: pd.Index | None) -> Array:
        """Effects at `known` (n, K), raw units, and the stamps `dates` (n,), which only a calendar needs: (n, C)."""
        pieces = (slice(first, first + MOST_ROWS) for first in range(0, len(known), MOST_ROWS))
        terms = (self.terms(known[rows], None if dates is None else dates[rows]) for rows in pieces)
        return np.concatenate([each @ self.weight for each in terms]) - self.offset

    def terms(self, known: Array, dates: pd.Index | None) -> Array:
        """What the weights are for: (n, K) to (n, M), standardised."""
        terms = list[Array]()
        for column, knots in zip(np.where(np.isnan(known), self.mean, known).T, self.knots, strict=True):
            terms += [column, *(np.maximum(column - knot, 0) for knot in knots)]
        if self.calendar:
            terms += _calendar(pd.DatetimeIndex(dates))
        return np.stack(terms, axis=1) / self.scale

    def to_dict(self) -> dict[str, Any]:
        """Plain types for JSON."""
        arrays = {name: getattr(self, name).tolist() for name in _ARRAYS}
        return {"knots": [list(knots) for knots in self.knots], "calendar": self.calendar, **arrays}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Effects:
        """The inverse of `to_dict`."""
        arrays = {name: np.asarray(record[name], dtype=np.float64) for name in _ARRAYS}
        return cls(knots=tuple(map(tuple, record["knots"])), calendar=record["calendar"], **arrays)


def fit_scaler(data: Dataset) -> Scaler:
    """The scaler of the training rows of `data`, with the effects of what is known, if anything is."""
    scaler = Scaler.fit(data.train_values)
    return scaler if data.known is None else replace(scaler, effects=fit_effects(data, scaler))


def fit_effects(data: Dataset, scaler: Scaler) -> Effects:
    """Effects of what is known in `data` on its channels, from the training rows alone; `scaler` is fitted to them."""
    assert data.known is not None
    start, stop = data.split.train
    season = min(data.season, (stop - start) // 2)
    before = start + np.sort(np.random.default_rng(0).permutation(stop - start - season)[:MOST_ROWS])

    def change(of: Callable[[NDArray[np.int64]], Array]) -> Array:
        return of(before + season) - of(before)

    known, dates = data.known, data.dates
    plain = _plain(known[start:stop], data.roles.calendar, None if dates is None else dates[before])
    terms = change(lambda rows: plain.terms(known[rows], None if dates is None else dates[rows]))
    spread = terms.std(axis=0)
    plain = replace(plain, scale=np.where(spread > 0, spread, 1.0))
    weight, explained = _regress(terms / plain.scale, change(lambda rows: scaler.transform(data.values[rows])))
    worth = explained >= WORTH
    fitted = replace(plain, weight=np.where(worth, weight, 0.0), explained=np.where(worth, explained, 0.0))
    return replace(fitted, offset=fitted.of(known[before], None if dates is None else dates[before]).mean(axis=0))


def _plain(known: Array, calendar: bool, dates: pd.Index | None) -> Effects:
    """The terms for `known` (n, K), not yet standardised, without weights."""
    there = [column[~np.isnan(column)] for column in known.T]
    knots = tuple(
        tuple(float(q) for q in np.unique(np.quantile(c, KNOTS)) if c.min() < q < c.max()) if len(np.unique(c)) > 2 else ()
        for c in there
    )
    mean = np.array([column.mean() if len(column) else 0.0 for column in there])
    waves = len(_calendar(pd.DatetimeIndex(dates[:1]))) if calendar and dates is not None else 0
    count = sum(1 + len(each) for each in knots) + waves
    return Effects(knots, mean, calendar, np.ones(count), np.zeros((count, 0)), np.zeros(1), np.zeros(0))


def _calendar(dates: pd.DatetimeIndex) -> list[Array]:
    """Waves over the day, apart for each day of the week, and over the year."""
    day = (dates - dates.normalize()) / pd.Timedelta(days=1)
    year = dates.day_of_year.to_numpy() / 365.25
    hours = [np.ones(len(dates)), *_waves(np.asarray(day), DAY_WAVES)]
    weekdays = [(dates.day_of_week == weekday) * wave for weekday in range(7) for wave in hours]
    return [*weekdays, *_waves(year, YEAR_WAVES)]


def _waves(phase: Array, count: int) -> list[Array]:
    return [wave(2 * np.pi * k * phase) for k in range(1, count + 1) for wave in (np.sin, np.cos)]


def _regress(terms: Array, targets: Array) -> tuple[Array, Array]:
    """Ridge regression of `targets` (n, C), NaN where missing, on `terms` (n, M).

    Returns:
        Weights (M, C) at the best of `PENALTIES` for each target, and the part of its squares explained where left out.
    """
    blocks = [_moments(x, y) for x, y in zip(np.array_split(terms, BLOCKS), np.array_split(targets, BLOCKS), strict=True)]
    total = [sum(parts) for parts in zip(*blocks, strict=True)]
    errors = np.zeros((len(PENALTIES), targets.shape[1]))
    for block in blocks:
        gram, product, square, _ = block
        rest = [whole - part for whole, part in zip(total, block, strict=True)]
        for error, penalty in zip(errors, PENALTIES, strict=True):
            weight = _solve(rest, penalty)
            error += square - 2 * (weight * product).sum(-1) + np.einsum("cm,cmk,ck->c", weight, gram, weight)
    weights = np.stack([_solve(total, penalty) for penalty in PENALTIES])[errors.argmin(0), np.arange(targets.shape[1])]
    square = np.asarray(total[2])
    return weights.T, np.where(square > 0, 1 - errors.min(0) / np.where(square > 0, square, 1), 0.0)


def _moments(terms: Array, targets: Array) -> tuple[Array, Array, Array, Array]:
    """Sums for each target: terms by terms (C, M, M), targets by terms (C, M), squares (C,), rows (C,)."""
    there = ~np.isnan(targets)
    shape = (targets.shape[1], terms.shape[1], terms.shape[1])
    if there.all():
        gram = np.broadcast_to(terms.T @ terms, shape)
    else:
        gram = np.stack([terms[rows].T @ terms[rows] for rows in there.T])
    targets = np.where(there, targets, 0.0)
    return gram, targets.T @ terms, (targets**2).sum(0), there.sum(0).astype(np.float64)


def _solve(moments: Sequence[Any], penalty: float) -> Array:
    """Weights (C, M)."""
    gram, product, _, count = moments
    count = np.maximum(count, 1)[:, None]
    weight: Array = np.linalg.solve(gram / count[..., None] + penalty * np.eye(gram.shape[-1]), (product / count)[..., None])
    return weight[..., 0]
