"""`train(model="auto")`: tries candidates, selects the best and returns a forecaster like any other."""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from femts.data.dataset import Dataset
from femts.data.describe import are
from femts.errors import RunFailure, UsageError
from femts.forecaster.combine import mean_of
from femts.forecaster.forecaster import Forecaster
from femts.forecaster.metrics import RunMetrics
from femts.forecaster.run_folder import CANDIDATES
from femts.models.registry import model_card
from femts.text import Message, argument, marked, quote
from femts.training.checkpoint import Finished
from femts.training.constants import GRACE, RESERVED
from femts.training.data_module import DataModule, sharing
from femts.training.evaluate import circumstances, scores_within
from femts.training.fit import finished
from femts.training.refit import held_out_intervals, refit
from femts.training.request import FitRequest
from femts.training.resolve import bound_notes, horizon, horizon_notes, resolve_run, thinned_notes
from femts.training.run import first_forecaster, training_on
from femts.training.select.candidates import Candidate, shortlist
from femts.training.select.constants import MOST_SERIES, REFIT_RATIO, SHARES, TRAINING_SECONDS, TRIAL_SECONDS
from femts.training.select.folder import request_record, trials_folder
from femts.training.select.look_back import origins_of
from femts.training.select.plan import Clock, Plan, plan
from femts.training.select.rule import best_mean
from femts.training.select.trial import CandidateResult, try_candidate
from femts.training.stopping import Interrupted

logger = logging.getLogger(__name__)

_OF_TRAINING = ("kept_step", "steps", "stopped", "replayed", "schedule", "members", "kernels")


def choose(request: FitRequest, data: Dataset) -> Forecaster:
    """Try models on the rows of `data` before the test split, select the best by `best_mean`, and score it once.

    Returns:
        A forecaster of the selected model, or of the mean of several; `metrics["auto"]` lists the trials.

    Raises:
        UsageError: The run folder, its data or the lengths do not fit, or no candidate could be tried.
        RunFailure: A signal was received (as `Interrupted`).
    """
    pred_len = horizon(data, request.lengths.pred_len).steps
    record = request_record(request, data, pred_len)
    try:
        with trials_folder(request, record) as folder:
            of_lengths = *horizon_notes(data, request.lengths.pred_len), *data.short_notes(pred_len, request.refit)
            for note in (*data.notes, *of_lengths):
                logger.info(note)
            with training_on(request.accelerator):
                known = replace(request, lengths=request.lengths._replace(pred_len=pred_len))
                clock, candidates = Clock.of(request, data), shortlist(data, known.lengths, request.settings)
                data = _readable(data, candidates)
                tried, planned = _try_all(known, data, candidates, clock, folder)
            with training_on(request.accelerator):  # once more, because leaving it frees the memory of the trials
                made = _taken(request, data, tried, clock, planned, record)
                if request.refit:
                    made = _on_all_rows(made, data, clock)
            if request.out is not None:
                made.write(request.out)
                shutil.rmtree(request.out / CANDIDATES, ignore_errors=True)
    except (Interrupted, KeyboardInterrupt) as error:
        remedy = (
            "nothing was kept" if request.out is None else f"{request.out} continues with {argument('resume=True')}"
        )
        raise Interrupted(f"Model selection was interrupted; {remedy}.") from error
    except Finished:
        assert request.out is not None
        return finished(request, request.out, data)
    return made


def _readable(data: Dataset, candidates: Sequence[Candidate]) -> Dataset:
    """`data` without past and static covariates if no candidate can read them."""
    roles, tried = data.schema.roles, (each.model for each in candidates if not each.reason)
    supports = [model_card(name).model_class.supports for name in tried]
    left_out = roles.past * all(each.channels == 1 for each in supports)
    left_out += roles.static * (not any(each.static for each in supports))
    if not left_out:
        return data
    reason = next((each.reason for each in candidates if each.learns and each.reason), "")
    listed = ", ".join(f"'{quote(name)}'" for name in left_out)
    verb = are(len(left_out))
    logger.info(f"{listed} {verb} ignored: only models trained on windows use past and static covariates, and {reason}")
    return data.targets_alone()


