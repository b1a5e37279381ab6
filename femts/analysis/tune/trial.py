"""One trial: a recipe, trained and validated on the rows before the test part."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from femts.analysis.tune.space import SEQ_LEN
from femts.analysis.tune.study import COMPLETE, FAILED, PRUNED, Trial
from femts.errors import FemtsError, UsageError
from femts.forecaster.run_folder import METRICS
from femts.forecaster.saved_run import read_metrics
from femts.training.stopping import Interrupted, watched
from femts.training.train import train

if TYPE_CHECKING:
    import optuna

    from femts.analysis.tune.plan import Question

WORK = ".work"


@dataclass(frozen=True)
class Plan:
    """Common ground of all trials of a study.

    Attributes:
        question: what is trained, on which rows.
        folder: of the study; None keeps nothing.
        deadline: of `time.monotonic`; None for none.
    """

    question: Question
    folder: Path | None
    deadline: float | None


class OutOfTime(Exception):
    """The deadline came in the middle of a trial, which is kept as far as it got."""


def run_trial(plan: Plan, trial: Trial, asked: optuna.Trial | None) -> Trial:
    """Train by the values of `trial`, at each origin, and return it with its scores.

    Args:
        plan: the study's.
        trial: its number and values.
        asked: the same as Optuna has it, to ask whether to prune; None never prunes.

    Raises:
        OutOfTime: the deadline came first.
        Interrupted: a signal did.
        UsageError: the first trial cannot be made of what was asked for.
    """
    started, watch = time.monotonic(), _Watch(plan.deadline, asked)
    scores: list[float] = []
    try:
        for origin in range(len(plan.question.rows)):
            scores.append(_score(plan, trial, origin, watch))
            watch.asked = None  # errors of other rows do not compare with those of the first
        done = replace(trial, state=COMPLETE, scores=tuple(scores))
    except Interrupted:
        if watch.late:
            raise OutOfTime from None
        if not watch.pruned:
            raise
        done = replace(trial, state=PRUNED)
    except FemtsError as error:
        if trial.number == 0 and isinstance(error, UsageError):
            raise
        done = replace(trial, state=FAILED, reason=str(error))
    return replace(done, validations=tuple(watch.losses), seconds=round(time.monotonic() - started, 3))


def _score(plan: Plan, trial: Trial, origin: int, watch: _Watch) -> float:
    """The validation error at one origin; a training that was broken off goes on where it was."""
    question = plan.question
    settings = {**question.settings, **{key: value for key, value in trial.values.items() if key != SEQ_LEN}}
    folder = None if plan.folder is None else plan.folder / WORK / str(trial.number) / str(origin)
    if folder is not None and (folder / METRICS).is_file():
        metrics: Mapping[str, Any] = read_metrics(folder)
        validations = metrics["history"]
    else:
        with watched(watch):
            forecaster = train(
                question.rows[origin],
                question.model,
                question.pred_len,
                seq_len=trial.values.get(SEQ_LEN, question.recipe[SEQ_LEN]),
                protocol=question.protocol,
                out=folder,
                resume=folder is not None,
                settings=settings,
            )
        metrics, validations = forecaster.metrics, forecaster.validations
    if origin == 0:
        watch.losses = [_loss(row) for row in validations]
    return _loss({f"val_{name}": value for name, value in metrics["val"].items()})


def drop_work(folder: Path | None, but: int | None = None) -> None:
    """Remove what trials have left on their way, but that of the trial number `but`."""
    if folder is None:
        return
    for path in (folder / WORK).glob("*"):
        if path.name != str(but):
            shutil.rmtree(path, ignore_errors=True)
    with suppress(OSError):  # of one that is not empty, or not there
        (folder / WORK).rmdir()


def _loss(row: Mapping[str, Any]) -> float:
    return float(row.get("val_pinball", row["val_mse"]))


class _Watch:
    """Looks at each validation: ends a training that is late, or worse than most were at that point."""

    def __init__(self, deadline: float | None, asked: optuna.Trial | None) -> None:
        self.deadline, self.asked = deadline, asked
        self.late = self.pruned = False
        self.losses: list[float] = []

    def __call__(self, validations: Sequence[Mapping[str, Any]]) -> bool:
        if self.asked is not None and len(validations) > len(self.losses):
            for row in validations[len(self.losses) :]:
                self.asked.report(_loss(row), len(self.losses))
                self.losses.append(_loss(row))
            self.pruned = self.asked.should_prune()
        self.late = not self.pruned and self.deadline is not None and time.monotonic() >= self.deadline
        return self.pruned or self.late
