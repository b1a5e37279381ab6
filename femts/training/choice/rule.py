"""Rule by which models are taken: ensemble selection, of few members (Caruana et al., "Ensemble
Selection from Libraries of Models", ICML 2004)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from femts.training.choice.trial import Tried, mean_error

MOST = 3  # models whose mean is taken
WORTH = 0.01  # part of the error that a further one has to take away
RULE = (
    f"the model of the lowest error; then, up to {MOST}, the one that takes most off the error of their mean, "
    f"as long as that is {WORTH:.0%} of it"
)


def best_mean(tried: Sequence[Tried]) -> tuple[Tried, ...]:
    """The models of `tried` whose mean forecast is taken, by `RULE`; of equal ones the first. None where
    none has an error."""
    left = [each for each in tried if math.isfinite(each.error)]
    taken, error = tuple[Tried, ...](), math.inf
    while left and len(taken) < MOST:
        errors = [error_of((*taken, each)) for each in left]
        lowest = min(errors)
        if not lowest < error * (1 - WORTH):
            break
        taken, error = (*taken, left.pop(errors.index(lowest))), lowest
    return taken


def error_of(members: Sequence[Tried]) -> float:
    """Error of the mean of what `members`, at least one, have forecast; see `Tried.error`."""
    together = [np.mean(each, axis=0) for each in zip(*(one.forecasts for one in members), strict=True)]
    return mean_error(together, members[0].targets)