def _try_all(
    request: FitRequest, data: Dataset, candidates: Sequence[Candidate], clock: Clock, folder: Path | None
) -> tuple[tuple[CandidateResult, ...], Plan]:
    """All candidates after their trials, and their plan: first all at the latest origin, then at earlier ones as long
    as there is time for all of them."""
    steps = int(request.lengths.pred_len or 1)
    folds = data.before_test(steps, origins_of(data, steps))
    if clock.short and any(each.learns and not each.reason for each in candidates):
        folds = folds[:1]  # time is better spent on one longer training
    share = 1.0
    if clock.limit is not None and len(data) > MOST_SERIES and data.static is None:  # codes depend on all series
        some = np.linspace(0, len(data) - 1, MOST_SERIES).astype(np.int64)
        folds, share = [each.take(some) for each in folds], MOST_SERIES / len(data)
        logger.info(f"to stay within the time limit, candidates are compared on {MOST_SERIES} of {len(data)} series")
    with sharing(folds):
        planned = plan(candidates, request, folds, clock, share)
        learners = [each for each in planned.candidates if each.learns and not each.reason]
        for note in planned.notes:
            logger.info(note)
        tried, each_takes = dict[str, CandidateResult](), 0.0  # seconds of the first trial, which fits nothing
        for number, fold in enumerate(folds):
            left, last = (
                clock.before_scores(request.refit, 0.0, (planned.prepared + each_takes) / share),
                sum(each.seconds for each in tried.values()),
            )
            if number and left is not None and last / number > left:
                logger.info(
                    f"to stay within the time limit, candidates are compared at {number} of {len(folds)} origins"
                )
                for result in (result for result in tried.values() if not result.reason):
                    logger.info(_words(result, next(iter(tried.values())).error))
                break
            for each in planned.candidates:
                before, trained = tried.get(each.key), _trained_for(tried.values())
                left = clock.before_scores(request.refit, trained, (planned.prepared + each_takes) / share)
                if before is not None and before.reason:
                    continue
                if left is not None and each in learners:
                    shares = [SHARES.get(other.model, 1.0) for other in learners[learners.index(each) :]]
                    left = max(left * shares[0] / sum(shares), min(left, TRAINING_SECONDS))
                reason = "" if number else each.reason or _too_late(each, left, each_takes, planned)
                if reason:
                    made = CandidateResult(each.model, reason=reason, look_back=each.seq_len, settings=each.settings)
                else:
                    place = None if folder is None else folder / each.key / str(number)
                    if left is not None and each.learns:
                        each = replace(each, training={"max_time": f"{max(1.0, left):.1f}s"})
                    made = try_candidate(each, request, fold, planned.windows, place)
                tried[each.key] = made if before is None else before.then(made)
                each_takes = each_takes or made.seconds
                if made.reason or number + 1 == len(folds):
                    logger.info(_words(tried[each.key], next(iter(tried.values())).error))
    return tuple(tried.values()), planned


def _trained_for(tried: Iterable[CandidateResult]) -> float:
    """Total duration in seconds of the trainings among the trials, one per model."""
    seconds = dict[str, float]()
    for each in tried:
        supports = None if each.forecaster is None else each.forecaster.model.supports
        if supports is not None and not supports.untrained:
            seconds[each.model] = max(each.seconds, seconds.get(each.model, 0.0))
    return REFIT_RATIO * sum(seconds.values())


def _too_late(candidate: Candidate, left: float | None, each_takes: float, planned: Plan) -> str:
    """Reason for skipping a candidate for lack of time; empty if there is enough, or if it is the first."""
    needed = each_takes + planned.closed.get(candidate.key, 0.0) + TRIAL_SECONDS * (candidate.learns or candidate.slow)
    return "no time was left" if left is not None and each_takes and left < needed else ""


def _words(tried: CandidateResult, naive: float) -> str:
    if tried.reason:
        return Message(f"{tried.label}: not tried, as {marked(tried.reason).rstrip('.')}")
    beside = f"{tried.error / naive:.2f} of the seasonal naive error" if naive > 0 else f"error {tried.error:.4f}"
    return f"{tried.label}: {beside} ({tried.seconds:.1f} s)"


