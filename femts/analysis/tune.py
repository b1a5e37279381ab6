"""Tunes settings, look-back and recipe of a model by validation errors, in an Optuna study."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import random
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from math import ceil, inf, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from femts.analysis import search_space
from femts.analysis.search_space import SEQ_LEN, Space, import_optuna, make_distribution
from femts.config.arguments import check_kind, check_path
from femts.config.model import DEFAULT_MODEL
from femts.config.training import parse_span
from femts.config.values import check_count
from femts.data.dataset import Dataset
from femts.data.describe import count
from femts.data.protocols import look_back_choices
from femts.data.schema import Reading
from femts.errors import FemtsError, RunFailure, UsageError, memory_checked, renamed
from femts.evaluation.validation import chosen_by
from femts.files import check_folder, remove_parts, write_file
from femts.logging import PROGRESS, quiet_training
from femts.models.registry import build_model
from femts.plotting import FORECAST, MOST_PANELS, PAST, TRUTH, Picture
from femts.progress import progress_line
from femts.text import argument, quote, spreadsheet_safe, strict_json
from femts.training.accelerator import find_accelerator
from femts.training.data_module import DataModule, as_dataset, split_for
from femts.training.resolve import Lengths, horizon, resolve_run, resolve_training
from femts.training.run import is_trained
from femts.training.stopping import Interrupted, watched
from femts.training.train import train

if TYPE_CHECKING:
    import optuna
    import pandas as pd

logger = logging.getLogger(__name__)

STUDY, RECIPE, TRIALS, PICTURE, WORK = "study.db", "recipe.yaml", "trials.csv", "trials.png", ".work"
# may change when a study is resumed
ELSEWHERE = ("training.device", "training.devices", "training.graph", "training.eval_batch_size")
N_TRIALS = 30  # default number of trials without a number or time limit
N_STARTUP_TRIALS = 6  # random trials, including the first, before the sampler uses scores
PRUNE_AFTER, PRUNE_FROM = 4, 2  # complete trials, and validations of a trial, before pruning starts
STATES = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed"}


@dataclass(frozen=True)
class TuningResult:
    """Best recipe of a study, with all trials.

    Attributes:
        model: registered name.
        pred_len: horizon in steps.
        seq_len: look-back of the best trial.
        protocol: as in `train`.
        settings: settings of the best trial, including fixed ones, as `train` accepts them.
        score: its validation error in scaled units; with several origins, the mean over them.
        default_score: validation error of the default recipe; None if that trial has none.
        trials: one row per trial: `trial`, `state`, `score` (NaN without one), scores by origin if there are several,
            the searched settings, `seconds` and `reason`.
        data: `dataset` and how it is read, as in a recipe.
        folder: folder of the study; None if nothing was written.
    """

    model: str
    pred_len: int
    seq_len: int
    protocol: str
    settings: Mapping[str, Any]
    score: float
    default_score: float | None
    trials: pd.DataFrame = field(repr=False)
    data: Mapping[str, Any] = field(repr=False)
    folder: Path | None = None

    def recipe(self) -> dict[str, Any]:
        """The best recipe in plain types, as accepted by `femts train --config`."""
        parts: dict[str, dict[str, Any]] = {"model": {"name": self.model}, "training": {}}
        for key, value in self.settings.items():
            part, _, name = key.partition(".")
            parts[part][name] = list(value) if isinstance(value, tuple) else value
        lengths = {"pred_len": self.pred_len, "seq_len": self.seq_len, "protocol": self.protocol}
        return {**self.data, "model": parts["model"], **lengths, "training": parts["training"]}


@memory_checked()
@renamed({"training.max_time": "time_limit"})
def tune(
    dataset: Dataset | str | Path | pd.DataFrame,
    model: str = DEFAULT_MODEL,
    pred_len: int | str | None = None,
    *,
    seq_len: int | str | None = None,
    protocol: str | None = None,
    out: str | Path | None = None,
    trials: int | None = None,
    time_limit: str | None = None,
    search: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    origins: int = 1,
    seed: int = 42,
    data_root: str | Path | None = None,
    **reading: Unpack[Reading],
) -> TuningResult:
    """Choose settings, look-back and training recipe of a model by validation errors; the test split is not used.

    The first trial is the default recipe. The following ones are drawn at random, and later ones where scores have been
    best so far (Optuna's TPE sampler). Trials that are worse than the median at an intermediate validation are pruned.

    Args:
        dataset: result of `load_dataset`, or anything that it accepts.
        model: registered name.
        pred_len: horizon, as in `train`.
        seq_len: look-back; None or `auto` searches for it.
        protocol: as in `train`; the look-backs to search are around its own.
        out: folder of the study. Calling again with the same arguments continues it, and several processes may share
            it. None keeps nothing.
        trials: total number of trials; None takes 30, or as many as fit into `time_limit`.
        time_limit: longest duration of this call, such as `90s`, `9m` or `1h30m`.
        search: values to search by setting name (`seq_len`, `model.*` and `training.*`), as text `a,b,c` or
            `low..high`, or as a list; these take precedence over the search space that the model declares.
        settings: fixed settings, as in `train`, which are not searched.
        origins: 1 scores on the validation split; more average the errors at as many origins, each one validation split
            earlier.
        seed: seed of the search and of each training.
        data_root: folder with the files of the catalogue.
        reading: keywords of `load_dataset`, as in `train`.

    Returns:
        The best recipe: `settings`, `seq_len` and `pred_len` for `train`, its `score` and the `default_score`, all
        `trials` as a table, and `recipe()`.

    Raises:
        UsageError: An argument is unknown or does not fit, or `out` holds another study.
        RunFailure: No trial finished in time, the disk is full, or (as `Interrupted`) a signal was received.
    """
    started = time.monotonic()
    optuna = import_optuna()
    folder = None if out is None else check_path(out, "The folder of the study")
    n_trials = None if trials is None else check_count(trials, "trials")
    origins = 1 if origins is None else check_count(origins, "origins")
    limit = None if time_limit is None else parse_span(time_limit)
    fixed = {} if settings is None else settings
    check_kind(fixed, Mapping, "The settings", "give a mapping such as {'training.lr': 1e-3}")
    if "training.seed" in fixed:
        text = f"Setting 'training.seed' cannot be set in tuning; use {argument('seed')} instead."
        raise UsageError(text, argument="training.seed", value=fixed["training.seed"])
    lengths, search = Lengths(pred_len, seq_len, protocol), {} if search is None else search
    data = as_dataset(dataset, data_root, reading, tune)
    objective = _Objective(data, model, lengths, search, {**fixed, "training.seed": seed}, origins)
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        deadline = inf if limit is None else started + limit
        tuner = _Tuner(objective, _open_study(objective.record, folder), folder, deadline)
        for note in objective.notes:
            logger.info(note)
        tuner.run(N_TRIALS if n_trials is None and limit is None else n_trials)
        return tuner.result(draw=True)
    except optuna.exceptions.StorageInternalError as error:
        raise RunFailure(
            f"Could not write {folder}/{STUDY}: {error.__cause__ or error}; free some disk space."
        ) from error
    finally:
        optuna.logging.set_verbosity(verbosity)


class _Objective:
    """Objective of the study: data, training and search space. Arguments are those of `tune`."""

    def __init__(
        self,
        data: Dataset,
        model: str,
        lengths: Lengths,
        search: Mapping[str, Any],
        settings: Mapping[str, Any],
        origins: int,
    ) -> None:
        model_settings, training = resolve_training(model, {}, settings)
        search_space.check_search(search, settings, lengths.seq_len)
        find_accelerator(training)
        space = {key: make_distribution(key, values, model) for key, values in search.items()}
        steps = horizon(data, lengths.pred_len).steps
        data = split_for(data, steps)
        config = resolve_run(data, model, lengths._replace(pred_len=steps), model_settings, training)
        self.folds = data.before_test(steps, origins)
        for fold in self.folds:  # an origin without windows raises an error before anything is written
            DataModule.of(fold, config, ("train", "val"))
        trained = is_trained(build_model(model, config.model_config, config.quantiles))
        for key, values in search_space.own_search(model, trained).items():
            if key not in settings:
                space.setdefault(key, make_distribution(key, values, model))
        if space and SEQ_LEN not in space and lengths.seq_len in (None, "auto"):
            choices = look_back_choices(config.protocol, steps, data.typical_rows, data.season)
            space |= {SEQ_LEN: make_distribution(SEQ_LEN, choices, model)} if choices[1:] else {}
        if not space:
            raise UsageError(
                f"Model '{model}' has nothing to search; name a setting to search, or choose another model."
            )
        self.space: Space = {key: space[key] for key in sorted(space, key=lambda key: (key != SEQ_LEN, key))}
        self.model, self.pred_len, self.protocol, self.settings = model, steps, config.protocol, settings
        self.metric = chosen_by(config.training)
        parts = {"model": asdict(config.model_config), "training": asdict(config.training)}
        self.default = {SEQ_LEN: config.seq_len} | {
            f"{part}.{name}": value for part, values in parts.items() for name, value in values.items()
        }
        self.notes, reading = data.notes, data.schema.reading()
        self.data = ({} if data.source is None else {"dataset": data.source}) | reading
        record = {"model": model, "pred_len": steps, "protocol": config.protocol, "origins": origins}
        record |= {"data": data.record | reading, "search": {key: str(each) for key, each in self.space.items()}}
        record |= {key: value for key, value in self.default.items() if key not in ELSEWHERE}
        self.record = json.loads(strict_json(record))  # everything that must be equal to resume a study

    def values(self, trial: Any) -> dict[str, Any]:
        """Searched settings of a trial; for the first, those of the default recipe, which may lie outside the space."""
        return {key: (trial.params if trial.number else self.default)[key] for key in self.space}

    def untried(self, study: optuna.Study) -> list[dict[str, Any]] | None:
        """Combinations without a trial; None if the space contains a range."""
        every = search_space.combinations(self.space)
        tried = [{key: self.default[key] for key in self.space}, *(trial.params for trial in study.trials)]
        return None if every is None else [values for values in every if values not in tried]

    def train(self, trial: Any, origin: int, out: Path | None, watch: Callable[[Any], bool]) -> float:
        """Validation error of a trial at an origin; a training in `out` is resumed, and one that `watch` stops raises
        `Interrupted`."""
        values = self.values(trial)
        seq_len = values.pop(SEQ_LEN, self.default[SEQ_LEN])
        with watched(watch), quiet_training():
            forecaster = train(
                self.folds[origin],
                self.model,
                self.pred_len,
                seq_len=seq_len,
                protocol=self.protocol,
                out=out,
                resume=out is not None,
                refit=False,
                settings={**self.settings, **values},
            )
        scores: Mapping[str, Any] = forecaster.metrics["val"]
        return float(scores[self.metric])


@contextmanager
def _locked(folder: Path | None, wait: bool = True) -> Iterator[bool]:
    """Lock a folder, created if necessary, against other processes; the lock is released even if this process is
    killed, and leaves no file. Yields False if another process holds the lock and `wait` is False."""
    if folder is None:
        yield True
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise RunFailure(f"Could not write {folder}: {error.strerror}; choose another folder.") from error
    try:
        held = True
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            held = False
        yield held
    finally:
        os.close(descriptor)


def _open_study(record: Mapping[str, Any], folder: Path | None) -> optuna.Study:
    """The study in `folder`, created if there is none; raise UsageError if it belongs to another `record`, or the
    folder holds something else."""
    import optuna
    from sqlalchemy.exc import SQLAlchemyError

    pruner = optuna.pruners.MedianPruner(n_startup_trials=PRUNE_AFTER, n_warmup_steps=PRUNE_FROM)
    if folder is None:
        return optuna.create_study(pruner=pruner)
    path = folder / STUDY
    check_folder(folder)
    names = sorted(each.name for each in folder.glob("[!.]*"))
    if names and not path.exists():
        raise UsageError(f"Folder {folder} holds '{quote(names[0])}' but no study; choose a new or empty folder.")
    with _locked(folder):
        remove_parts(folder)
        try:
            storage = optuna.storages.RDBStorage(  # SQLite transactions are atomic, whenever the process is killed
                "sqlite:///study.db",
                # A URL cannot represent every path; `timeout` is in seconds to wait for another process's transaction.
                engine_kwargs={"creator": lambda: sqlite3.connect(path, timeout=60, check_same_thread=False)},
            )
            study = optuna.create_study(storage=storage, study_name="tune", pruner=pruner, load_if_exists=True)
            begun = study.user_attrs.get("record")
        except (SQLAlchemyError, optuna.exceptions.StorageInternalError) as error:
            why = getattr(error, "orig", error)
            raise UsageError(f"Study {path} cannot be read: {why}; choose another folder.") from error
        if begun is None:
            study.set_user_attr("record", record)
            return study
    for key in begun | record:
        if begun.get(key) != record.get(key):
            raise UsageError(
                f"Study {path} was started with {argument(key)} {quote(begun.get(key))}, not {quote(record.get(key))}; use the "
                "same value, or choose another folder."
            )
    return study


def _sampler(objective: _Objective, number: int) -> optuna.samplers.BaseSampler:
    """Sampler of one trial, determined by the seed and the number of the trial, even in a resumed study."""
    import optuna

    seed = int(np.random.SeedSequence((objective.settings["training.seed"], number)).generate_state(1)[0])

    class Sampler(optuna.samplers.TPESampler):
        """TPE over the whole space, even after a first trial outside it, that repeats no combination of categorical
        values."""

        def infer_relative_search_space(self, study: optuna.Study, trial: Any) -> dict[str, Any]:
            return dict(objective.space)

        def sample_relative(self, study: optuna.Study, trial: Any, search_space: dict[str, Any]) -> dict[str, Any]:
            if number == 0:
                return objective.values(trial)
            values = super().sample_relative(study, trial, search_space)
            untried = objective.untried(study)
            return values if untried is None or values in untried else random.Random(seed).choice(untried)

    return Sampler(seed=seed, n_startup_trials=N_STARTUP_TRIALS, multivariate=True)


@dataclass
class _Tuner:
    """This process's part in a study."""

    objective: _Objective
    study: optuna.Study
    folder: Path | None
    deadline: float  # on the clock of `time.monotonic`

    def run(self, n_trials: int | None) -> None:
        """Run trials until there are `n_trials`, every combination has been tried, or the time is up."""
        began = time.monotonic()
        with _locked(self.folder):
            for trial in self._finished():  # its process may have been killed after its last line
                self._clear(trial.number)
        try:
            with progress_line() as show:
                while (now := time.monotonic()) < self.deadline:
                    done = len(self._finished())
                    show(
                        max((now - began) / (self.deadline - began), done / (n_trials or inf)),
                        count(done, "trial"),
                    )
                    with ExitStack() as held:
                        trial = self._next(n_trials, held)
                        if trial is None:
                            break
                        self._evaluate(trial)
        except (KeyboardInterrupt, Interrupted) as error:
            if isinstance(error, Interrupted) and time.monotonic() >= self.deadline:
                return  # the trial is kept with its progress
            remedy = "nothing was kept" if self.folder is None else "run the same command again to continue"
            raise Interrupted(
                f"Tuning was interrupted after {count(len(self._finished()), 'trial')}; {remedy}."
            ) from error

    def _finished(self) -> list[optuna.trial.FrozenTrial]:
        return [trial for trial in self.study.trials if trial.state.is_finished()]

    def _work(self, number: int) -> Path | None:
        return None if self.folder is None else self.folder / WORK / str(number)

    def _clear(self, number: int) -> None:
        work = self._work(number)
        if work is not None:
            shutil.rmtree(work, ignore_errors=True)
            with suppress(OSError):  # there is none, or other trials are running there
                work.parent.rmdir()

    def _next(self, n_trials: int | None, held: ExitStack) -> optuna.Trial | None:
        """The next trial, locked (`held`) against other processes: an interrupted one, otherwise a new one; None if
        there is none."""
        import optuna

        objective, study = self.objective, self.study
        with _locked(self.folder):
            trials = study.trials
            for each in trials[:n_trials]:
                if not each.state.is_finished() and held.enter_context(_locked(self._work(each.number), wait=False)):
                    study.sampler = _sampler(objective, each.number)
                    trial = optuna.Trial(study, each._trial_id)
                    break
            else:
                if len(trials) >= (n_trials or inf):
                    return None
                if trials and objective.untried(study) == []:
                    logger.info("every combination has been tried")
                    return None
                study.sampler = _sampler(objective, len(trials))
                trial = study.ask()
                held.enter_context(_locked(self._work(trial.number)))
            if trial.number or search_space.contains(objective.space, objective.default):
                for key, distribution in objective.space.items():
                    trial._suggest(key, distribution)
            return trial

    def _evaluate(self, trial: optuna.Trial) -> None:
        """Train at each origin, and report the result to the study."""
        import optuna

        objective, work, started = self.objective, self._work(trial.number), time.monotonic()
        state, reason, scores, seen = "COMPLETE", "", list[float](), 0
        reported = self.study.trials[trial.number].intermediate_values  # before it was interrupted

        def watch(validations: Sequence[Mapping[str, Any]]) -> bool:
            nonlocal seen
            # errors at further origins are not comparable with those at the first
            if not scores and len(validations) > seen:
                for step in range(seen, len(validations)):
                    if step not in reported:
                        trial.report(validations[step][f"val_{objective.metric}"], step)
                seen = len(validations)
                if trial.number and trial.should_prune():
                    raise optuna.TrialPruned
            return time.monotonic() >= self.deadline

        try:
            for origin in range(len(objective.folds)):
                scores.append(objective.train(trial, origin, work and work / str(origin), watch))
        except optuna.TrialPruned:
            state = "PRUNED"
        except Interrupted:
            raise
        except FemtsError as error:
            if trial.number == 0 and isinstance(error, UsageError):
                raise
            state, reason, scores = "FAIL", str(error), []
        score, seconds = sum(scores) / len(scores) if scores else None, round(time.monotonic() - started, 3)
        with _locked(self.folder):
            for name, value in {"scores": scores, "seconds": seconds, "reason": reason}.items():
                trial.set_user_attr(name, value)
            self.study.tell(trial, score, optuna.trial.TrialState[state])
            best = None if score is None else self.result().score
            self._clear(trial.number)
        text = f"{STATES[state]}{reason and f': {reason}'}"
        if score is not None:
            text = f"validation error {score:.4f}{', the lowest so far' if score == best and trial.number else ''}"
        values = ", ".join(
            f"{key} {f'{value:.3g}' if isinstance(value, float) else str(value).lower()}"
            for key, value in objective.values(trial).items()
        )
        PROGRESS.info(f"trial {trial.number}: {text} ({values if trial.number else 'default recipe'}; {seconds:.0f} s)")

    def result(self, draw: bool = False) -> TuningResult:
        """Result so far, written to the folder; raise RunFailure if no trial has a score."""
        objective, finished = self.objective, self._finished()
        scores = {
            trial.number: trial.value for trial in finished if trial.value is not None and trial.user_attrs["scores"]
        }
        if not scores:
            why = f"failed: {finished[0].user_attrs['reason'].rstrip('.')}" if finished else "has not ended"
            raise RunFailure(f"No trial has a score: the first {why}; allow more time or change the settings.")
        best = min(scores, key=lambda number: scores[number])  # the first in case of ties
        values = objective.values(self.study.trials[best])
        seq_len = values.pop(SEQ_LEN, objective.default[SEQ_LEN])
        result = TuningResult(
            model=objective.model,
            pred_len=objective.pred_len,
            seq_len=seq_len,
            protocol=objective.protocol,
            settings={**objective.settings, **values},
            score=scores[best],
            default_score=scores.get(0),
            trials=self._table(finished),
            data=objective.data,
            folder=self.folder,
        )
        if self.folder is not None:
            import yaml

            text = f"# Validation error {result.score!r}\n" + yaml.safe_dump(result.recipe(), sort_keys=False)
            write_file(self.folder / RECIPE, text.encode())
            write_file(self.folder / TRIALS, result.trials.map(spreadsheet_safe).to_csv(index=False).encode())
            if draw:
                write_file(self.folder / PICTURE, trials_picture(result.trials, objective.space).to_bytes("png"))
        return result

    def _table(self, finished: Sequence[optuna.trial.FrozenTrial]) -> pd.DataFrame:
        import pandas as pd

        origins = len(self.objective.folds)
        rows = []
        for trial in finished:
            scores = trial.user_attrs["scores"]
            row = {"trial": trial.number, "state": STATES[trial.state.name], "score": trial.value if scores else nan}
            if origins > 1:
                row |= {f"origin_{k}": score for k, score in enumerate(scores or [nan] * origins, 1)}
            rows.append(row | self.objective.values(trial) | {k: trial.user_attrs[k] for k in ("seconds", "reason")})
        columns = {key: [row[key] for row in rows] for key in rows[0]}
        # None is a value here, not a missing one.
        return pd.DataFrame({k: pd.Series(v, dtype=object if None in v else None) for k, v in columns.items()})


def trials_picture(trials: pd.DataFrame, space: Space) -> Picture:
    """Plot of the scores of a study by trial, with the running minimum, and by each setting; the best trial is
    highlighted."""
    done, keys = trials[trials["score"].notna()], ["trial", *space][:MOST_PANELS]
    across, down = min(3, len(keys)), ceil(len(keys) / 3)
    figure, best = Picture(3.4 * across, 0.4 + 2.1 * down), done["score"].argmin()
    # Scores far above the others are drawn at the edge, so that good ones remain distinguishable.
    scores = done["score"].clip(upper=4 * done["score"].median() - 3 * done["score"].min()).tolist()
    for place, key in enumerate(keys, 1):
        panel: Any = figure.add_subplot(down, across, place)
        values, choices = done[key].tolist(), getattr(space.get(key), "choices", None)
        if choices:
            labels = list(dict.fromkeys([*choices, *values]))
            values = [labels.index(value) for value in values]
            panel.set_xticks(range(len(labels)), [quote(str(label).lower(), 12) for label in labels])
        elif getattr(space.get(key), "log", False):
            panel.set_xscale("log")
        panel.plot(values, scores, "o", color=PAST, markersize=4)
        panel.plot(values[best], scores[best], "o", color=FORECAST, markersize=6)
        panel.set_title(quote(key), loc="left", fontsize=9, parse_math=False)
    figure.axes[0].step(done["trial"], done["score"].cummin(), where="post", color=TRUTH)
    figure.axes[0].set_ylabel("validation error")
    return figure
