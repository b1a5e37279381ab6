"""Fitting the effects of future covariates: shared by all series, because a short series shows little of what a holiday
does, and separately for series that are long enough."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.data.effects import MOST_ROWS, Array, Effects, calendar_waves, zone_of

ENOUGH = 20  # rows per term for a series to get its own effects
KNOTS = (0.2, 0.4, 0.6, 0.8)  # quantiles of a column at which its piecewise linear function has knots
PENALTIES = np.logspace(-4, 3, 15)
BLOCKS = 5  # folds of the training rows for cross-validation
WORTH = 0.05  # smallest cross-validated fraction of squared changes explained; weaker effects are set to 0


def fit_effects(
    scaled: Callable[[NDArray[np.int64]], Array],
    covariates: Array,
    dates: pd.Index | None,
    season: int,
    calendar: bool,
    training: NDArray[np.int64],
) -> Effects:
    """Fit the effects of `covariates`, and of the calendar if `calendar`, to the training rows.

    Args:
        scaled: function from row numbers (n,) to their scaled values (n, C), NaN where missing.
        covariates: (rows, K), raw units.
        dates: time stamps (rows,), needed only for calendar features.
        season: number of steps in a season, over which changes are explained.
        calendar: whether to include calendar features.
        training: first training row of each series and one past its last, (S, 2).
    """
    season = min(season, int((training[:, 1] - training[:, 0]).max()) // 2)
    # rows followed by a row of the same series one season later
    first = np.concatenate([np.arange(begin, stop - season) for begin, stop in training.tolist()])
    before = first[np.sort(np.random.default_rng(0).permutation(len(first))[:MOST_ROWS])]

    def change(of: Callable[[NDArray[np.int64]], Array]) -> Array:
        return of(before + season) - of(before)

    plain = _plain(covariates, calendar, None if dates is None else dates[before], training)
    terms = change(lambda rows: plain.terms(covariates[rows], None if dates is None else dates[rows]))
    spread = terms.std(axis=0)
    plain = replace(plain, scale=np.where(spread > 0, spread, 1.0))
    weight, explained = _regress(terms / plain.scale, change(scaled))
    worth = explained >= WORTH
    fitted = replace(plain, weight=np.where(worth, weight, 0.0), explained=np.where(worth, explained, 0.0))
    return replace(fitted, offset=fitted.of(covariates[before], None if dates is None else dates[before]).mean(axis=0))


def fit_own(
    shared: Effects,
    scaled: Callable[[NDArray[np.int64]], Array],
    covariates: Array,
    stamps: pd.Index | None,
    season: int,
    training: NDArray[np.int64],
    targets: int,
) -> dict[int, Effects]:
    """Fit separate effects to single series, by number, if a series is long enough and they explain more of its changes
    in cross-validation than the shared ones; arguments as in `fit_effects`."""
    own = dict[int, Effects]()
    for number, (begin, stop) in enumerate(training.tolist()):
        length = stop - begin
        if length < ENOUGH * len(shared.weight):
            continue
        values, known = scaled(np.arange(begin, stop)), covariates[begin:stop]
        dates = None if stamps is None else stamps[begin:stop]
        fitted = fit_effects(values.__getitem__, known, dates, season, shared.calendar, np.array([[0, length]]))
        steps = min(season, length // 2)
        change, effect = (each[steps:] - each[:-steps] for each in (values, shared.of(known, dates)))
        square = np.nansum(change**2, axis=0)
        explained = 1 - np.nansum((change - effect) ** 2, axis=0) / np.where(square > 0, square, 1)
        if fitted.explained[:targets].mean() > explained[:targets].mean():
            own[number] = fitted
    return own


def _plain(covariates: Array, calendar: bool, dates: pd.Index | None, training: NDArray[np.int64]) -> Effects:
    """Terms for the `training` rows of `covariates` (rows, K), not yet standardised and without weights."""
    rows = np.zeros(len(covariates), dtype=np.bool_)
    for begin, stop in training.tolist():
        rows[begin:stop] = True
    knots, mean = list[tuple[float, ...]](), np.zeros(covariates.shape[1])
    for k, column in enumerate(covariates.T):
        observed = column[rows & ~np.isnan(column)]
        several = len(np.unique(observed)) > 2
        low, high = (observed.min(), observed.max()) if several else (0.0, 0.0)
        knots.append(
            tuple(float(q) for q in np.unique(np.quantile(observed, KNOTS)) if low < q < high) if several else ()
        )
        mean[k] = observed.mean() if len(observed) else 0.0
    waves, zone = 0, None
    if calendar and dates is not None:
        waves, zone = len(calendar_waves(pd.DatetimeIndex(dates[:1]))), zone_of(pd.DatetimeIndex(dates))
    count = sum(1 + len(each) for each in knots) + waves
    return Effects(tuple(knots), mean, calendar, np.ones(count), np.zeros((count, 0)), np.zeros(1), np.zeros(0), zone)


def _regress(terms: Array, targets: Array) -> tuple[Array, Array]:
    """Ridge regression of `targets` (n, C), NaN where missing, on `terms` (n, M).

    Returns:
        Weights (M, C) at the best of `PENALTIES` for each target, and the cross-validated fraction of squares
        explained.
    """
    blocks = [
        _moments(x, y) for x, y in zip(np.array_split(terms, BLOCKS), np.array_split(targets, BLOCKS), strict=True)
    ]
    total = [sum(parts) for parts in zip(*blocks, strict=True)]
    errors = np.zeros((len(PENALTIES), targets.shape[1]))
    for block in blocks:
        gram, product, square, _ = block
        weights = _solve([whole - part for whole, part in zip(total, block, strict=True)])
        linear = square - 2 * (weights * product).sum(-1)
        # one by one: over all penalties, einsum adds in another order
        errors += linear + [np.einsum("cm,cmk,ck->c", weight, gram, weight) for weight in weights]
    best = _solve(total)[errors.argmin(0), np.arange(targets.shape[1])]
    square = np.asarray(total[2])
    return best.T, np.where(square > 0, 1 - errors.min(0) / np.where(square > 0, square, 1), 0.0)


def _moments(terms: Array, targets: Array) -> tuple[Array, Array, Array, Array]:
    """Moments of each target: terms by terms (C, M, M), targets by terms (C, M), squares (C,), rows (C,)."""
    observed = ~np.isnan(targets)
    shape = (targets.shape[1], terms.shape[1], terms.shape[1])
    if observed.all():
        gram = np.broadcast_to(terms.T @ terms, shape)
    else:
        gram = np.stack([terms[rows].T @ terms[rows] for rows in observed.T])
    targets = np.where(observed, targets, 0.0)
    return gram, targets.T @ terms, (targets**2).sum(0), observed.sum(0).astype(np.float64)


def _solve(moments: Sequence[Any]) -> Array:
    """Weights at each of `PENALTIES`, (PENALTIES, C, M)."""
    gram, product, _, count = moments
    count = np.maximum(count, 1)[:, None]
    penalties = PENALTIES[:, None, None, None] * np.eye(gram.shape[-1])
    weight: Array = np.linalg.solve(gram / count[..., None] + penalties, (product / count)[None, ..., None])
    return weight[..., 0]
