"""A training run from data to a scored forecaster: set up, train, score, refit, save."""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from femts.config.arguments import check_text
from femts.config.model import AUTO, DEFAULT_MODEL
from femts.config.training import TrainingConfig, parse_span
from femts.data.dataset import Dataset
from femts.data.scaler import SCALERS
from femts.errors import UsageError
from femts.evaluation.conformal import INTERVALS, passes
from femts.evaluation.criterion import CRITERIA, DEFAULT
from femts.evaluation.intervals import LEVELS
from femts.evaluation.memory import kept_memory
from femts.evaluation.metrics import BUILT_IN
from femts.evaluation.metrics import METRICS as NAMED_METRICS
from femts.files import locked, remove_parts
from femts.forecaster.forecaster import Forecaster, load
from femts.forecaster.run_folder import CHECKPOINT, METRICS, SCORED, RunConfig, begin_run, clear_run
from femts.mixers.kernels import recorded
from femts.mixers.ops.precision import full_precision
from femts.models.base import ForecastModel
from femts.models.losses import find_loss
from femts.models.registry import build_model, model_card
from femts.text import quote
from femts.training.accelerator import Accelerator, find_accelerator
from femts.training.batches import StepBatches
from femts.training.checkpoint import Finished, TrainState, changed_data, check_resumable, find_state
from femts.training.data_module import DataModule
from femts.training.evaluate import circumstances, most_scored, scored_on, scores_within
from femts.training.loop import run_steps
from femts.training.resolve import (
    Lengths,
    bound_notes,
    known_notes,
    length_notes,
    resolve_run,
    resolve_training,
    seen_notes,
    thinned_notes,
)
from femts.training.resources import check_resources
from femts.training.schedule import Budget
from femts.training.stopping import Interrupted

SHARE = 0.5  # of the time limit for the scored training, if a refit follows


logger = logging.getLogger(__name__)

WEIGHTS = "model.weights"  # given to `auto`, it adds the pretrained model of these weights


