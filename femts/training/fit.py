"""A training run from data to a scored forecaster: set up, train, score, refit, save."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from pathlib import Path
from typing import cast

from femts.data.dataset import Dataset
from femts.errors import UsageError
from femts.evaluation.conformal import passes
from femts.evaluation.constants import LEVELS
from femts.forecaster.forecaster import Forecaster, load
from femts.forecaster.metrics import RunMetrics
from femts.forecaster.run_folder import METRICS, SCORED, RunConfig, begin_run, clear_run, clear_runs
from femts.mixers.kernels import recorded
from femts.text import argument
from femts.training.batches import StepBatches
from femts.training.checkpoint import Finished, TrainState, changed_data, check_resumable, find_state
from femts.training.constants import SCORED_SHARE
from femts.training.data_module import DataModule
from femts.training.evaluate import circumstances, scores_within
from femts.training.loop import run_steps
from femts.training.refit import held_out_intervals, train_on_all_rows
from femts.training.request import FitRequest
from femts.training.resolve import (
    bound_notes,
    known_notes,
    length_notes,
    resolve_run,
    seen_notes,
    thinned_notes,
)
from femts.training.resources import check_resources
from femts.training.run import Run, first_forecaster, is_trained, learning_within, run_folder, training_on
from femts.training.schedule import Budget
from femts.training.stopping import Interrupted

logger = logging.getLogger(__name__)


def fit(request: FitRequest, data: Dataset) -> Forecaster:
    """Train the model of `request` on `data`, split for its horizon, and score it; see `femts.train`."""
    # Set up configuration, data, windows and folder; nothing is written before all of them are valid.
    config = resolve_run(data, request.model, request.lengths, request.settings, request.training, request.ignores)
    accelerator, out = request.accelerator, request.out
    module, whole = DataModule.of(data, config), None
    if request.refit:
        whole = DataModule.of(data.all_rows(), replace(config, refit=True), ("train",), module.preprocess)
    with training_on(accelerator):
        check_resumable(out, request.resume)
        with run_folder(out, accelerator) as folder:
            try:
                first, last = _begin(request, config, module, whole, folder)
            except Finished:
                assert out is not None
                return finished(request, out, data)
            begun = [run for run in (last, first) if run is not None]
            if out is not None and all(run.state is not None and not run.state.model for run in begun):
                # a run that never started training, or that of another request
                (clear_runs if request.anew else clear_run)(out)
            for run in begun:
                write_beginning(run)
            for note in _notes(request, data, config, first, last or first):
                logger.info(note)
            try:
                made = first.forecaster if first.state is None else train_and_score(first, later=last is not None)
                if last is not None:  # refit on all rows, after the scored run was saved
                    if out is not None and first.folder is not None and first.state is not None:
                        made.write(first.folder)
                    same = made.preprocess is module.preprocess  # unlike that of a run which is continued
                    intervals = held_out_intervals(made, like=module.windows["val"] if same else None)
                    made = replace(train_on_all_rows(last, made), intervals=intervals)
            except KeyboardInterrupt as error:
                kept = f"progress is saved in {out}; continue it with {argument('resume=True')}"
                remedy = "nothing was kept" if out is None else kept
                raise Interrupted(f"Training was interrupted; {remedy}.") from error
            if out is not None and folder is not None:
                made.write(folder)
    return made


def _notes(request: FitRequest, data: Dataset, config: RunConfig, run: Run, used: Run) -> tuple[str, ...]:
    """Notes on the training `run` that is scored, and on the one that is used for forecasts."""
    lengths = [*length_notes(data, request.model, request.lengths), *data.short_notes(config.pred_len, request.refit)]
    of_data = (
        *known_notes(data, config, used.module.preprocess),
        *bound_notes(run.module.preprocess),
        *seen_notes(config),
    )
    return (*data.notes, *lengths, *request.chosen, *of_data, *thinned_notes(run.model, run.module.windows))


def _begin(
    request: FitRequest, config: RunConfig, module: DataModule, whole: DataModule | None, folder: Path | None
) -> tuple[Run, Run | None]:
    """The training to score, and the one on all rows that follows if there is one; as `begin`."""

    def runs(continued: bool) -> tuple[Run, Run | None]:
        # Errors in the run folder of the refit are reported for the user's folder.
        last = None if whole is None else begin(request, replace(config, refit=True), whole, folder, continued)
        inner = folder if last is None or folder is None else folder / SCORED
        return begin(request, config, module, inner, continued, share=1.0 if last is None else SCORED_SHARE), last

    try:
        return runs(continued=True)
    except OtherRun:
        return runs(continued=False)


class OtherRun(Exception):
    """The folder holds a run that cannot be continued, in place of which this request may start its own."""


def begin(
    request: FitRequest,
    config: RunConfig,
    module: DataModule,
    folder: Path | None,
    continued: bool = True,
    share: float = 1.0,
) -> Run:
    """Start the training of `config` on `module` in `folder`, or with `resume` continue it unless `continued` is False.

    Raises:
        UsageError: The folder cannot be used; nothing was written.
        RunFailure: Memory or time do not suffice; nothing was written.
        Finished: The run to resume is already finished.
        OtherRun: With `anew`, the folder holds another run.
    """
    limit = None if request.limit is None else share * request.limit
    further = folder, request.accelerator, request.started, limit, request.progress
    inner = folder is not None and not config.refit and request.refit
    saved = folder if continued and request.out is not None else None
    try:
        if inner and request.resume and saved is not None and (saved / METRICS).is_file():
            forecaster = load(saved, request.accelerator.device)
            if forecaster.data != module.data.record:
                raise changed_data(config.dataset, saved)
            return Run(replace(forecaster, _dataset=module.data), module, None, *further)
        forecaster = first_forecaster(config, module)
        state = find_state(config, forecaster.preprocess_record(), saved, request.resume and saved is not None)
    except UsageError as error:
        if not request.anew or saved is None:
            raise
        raise OtherRun from error
    if request.accelerator.device == "cpu" and is_trained(forecaster.model) and not state.complete:
        left = None if request.limit is None else request.limit - (time.monotonic() - request.started)
        check_resources(forecaster.model, module.windows["train"], config.training, left)
    if not state.model:
        module.fit_closed_form(forecaster.model)
    if request.most_windows is not None and not config.refit:
        model = forecaster.model
        model.most_windows = min(request.most_windows, model.most_windows or request.most_windows)
    return Run(forecaster, module, state, *further)


def write_beginning(run: Run) -> None:
    """Write the first files of a run folder unless they exist."""
    if run.folder is not None and run.state is not None and not run.state.model:
        begin_run(run.folder, run.config, run.forecaster.preprocess_record())


def train_and_score(run: Run, later: bool) -> Forecaster:
    """Train the model of `run`, restore its best weights, and score it.

    Args:
        run: run with closed-form parts already fitted and windows of all splits.
        later: whether a refit and its scoring follow within the time limit.

    Returns:
        The forecaster with intervals, scores and circumstances.

    Raises:
        KeyboardInterrupt: A signal was received; the state so far is saved.
        RunFailure: As in `femts.training.loop.run_steps`.
    """
    assert run.state is not None
    training, forecaster, windows = run.config.training, run.forecaster, run.module.windows
    epoch = StepBatches(len(windows["train"]), training.batch_size, training.accumulate, training.seed).epoch
    before = run.state.seconds  # of earlier processes, as training adds its own
    with recorded() as kernels:
        state, kept_step = _trained(run, run.state, training.steps(epoch), later)
        now = time.monotonic()
        deadline = None if run.limit is None else now + (run.started + run.limit - now) / (1 + later)
        scored = scores_within(deadline, forecaster, windows, run.module.data, run.accelerator.device)
    effects, steps = forecaster.preprocess.effects, training.steps(epoch)
    if training.max_time is not None and state.step:  # reduced by a time limit
        steps = round(state.step / state.progress)
    schedule = {"steps": max(steps, state.step), "epoch": epoch}
    metrics = {
        **circumstances(forecaster, run.accelerator),
        **{"kept_step": kept_step, "steps": state.step, "stopped": state.stopped},
        **({"replayed": state.replayed, "schedule": schedule} if is_trained(run.model) else {}),
        **scored.scores,
        "seconds": round(before + time.monotonic() - run.started, 3),
        "kernels": dict(sorted(kernels.items())),
    }
    if effects is not None:
        metrics["known"] = dict(zip(forecaster.targets, effects.explained.tolist(), strict=False))
    validations = tuple(state.validations)
    return replace(
        forecaster,
        metrics=cast(RunMetrics, metrics),
        validations=validations,
        intervals=scored.intervals,
        test_errors=scored.test_errors,
    )


def _trained(run: Run, state: TrainState, steps: int, later: bool) -> tuple[TrainState, int | None]:
    """Train the model of `run` from `state`, for at most `steps`, and give it the weights to keep; return the last state
    and the step of these weights. Other arguments as in `train_and_score`."""
    model, windows, accelerator = run.model, run.module.windows, run.accelerator
    if is_trained(model) and not state.complete:
        count, tested = (len(windows[part].subsample(model.most_windows)) for part in ("val", "test"))
        learned = len(LEVELS) if model.quantiles else 0
        calibration = count * passes(count, run.config.pred_len, windows["train"].n_targets, learned=learned)
        alone = calibration + tested  # a single process scores, whereas validations are shared
        budget = Budget(steps, run.limit, run.started, accelerator.devices * (1 + later) * alone)
        state = run_steps(run, budget, windows["val"])
        if state.stopped == "interrupted":
            raise KeyboardInterrupt
    weights, kept_step = state.kept(run.config.training.keep)
    if is_trained(model):
        model.load_state_dict(weights)
    else:
        model.learn(windows["train"], windows["val"].within_scale(), learning_within(run))
    model.to(accelerator.device)
    return state, kept_step


def finished(request: FitRequest, out: Path, data: Dataset) -> Forecaster:
    """Load the finished forecaster in `out` after checking that it matches `request` and `data`."""
    if not request.anew:
        logger.info(f"run {out} is already finished")
    made = load(out, request.accelerator.device)
    scored = None if made.scored is None else replace(made.scored, _dataset=data)
    return replace(made, scored=scored, _dataset=data.all_rows() if request.refit else data)
