"""Training on all rows, by what an earlier training chose on some of them: for a forecaster that is put to use."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, cast

from femts.data.dataset import Dataset
from femts.data.splits import PARTS
from femts.errors import UsageError
from femts.evaluation.intervals import Intervals
from femts.forecaster import calibration
from femts.forecaster.forecaster import Forecaster
from femts.forecaster.members import MEMBERS, member_record
from femts.forecaster.run_folder import SCORED
from femts.models.mean import MeanConfig, MeanModel
from femts.text import quote
from femts.training.accelerator import find_accelerator
from femts.training.checkpoint import TrainState
from femts.training.data_module import DataModule
from femts.training.fit import Run, first_forecaster, is_trained, run_folder, training_on
from femts.training.schedule import Budget, Chosen


def refit(forecaster: Forecaster, data: Dataset, limit: float | None = None) -> Forecaster:
    """Train on all rows of `data`, by what the training of `forecaster` chose on its validation part.

    Look-back, settings and seed stay, and so do transform and scale. The learning rate takes the
    same course and stops at the step that was kept, so that no row has to be kept back to choose one.

    Args:
        forecaster: a trained one; of one that is itself a refit, that which was scored.
        data: has the same columns; its split does not matter. Of a long table it may have any series; words of its
            static columns that `forecaster` does not have count as none.
        limit: seconds that it may take; None is no limit.

    Returns:
        A new forecaster, beside which `forecaster` is `scored`, and which has its metrics and intervals.

    Raises:
        UsageError: the look-back and the horizon do not fit the rows, or `forecaster` does not say how it was trained.
        RunFailure: as in `femts.training.train.train`.
    """
    scored = forecaster.scored or forecaster
    if bool(data.schema.panel) != bool(forecaster.config.schema.panel):
        kinds = ("series of their own", "columns of one") if data.schema.panel else ("one series", "several")
        raise UsageError(
            "'{}' has {}, but this model was trained on {}; provide data of the same kind.".format(
                quote(data.name), *kinds
            )
        )
    for one in scored.members or (scored,):
        chosen_by(one)  # before any of them takes its time
    return _again(scored, data.all_rows(), limit)


def _again(scored: Forecaster, data: Dataset, limit: float | None = None, progress: bool = False) -> Forecaster:
    """The forecaster `scored`, trained anew on `data`, within so many seconds."""
    config = replace(scored.config, dataset=data.name, source=data.source, refit=True)
    accelerator = find_accelerator(replace(config.training, device=cast(Any, scored.device.type)))
    module = DataModule.of(data, config, ("train",), scored.preprocess)
    with training_on(accelerator), run_folder(None, accelerator) as folder:
        made = first_forecaster(config, module)
        module.fit_closed_form(made.model)
        run = Run(made, module, TrainState(), folder, accelerator, time.monotonic(), limit, progress)
        train_on_all_rows(run, scored)
    return made


def chosen_by(forecaster: Forecaster) -> Chosen | None:
    """Point of the schedule that the training of `forecaster` kept; None for a model that takes no steps.

    Raises:
        UsageError: its metrics do not say so.
    """
    if not is_trained(forecaster.model):
        return None
    schedule, step = forecaster.metrics.get("schedule"), forecaster.metrics.get("kept_step")
    if schedule is None or not step:
        raise UsageError(
            "This forecaster has no record of its training steps, so it cannot be refit on all rows; use one returned "
            "by femts.train."
        )
    return Chosen(step, schedule["steps"], schedule["epoch"])


def train_on_all_rows(run: Run, scored: Forecaster) -> None:
    """Train the model of `run` as `scored` was, up to the step that was kept; scores and intervals stay those of
    `scored`.

    Args:
        run: with windows of the training alone, and what it has in closed form already fitted.
        scored: trained on some of the rows.

    Raises:
        KeyboardInterrupt: a signal came; the state so far is kept.
        RunFailure: as `femts.training.loop.run_steps`.
    """
    assert run.state is not None
    forecaster, before, began = run.forecaster, run.state.seconds, time.monotonic()
    if isinstance(run.model, MeanModel):
        steps, stopped = _train_members(run, scored)
    else:
        chosen = chosen_by(scored)
        if chosen is not None and not run.state.complete:
            from femts.training.loop import run_steps  # Lightning takes seconds to import

            run.state = run_steps(run, Budget(chosen.steps, run.limit, run.started, 0), chosen=chosen)
            if run.state.stopped == "interrupted":
                raise KeyboardInterrupt
        if chosen is not None:
            run.model.load_state_dict(run.state.average)
        else:
            run.model.learn(run.module.windows["train"], None, run.config.training, scored.model)
        steps, stopped = run.state.step, run.state.stopped
    forecaster.model.to(run.accelerator.device).eval()
    members = {MEMBERS: forecaster.metrics[MEMBERS]} if MEMBERS in forecaster.metrics else {}
    forecaster.scored, forecaster.intervals, forecaster.validations = scored, scored.intervals, scored.validations
    data = run.module.data
    series = {"series": len(data)} if data.schema.panel else {}
    forecaster.metrics = {
        **scored.metrics,
        **members,
        "scored": {"folder": SCORED, **{part: list(scored.data["split"][part]) for part in PARTS}, **series},
        "refit": {
            "rows": forecaster.data["split"]["train"][1],
            "steps": steps,
            "stopped": stopped,
            "seconds": round(before + time.monotonic() - began, 3),
        },
    }


def _train_members(run: Run, scored: Forecaster) -> tuple[int, str | None]:
    """Train each member of a mean anew; returns the steps of all, and why they stopped."""
    learned = list[Forecaster]()
    for member in scored.members:
        left, spent = len(scored.members) - len(learned), time.monotonic() - run.started
        limit = None if run.limit is None else (run.limit - spent) / left
        learned.append(_again(member, run.module.data, limit, run.progress))
    assert isinstance(run.config.model_config, MeanConfig)
    run.forecaster.model = MeanModel(run.config.model_config, [one.model for one in learned])
    run.forecaster.metrics = {MEMBERS: [member_record(one) for one in learned]}
    refits = [one.metrics["refit"] for one in learned]
    short = any(one["stopped"] == "max_time" for one in refits)
    return sum(one["steps"] for one in refits), "max_time" if short else refits[0]["stopped"]


def held_out_intervals(forecaster: Forecaster) -> Intervals:
    """Intervals from the errors of `forecaster` on its validation and test rows, for one that learns from all rows."""
    return calibration.new_intervals(forecaster, None, (), forecaster.training_data().held_out())
