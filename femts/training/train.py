"""From data to forecaster in one call."""

from __future__ import annotations

import multiprocessing
import platform
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import torch

from femts._version import __version__
from femts.config.arguments import check_callable, check_flag, check_path
from femts.config.model import DEFAULT_MODEL
from femts.config.training import parse_span
from femts.data.dataset import Dataset, for_horizon
from femts.data.loading import load_dataset
from femts.data.panel import Panel, panel_for_horizon
from femts.data.panel_preprocess import PanelPreprocess, panel_training_rows, panel_windows
from femts.data.preprocess import Preprocess
from femts.data.splits import PARTS, check_room
from femts.data.windows import PanelWindows, Windows, part_windows
from femts.errors import UsageError
from femts.evaluation.coverage import CoverageSums
from femts.evaluation.evaluator import evaluate
from femts.evaluation.intervals import LEVELS, calibrate, passes
from femts.evaluation.quantiles import PinballSums
from femts.files import locked, remove_parts
from femts.forecaster.forecaster import Forecaster
from femts.forecaster.panel_forecaster import PanelForecaster
from femts.forecaster.run_folder import CHECKPOINT, begin_run
from femts.forecaster.saved_run import read_config
from femts.mixers.kernels import recorded
from femts.models.registry import build_model, model_card
from femts.training.batches import StepBatches
from femts.training.device import Place, kept_memory, resolve_place
from femts.training.resolve import Lengths, horizon, length_notes, resolve_run, resolve_training, thinned_notes
from femts.training.resume import find_state
from femts.training.schedule import Budget
from femts.training.state import TrainState
from femts.training.stopping import Interrupted

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor

    from femts.config.training import TrainingConfig
    from femts.forecaster.run_folder import RunConfig
    from femts.models.base import ForecastModel

REPORTED_LEVELS = (80.0, 95.0)  # percent; their coverage of the test part is in `metrics.json`


