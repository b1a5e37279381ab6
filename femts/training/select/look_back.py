"""The look-back of a model that is fitted in a moment, chosen by its errors on validation windows."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import reduce

from femts.data.dataset import Dataset
from femts.training.fit import FitRequest
from femts.training.resolve import horizon
from femts.training.select.candidates import RIDGE, ridges
from femts.training.select.plan import MANY_WINDOWS
from femts.training.select.trial import CandidateResult, try_candidate

ORIGINS = 3  # ends of the rows that are learned from, where they are few
FEW = 2000  # of them
CHEAP = 10.0  # seconds that a fit with the first look-back may take for others to be tried
SHARE = 0.1  # part of a limit of time that it may take


def origins_of(data: Dataset) -> int:
    """Origins at which candidates for `data` are tried."""
    return min(ORIGINS, data.most_origins) if data.rows <= FEW else 1


def too_slow(first: CandidateResult, limit: float | None) -> str:
    """Reason for trying no other look-back where the `first` took so long; empty where it did not."""
    room = CHEAP if limit is None else min(CHEAP, SHARE * limit)
    return f"the first look-back took {first.seconds:.1f} s" if first.seconds > room else ""


def with_look_back(request: FitRequest, data: Dataset) -> FitRequest:
    """The request with the look-back that errs least on the validation windows of `data`, as it is where the look-back
    is given, or others are not tried."""
    if request.model != RIDGE or data.most_origins < 1:
        return request
    steps = horizon(data, request.lengths.pred_len).steps
    known = replace(request, lengths=request.lengths._replace(pred_len=steps))
    candidates, folds = ridges(data, known.lengths), data.before_test(steps, origins_of(data))
    if len(candidates) < 2:
        return request

    tried = list[CandidateResult]()
    for candidate in candidates:
        if tried and too_slow(tried[0], request.limit):
            break
        made = [try_candidate(candidate, known, fold, MANY_WINDOWS, None, None) for fold in folds]
        tried.append(reduce(CandidateResult.then, made))
    left = [each for each in tried if math.isfinite(each.error)]
    if not left:
        return request  # the training itself says why
    best = min(left, key=lambda each: each.error)
    note = (
        f"look-back {best.look_back} for {steps} steps ahead, which had the lowest validation error; change it with "
        "--seq-len"
    )
    return replace(request, lengths=request.lengths._replace(seq_len=best.look_back), chosen=(note,))
