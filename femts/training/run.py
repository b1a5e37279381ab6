"""A training run as it begins, and what a run needs around it."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from femts.config.training import TrainingConfig
from femts.errors import UsageError
from femts.evaluation.memory import kept_memory
from femts.forecaster.forecaster import Forecaster
from femts.forecaster.replacing import locked_run, replacing
from femts.forecaster.run_folder import RunConfig
from femts.mixers.ops.precision import full_precision
from femts.models.base import ForecastModel
from femts.models.registry import build_model
from femts.text import argument
from femts.training.accelerator import Accelerator
from femts.training.checkpoint import TrainState
from femts.training.constants import LEARNING
from femts.training.data_module import DataModule
from femts.training.stopping import Interrupted


@dataclass(frozen=True)
class Run:
    """A training run as it begins.

    Attributes:
        forecaster: forecaster whose model is trained.
        module: data and windows.
        state: state from which the training goes on; None if the run is finished.
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


def is_trained(model: ForecastModel) -> bool:
    """Return whether `model` has weights that are trained by gradient steps."""
    return any(parameter.requires_grad for parameter in model.parameters())


def learning_within(run: Run) -> TrainingConfig:
    """The recipe of `run` for a model that learns without gradient steps, with the remaining time as its limit, less a
    share for what follows."""
    training = run.config.training
    if run.limit is None:
        return replace(training, max_time=None)
    left = run.started + run.limit - time.monotonic()
    return replace(training, max_time=f"{max(1.0, LEARNING * left):.1f}s")


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
    return Forecaster(
        model,
        config,
        module.preprocess,
        data.freq,
        data.record,
        until=data.learned_last,
        series_until=tuple(data.learned_until(1)),
        series_trained=tuple(data.learned_until()),
        _dataset=data,
    )


_ONE_AT_A_TIME = threading.RLock()


@contextmanager
def training_on(accelerator: Accelerator) -> Iterator[None]:
    """Context of a training: limits memory use and restores the caller's random state.

    Trainings in several threads take turns, because the threads of a process share one random state.
    """
    devices = [torch.cuda.current_device()] if accelerator.device == "cuda" else []
    with (
        _ONE_AT_A_TIME,
        torch.random.fork_rng(devices=devices),
        kept_memory(accelerator.device),
        full_precision(accelerator.device),
    ):
        yield


@contextmanager
def run_folder(out: Path | None, accelerator: Accelerator) -> Iterator[Path | None]:
    """The locked run folder; several processes without one share a temporary folder."""
    if out is not None:
        with locked_run(out):
            yield out
    elif accelerator.devices > 1:
        with tempfile.TemporaryDirectory(prefix="femts-") as folder:
            yield Path(folder)
    else:
        yield None


@contextmanager
def overwriting(folder: Path) -> Iterator[Path]:
    """As `femts.forecaster.replacing.replacing`, for a training in the folder that it yields.

    Raises:
        Interrupted: A signal was received; says how to continue.
    """
    try:
        with replacing(folder) as new:
            yield new
    except Interrupted as error:
        raise Interrupted(
            f"Training was interrupted; the run in {folder} is as before, and the same call with {argument('overwrite=True')} "
            "continues the new one."
        ) from error
