"""Selection rule of `--model auto`: ensemble selection (Caruana et al., "Ensemble Selection from Libraries of Models",
ICML 2004) with few members."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from femts.training.select.candidates import NAIVE_NAMES
from femts.training.select.trial import CandidateResult

MOST = 4  # largest number of members
SLACK = 0.1  # relative margin above the lowest error within which a mean is preferred, as few rows cannot resolve less
RULE = f"up to {MOST} models, added greedily to minimise the error of their mean"
RULE_OF_FEW = f"{RULE}; with few validation rows, larger ensembles are preferred"


class Choice(NamedTuple):
    """Result of the selection.

    Attributes:
        members: one to `MOST` candidates; empty if no candidate has an error.
        error: error of their mean, see `CandidateResult.error`.
        rule: description of the rule.
    """

    members: tuple[CandidateResult, ...]
    error: float
    rule: str


def best_mean(tried: Sequence[CandidateResult], few: bool, series: int = 1) -> Choice:
    """Select the candidates in `tried` whose mean forecast is used.

    Candidates are added greedily: the first has the lowest error, and each further one minimises the error of the mean,
    in which all have equal weights. No model is selected twice with different look-backs; ties go to the first. A
    member must reduce the error or, with few validation rows, be at most `SLACK` above the lowest one: a mean is seldom
    much worse than its members and often better. Except with few rows of a single series, a naive model is selected
    alone or not at all, because it is often accurate for a while by chance; with few rows of several series, it must be
    better than all others by more than `SLACK`.

    Args:
        tried: the candidates.
        few: whether there are few validation rows.
        series: number of series.
    """
    left = [each for each in tried if math.isfinite(each.error)]
    made = Choice((), math.inf, RULE_OF_FEW if few else RULE)
    lowest, naive = math.inf, () if few and series == 1 else NAIVE_NAMES
    others = [each for each in left if each.model not in naive]
    if few and others:
        to_beat = min(each.error for each in others) / (1 + SLACK)
        left = [each for each in left if each.model not in naive or each.error < to_beat]
    while left and len(made.members) < MOST:
        choices = [_joined((*made.members, each), made.rule) for each in left]
        best = min(choices, key=lambda each: each.error)
        if made.members and not best.error < lowest * (1 + SLACK * few):
            break
        made, lowest = best, min(best.error, lowest)
        if made.members[0].model in naive:
            break
        left = [each for each in left if each.model not in (made.members[-1].model, *naive)]
    return made


def _joined(members: tuple[CandidateResult, ...], rule: str) -> Choice:
    together = [np.mean(each, axis=0) for each in zip(*(one.forecasts for one in members), strict=True)]
    return Choice(members, members[0].error_of(together), rule)
