"""Selection rule of `--model auto`: a mean of the best models, weighted by their errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from femts.evaluation.constants import FEW
from femts.training.select.candidates import ENSEMBLE, ZERO_SHOT
from femts.training.select.constants import ALIKE, FADES, FAVOURED, HALF, LEAST, MOST, PRIOR, ROBUST, STEEPEST, WORST
from femts.training.select.trial import CandidateResult

RULE = (
    f"up to {MOST} models, weighted by their errors, more steeply the more values they are compared on; pretrained models and "
    "the median of classical ones count more"
)


class Choice(NamedTuple):
    """Result of the selection.

    Attributes:
        members: one to `MOST` candidates, the largest weight first; empty if no candidate has an error. A further one
            with a weight of 0 is there for its quantiles.
        weights: one for each of them; they sum to 1.
        error: error of their mean, see `CandidateResult.error`.
        rule: description of the rule.
    """

    members: tuple[CandidateResult, ...]
    weights: tuple[float, ...]
    error: float
    rule: str = RULE


def best_mean(tried: Sequence[CandidateResult]) -> Choice:
    """Select the candidates in `tried` whose weighted mean forecast is used.

    A weight is proportional to `prior * (lowest error / error) ** power`. On n compared values the power is
    `STEEPEST * n / (n + HALF)`: on few of them, the lowest error is the lowest by chance, and models are weighted almost
    equally. The prior is `PRIOR` for a pretrained model, which has learned from other series, and `ROBUST ** (FADES / (n
    + FADES))` for the median of classical models, which is rarely far off; otherwise 1. A model takes part with its best
    look-back, if its error is at most `WORST` times the lowest or its prior is above 1; members with a weight below
    `LEAST` are left out. Of the `ALIKE` models, which differ little, only the best takes part. With few windows, the
    intervals of a mean are mostly those between the quantiles of its members, so `fem_zero` is one at a weight of 0 if no
    other is pretrained.
    """
    best = dict[str, CandidateResult]()
    for each in sorted((each for each in tried if math.isfinite(each.error)), key=lambda each: each.error):
        best.setdefault(each.model, each)
    if not best:
        return Choice((), (), math.inf)
    first = next(iter(best.values()))
    count = sum(int(np.isfinite(each).sum()) for each in first.targets)
    power = STEEPEST * count / (count + HALF) / (2 if first.criterion == "mse" else 1)  # squares are twice as steep
    priors = dict.fromkeys(FAVOURED, PRIOR) | {ENSEMBLE: ROBUST ** (FADES / (count + FADES))}

    def weight(each: CandidateResult) -> float:
        ratio = first.error / each.error if each.error > 0 else 1.0
        return float(ratio**power) * priors.get(each.model, 1.0)

    worse = [each.model for each in best.values() if each.model in ALIKE][1:]
    near = [each for each in best.values() if each.error <= WORST * first.error or each.model in priors]
    members = sorted((each for each in near if each.model not in worse), key=weight, reverse=True)[:MOST]
    total = sum(map(weight, members))
    members = [each for each in members if weight(each) >= LEAST * total]
    total = sum(map(weight, members))
    weights = tuple(weight(each) / total for each in members)
    pretrained = {each.model for each in members}.intersection(FAVOURED)
    if ZERO_SHOT in best and not pretrained and sum(map(len, first.targets)) < FEW:
        members, weights = [*members, best[ZERO_SHOT]], (*weights, 0.0)
    together = [np.average(each, axis=0, weights=weights) for each in zip(*(m.forecasts for m in members), strict=True)]
    return Choice(tuple(members), weights, first.error_of(together))
