"""Training in one call, from data to forecaster."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from femts.config.arguments import check_flag, check_path
from femts.config.model import AUTO, DEFAULT_MODEL
from femts.data.catalog import CATALOG
from femts.data.column_names import check_bound_names
from femts.data.dataset import Dataset
from femts.data.describe import count
from femts.data.schema import Reading
from femts.errors import AccuracyWarning, ScaleWarning, UsageError, memory_checked, warn
from femts.forecaster.forecaster import Forecaster
from femts.forecaster.run_folder import check_replaceable
from femts.logging import quiet_training
from femts.text import argument, marked
from femts.training.data_module import as_dataset, split_for
from femts.training.evaluate import accuracy_notes, scale_notes
from femts.training.fit import fit
from femts.training.loop import launch
from femts.training.nodes import take_part
from femts.training.refit import most_held_out
from femts.training.request import FitRequest
from femts.training.resolve import Lengths, horizon
from femts.training.run import overwriting
from femts.training.select.look_back import with_look_back
from femts.training.select.run import choose

if TYPE_CHECKING:
    import pandas as pd


@memory_checked()
def train(
    dataset: Dataset | str | Path | pd.DataFrame,
    model: str | None = None,
    pred_len: int | str | None = None,
    *,
    seq_len: int | str | None = None,
    protocol: str | None = None,
    out: str | Path | None = None,
    seed: int = 42,
    max_steps: int | None = None,
    max_epochs: int | None = None,
    time_limit: str | None = None,
    device: str = "auto",
    precision: str = "auto",
    resume: bool = False,
    overwrite: bool = False,
    refit: bool | None = None,
    settings: Mapping[str, Any] | None = None,
    progress: bool = False,
    data_root: str | Path | None = None,
    **reading: Unpack[Reading],
) -> Forecaster:
    """Train a model on a dataset and score it once on the test split.

    If torchrun or srun started several processes, that of rank 0 does all of this, and the others take part in its
    trainings and exit with it; they do not return from this call.

    Args:
        dataset: result of `load_dataset`, or anything that it accepts.
        model: registered name, or `auto` to try several models and keep the best on the validation split
            (`metrics["auto"]`). None takes `fem_sm_ridge` for datasets of the catalogue and `auto` for all others.
        pred_len: horizon P in steps. None or `auto` takes 96 for the catalogue, and for other data as many steps as the
            last rows have future covariates but no targets, or else a usual horizon for the step between rows, such as
            12 months, 8 quarters, 13 weeks, 28 days or 48 hours.
        seq_len: look-back L in steps; None or `auto` takes that of the protocol.
        protocol: `paper`, `lookback96` or `seasons` (whole seasons that cover at most half of the training rows); None
            takes `paper` for the catalogue and `seasons` for other data.
        out: run folder; None writes nothing to disk (see `Forecaster.save`).
        seed: determines initial weights, the order of windows, and dropout.
        max_steps: optimiser steps; None takes the default of the recipe.
        max_epochs: the same as a number of passes over the training windows; give at most one of the two.
        time_limit: longest duration of this call, such as `90s`, `9m` or `1h30m`. The learning rate schedule is
            shortened to fit, and time is reserved for scoring; with `refit`, half of the time is for the model that is
            scored.
        device: `auto`, `cpu`, `cuda` or `mps`.
        precision: `auto`, `32` or `bf16`.
        refit: after scoring, train once more on all rows with the settings that were chosen, so that the forecaster has
            seen the most recent rows. The scored model is kept as `scored`; intervals are calibrated on its validation
            and test errors. None refits except on datasets of the catalogue.
        resume: continue an interrupted run in `out`, start one if there is none, and load it if it is finished. On a
            CPU, resuming is bit-identical to an uninterrupted run.
        overwrite: replace the run in `out`, in one move once the new run is complete; if this call is interrupted, the
            same call continues it. A folder that is not a run is refused; other files next to a run stay.
        settings: `model.*` and `training.*` settings by name, as values or as text. With `auto`, the only ones of a
            model are `model.weights` and others of pretrained models; the model of these weights is then tried as well.
        progress: show a progress bar on stderr if it is a terminal.
        data_root: folder with the files of the catalogue.
        reading: keywords of `load_dataset`, such as `target` or `future_covariates`, if the dataset is not loaded yet.

    Returns:
        The trained forecaster with its `metrics` (test errors in scaled units), `validations` and calibrated intervals.

    Raises:
        UsageError: An argument is unknown or does not fit the data, or `out` holds a run with other settings or data;
            nothing was written.
        RunFailure: The loss became NaN or infinite, the disk is full, or (as `Interrupted`) a signal was received.
    """
    take_part(launch)
    started = time.monotonic()
    given = {"seed": seed, "max_steps": max_steps, "max_epochs": max_epochs, "max_time": time_limit}
    given |= {"device": device, "precision": precision}
    folder = None if out is None else check_path(out, "The run folder")
    for name, flag in {"resume": resume, "overwrite": overwrite, "progress": progress}.items():
        check_flag(flag, name)
    if overwrite:
        _check_overwrite(folder, resume)
    refit = None if refit is None else check_flag(refit, "refit")
    if model is None:
        source = dataset.source if isinstance(dataset, Dataset) else dataset
        model = DEFAULT_MODEL if isinstance(source, str) and source in CATALOG else AUTO
    request = FitRequest.of(model, given, {} if settings is None else settings, started)
    if request.accelerator.devices > 1 and getattr(multiprocessing.current_process(), "_inheriting", False):
        raise UsageError(
            "A script that trains on several devices must guard its code with `if __name__ == '__main__':`."
        )
    data = as_dataset(dataset, data_root, reading, train)
    form = data.schema.form
    check_bound_names(data.columns[: data.n_targets], (form.time, form.series))
    request = replace(
        request,
        lengths=Lengths(pred_len, seq_len, protocol),
        out=folder,
        resume=resume or overwrite,
        anew=overwrite,
        refit=refits(data) if refit is None else refit,
        progress=progress,
    )
    data = split_for(data, pred_len)
    if overwrite and folder is not None:
        with overwriting(folder) as new:
            made = carry_out(replace(request, out=new), data)
    else:
        made = carry_out(request, data)
    for note in scale_notes(made):
        warn(f"{marked(note)}.", ScaleWarning)
    for note in accuracy_notes(made.metrics):
        warn(f"At a horizon of {count(made.config.pred_len, 'step')}: {note}.", AccuracyWarning)
    return made


def carry_out(request: FitRequest, data: Dataset) -> Forecaster:
    """Train and score the model of `request`, or the one that `auto` chooses, on `data`, split for its horizon."""
    return choose(request, data) if request.model == AUTO else fit(with_look_back(request, data), data)


def train_to_score(request: FitRequest, data: Dataset) -> Forecaster:
    """Train a model whose forecasts the caller scores, refitted on all rows of `data`, without notes.

    The training itself scores no more windows than intervals are calibrated on.

    Args:
        request: the model and its recipe.
        data: the rows before the first forecast.

    Raises:
        UsageError: As in `train`.
        RunFailure: As in `train`.
    """
    take_part(launch)
    steps = horizon(data, request.lengths.pred_len).steps
    request = replace(request, refit=True, most_windows=most_held_out(steps, data.n_targets))
    with quiet_training(), memory_checked():
        return carry_out(request, split_for(data, steps))


def _check_overwrite(folder: Path | None, resume: bool) -> None:
    """Raise UsageError if there is nothing that may be replaced."""
    if folder is None:
        text = f"To overwrite a run, name its folder with {argument('out=FOLDER')}."
        raise UsageError(text, argument="overwrite", value=True, remedy={"overwrite": None})
    if resume:
        both = f"{argument('resume=True')} and {argument('overwrite=True')}"
        text = f"{both} cannot be combined; remove one of them."
        raise UsageError(text, argument="resume", value=True, remedy={"resume": None})
    check_replaceable(folder)


def refits(data: Dataset) -> bool:
    """Return whether a forecaster of `data` is refitted on all rows by default."""
    return data.source not in CATALOG