def train(
    dataset: Dataset | Panel | str | Path | pd.DataFrame,
    model: str = DEFAULT_MODEL,
    pred_len: int | str | None = None,
    *,
    seq_len: int | str | None = None,
    protocol: str | None = None,
    out: str | Path | None = None,
    seed: int = 42,
    max_steps: int | None = None,
    max_epochs: int | None = None,
    max_time: str | None = None,
    device: str = "auto",
    precision: str = "auto",
    resume: bool = False,
    settings: Mapping[str, Any] | None = None,
    progress: bool = False,
    data_root: str | Path | None = None,
    say: Callable[[str], None] | None = None,
) -> Forecaster:
    """Train `model` on `dataset` for a budget of steps, and score it once on the test part.

    Args:
        dataset: what `load_dataset` gave, or anything it takes.
        model: registered name.
        pred_len: P, steps of one forecast; None or `auto` takes 96 for the catalogue, and for other
            data what suits the step, such as 12 months, 8 quarters, 13 weeks, 28 days and 48 hours.
        seq_len: L, steps of look-back; None or `auto` takes the protocol's.
        protocol: `paper`, `lookback96` or `seasons` (whole seasons that leave half of the rows to
            learn from); None takes the first for the catalogue and the last for other data.
        out: run folder; None keeps nothing on disk (`Forecaster.save` does).
        seed: decides initial weights, order of the windows and dropout.
        max_steps: optimiser steps; None takes the recipe's.
        max_epochs: the same in passes over the training windows; at most one of the two.
        max_time: longest time for this call, as `90s`, `9m` or `1h30m`; where the steps would take
            longer, the learning rate falls to zero within it all the same, and time for the scores
            is left.
        device: `auto`, `cpu`, `cuda` or `mps`.
        precision: `auto`, `32` or `bf16`.
        resume: continue the run in `out`; on a CPU the result is the same to the bit as without the break.
        settings: `model.*` and `training.*` by name, values typed or as text.
        progress: show a line on stderr where that is a terminal.
        data_root: where data of the catalogue is looked for.
        say: takes a sentence on what a reader should know: what is odd about the data, which
            lengths were chosen, and why.

    Returns:
        The forecaster, of a panel a `PanelForecaster`, with `metrics` (test errors in scaled units), `validations` and
        intervals.

    Raises:
        UsageError: something asked for does not exist or does not fit; nothing was written.
        RunFailure: the loss became NaN or infinite, the disk is full, or (as `Interrupted`) a signal came.
    """
    started = time.monotonic()
    given = {"seed": seed, "max_steps": max_steps, "max_epochs": max_epochs, "max_time": max_time}
    given |= {"device": device, "precision": precision}
    out = None if out is None else check_path(out, "The run folder")
    check_flag(resume, "resume")
    check_flag(progress, "progress")
    check_callable(say, "say")
    model_settings, training = resolve_training(model, given, {} if settings is None else settings)
    place = resolve_place(training)
    if place.devices > 1 and getattr(multiprocessing.current_process(), "_inheriting", False):
        raise UsageError("A script that trains on several devices needs its code under `if __name__ == '__main__':`.")
    data = dataset if isinstance(dataset, Dataset | Panel) else load_dataset(dataset, data_root)
    data = _ready(data, pred_len)
    lengths = Lengths(pred_len, seq_len, protocol)
    config = resolve_run(data, model, lengths, model_settings, training)
    training = config.training
    forecaster_of, windows = _prepared(data, config)
    # The caller's random state stays as it was.
    devices = [torch.cuda.current_device()] if place.device == "cuda" else []
    with torch.random.fork_rng(devices=devices), kept_memory(place.device):
        torch.manual_seed(training.seed)
        forecaster = forecaster_of(_initial_model(config))
        if resume and out is not None:
            read_config(Path(out))  # or the lock would make a folder to refuse
        with _folder(out, place) as folder:
            state = find_state(
                config, forecaster.preprocess_record(), None if out is None else folder, resume, forecaster.model
            )
            if not state.model:
                forecaster.model.prepare(*_training_rows(data, windows["train"], config))
            if folder is not None:
                remove_parts(folder)
                remove_parts((folder / CHECKPOINT).parent)
                if not state.model:
                    begin_run(folder, config, forecaster.preprocess_record())
            if say is not None:
                thinned = thinned_notes(forecaster.model, windows)
                for note in (*data.notes, *length_notes(data, model, lengths), *thinned):
                    say(note)
            try:
                with recorded() as kernels:
                    _fit(forecaster, windows, _Course(training, place, state, folder, started, progress))
                forecaster.metrics = {**forecaster.metrics, "kernels": dict(sorted(kernels.items()))}
            except KeyboardInterrupt as error:
                remedy = (
                    "nothing was kept" if out is None else f"what was reached is in {out}; continue it with --resume"
                )
                raise Interrupted(f"Training was interrupted; {remedy}.") from error
            if out is not None and folder is not None:
                forecaster.write(folder)
    return cast(Forecaster, forecaster)


def _ready(data: Dataset | Panel, pred_len: int | str | None) -> Dataset | Panel:
    """The data, split for this horizon."""
    steps = horizon(data, pred_len).steps
    if isinstance(data, Panel):
        return panel_for_horizon(data, steps)
    if not data.fixed_split:
        check_room(data.rows, steps, data.name)
    return for_horizon(data, steps)


def _prepared(
    data: Dataset | Panel, config: RunConfig
) -> tuple[Callable[[ForecastModel], Forecaster | PanelForecaster], dict[str, Windows]]:
    """Maker of the forecaster from its model, and the windows of each part."""
    lengths, windows = (config.seq_len, config.pred_len), dict[str, Windows]()
    raw = model_card(config.model).model_class.reads_raw
    if isinstance(data, Panel):
        series = PanelPreprocess.fit(data).reading(raw)
        for part in PARTS:
            windows[part] = panel_windows(data, series, part, *lengths, windows.get("train"))
        panel, freq = data, data.freq
        return lambda model: PanelForecaster(model, config, series, freq, panel.record, _dataset=panel), windows
    preprocess = replace(Preprocess.fit(data), reads_raw=raw)
    for part in PARTS:
        windows[part] = part_windows(data, preprocess, part, *lengths, windows.get("train"))
    return lambda model: Forecaster(model, config, preprocess, data.freq, data.record, _dataset=data), windows


def _training_rows(data: Dataset | Panel, windows: Windows, config: RunConfig) -> tuple[Tensor, Tensor | None]:
    """Training rows (rows, C) and their observed mask, for what a model fits in closed form."""
    if isinstance(data, Panel):
        assert isinstance(windows, PanelWindows)
        return panel_training_rows(data, windows, max(config.seq_len, data.train_rows))
    rows, observed = slice(*data.split.train), windows.resident.observed
    return windows.series[rows], None if observed is None else observed[rows]


