"""A training from its outset to its scores."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from femts.evaluation.conformal import passes
from femts.evaluation.intervals import LEVELS
from femts.forecaster.forecaster import Forecaster
from femts.training.batches import StepBatches
from femts.training.device import Place
from femts.training.outset import Outset
from femts.training.schedule import Budget
from femts.training.scores import circumstances
from femts.training.state import TrainState
from femts.training.thinning import scores_within

if TYPE_CHECKING:
    from femts.config.training import TrainingConfig
    from femts.models.base import ForecastModel


@dataclass(frozen=True)
class Course:
    """Course of a training.

    Attributes:
        place: device, precision and processes.
        state: where it begins.
        folder: what keeps it; one process can do without.
        started: `time.monotonic()` when the time began to run.
        limit: seconds for it and its scores; None is no limit.
        progress: whether a line on a terminal is wanted.
    """

    place: Place
    state: TrainState
    folder: Path | None
    started: float
    limit: float | None = None
    progress: bool = False


def fit(forecaster: Forecaster, outset: Outset, course: Course, later: int = 0) -> None:
    """Train the forecaster's model, give it its best weights, and fill in scores and circumstances.

    Args:
        forecaster: made by `outset`, what it has in closed form already fitted.
        outset: with windows of all parts.
        course: how and where.
        later: times that all is scored again after this, within the limit as well.

    Raises:
        KeyboardInterrupt: a signal came; the state so far is kept.
        RunFailure: as `femts.training.loop.run_steps`.
    """
    training, place, state, windows = outset.config.training, course.place, course.state, outset.windows
    model, before, first = forecaster.model, course.state.seconds, outset.windows["train"]
    epoch = StepBatches(len(first), training.batch_size, training.accumulate, training.seed).epoch
    if is_trained(model) and not state.complete:
        from femts.training.loop import Job, run_steps  # Lightning takes seconds to import, and naive models need none

        count, tested = (len(windows[part].spread(model.most_windows)) for part in ("val", "test"))
        learned = len(LEVELS) if model.quantiles else 0
        calibration = count * passes(count, outset.config.pred_len, first.n_targets, learned=learned)
        alone = calibration + tested  # the work of one process, where validations are shared
        scored = place.devices * (1 + later) * alone
        budget = Budget(training.steps(epoch), course.limit, course.started, scored)
        folder, progress = course.folder, course.progress
        state = run_steps(Job(model, first, windows["val"], training, place, state, folder, budget, progress))
        if state.stopped == "interrupted":
            raise KeyboardInterrupt
    weights, kept_step = state.kept(training.keep)
    if is_trained(model):
        model.load_state_dict(weights)
    model.to(place.device)
    now = time.monotonic()
    deadline = None if course.limit is None else now + (course.started + course.limit - now) / (1 + later)
    scores = scores_within(deadline, forecaster, windows, outset.data, place.device)
    forecaster.validations = tuple(state.validations)
    forecaster.metrics = {
        **circumstances(forecaster, place),
        "kept_step": kept_step,
        "steps": state.step,
        "stopped": state.stopped,
        **({"schedule": _schedule(training, state, epoch)} if is_trained(model) else {}),
        **scores,
        "seconds": round(before + time.monotonic() - course.started, 3),
        **_explained(forecaster),
    }


def is_trained(model: ForecastModel) -> bool:
    """True where `model` has weights that steps change."""
    return any(parameter.requires_grad for parameter in model.parameters())


def _schedule(training: TrainingConfig, state: TrainState, epoch: int) -> dict[str, int]:
    """Steps that the learning rate was laid out over, and those of an epoch; a limit of time made them fewer."""
    steps = training.steps(epoch) if training.max_time is None else round(state.step / state.progress)
    return {"steps": max(steps, state.step), "epoch": epoch}


def _explained(forecaster: Forecaster) -> dict[str, Any]:
    """Part of each target that the known columns explain; see `femts.data.effects.Effects`."""
    effects = forecaster.preprocess.effects
    return {} if effects is None else {"known": dict(zip(forecaster.targets, effects.explained.tolist(), strict=False))}
