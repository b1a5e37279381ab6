"""Selects the look-back of models that are fitted in a moment, by their validation errors."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from functools import reduce

from femts.data.dataset import Dataset
from femts.data.describe import count
from femts.text import Message, argument
from femts.training.data_module import sharing
from femts.training.request import FitRequest
from femts.training.resolve import horizon
from femts.training.select.candidates import RIDGE, ridges
from femts.training.select.closed_form import in_time
from femts.training.select.constants import CLOSED, FEW, MANY_WINDOWS, ORIGINS
from femts.training.select.trial import CandidateResult, try_candidate


def origins_of(data: Dataset, pred_len: int) -> int:
    """Number of origins at which candidates for `data` are tried with forecasts of `pred_len` steps. Short tables have
    one, because the season does not fit into the training rows of earlier ones."""
    return min(ORIGINS, data.most_origins) if data.rows <= FEW and not data.split.short(pred_len) else 1


def with_look_back(request: FitRequest, data: Dataset) -> FitRequest:
    """Request with the look-back of the lowest validation error; unchanged if the look-back is given or no others are
    tried."""
    if request.model != RIDGE or data.most_origins < 1:
        return request
    steps = horizon(data, request.lengths.pred_len).steps
    known = replace(request, lengths=request.lengths._replace(pred_len=steps))
    candidates = ridges(data, known.lengths)
    if len(candidates) < 2:
        return request

    folds = data.before_test(steps, origins_of(data, steps))
    with sharing(folds):
        if request.limit is not None:  # without one, the choice must not depend on the speed of the machine
            left = request.limit - (time.monotonic() - request.started)
            in_reach = in_time(candidates, known, folds[0], CLOSED * left / (2 + request.refit))[0]
            fitting = tuple(each for each in candidates if each.key in in_reach)
            candidates = fitting or (min(candidates, key=lambda each: each.seq_len or 0),)
        tried = list[CandidateResult]()
        for candidate in candidates:
            made = [try_candidate(candidate, known, fold, MANY_WINDOWS, None) for fold in folds]
            tried.append(reduce(CandidateResult.then, made))
    finite = [each for each in tried if math.isfinite(each.error)]
    if not finite:
        return request  # the training itself reports the reason
    best = min(finite, key=lambda each: each.error)
    found = f"look-back {best.look_back} for {count(steps, 'step')} ahead, which had the lowest validation error"
    note = Message(f"{found}; change it with {argument('seq_len')}")
    return replace(request, lengths=request.lengths._replace(seq_len=best.look_back), chosen=(note,))