def _initial_model(config: RunConfig) -> ForecastModel:
    try:
        return build_model(config.model, config.model_config, config.quantiles)
    except UsageError:
        raise
    except ValueError as error:  # settings that each may be right, but not together
        raise UsageError(f"Model '{config.model}' cannot be built with these settings: {error}.") from error


@contextmanager
def _folder(out: str | Path | None, place: Place) -> Iterator[Path | None]:
    """The run folder, held against others; several processes without one meet in a temporary folder."""
    if out is not None:
        with locked(Path(out)):
            yield Path(out)
    elif place.devices > 1:
        with tempfile.TemporaryDirectory(prefix="femts-") as folder:
            yield Path(folder)
    else:
        yield None


class _Course(NamedTuple):
    """Course of a training: its recipe and its place, what it goes on from, and where and since when it runs."""

    training: TrainingConfig
    place: Place
    state: TrainState
    folder: Path | None
    started: float
    progress: bool


def _fit(forecaster: Forecaster | PanelForecaster, windows: Mapping[str, Windows], course: _Course) -> None:
    """Train the forecaster's model, give it its best weights, and fill in scores and circumstances."""
    training, place, state, folder, started, progress = course
    model, before = forecaster.model, state.seconds
    trainable = any(p.requires_grad for p in model.parameters())
    if trainable and not state.complete:
        from femts.training.loop import Job, run_steps  # Lightning takes seconds to import, and naive models need none

        limit = None if training.max_time is None else parse_span(training.max_time)
        first, count, kinds = windows["train"], len(windows["val"]), len(LEVELS) if model.quantiles else 1
        calibration = count * passes(count, forecaster.config.pred_len, first.targets, kinds=kinds)
        epoch = StepBatches(len(first), training.batch_size, training.accumulate, training.seed).epoch
        alone = calibration + len(windows["test"])  # the work of one process, where validations are shared
        budget = Budget(training.steps(epoch), limit, started, place.devices * alone)
        state = run_steps(Job(model, first, windows["val"], training, place, state, folder, budget, progress))
        if state.stopped == "interrupted":
            raise KeyboardInterrupt
    weights, kept_step = state.kept(training.keep)
    if trainable:
        model.load_state_dict(weights)
    model.to(place.device)
    past, future = windows["val"].to(place.device), windows["test"].to(place.device)
    pinball = [PinballSums(model.quantiles, past.series.device)] if model.quantiles else []
    intervals, val = calibrate(model, past, batch_size=training.eval_batch_size, also=pinball)
    val |= {"pinball": pinball[0].mean} if pinball else {}
    covered = CoverageSums(intervals.levels, intervals.half_widths, model.quantiles)
    test = evaluate(model, future, training.eval_batch_size, also=[covered])
    model.eval()
    config = forecaster.config
    forecaster.validations, forecaster.intervals = tuple(state.validations), intervals
    forecaster.metrics = {
        "dataset": config.dataset,
        "model": config.model,
        "pred_len": config.pred_len,
        "seq_len": config.seq_len,
        "protocol": config.protocol,
        "seed": training.seed,
        "kept_step": kept_step,
        "steps": state.step,
        "stopped": state.stopped,
        "val": val,
        "test": test,
        "intervals": {
            "windows": intervals.windows,
            "disjoint": intervals.disjoint,
            "test": covered.overall(REPORTED_LEVELS),
        },
        "seconds": round(before + time.monotonic() - started, 3),
        "device": place.device,
        "devices": place.devices,
        "precision": place.precision,
        "parameters": sum(p.numel() for p in model.parameters()),
        "versions": {"femts": __version__, "torch": torch.__version__, "python": platform.python_version()},
        "data_sha256": forecaster.data["sha256"],
        **_explained(forecaster),
    }


def _explained(forecaster: Forecaster | PanelForecaster) -> dict[str, Any]:
    """Part of each target that the known columns explain; see `femts.data.effects.Effects`."""
    effects = None if isinstance(forecaster, PanelForecaster) else forecaster.preprocess.effects
    return {} if effects is None else {"known": dict(zip(forecaster.targets, effects.explained.tolist(), strict=False))}
