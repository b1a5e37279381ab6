"""Selection rule of `--model auto`: ensemble selection (Caruana et al., "Ensemble Selection from Libraries of Models",
ICML 2004) with few members."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from femts.training.select.candidates import NAIVE_NAMES
from femts.training.select.constants import MOST, ROUNDS, SLACK
from femts.training.select.trial import CandidateResult

RULE = f"up to {MOST} models, added greedily to minimise the error of their weighted mean"
RULE_OF_FEW = (
    f"up to {MOST} models, added greedily to minimise the error of their mean; with few validation rows, larger "
    "ensembles are preferred"
)


class Choice(NamedTuple):
    """Result of the selection.

    Attributes:
        members: one to `MOST` candidates; empty if no candidate has an error.
        weights: one for each of them; they sum to 1.
        error: error of their mean, see `CandidateResult.error`.
        rule: description of the rule.
    """

    members: tuple[CandidateResult, ...]
    weights: tuple[float, ...]
    error: float
    rule: str


def best_mean(tried: Sequence[CandidateResult], few: bool, series: int = 1) -> Choice:
    """Select the candidates in `tried` whose mean forecast is used.

    Candidates are added greedily: the first has the lowest error, and each further one minimises the error of the mean.
    No model is selected twice with different look-backs; ties go to the first. With few validation rows, all members
    have equal weights, and one is added as long as the error is at most `SLACK` above the lowest: a mean is seldom much
    worse than its members and often better. With many rows, a member can be added again, for a larger weight, and the
    first additions that have the lowest error are kept. Weights are the same for all columns; weights of their own fit
    the validation split better, but not the rows after it.

    Except with few rows of a single series, a naive model is selected alone or not at all, because it is often accurate
    for a while by chance; with few rows of several series, it must be better than all others by more than `SLACK`.

    Args:
        tried: the candidates.
        few: whether there are few validation rows.
        series: number of series.
    """
    left = [each for each in tried if math.isfinite(each.error)]
    naive = () if few and series == 1 else NAIVE_NAMES
    others = [each for each in left if each.model not in naive]
    if few and others:
        to_beat = min(each.error for each in others) / (1 + SLACK)
        left = [each for each in left if each.model not in naive or each.error < to_beat]
    added, made, lowest = list[CandidateResult](), list[CandidateResult](), math.inf
    while left and len(added) < (MOST if few else ROUNDS):
        errors = [_error_of([*added, each]) for each in left]
        error, best = min(errors), left[errors.index(min(errors))]
        if few and added and error >= lowest * (1 + SLACK):
            break
        added = [*added, best]
        if few or error < lowest:
            made = added
        lowest = min(error, lowest)
        if best.model in naive:
            break
        new = [each for each in left if each.model not in (best.model, *naive) and each not in added]
        again = [] if few else list(dict.fromkeys(added))
        left = again + (new if len(set(added)) < MOST else [])
    members = tuple(dict.fromkeys(made))
    weights = tuple(made.count(each) / len(made) for each in members)
    error = _error_of(made) if made else math.inf
    return Choice(members, weights, error, RULE_OF_FEW if few else RULE)


def _error_of(members: Sequence[CandidateResult]) -> float:
    together = [np.mean(each, axis=0) for each in zip(*(one.forecasts for one in members), strict=True)]
    return members[0].error_of(together)