@dataclass(frozen=True)
class FitRequest:
    """Arguments of `train` except the data.

    Attributes:
        model: registered name, or `auto`.
        settings: settings of the model by name; for `auto`, those of pretrained weights that it tries as well.
        training: the recipe.
        asked: arguments `given` and `settings` of `resolve_training`, from which these two were resolved.
        accelerator: device, precision and number of processes.
        started: `time.monotonic()` when the call began.
        lengths: horizon, look-back and protocol as requested.
        out: run folder; None writes nothing.
        resume: continue the run in it.
        overwrite: replace the run in it, once the new one is about to be written.
        refit: refit on all rows after scoring.
        progress: show a progress line on a terminal.
        most_windows: largest number of windows to score per split; None for the model's default.
        chosen: sentences on choices that femts made for the user.
        ignores: ignore past and static covariates that the model cannot read, instead of raising an error.
    """

    model: str
    settings: Mapping[str, Any]
    training: TrainingConfig
    asked: tuple[Mapping[str, Any], Mapping[str, Any]]
    accelerator: Accelerator
    started: float
    lengths: Lengths = field(default_factory=Lengths)
    out: Path | None = None
    resume: bool = False
    overwrite: bool = False
    refit: bool = False
    progress: bool = False
    most_windows: int | None = None
    chosen: tuple[str, ...] = ()
    ignores: bool = False

    @classmethod
    def of(cls, model: str, given: Mapping[str, Any], settings: Mapping[str, Any], started: float) -> FitRequest:
        """Request for `model` with recipe fields `given` and dotted `settings`; see `resolve_training`.

        Raises:
            UsageError: As in `resolve_training` and `find_accelerator`.
        """
        named = DEFAULT_MODEL if check_text(model, "model") == AUTO else model
        weights = dict[str, Any]()
        if model == AUTO and isinstance(settings, Mapping) and WEIGHTS in settings:
            of_model = [key for key in settings if str(key).startswith("model.")]
            weights = {key.removeprefix("model."): settings[key] for key in of_model}
            settings = {key: value for key, value in settings.items() if key not in of_model}
        resolved, training = resolve_training(named, given, settings)
        if model == AUTO and (resolved or training.learned_quantiles):
            odd = f"model.{next(iter(resolved))}" if resolved else "training.loss=pinball"
            raise UsageError(
                f"Setting '{quote(odd)}' applies to a single model, but --model auto selects the model; name a model."
            )
        check_registered(training)
        if model == AUTO and training.metric not in ("", *CRITERIA):
            raise UsageError(
                f"--model auto cannot select by '{quote(training.metric)}'; use one of {', '.join(CRITERIA)}, or name a model."
            )
        if model != AUTO and training.metric in CRITERIA and training.metric not in BUILT_IN:
            raise UsageError(
                f"--metric {training.metric} requires --model auto; a single model is validated by {', '.join(BUILT_IN)} or a "
                "registered metric."
            )
        return cls(model, weights or resolved, training, (given, settings), find_accelerator(training), started)

    def for_candidate(
        self,
        model: str,
        seconds: float | None,
        out: Path | None,
        most_windows: int,
        loss: str = "mse",
        model_settings: Mapping[str, Any] | None = None,
    ) -> FitRequest:
        """Request for one of the models that `auto` tries: with `model_settings`, trained in the folder `out` within
        `seconds` (None for no limit), by `loss` unless the user set one, and scored on at most `most_windows`
        windows."""
        given, settings = self.asked
        settings = {**settings, **{f"model.{name}": value for name, value in (model_settings or {}).items()}}
        if self.criterion not in BUILT_IN:  # trainings are validated by the error in scaled units
            given = {name: value for name, value in given.items() if name != "metric"}
            settings = {name: value for name, value in settings.items() if name != "training.metric"}
            settings["training.metric"] = DEFAULT
        other = FitRequest.of(model, given, settings, time.monotonic())
        limit = None if seconds is None else f"{max(1, int(seconds))}s"
        training = replace(other.training, max_time=limit)
        if "training.loss" not in self.asked[1]:
            training = replace(training, loss=loss)
        if seconds is not None:
            short = model_card(model).model_class.short_training_defaults
            training = replace(
                training, **{key: v for key, v in short.items() if f"training.{key}" not in self.asked[1]}
            )
        same: dict[str, Any] = {"lengths": self.lengths, "progress": self.progress, "most_windows": most_windows}
        return replace(other, training=training, out=out, resume=out is not None, ignores=True, **same)

    @property
    def criterion(self) -> str:
        """Selection criterion of `auto`, one of `CRITERIA`."""
        return self.training.metric or DEFAULT

    @property
    def limit(self) -> float | None:
        """Time limit in seconds; None is no limit."""
        return None if self.training.max_time is None else parse_span(self.training.max_time)


def check_registered(training: TrainingConfig) -> None:
    """Raise UsageError if the loss, metric, scaler or interval method named in `training` is unknown."""
    find_loss(training.loss)
    SCALERS[training.scaler]
    INTERVALS[training.intervals]
    if training.metric and training.metric not in CRITERIA:
        NAMED_METRICS[training.metric]


@dataclass
class Run:
    """A training run in its current state.

    Attributes:
        forecaster: forecaster whose model is trained.
        module: data and windows.
        state: training state; None if the run is finished.
        folder: run folder; None writes nothing.
        accelerator: device, precision and number of processes.
        started: `time.monotonic()` from which the limit counts.
        limit: seconds for training and scoring; None is no limit.
        progress: whether to show a progress line on a terminal.
    """

    forecaster: Forecaster
    module: DataModule
    state: TrainState | None
    folder: Path | None
    accelerator: Accelerator
    started: float
    limit: float | None = None
    progress: bool = False

    @property
    def config(self) -> RunConfig:
        """Configuration of the run."""
        return self.forecaster.config

    @property
    def model(self) -> ForecastModel:
        """The model being trained."""
        return self.forecaster.model


