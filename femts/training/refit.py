"""Refitting on all rows for deployment, with the choices of an earlier training that held some out."""

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
from femts.training.loop import run_steps
from femts.training.run import Run, first_forecaster, is_trained, learning_within, run_folder, training_on
from femts.training.schedule import Budget, Chosen


def refit(forecaster: Forecaster, data: Dataset, limit: float | None = None) -> Forecaster:
    """Refit on all rows of `data`, with the choices that the training of `forecaster` made on its validation split.

    Look-back, settings, seed, transform and scale stay the same. The learning rate follows the same schedule and stops
    at the step that was kept, so no validation split is needed.

    Args:
        forecaster: a trained forecaster; if it is itself a refit, its scored model is used.
        data: data with the same columns; its split does not matter. A long table may have other series; unknown
            categories of static covariates count as missing.
        limit: time limit in seconds; None is no limit.

    Returns:
        A new forecaster with `forecaster` as `scored`, and with its metrics and intervals.

    Raises:
        UsageError: Look-back and horizon do not fit the rows, or `forecaster` has no record of its training.
        RunFailure: As in `femts.training.train.train`.
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
        chosen_by(one)  # checked for all before any of them takes time
    return _again(scored, data.all_rows(), limit)


def _again(scored: Forecaster, data: Dataset, limit: float | None = None, progress: bool = False) -> Forecaster:
    """Train the forecaster `scored` again on `data`, within `limit` seconds."""
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
    """Point of the schedule that the training of `forecaster` kept; None for models without gradient steps.

    Raises:
        UsageError: Its metrics do not record it.
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
    """Train the model of `run` like `scored`, up to the step that was kept; scores and intervals remain those of
    `scored`.

    Args:
        run: run with training windows only and closed-form parts already fitted.
        scored: forecaster trained on the training split.

    Raises:
        KeyboardInterrupt: A signal was received; the state so far is saved.
        RunFailure: As in `femts.training.loop.run_steps`.
    """
    assert run.state is not None
    forecaster, before, began = run.forecaster, run.state.seconds, time.monotonic()
    if isinstance(run.model, MeanModel):
        steps, stopped = _train_members(run, scored)
    else:
        chosen = chosen_by(scored)
        if chosen is not None and not run.state.complete:
            run.state = run_steps(run, Budget(chosen.steps, run.limit, run.started, 0), chosen=chosen)
            if run.state.stopped == "interrupted":
                raise KeyboardInterrupt
        if chosen is not None:
            run.model.load_state_dict(run.state.average)
        else:
            run.model.learn(run.module.windows["train"], None, learning_within(run), scored.model)
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
    """Train each member of a mean again; return their total steps and why they stopped."""
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
    """Intervals for a refitted forecaster, from the errors of `forecaster` on its validation and test splits."""
    return calibration.new_intervals(forecaster, None, (), forecaster.training_data().held_out())
