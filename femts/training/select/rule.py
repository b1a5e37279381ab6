"""Selection rule of `--model auto`: ensemble selection (Caruana et al., "Ensemble Selection from Libraries of Models",
ICML 2004) with few members."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import compress
from typing import NamedTuple

import numpy as np

from femts.training.select.candidates import NAIVE_NAMES
from femts.training.select.trial import Array, CandidateResult

MOST = 4  # largest number of members, and denominator of their weights
SLACK = 0.1  # relative margin above the lowest error within which a mean is preferred, as few rows cannot resolve less
RULE = f"up to {MOST} models, added greedily to minimise the error of their mean"
RULE_OF_FEW = f"{RULE}; with few validation rows, larger ensembles are preferred"
RULE_OF_MANY = f"{RULE}, with weights per column"


class Choice(NamedTuple):
    """Result of the selection.

    Attributes:
        members: one to `MOST` candidates; empty if no candidate has an error.
        weights: (members, T); None for equal weights.
        error: error of their mean, see `CandidateResult.error`.
        rule: description of the rule.
    """

    members: tuple[CandidateResult, ...]
    weights: Array | None
    error: float
    rule: str


def best_mean(tried: Sequence[CandidateResult], few: bool, series: int = 1) -> Choice:
    """Select the candidates in `tried` whose mean forecast is used.

    Candidates are added greedily: the first has the lowest error, and each further one minimises the error of the mean.
    No model is selected twice with different look-backs; ties go to the first. With few validation rows, all members
    have equal weights, and a member is added as long as the error is at most `SLACK` above the lowest one: a mean is
    seldom much worse than its members and often better. With many rows, each column has its own weights, and a member
    must reduce the error. Except with few rows of a single series, a naive model is selected alone or not at all,
    because it is often accurate for a while by chance; with few rows of several series, it must be better than all
    others by more than `SLACK`.

    Args:
        tried: the candidates.
        few: whether there are few validation rows.
        series: number of series.
    """
    left = [each for each in tried if math.isfinite(each.error)]
    made = Choice((), None, math.inf, RULE_OF_FEW if few else RULE_OF_MANY)
    lowest, naive = math.inf, () if few and series == 1 else NAIVE_NAMES
    others = [each for each in left if each.model not in naive]
    if few and others:
        to_beat = min(each.error for each in others) / (1 + SLACK)
        left = [each for each in left if each.model not in naive or each.error < to_beat]
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
    used = [bool(each.any()) for each in made.weights]  # a later member may have made an earlier one redundant
    members = tuple(compress(made.members, used))
    return made._replace(members=members, weights=made.weights[used] if len(members) > 1 else None)


def _joined(members: tuple[CandidateResult, ...], few: bool, rule: str) -> Choice:
    if not few:
        weights, error = _weights(members)
        return Choice(members, weights if len(members) > 1 else None, error, rule)
    together = [np.mean(each, axis=0) for each in zip(*(one.forecasts for one in members), strict=True)]
    return Choice(members, None, members[0].error_of(together), rule)


def _weights(members: tuple[CandidateResult, ...]) -> tuple[Array, float]:
    """Weights (members, T), multiples of 1 / `MOST`, that minimise the error of each column, found greedily, and the
    resulting error."""
    first, columns = members[0], members[0].forecasts[0].shape[2]
    sums: list[Array] = [np.zeros_like(each) for each in first.forecasts]
    parts = np.zeros((len(members), columns))
    weights, lowest = parts + 1 / len(members), np.full(columns, np.inf)  # columns without values are uninformative
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
    """Error per column, (T,); NaN for columns without values after some origin."""
    errors = first.errors(forecasts)
    counts = [(~np.isnan(each)).sum(axis=(0, 1)) for each in errors]
    means = [
        np.divide(np.nansum(each, axis=(0, 1)), count, out=np.full(count.shape, np.nan), where=count > 0)
        for each, count in zip(errors, counts, strict=True)
    ]
    return np.asarray(np.mean(means, axis=0))
