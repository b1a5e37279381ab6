"""Rule by which models are taken: ensemble selection (Caruana et al., "Ensemble Selection from
Libraries of Models", ICML 2004), of few members."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from femts.training.select.candidates import NAIVE_NAMES
from femts.training.select.trial import CandidateResult, mean_error

MOST = 4  # models whose mean is taken
SLACK = 0.1  # part of the lowest error by which that of a mean may be above it: few rows tell no closer
RULE = f"up to {MOST} models, one by one, whose mean errs least; where few rows decide, rather one more"


def best_mean(tried: Sequence[CandidateResult], few: bool) -> tuple[CandidateResult, ...]:
    """Choose the models of `tried` whose mean forecast is taken.

    The first has the lowest error; each further one is that with which the mean of all so far errs
    least, and no model is taken twice with other look-backs. It is taken when that error is below the one before, or,
    where few rows decide, above the lowest one by no more than `SLACK`: a mean is seldom much worse than its members,
    and often better. Where many do, a naive model is taken alone or not at all.

    Args:
        tried: the candidates.
        few: whether few rows decide.

    Returns:
        One to `MOST` of them, of equal ones the first; none where none has an error.
    """
    left = [each for each in tried if math.isfinite(each.error)]
    if not left:
        return ()
    taken: tuple[CandidateResult, ...] = (min(left, key=lambda each: each.error),)
    lowest = taken[0].error
    if not few and taken[0].model in NAIVE_NAMES:
        return taken
    left = [each for each in left if each.model != taken[0].model and (few or each.model not in NAIVE_NAMES)]
    while left and len(taken) < MOST:
        errors = [error_of((*taken, each)) for each in left]
        error = min(errors)
        if not error < lowest * (1 + SLACK * few):
            break
        taken, lowest = (*taken, left[errors.index(error)]), min(error, lowest)
        left = [each for each in left if each.model != taken[-1].model]
    return taken


def error_of(members: Sequence[CandidateResult]) -> float:
    """Error of the mean of what `members`, at least one, have forecast; see `CandidateResult.error`."""
    together = [np.mean(each, axis=0) for each in zip(*(one.forecasts for one in members), strict=True)]
    return mean_error(together, members[0].targets, members[0].limits)
