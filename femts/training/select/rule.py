"""Rule by which models are taken: ensemble selection (Caruana et al., "Ensemble Selection from
Libraries of Models", ICML 2004), of few members."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import compress
from typing import NamedTuple

import numpy as np

from femts.training.select.candidates import NAIVE_NAMES
from femts.training.select.trial import Array, CandidateResult

MOST = 4  # models whose mean is taken, and parts of 1 that a weight has
SLACK = 0.1  # part of the lowest error by which that of a mean may be above it: few rows tell no closer
RULE = f"up to {MOST} models, one by one, whose mean errs least"
RULE_OF_FEW = f"{RULE}; where few rows decide, rather one more"
RULE_OF_MANY = f"{RULE}, with weights for each column"


class Choice(NamedTuple):
    """What is taken.

    Attributes:
        members: one to `MOST` candidates; none where none has an error.
        weights: (members, T); None weighs them alike.
        error: of their mean, see `CandidateResult.error`.
        rule: in words.
    """

    members: tuple[CandidateResult, ...]
    weights: Array | None
    error: float
    rule: str


def best_mean(tried: Sequence[CandidateResult], few: bool, series: int = 1) -> Choice:
    """Choose the models of `tried` whose mean forecast is taken.

    The first has the lowest error; each further one is that with which the mean of all so far errs least, and no model
    is taken twice with other look-backs, of equal ones the first. Where few rows decide, all members weigh alike, and
    one more is taken as long as the error is above the lowest one by no more than `SLACK`: a mean is seldom much worse
    than its members, and often better. Where many do, each column has weights of its own, and a member has to lower the
    error. But for few rows of a single series, a naive model is taken alone or not at all: it is often right for a
    while.

    Args:
        tried: the candidates.
        few: whether few rows decide.
        series: how many there are.
    """
    left = [each for each in tried if math.isfinite(each.error)]
    made = Choice((), None, math.inf, RULE_OF_FEW if few else RULE_OF_MANY)
    lowest, naive = math.inf, () if few and series == 1 else NAIVE_NAMES
    while left and len(made.members) < MOST:
        choices = [_joined((*made.members, each), few, made.rule) for each in left]
        best = min(choices, key=lambda each: each.error)
        if made.members and not best.error < lowest * (1 + SLACK * few):
            break
        made, lowest = best, min(best.error, lowest)
        if made.members[0].model in naive:
            break
        left = [each for each in left if each.model not in (made.members[-1].model, *naive)]
    if made.weights is None:
        return made
    used = [bool(each.any()) for each in made.weights]  # a later member may have made an earlier one needless
    members = tuple(compress(made.members, used))
    return made._replace(members=members, weights=made.weights[used] if len(members) > 1 else None)


def _joined(members: tuple[CandidateResult, ...], few: bool, rule: str) -> Choice:
    if not few:
        weights, error = _weights(members)
        return Choice(members, weights if len(members) > 1 else None, error, rule)
    together = [np.mean(each, axis=0) for each in zip(*(one.forecasts for one in members), strict=True)]
    return Choice(members, None, members[0].error_of(together), rule)


def _weights(members: tuple[CandidateResult, ...]) -> tuple[Array, float]:
    """Weights (members, T) in parts of `MOST` by which each column errs least, found one part after another, and the
    error with them."""
    first, columns = members[0], members[0].forecasts[0].shape[2]
    sums: list[Array] = [np.zeros_like(each) for each in first.forecasts]
    parts = np.zeros((len(members), columns))
    weights, lowest = parts + 1 / len(members), np.full(columns, np.inf)  # without a value, a column tells nothing
    for taken in range(1, MOST + 1):
        sums_with = [[total + each for total, each in zip(sums, one.forecasts, strict=True)] for one in members]
        errors = np.array([_of_columns(first, [each / taken for each in one]) for one in sums_with])
        best = errors.argmin(axis=0)
        sums = [np.stack([sums_with[m][o][..., t] for t, m in enumerate(best)], axis=-1) for o in range(len(sums))]
        parts = parts + (np.arange(len(members))[:, None] == best)
        better = errors.min(axis=0) < lowest
        weights, lowest = np.where(better, parts / taken, weights), np.where(better, errors.min(axis=0), lowest)
    return weights, float(np.mean(lowest[np.isfinite(lowest)]))


def _of_columns(first: CandidateResult, forecasts: Sequence[Array]) -> Array:
    """Error of each column, (T,); NaN for one without a value after some origin."""
    errors = first.errors(forecasts)
    counts = [(~np.isnan(each)).sum(axis=(0, 1)) for each in errors]
    means = [
        np.divide(np.nansum(each, axis=(0, 1)), count, out=np.full(count.shape, np.nan), where=count > 0)
        for each, count in zip(errors, counts, strict=True)
    ]
    return np.asarray(np.mean(means, axis=0))
