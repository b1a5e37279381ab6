"""The loop over epochs, run by Lightning and silent: only `TrainState` and the run folder tell what happened."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.strategies import DDPStrategy
from torch.multiprocessing.spawn import ProcessExitedException, ProcessRaisedException

from femts.data.windows import Windows
from femts.errors import RunFailure
from femts.models.base import ForecastModel
from femts.runs import CHECKPOINT
from femts.training.callbacks import ProgressLine, Recorder
from femts.training.config import TrainingConfig
from femts.training.device import Place
from femts.training.module import ForecastModule
from femts.training.state import TrainState
from femts.training.stopping import Deadline, StopSignals

_ACCELERATORS = {"cpu": "cpu", "cuda": "gpu", "mps": "mps"}
_PRECISIONS: dict[str, Any] = {"32": "32-true", "bf16": "bf16-mixed"}


def run_epochs(
    model: ForecastModel,
    train: Windows,
    val: Windows,
    training: TrainingConfig,
    place: Place,
    state: TrainState,
    folder: Path,
    deadline: Deadline,
    progress: bool,
    events: bool,
) -> TrainState:
    """Train `model` from `state` on until a reason to stop; what was reached is read back from `folder`.

    Several devices run as processes of their own, started by spawn: that works from the command line and from a script
    alike, and the caller's code after training runs once.

    Raises:
        RunFailure: the loss became NaN or infinite, the disk is full, or a process died.
        KeyboardInterrupt: a second Ctrl-C.
    """
    state.stopped = None
    if state.model:
        model.load_state_dict(state.model)
    module = ForecastModule(model, train, training, state.epoch, state.batch)
    strategy: Any = DDPStrategy(start_method="spawn") if place.devices > 1 else "auto"
    with StopSignals() as signals, _quiet(), _scratch(place.devices > 1):
        callbacks: list[pl.Callback] = [Recorder(state, folder, val, deadline, signals, events), _QuietWorker()]
        if progress and sys.stderr.isatty():
            callbacks.append(ProgressLine(state))
        trainer = pl.Trainer(
            accelerator=_ACCELERATORS[place.device],
            devices=place.devices,
            strategy=strategy,
            precision=_PRECISIONS[place.precision],
            max_epochs=training.max_epochs - state.epoch,
            accumulate_grad_batches=training.accumulate,
            callbacks=callbacks,
            default_root_dir=str(folder),
            limit_val_batches=0,  # the Recorder validates, with the evaluator that also gives the final scores
            num_sanity_val_steps=0,
            use_distributed_sampler=False,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        try:
            trainer.fit(module)
        except ProcessRaisedException as error:
            raise _failure_of_worker(error) from error
        except ProcessExitedException as error:
            raise RunFailure(f"A training process ended early ({error}); look at its message above.") from error
        except SystemExit as error:  # what Lightning makes of a KeyboardInterrupt
            raise KeyboardInterrupt from error
    return TrainState.load(folder / CHECKPOINT)


def _failure_of_worker(error: ProcessRaisedException) -> RunFailure:
    """A worker's exception arrives as the text of its traceback; its last line has the sentence."""
    last = str(error).strip().splitlines()[-1]
    _, found, sentence = last.partition(f"{RunFailure.__module__}.{RunFailure.__name__}: ")
    return RunFailure(sentence if found else f"A training process failed with {last}.")


class _QuietWorker(pl.Callback):
    """Travels into the worker processes and quietens Lightning there, before it says anything."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _quiet_worker, ()


def _quiet_worker() -> _QuietWorker:
    _set_levels(logging.ERROR)
    warnings.simplefilter("ignore")
    return _QuietWorker()


@contextmanager
def _scratch(workers: bool) -> Iterator[None]:
    """Around worker processes: Lightning leaves a temporary folder behind and its port in the environment."""
    if not workers:
        yield
        return
    names = ("TMPDIR", "MASTER_ADDR", "MASTER_PORT")
    before = {name: os.environ.get(name) for name in names}
    with tempfile.TemporaryDirectory(prefix="femts-") as folder:
        os.environ["TMPDIR"] = folder  # of the workers; this process has looked it up already
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value


def _loggers() -> list[logging.Logger]:
    return [logging.getLogger(name) for name in ("pytorch_lightning", "lightning_fabric", "lightning.pytorch")]


def _set_levels(level: int) -> None:
    for logger in _loggers():
        logger.setLevel(level)


@contextmanager
def _quiet() -> Iterator[None]:
    before = [(logger, logger.level) for logger in _loggers()]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"(pytorch_lightning|lightning_fabric)\b.*")
        # RMSNorm keeps float32 weights inside bf16 on purpose.
        warnings.filterwarnings("ignore", message="Mismatch dtype between input and weight")
        _set_levels(logging.ERROR)
        try:
            yield
        finally:
            for logger, level in before:
                logger.setLevel(level)
