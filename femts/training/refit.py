"""Refitting on all rows for deployment, with the choices of an earlier training that held some out."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, cast

from femts.data.dataset import Dataset
from femts.data.splits import PARTS
from femts.data.windows import Windows
from femts.errors import UsageError
from femts.evaluation.constants import FEWEST_HELD_OUT, HELD_OUT
from femts.evaluation.intervals import Intervals
from femts.forecaster import calibration
from femts.forecaster.forecaster import Forecaster
from femts.forecaster.members import member_record
from femts.forecaster.metrics import Refit, ScoredRows
from femts.forecaster.run_folder import SCORED
from femts.models.mean import MeanModel
from femts.text import quote
from femts.training.accelerator import find_accelerator
from femts.training.checkpoint import TrainState
from femts.training.data_module import DataModule
from femts.training.evaluate import most_scored, scored_on
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
        first = first_forecaster(config, module)
        module.fit_closed_form(first.model)
        run = Run(first, module, TrainState(), folder, accelerator, time.monotonic(), limit, progress)
        return train_on_all_rows(run, scored)


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


def train_on_all_rows(run: Run, scored: Forecaster) -> Forecaster:
    """Train the model of `run` like `scored`, up to the step that was kept.

    Args:
        run: run with training windows only and closed-form parts already fitted.
        scored: forecaster trained on the training split.

    Returns:
        The forecaster, with the scores and intervals of `scored`.

    Raises:
        KeyboardInterrupt: A signal was received; the state so far is saved.
        RunFailure: As in `femts.training.loop.run_steps`.
    """
    assert run.state is not None
    state, model, began = run.state, run.model, time.monotonic()
    before, metrics = state.seconds, scored.metrics.copy()
    if isinstance(model, MeanModel):
        members = _train_members(run, scored)
        model = MeanModel(model.config, [one.model for one in members])
        refits = [one.metrics["refit"] for one in members]
        short = any(one["stopped"] == "max_time" for one in refits)
        steps, stopped = sum(one["steps"] for one in refits), "max_time" if short else refits[0]["stopped"]
        metrics["members"] = [member_record(one) for one in members]
    else:
        chosen = chosen_by(scored)
        if chosen is None:
            model.learn(run.module.windows["train"], None, learning_within(run), scored.model)
        elif not state.complete:
            state = run_steps(run, Budget(chosen.steps, run.limit, run.started, 0), chosen=chosen)
            if state.stopped == "interrupted":
                raise KeyboardInterrupt
        if chosen is not None:
            model.load_state_dict(state.average)
        steps, stopped = state.step, state.stopped
    data, rows = run.module.data, {part: list(scored.data["split"][part]) for part in PARTS}
    metrics["scored"] = cast(
        ScoredRows, {"folder": SCORED, **rows, **({"series": len(data)} if data.schema.panel else {})}
    )
    seconds = round(before + time.monotonic() - began, 3)
    metrics["refit"] = Refit(rows=data.record["split"]["train"][1], steps=steps, stopped=stopped, seconds=seconds)
    return replace(
        run.forecaster,
        model=model.to(run.accelerator.device).eval(),
        metrics=metrics,
        validations=scored.validations,
        intervals=scored.intervals,
        scored=scored,
    )


def _train_members(run: Run, scored: Forecaster) -> list[Forecaster]:
    """The members of the mean `scored`, each trained again."""
    learned = list[Forecaster]()
    for member in scored.members:
        left, spent = len(scored.members) - len(learned), time.monotonic() - run.started
        limit = None if run.limit is None else (run.limit - spent) / left
        learned.append(_again(member, run.module.data, limit, run.progress))
    return learned


def held_out_intervals(forecaster: Forecaster, data: Dataset | None = None, like: Windows | None = None) -> Intervals:
    """Intervals for a refitted forecaster, from the errors of `forecaster` on the validation split of `data`, by default on
    its own validation and test splits, on as many windows as time allowed to score and, of a large table, on evenly spaced
    ones with `HELD_OUT` values; `like` are other windows of the same data."""
    data = forecaster.training_data().held_out() if data is None else data
    most, scored = most_held_out(forecaster.config.pred_len, len(forecaster.targets)), most_scored(forecaster.metrics)
    with scored_on(forecaster.model, most if scored is None else min(scored, most)):
        return calibration.new_intervals(forecaster, None, (), data, like)


def most_held_out(pred_len: int, targets: int) -> int:
    """Largest number of windows that `held_out_intervals` reads of a large table."""
    return max(FEWEST_HELD_OUT, HELD_OUT // (pred_len * targets))