def _taken(
    request: FitRequest,
    data: Dataset,
    tried: Sequence[CandidateResult],
    clock: Clock,
    planned: Plan,
    record: Mapping[str, Any],
) -> Forecaster:
    """The forecaster of the selected candidates on all of `data`, with its scores and the `record` of the request."""
    choice = best_mean(tried)
    taken, weights = choice.members, choice.weights
    if not taken:
        reason = next((each.reason for each in tried if each.reason), "Their forecasts are not finite")
        failure = RunFailure if any(each.failed for each in tried) else UsageError
        raise failure(f"No model could be tried. {marked(reason).rstrip('.')}.")
    members = [_settled(request, data, each) for each in taken]
    made: Forecaster = members[0] if len(members) == 1 else mean_of(members, weights)
    of_training = {key: value for key, value in made.metrics.items() if key in _OF_TRAINING}
    if len(members) > 1:
        kernels = {name: used for each in members for name, used in each.metrics["kernels"].items()}
        steps = sum(each.metrics["steps"] for each in members)
        of_training |= {"kept_step": None, "stopped": None, "steps": steps, "kernels": kernels}
    windows = DataModule.of(data, made.config).windows
    deadline = None
    if clock.left is not None:  # the rest is for intervals, which take as long as the scores, and the refit
        again = REFIT_RATIO * sum(
            each.seconds for each, one in zip(taken, members, strict=True) if not one.model.supports.untrained
        )
        left = max(RESERVED * clock.left, (clock.left - again) / 2) if request.refit else clock.left
        deadline = time.monotonic() + left
    most = None if clock.limit else planned.scored([each.key for each in taken])
    scored = scores_within(deadline, made, windows, data, request.accelerator.device, most)
    metrics = {
        **circumstances(made, request.accelerator),
        **of_training,
        **scored.scores,
        "auto": {
            "rule": choice.rule,
            "taken": [each.model for each in taken],
            "weights": list(weights),
            "error": choice.error,
            "metric": request.criterion,
            "origins": len(taken[0].targets),
            "windows": sum(map(len, taken[0].targets)),
            "tried": [_record(each, each in taken) for each in tried],
            "request": record,
        },
        "seconds": round(time.monotonic() - request.started, 3),
    }
    for note in (*bound_notes(made.preprocess), *thinned_notes(made.model, windows)):
        logger.info(note)
    return replace(made, metrics=cast(RunMetrics, metrics), intervals=scored.intervals, test_errors=scored.test_errors)


def _record(tried: CandidateResult, taken: bool) -> dict[str, Any]:
    error = {"reason": tried.reason} if tried.reason else {"error": tried.error}
    seen = {} if tried.look_back is None else {"seq_len": tried.look_back}
    return {"model": tried.model, **seen, **error, "seconds": round(tried.seconds, 3), "taken": taken}


def _settled(request: FitRequest, data: Dataset, tried: CandidateResult) -> Forecaster:
    """The trained forecaster of a candidate, attached to `data`, on whose training rows it was trained."""
    before = tried.forecaster
    assert before is not None
    training = replace(before.config.training, max_time=request.training.max_time)
    supports = before.model.supports
    if supports.raw and not supports.fine_tuned:  # nothing was trained, and more rows are now available as look-back
        lengths = request.lengths._replace(pred_len=before.config.pred_len)
        lengths = lengths if tried.look_back is None else lengths._replace(seq_len=tried.look_back)
        config = resolve_run(data, tried.model, lengths, tried.settings, training, ignores=True)
    else:
        config = replace(before.config, training=training, dataset=data.name, source=data.source, schema=data.schema)
    made = first_forecaster(config, DataModule.of(data, config, ("train",)))
    made.model.load_state_dict(before.model.state_dict())
    made.model.eval()
    return replace(made, metrics=before.metrics, validations=before.validations)


def _on_all_rows(scored: Forecaster, data: Dataset, clock: Clock) -> Forecaster:
    """Refit `scored` on all rows of `data` in the remaining time."""
    intervals = held_out_intervals(scored)
    made = refit(scored, data, None if clock.left is None else max(GRACE, clock.left))
    return replace(made, intervals=intervals)
