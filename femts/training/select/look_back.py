"""Look-backs that are tried on validation windows, for a model that is fitted in a moment."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

from femts.config.values import left_open
from femts.data.catalog import CATALOG
from femts.data.dataset import Dataset
from femts.data.protocols import default_protocol, look_back_choices
from femts.training.fit import FitRequest
from femts.training.resolve import horizon
from femts.training.select.candidates import FITTED, MANY_WINDOWS, Candidate
from femts.training.select.trial import CandidateResult, try_candidate

ORIGINS = 3  # ends of the rows that are learned from, where they are few
FEW = 2000  # of them
CHEAP = 10.0  # seconds that the first look-back may take for others to be tried
SHARE = 0.1  # part of a limit of time that it may take


def origins_of(data: Dataset) -> int:
    """Origins at which the candidates for `data` are tried."""
    return min(ORIGINS, data.most_origins) if data.rows <= FEW else 1


def try_look_backs(
    candidate: Candidate, request: FitRequest, folds: list[Dataset], most: int, folder: Path | None
) -> CandidateResult:
    """`try_candidate` with the look-back of the request; where nobody gave one and the model is fitted in a moment, also
    with shorter ones, of which the one that errs least is taken."""
    usual = try_candidate(candidate, request, folds, most, None, folder)
    room = CHEAP if request.limit is None else min(CHEAP, SHARE * request.limit)
    if candidate.model != FITTED.model or not _open(request, folds[0]) or usual.forecaster is None:
        return usual
    if usual.seconds > room:
        return usual
    steps, tried, lengths = usual.forecaster.config.seq_len, [usual], request.lengths
    pred_len = usual.forecaster.config.pred_len
    choices = look_back_choices(default_protocol(False), pred_len, folds[-1].typical_rows, folds[0].season)
    for other in (each for each in choices if each < steps):
        tried.append(
            try_candidate(candidate, replace(request, lengths=lengths._replace(seq_len=other)), folds, most, None, None)
        )
    best = min((each for each in tried if math.isfinite(each.error)), key=lambda each: each.error, default=usual)
    assert best.forecaster is not None
    taken = best.forecaster.config.seq_len if len(tried) > 1 else 0
    return replace(best, seconds=sum(each.seconds for each in tried), look_back=taken)


def with_look_back(request: FitRequest, data: Dataset) -> FitRequest:
    """The request with the look-back that errs least on the validation windows of `data`, as it is where the look-back
    is given, or others are not tried."""
    if request.model != FITTED.model or not _open(request, data) or data.most_origins < 1:
        return request
    pred_len = horizon(data, request.lengths.pred_len).steps
    known = replace(request, lengths=request.lengths._replace(pred_len=pred_len))
    folds = data.before_test(pred_len, origins_of(data))
    best = try_look_backs(FITTED, known, folds, MANY_WINDOWS, None)
    if best.forecaster is None:
        return request  # the training itself says why
    if not best.look_back:
        return request
    steps = best.look_back
    note = (
        f"look-back {steps} for {pred_len} steps ahead, which had the lowest validation error; --seq-len takes another"
    )
    return replace(request, lengths=request.lengths._replace(seq_len=steps), chosen=(note,))


def _open(request: FitRequest, data: Dataset) -> bool:
    """Tell whether the look-back is femts' to choose: on a table of one's own, without a protocol."""
    lengths = request.lengths
    return left_open(lengths.seq_len) and lengths.protocol is None and data.source not in CATALOG
