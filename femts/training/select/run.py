"""`train(model="auto")`: the candidates tried, the best taken, and made a forecaster like any other."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from femts.data.dataset import Dataset
from femts.errors import RunFailure, UsageError
from femts.forecaster.combine import mean_of
from femts.forecaster.forecaster import Forecaster
from femts.forecaster.run_folder import CANDIDATES
from femts.training.checkpoint import Finished
from femts.training.data_module import DataModule
from femts.training.evaluate import circumstances, most_scored, scored_on, scores_within
from femts.training.fit import FitRequest, finished, first_forecaster, training_on
from femts.training.refit import held_out_intervals, refit
from femts.training.resolve import bound_notes, horizon, horizon_notes, resolve_run, thinned_notes
from femts.training.schedule import RESERVED
from femts.training.select.candidates import shortlist, windows_to_score
from femts.training.select.folder import request_record, trials_folder
from femts.training.select.look_back import origins_of, try_look_backs
from femts.training.select.rule import RULE, best_mean, error_of
from femts.training.select.trial import CandidateResult, try_candidate
from femts.training.stopping import Interrupted

_OF_TRAINING = ("kept_step", "steps", "stopped", "schedule", "members", "kernels")
LEAST = 1.0  # seconds that a trial needs of a model that is not made in a moment


def choose(request: FitRequest, data: Dataset) -> Forecaster:
    """Try models on the rows of `data` before the test part, take the best of them by `RULE`, and score it once.

    Returns:
        A forecaster of the one taken, or of the mean of several; `metrics["auto"]` says what was tried.

    Raises:
        UsageError: the run folder, its data or the lengths do not fit, or no candidate could be tried.
        RunFailure: as `Interrupted`, a signal came.
    """
    pred_len = horizon(data, request.lengths.pred_len).steps
    record = request_record(request, data, pred_len)
    try:
        with trials_folder(request, record) as folder:
            for note in (*data.notes, *horizon_notes(data, request.lengths.pred_len)):
                request.say(note)
            with training_on(request.accelerator):
                tried = _try_all(request, data, pred_len, folder)
                made = _taken(request, data, tried)
                made.metrics["auto"]["request"] = record
                if request.refit:
                    made = _on_all_rows(request, made, data)
            if request.out is not None:
                made.write(request.out)
                shutil.rmtree(request.out / CANDIDATES, ignore_errors=True)
    except (Interrupted, KeyboardInterrupt) as error:
        remedy = "nothing was kept" if request.out is None else f"{request.out} goes on with --resume"
        raise Interrupted(f"Choosing was interrupted; {remedy}.") from error
    except Finished:
        assert request.out is not None
        return finished(request, request.out, data)
    return made


def _try_all(request: FitRequest, data: Dataset, pred_len: int, folder: Path | None) -> list[CandidateResult]:
    """All candidates after their trials."""
    origins = origins_of(data)
    folds = data.before_test(pred_len, origins)
    limit, candidates = request.limit, shortlist(data, pred_len, origins, request.limit)
    request, tried = replace(request, lengths=request.lengths._replace(pred_len=pred_len)), list[CandidateResult]()
    learners = [each for each in candidates if each.learns and not each.reason]
    scores = 0.0 if limit is None else RESERVED * limit
    for candidate in candidates:
        left = None if limit is None else request.started + limit - time.monotonic()
        if left is not None and candidate in learners:
            left = (left - scores) / (2 if request.refit else 1) / (len(learners) - learners.index(candidate))
        late = left is not None and left < LEAST and (candidate.learns or candidate.fit is not None)
        reason = candidate.reason or ("no time was left for it" if late else "")
        if reason:
            tried.append(CandidateResult(candidate.model, reason=reason))
        else:
            most = windows_to_score(candidates)
            if candidate.learns:
                tried.append(try_candidate(candidate, request, folds, most, left, folder))
            else:
                tried.append(try_look_backs(candidate, request, folds, most, folder))
        request.say(_words(tried[-1], tried[0].error))
    return tried


def _words(tried: CandidateResult, naive: float) -> str:
    if tried.reason:
        return f"{tried.model}: not tried, as {tried.reason.rstrip('.')}"
    beside = f"{tried.error / naive:.2f} of the seasonal naive error" if naive > 0 else f"error {tried.error:.4f}"
    seen = f" (look-back {tried.look_back})" if tried.look_back else ""
    return f"{tried.model}{seen}: {beside} ({tried.seconds:.1f} s)"


def _taken(request: FitRequest, data: Dataset, tried: Sequence[CandidateResult]) -> Forecaster:
    """The forecaster of the candidates that are taken, on all of `data`, with its scores."""
    taken = best_mean(tried)
    if not taken:
        reason = next((each.reason for each in tried if each.reason), "Their forecasts are not finite")
        failure = RunFailure if any(each.failed for each in tried) else UsageError
        raise failure(f"No model could be tried. {reason.rstrip('.')}.")
    members = [_settled(request, data, each) for each in taken]
    made: Forecaster = members[0] if len(members) == 1 else mean_of(members)
    of_training = {key: made.metrics[key] for key in _OF_TRAINING if key in made.metrics}
    if len(members) > 1:
        kernels = {name: used for each in members for name, used in each.metrics["kernels"].items()}
        steps = sum(each.metrics["steps"] for each in members)
        of_training |= {"kept_step": None, "stopped": None, "steps": steps, "kernels": kernels}
    windows = DataModule.of(data, made.config).windows
    now = time.monotonic()
    share = RESERVED if request.refit else 1.0  # the rest is for the training on all rows
    deadline = None if request.limit is None else now + share * (request.started + request.limit - now)
    scores = scores_within(deadline, made, windows, data, request.accelerator.device)
    made.metrics = {
        **circumstances(made, request.accelerator),
        **of_training,
        **scores,
        "auto": {
            "rule": RULE,
            "taken": [each.model for each in taken],
            "error": error_of(taken),
            "origins": len(taken[0].targets),
            "windows": sum(map(len, taken[0].targets)),
            "tried": [_record(each) for each in tried],
        },
        "seconds": round(time.monotonic() - request.started, 3),
    }
    for note in (*bound_notes(made.preprocess), *thinned_notes(made.model, windows)):
        request.say(note)
    return made


def _record(tried: CandidateResult) -> dict[str, Any]:
    error = {"reason": tried.reason} if tried.reason else {"error": tried.error}
    seen = {"seq_len": tried.look_back} if tried.look_back else {}
    return {"model": tried.model, **seen, **error, "seconds": round(tried.seconds, 3)}


def _settled(request: FitRequest, data: Dataset, tried: CandidateResult) -> Forecaster:
    """The forecaster of a candidate as one of `data`, whose training rows it learned from."""
    before = tried.forecaster
    assert before is not None
    training = replace(before.config.training, max_time=request.training.max_time)
    if before.model.supports.raw:  # it has learned nothing, and now there are more rows to look back on
        lengths = request.lengths._replace(pred_len=before.config.pred_len)
        config = resolve_run(data, tried.model, lengths, {}, training)
    else:
        config = replace(before.config, training=training, dataset=data.name, source=data.source, schema=data.schema)
    made = first_forecaster(config, DataModule.of(data, config, ("train",)))
    made.model.load_state_dict(before.model.state_dict())
    made.model.eval()
    made.metrics, made.validations = before.metrics, before.validations
    return made


def _on_all_rows(request: FitRequest, scored: Forecaster, data: Dataset) -> Forecaster:
    """As `scored`, trained on all rows of `data` in the time that is left."""
    with scored_on(scored.model, most_scored(scored.metrics)):
        intervals = held_out_intervals(scored)
    left = None if request.limit is None else max(LEAST, request.started + request.limit - time.monotonic())
    made = refit(scored, data, left)
    made.intervals = intervals
    return made