def fit(request: FitRequest, data: Dataset) -> Forecaster:
    """Train the model of `request` on `data`, split for its horizon, and score it; see `femts.train`."""
    from femts.training.refit import held_out_intervals, train_on_all_rows  # imports this module in turn

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
                # Errors in the run folder of the refit are reported for the user's folder.
                last = None if whole is None else begin(request, replace(config, refit=True), whole, folder)
                inner = folder if last is None or folder is None else folder / SCORED
                first = begin(request, config, module, inner, share=1.0 if last is None else SHARE)
            except Finished:
                assert out is not None
                return finished(request, out, data)
            if request.overwrite and out is not None:
                clear_run(out)
            for run in (last, first):
                write_beginning(run)
            if request.most_windows is not None:
                model = first.model
                model.most_windows = min(request.most_windows, model.most_windows or request.most_windows)
            for note in _notes(request, data, config, first):
                logger.info(note)
            try:
                # Train and score.
                if first.state is not None:
                    with recorded() as kernels:
                        train_and_score(first, later=last is not None)
                    first.forecaster.metrics = {**first.forecaster.metrics, "kernels": dict(sorted(kernels.items()))}
                made = first.forecaster
                # Refit on all rows, after the scored run was saved.
                if last is not None:
                    if out is not None and first.folder is not None and first.state is not None:
                        made.write(first.folder)
                    with scored_on(made.model, most_scored(made.metrics)):
                        intervals = held_out_intervals(made)
                    train_on_all_rows(last, made)
                    made = last.forecaster
                    made.intervals = intervals
            except KeyboardInterrupt as error:
                remedy = "nothing was kept" if out is None else f"progress is saved in {out}; continue it with --resume"
                raise Interrupted(f"Training was interrupted; {remedy}.") from error
            # Save.
            if out is not None and folder is not None:
                made.write(folder)
    return made


def _notes(request: FitRequest, data: Dataset, config: RunConfig, run: Run) -> tuple[str, ...]:
    lengths = length_notes(data, request.model, request.lengths)
    of_data = *known_notes(data, config), *bound_notes(run.module.preprocess), *seen_notes(config)
    return (*data.notes, *lengths, *request.chosen, *of_data, *thinned_notes(run.model, run.module.windows))


@contextmanager
def training_on(accelerator: Accelerator) -> Iterator[None]:
    """Context of a training: limits memory use and restores the caller's random state."""
    devices = [torch.cuda.current_device()] if accelerator.device == "cuda" else []
    with torch.random.fork_rng(devices=devices), kept_memory(accelerator.device), full_precision(accelerator.device):
        yield


@contextmanager
def run_folder(out: Path | None, accelerator: Accelerator) -> Iterator[Path | None]:
    """The locked run folder; several processes without one share a temporary folder."""
    if out is not None:
        with locked(out):
            yield out
    elif accelerator.devices > 1:
        with tempfile.TemporaryDirectory(prefix="femts-") as folder:
            yield Path(folder)
    else:
        yield None


def begin(request: FitRequest, config: RunConfig, module: DataModule, folder: Path | None, share: float = 1.0) -> Run:
    """Start the training of `config` on `module` in `folder`, or with `resume` continue it.

    Raises:
        UsageError: The folder cannot be used; nothing was written.
        RunFailure: Memory or time do not suffice; nothing was written.
        Finished: The run to resume is already finished.
    """
    limit = None if request.limit is None else share * request.limit
    further = folder, request.accelerator, request.started, limit, request.progress
    inner = folder is not None and not config.refit and request.refit
    if inner and request.resume and folder is not None and (folder / METRICS).is_file():
        forecaster = load(folder, request.accelerator.device)
        if forecaster.data != module.data.record:
            raise changed_data(config.dataset, folder)
        forecaster._dataset = module.data
        return Run(forecaster, module, None, *further)
    forecaster = first_forecaster(config, module)
    saved = None if request.out is None else folder
    state = find_state(config, forecaster.preprocess_record(), saved, request.resume, request.overwrite)
    if request.accelerator.device == "cpu" and is_trained(forecaster.model) and not state.complete:
        left = None if request.limit is None else request.limit - (time.monotonic() - request.started)
        check_resources(forecaster.model, module.windows["train"], config.training, left)
    if not state.model:
        module.fit_closed_form(forecaster.model)
    return Run(forecaster, module, state, *further)


