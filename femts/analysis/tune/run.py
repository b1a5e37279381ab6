"""A study in one call: trials until their number or the time is over, each kept when it ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from femts.analysis.tune.plan import make_question
from femts.analysis.tune.proposals import check_optuna, propose
from femts.analysis.tune.result import PICTURE, Tuned
from femts.analysis.tune.space import SEQ_LEN
from femts.analysis.tune.study import COMPLETE, FAILED, STUDY, Trial, read_study, trials_frame, write_study
from femts.analysis.tune.trial import OutOfTime, Plan, drop_work, run_trial
from femts.config.arguments import check_callable, check_kind, check_path
from femts.config.model import DEFAULT_MODEL
from femts.config.training import parse_span
from femts.config.values import check_count
from femts.errors import RunFailure, UsageError, memory_checked
from femts.files import locked, write_file
from femts.progress import progress_line
from femts.text import shown
from femts.training.fit import nothing
from femts.training.stopping import Interrupted

if TYPE_CHECKING:
    import pandas as pd

    from femts.data.dataset import Dataset

TRIALS = 30  # of a study that neither a number nor a time bounds


@memory_checked()
def tune(
    dataset: Dataset | str | Path | pd.DataFrame,
    model: str = DEFAULT_MODEL,
    pred_len: int | str | None = None,
    *,
    seq_len: int | str | None = None,
    protocol: str | None = None,
    out: str | Path | None = None,
    trials: int | None = None,
    max_time: str | None = None,
    search: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    origins: int = 1,
    seed: int = 42,
    data_root: str | Path | None = None,
    say: Callable[[str], None] | None = None,
) -> Tuned:
    """Choose settings, look-back and recipe of `model` by validation errors; the test part has no say.

    The first trial is the recipe as it is. The next are drawn at random, those after them where the
    scores so far are best. Trials that are worse than most on the way are ended.

    Args:
        dataset: what `load_dataset` gave, or anything it takes.
        model: registered name.
        pred_len: steps of a forecast, as in `train`.
        seq_len: look-back; None or `auto` searches it.
        protocol: as in `train`; look-backs to search lie around its own.
        out: folder of the study; called again with the same arguments, it goes on. None keeps nothing.
        trials: how many there are to be in all; None takes 30, or as many as `max_time` leaves room for.
        max_time: longest time for this call, such as `90s`, `9m` or `1h30m`.
        search: values by setting, over those that the model declares: text `a,b,c` or `low..high`,
            or a list; `seq_len`, `model.*` and `training.*`.
        settings: fixed ones, as in `train`; these are not searched.
        origins: 1 scores by the validation part; more score by the mean error at as many ends of
            the training rows, each a validation part earlier.
        seed: of the trials, and of each training.
        data_root: where data of the catalogue is looked for.
        say: takes a sentence on each trial, and on what a reader should know of the data.

    Returns:
        The best recipe: `settings`, `seq_len` and `pred_len` for `train`, `score` beside
        `default_score`, `trials` as a table, and `recipe()`.

    Raises:
        UsageError: something asked for does not exist or does not fit, or `out` holds another study.
        RunFailure: no trial was finished in time, the disk is full, or (as `Interrupted`) a signal came.
    """
    started = time.monotonic()
    check_optuna()
    check_callable(say, "say")
    folder = None if out is None else check_path(out, "The folder of the study")
    most = None if trials is None else check_count(trials, "Argument 'trials'")
    origins = 1 if origins is None else check_count(origins, "Argument 'origins'")
    span = None if max_time is None else parse_span(max_time)
    if most is None and span is None:
        most = TRIALS
    fixed = {} if settings is None else settings
    check_kind(fixed, Mapping, "The settings", "give a mapping such as {'training.lr': 1e-3}")
    if "training.seed" in fixed:
        raise UsageError("Setting 'training.seed' is an argument of its own in tuning; give seed.")
    question = make_question(
        dataset,
        (model, pred_len, seq_len, protocol),
        {} if search is None else search,
        {**fixed, "training.seed": seed},
        origins,
        data_root,
    )
    plan, say = Plan(question, folder, None if span is None else started + span), say or nothing
    with _held(folder):
        study = _Study(plan, [] if folder is None else read_study(folder, question.record()))
        for note in question.notes:
            say(note)
        study.run(most, say)
        return study.result(picture=True)


@dataclass
class _Study:
    """A plan, and the trials that were made by it."""

    plan: Plan
    trials: list[Trial]

    def run(self, most: int | None, say: Callable[[str], None]) -> None:
        """Run trials until there are `most`, none is left to try, or the time is over."""
        deadline, began = self.plan.deadline, time.monotonic()
        try:
            with progress_line() as show:
                while most is None or len(self.trials) < most:
                    if deadline is not None and time.monotonic() >= deadline:
                        break
                    part = 0.0 if most is None else len(self.trials) / most
                    if deadline is not None:
                        part = max(part, (time.monotonic() - began) / (deadline - began))
                    show(min(1.0, part), f"{len(self.trials)} trials")
                    trial = self._next()
                    if trial is None:
                        say("every combination has been tried")
                        break
                    say(self._words(trial))
        except OutOfTime:
            pass
        except (KeyboardInterrupt, Interrupted) as error:
            remedy = "nothing was kept" if self.plan.folder is None else "the same command goes on with them"
            raise Interrupted(f"Tuning was interrupted after {len(self.trials)} trials; {remedy}.") from error

    def _next(self) -> Trial | None:
        """Run the next trial and keep it; None where nothing is left to try."""
        number, folder, question = len(self.trials), self.plan.folder, self.plan.question
        values, asked = {key: question.recipe[key] for key in question.space}, None
        if number:
            proposed = propose(question.space, self.trials, question.seed)
            if proposed is None:
                return None
            values, asked = proposed
        drop_work(folder, but=number)
        trial = run_trial(self.plan, Trial(number, values, COMPLETE), asked)
        self.trials.append(trial)
        if folder is not None:
            write_study(folder, question.record(), self.trials)
            drop_work(folder)
            if trial.state == COMPLETE:
                self.result()
        return trial

    def _words(self, trial: Trial) -> str:
        values = ", ".join(f"{key} {_short(value)}" for key, value in trial.values.items())
        score = f"{trial.state}{f': {trial.reason}' if trial.state == FAILED else ''}"
        if trial.score is not None:
            lowest = trial.score == min(each.score for each in self.trials if each.score is not None)
            score = f"validation error {trial.score:.4f}{', the lowest so far' if lowest and trial.number else ''}"
        first = "as it is" if trial.number == 0 else values
        return f"trial {trial.number}: {score} ({first}; {trial.seconds:.0f} s)"

    def result(self, picture: bool = False) -> Tuned:
        """Result so far, written to the folder; RunFailure where no trial has a score."""
        question, complete = self.plan.question, [trial for trial in self.trials if trial.score is not None]
        if not complete:
            failed = next((trial.reason for trial in self.trials if trial.state == FAILED), None)
            why = "time was over before the first" if failed is None else f"the first failed: {failed.rstrip('.')}"
            raise RunFailure(f"No trial has a score, for {why}; give more time or other settings.")
        best = min(complete, key=lambda trial: (trial.score, trial.number))
        values = dict(best.values)
        seq_len = values.pop(SEQ_LEN, question.recipe[SEQ_LEN])
        tuned = Tuned(
            model=question.model,
            pred_len=question.pred_len,
            seq_len=seq_len,
            protocol=question.protocol,
            settings={**question.settings, **values},
            score=best.score or 0.0,
            default_score=self.trials[0].score,
            trials=trials_frame(self.trials, list(question.space)),
            data=question.data,
            folder=self.plan.folder,
        )
        if tuned.folder is not None:
            tuned.write(tuned.folder)
            if picture:
                from femts.analysis.tune.picture import trials_picture

                write_file(tuned.folder / PICTURE, trials_picture(tuned, question.space).to_bytes("png"))
        return tuned


@contextmanager
def _held(folder: Path | None) -> Iterator[None]:
    """The folder held against other processes; UsageError where it holds something else than a study."""
    if folder is None:
        yield
        return
    if folder.is_dir() and not (folder / STUDY).is_file():
        further = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
        if further:
            raise UsageError(f"Folder {folder} holds '{shown(further[0])}' and no study; choose a new or empty folder.")
    with locked(folder):
        yield


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value).lower()
