"""Selects the look-back of models that are fitted in a moment, by their validation errors."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import reduce

from femts.data.dataset import Dataset
from femts.training.request import FitRequest
from femts.training.resolve import horizon
from femts.training.select.candidates import RIDGE, ridges
from femts.training.select.plan import MANY_WINDOWS
from femts.training.select.trial import CandidateResult, try_candidate

ORIGINS = 3  # forecast origins if there are few training rows
FEW = 2000  # training rows below which they are few
SHARE = 0.1  # share of a time limit that the first look-back may take for others to be tried


def origins_of(data: Dataset, pred_len: int) -> int:
    """Number of origins at which candidates for `data` are tried with forecasts of `pred_len` steps. Short tables have
    one, because the season does not fit into the training rows of earlier ones."""
    return min(ORIGINS, data.most_origins) if data.rows <= FEW and not data.split.short(pred_len) else 1


def too_slow(first: CandidateResult, limit: float | None) -> str:
    """Reason for trying no other look-back if the `first`, the longest one, was too slow for the time limit; empty
    otherwise. Without a limit, the choice must not depend on the speed of the machine."""
    if limit is None or first.seconds <= SHARE * limit:
        return ""
    return f"the first look-back took {first.seconds:.1f} s"


def with_look_back(request: FitRequest, data: Dataset) -> FitRequest:
    """Request with the look-back of the lowest validation error; unchanged if the look-back is given or no others are
    tried."""
    if request.model != RIDGE or data.most_origins < 1:
        return request
    steps = horizon(data, request.lengths.pred_len).steps
    known = replace(request, lengths=request.lengths._replace(pred_len=steps))
    candidates, folds = ridges(data, known.lengths), data.before_test(steps, origins_of(data, steps))
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
        return request  # the training itself reports the reason
    best = min(left, key=lambda each: each.error)
    note = (
        f"look-back {best.look_back} for {steps} steps ahead, which had the lowest validation error; change it with "
        "seq_len"
    )
    return replace(request, lengths=request.lengths._replace(seq_len=best.look_back), chosen=(note,))