def first_forecaster(config: RunConfig, module: DataModule) -> Forecaster:
    """A forecaster whose model has its initial weights, which depend on the seed only."""
    torch.manual_seed(config.training.seed)
    try:
        model = build_model(config.model, config.model_config, config.quantiles)
    except UsageError:
        raise
    except ValueError as error:  # settings that are valid each, but not together
        raise UsageError(f"Model '{config.model}' cannot be built with these settings: {error}.") from error
    model.read_weights()
    data = module.data
    made = Forecaster(model, config, module.preprocess, data.freq, data.record, _dataset=data)
    made.until, made.series_until = data.learned_last, tuple(data.learned_until(1))
    return made


def write_beginning(run: Run | None) -> None:
    """Write the first files of a run folder unless they exist."""
    if run is None or run.folder is None or run.state is None:
        return
    remove_parts(run.folder)
    remove_parts((run.folder / CHECKPOINT).parent)
    if not run.state.model:
        begin_run(run.folder, run.config, run.forecaster.preprocess_record())


def train_and_score(run: Run, later: bool) -> None:
    """Train the model of `run`, restore its best weights, and fill in scores and circumstances.

    Args:
        run: run with closed-form parts already fitted and windows of all splits.
        later: whether a refit and its scoring follow within the time limit.

    Raises:
        KeyboardInterrupt: A signal was received; the state so far is saved.
        RunFailure: As in `femts.training.loop.run_steps`.
    """
    assert run.state is not None
    training, state, windows, forecaster = run.config.training, run.state, run.module.windows, run.forecaster
    model, before, first, accelerator = run.model, run.state.seconds, windows["train"], run.accelerator
    epoch = StepBatches(len(first), training.batch_size, training.accumulate, training.seed).epoch
    if is_trained(model) and not state.complete:
        count, tested = (len(windows[part].subsample(model.most_windows)) for part in ("val", "test"))
        learned = len(LEVELS) if model.quantiles else 0
        calibration = count * passes(count, run.config.pred_len, first.n_targets, learned=learned)
        alone = calibration + tested  # a single process scores, whereas validations are shared
        budget = Budget(training.steps(epoch), run.limit, run.started, accelerator.devices * (1 + later) * alone)
        state = run.state = run_steps(run, budget, windows["val"])
        if state.stopped == "interrupted":
            raise KeyboardInterrupt
    weights, kept_step = state.kept(training.keep)
    if is_trained(model):
        model.load_state_dict(weights)
    else:
        model.learn(first, windows["val"].within_scale(), training)
    model.to(accelerator.device)
    now = time.monotonic()
    deadline = None if run.limit is None else now + (run.started + run.limit - now) / (1 + later)
    scores = scores_within(deadline, forecaster, windows, run.module.data, accelerator.device)
    effects, steps = forecaster.preprocess.effects, training.steps(epoch)
    if training.max_time is not None and state.step:  # reduced by a time limit
        steps = round(state.step / state.progress)
    forecaster.validations = tuple(state.validations)
    forecaster.metrics = {
        **circumstances(forecaster, accelerator),
        "kept_step": kept_step,
        "steps": state.step,
        "stopped": state.stopped,
        # Steps over which the learning rate was scheduled, and steps per epoch.
        **({"schedule": {"steps": max(steps, state.step), "epoch": epoch}} if is_trained(model) else {}),
        **scores,
        "seconds": round(before + time.monotonic() - run.started, 3),
        # Share of each target's variance explained by known covariates; see `femts.data.effects.Effects`.
        **(
            {}
            if effects is None
            else {"known": dict(zip(forecaster.targets, effects.explained.tolist(), strict=False))}
        ),
    }


def is_trained(model: ForecastModel) -> bool:
    """Return whether `model` has weights that are trained by gradient steps."""
    return any(parameter.requires_grad for parameter in model.parameters())


def finished(request: FitRequest, out: Path, data: Dataset) -> Forecaster:
    """Load the finished forecaster in `out` after checking that it matches `request` and `data`."""
    logger.info(f"run {out} is already finished")
    made = load(out, request.accelerator.device)
    made._dataset = data.all_rows() if request.refit else data
    if made.scored is not None:
        made.scored._dataset = data
    return made
