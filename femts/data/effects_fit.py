"""Fitting the effects of future covariates: shared by all series, because a short series shows little of what a holiday
does, and separately for series that are long enough."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.data.effects import MOST_ROWS, Array, DateTerms, Effects, zone_of

ENOUGH = 20  # rows per term for a series to get its own effects
KNOTS = (0.2, 0.4, 0.6, 0.8)  # quantiles of a column at which its piecewise linear function has knots
PENALTIES = np.logspace(-4, 3, 15)
BLOCKS = 5  # folds of the training rows for cross-validation
WORTH = 0.05  # smallest cross-validated fraction of squared changes explained; weaker effects are set to 0


def fit_effects(
    scaled: Callable[[NDArray[np.int64]], Array],
    covariates: NDArray[Any],
    dates: pd.Index | None,
    season: int,
    dated: DateTerms,
    training: NDArray[np.int64],
) -> Effects:
    """Fit the effects of `covariates`, and of the time stamps, to the training rows.

    Args:
        scaled: function from row numbers (n,) to their scaled values (n, C), NaN where missing.
        covariates: (rows, K), raw units.
        dates: time stamps (rows,), needed only for calendar features.
        season: number of steps in a season, over which changes are explained.
        dated: terms of the time stamps.
        training: first training row of each series and one past its last, (S, 2).
    """
    season = min(season, int((training[:, 1] - training[:, 0]).max()) // 2)
    # rows followed by a row of the same series one season later
    counts = np.maximum(training[:, 1] - season - training[:, 0], 0)
    ends, chosen = counts.cumsum(), _sampled(int(counts.sum()))
    before = chosen + (training[:, 0] - (ends - counts))[np.searchsorted(ends, chosen, side="right")]

    def part(of: Callable[[NDArray[np.int64]], Array]) -> tuple[Array, Array]:
        return of(before)[None], of(before + season)[None]

    columns = (
        np.concatenate([covariates[begin:stop, k] for begin, stop in training.tolist()], dtype=np.float64)[None]
        for k in range(covariates.shape[1])
    )
    (plain,) = _plain(columns, 1, dated, dates)
    terms = part(
        lambda rows: plain.terms(np.asarray(covariates[rows], np.float64), None if dates is None else dates[rows])
    )
    earlier, later = part(scaled)
    return _fitted([plain], *terms, later - earlier)[0]


def fit_own(
    shared: Effects,
    scaled: Callable[[NDArray[np.int64]], Array],
    covariates: NDArray[Any],
    stamps: pd.Index | None,
    season: int,
    training: NDArray[np.int64],
    targets: int,
) -> dict[int, Effects]:
    """Fit separate effects to single series, by number, if a series is long enough and they explain more of its changes
    in cross-validation than the shared ones; arguments as in `fit_effects`."""
    own, lengths = dict[int, Effects](), training[:, 1] - training[:, 0]
    for length in np.unique(lengths[lengths >= ENOUGH * len(shared.weight)]).tolist():
        numbers = np.flatnonzero(lengths == length)
        for block in np.array_split(numbers, -(-len(numbers) * length // MOST_ROWS)):
            rows = training[block, :1] + np.arange(length)
            dates = None if stamps is None else stamps[rows.ravel()]
            known, values = np.asarray(covariates[rows], np.float64), scaled(rows.ravel()).reshape(*rows.shape, -1)
            steps = min(season, length // 2)
            effect = shared.of(known.reshape(rows.size, known.shape[-1]), dates).reshape(values.shape)
            change, expected = (each[:, steps:] - each[:, :-steps] for each in (values, effect))
            square = np.nansum(change**2, axis=1)
            explained = 1 - np.nansum((change - expected) ** 2, axis=1) / np.where(square > 0, square, 1)
            for place, fitted in _fitted_alone(known, values, dates, steps, shared.dated):
                if fitted.explained[:targets].mean() > explained[place, :targets].mean():
                    own[int(block[place])] = fitted
    return dict(sorted(own.items()))


def _fitted_alone(
    known: Array, values: Array, dates: pd.Index | None, season: int, dated: DateTerms
) -> Iterator[tuple[int, Effects]]:
    """Effects fitted to each of S series, by number: covariates (S, n, K), scaled values (S, n, C), stamps (S n,)."""
    columns = [np.ascontiguousarray(known[..., k]) for k in range(known.shape[-1])]
    count, length = known.shape[:2]
    plain, waves = _plain(columns, count, dated, dates), dated.of(dates)
    before, kinds = _sampled(length - season), dict[tuple[int, ...], list[int]]()
    for place, each in enumerate(plain):
        kinds.setdefault(tuple(map(len, each.knots)), []).append(place)
    for alike in kinds.values():  # series with as many knots, which have as many terms
        parts = list[Array]()
        for k, column in enumerate(columns):
            missing = np.array([[plain[place].mean[k]] for place in alike])
            filled = np.where(np.isnan(column[alike]), missing, column[alike])
            knots = np.array([plain[place].knots[k] for place in alike])
            parts += [filled, *(np.maximum(filled - knot[:, None], 0) for knot in knots.T)]
        terms = np.stack([*parts, *(wave.reshape(count, length)[alike] for wave in waves)], axis=-1)
        change = values[alike][:, before + season] - values[alike][:, before]
        fitted = _fitted([plain[place] for place in alike], terms[:, before], terms[:, before + season], change)
        yield from zip(alike, fitted, strict=True)


def _sampled(count: int) -> NDArray[np.int64]:
    """At most `MOST_ROWS` of `count` rows, in order."""
    return np.sort(np.random.default_rng(0).permutation(count)[:MOST_ROWS])


def _plain(columns: Iterable[Array], count: int, dated: DateTerms, dates: pd.Index | None) -> list[Effects]:
    """Terms for each of `count` series, not yet standardised and without weights; `columns` are the training rows of
    each covariate, (count, n)."""
    found = [(_knots(column), _means(column)) for column in columns]  # one at a time, as they may be large
    waves, zone = 0, None
    if dated.any and dates is not None:
        waves, zone = len(dated.of(dates[:1])), zone_of(dates)
    made = list[Effects]()
    for place in range(count):
        knots, mean = tuple(of[place] for of, _ in found), np.array([of[place] for _, of in found])
        terms = sum(1 + len(each) for each in knots) + waves
        further = np.ones(terms), np.zeros((terms, 0)), np.zeros(1), np.zeros(0), zone
        made.append(Effects(knots, mean, dated, *further))
    return made


def _knots(column: Array) -> list[tuple[float, ...]]:
    """Knots for each series of a covariate (S, n); none if it has at most two values."""
    if np.isnan(column).any():
        return [_knots(each[None, ~np.isnan(each)])[0] for each in column]
    if not column.shape[1]:
        return [()] * len(column)
    ordered = np.sort(column, axis=1)
    several = (ordered[:, 1:] > ordered[:, :-1]).sum(axis=1) > 1
    low, high = ordered[:, :1].copy(), ordered[:, -1:].copy()
    places = np.quantile(ordered, KNOTS, axis=1, overwrite_input=True).T
    inside = (low < places) & (places < high) & several[:, None]
    return [tuple(np.unique(each[within]).tolist()) for each, within in zip(places, inside, strict=True)]


def _means(column: Array) -> Array:
    """Mean of each series of a covariate (S, n), 0 if nothing is known."""
    if not np.isnan(column).any():
        return column.mean(axis=1)
    observed = (each[~np.isnan(each)] for each in column)
    return np.array([each.mean() if len(each) else 0.0 for each in observed])


def _fitted(plain: Sequence[Effects], before: Array, after: Array, targets: Array) -> list[Effects]:
    """Effects with the weights of a regression of the changes `targets` (S, n, C) on those of the terms, whose values
    are `before` and `after` them, (S, n, M)."""
    change = after - before
    spread = change.std(axis=1)
    scale = np.where(spread > 0, spread, 1.0)
    weight, explained = _regress(change / scale[:, None], targets)
    worth = explained >= WORTH
    weight, explained = np.where(worth[:, None], weight, 0.0), np.where(worth, explained, 0.0)
    offset = ((before / scale[:, None]) @ weight).mean(axis=1)
    return [
        replace(each, scale=scale[k], weight=weight[k], offset=offset[k], explained=explained[k])
        for k, each in enumerate(plain)
    ]


def _regress(terms: Array, targets: Array) -> tuple[Array, Array]:
    """Ridge regression of `targets` (S, n, C), NaN where missing, on `terms` (S, n, M).

    Returns:
        Weights (S, M, C) at the best of `PENALTIES` for each target, and the cross-validated fraction of squares
        explained, (S, C).
    """
    folds = (np.array_split(each, BLOCKS, axis=1) for each in (terms, targets))
    blocks = [_moments(x, y) for x, y in zip(*folds, strict=True)]
    total = [sum(parts) for parts in zip(*blocks, strict=True)]
    errors = np.zeros((len(PENALTIES), *targets.shape[::2]))
    for block in blocks:
        gram, product, square, _ = block
        weights = _solve([whole - part for whole, part in zip(total, block, strict=True)])
        linear = square - 2 * (weights * product).sum(-1)
        errors += linear + ((weights[..., None, :] @ gram)[..., 0, :] * weights).sum(-1)
    best = np.take_along_axis(_solve(total), errors.argmin(0)[None, ..., None], axis=0)[0]
    square = np.asarray(total[2])
    return np.swapaxes(best, 1, 2), np.where(square > 0, 1 - errors.min(0) / np.where(square > 0, square, 1), 0.0)


def _moments(terms: Array, targets: Array) -> tuple[Array, Array, Array, Array]:
    """Moments of each target: terms by terms (S, C, M, M), targets by terms (S, C, M), squares and rows (S, C)."""
    observed = ~np.isnan(targets)
    turned = np.swapaxes(terms, 1, 2)
    if observed.all():
        gram = np.repeat((turned @ terms)[:, None], targets.shape[2], axis=1)
    else:
        parts = np.moveaxis(np.where(observed[..., None, :], terms[..., None], 0.0), -1, 1)
        gram = np.swapaxes(parts, 2, 3) @ parts
    targets = np.where(observed, targets, 0.0)
    product = np.swapaxes(targets, 1, 2) @ terms
    return gram, product, (targets**2).sum(1), observed.sum(1).astype(np.float64)


def _solve(moments: Sequence[Any]) -> Array:
    """Weights at each of `PENALTIES`, (PENALTIES, S, C, M)."""
    gram, product, _, count = moments
    count = np.maximum(count, 1)[..., None]
    penalties = PENALTIES[:, None, None, None, None] * np.eye(gram.shape[-1])
    weight: Array = np.linalg.solve(gram / count[..., None] + penalties, (product / count)[None, ..., None])
    return weight[..., 0]
