"""From data to forecaster in one call."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from femts.config.arguments import check_flag, check_path
from femts.config.model import AUTO, DEFAULT_MODEL
from femts.data.catalog import CATALOG
from femts.data.dataset import Dataset
from femts.data.loading import load_dataset
from femts.data.splits import PARTS
from femts.data.windows import check_windows
from femts.errors import ScaleWarning, UsageError, memory_checked, warn
from femts.files import locked
from femts.forecaster.forecaster import Forecaster
from femts.forecaster.run_folder import check_replaceable, clear_run
from femts.training.data_module import split_for
from femts.training.evaluate import scale_notes
from femts.training.fit import FitRequest, fit
from femts.training.resolve import Lengths, horizon, resolve_run
from femts.training.select.candidates import shortlist
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
) -> Forecaster:
    """Train `model` on `dataset` for a budget of steps, and score it once on the test part.

    Args:
        dataset: what `load_dataset` gave, or anything it takes.
        model: registered name, or `auto`, which tries several and takes the best (`metrics["auto"]`);
            None takes fem_sm_ridge for data of the catalogue, and `auto` for other data.
        pred_len: P, steps of one forecast; None or `auto` takes 96 for the catalogue, and for other
            data what suits the step, such as 12 months, 8 quarters, 13 weeks, 28 days and 48 hours.
        seq_len: L, steps of look-back; None or `auto` takes the protocol's.
        protocol: `paper`, `lookback96` or `seasons` (whole seasons that leave half of the rows to
            learn from); None takes the first for the catalogue and the last for other data.
        out: run folder; None keeps nothing on disk (`Forecaster.save` does).
        seed: decides initial weights, order of the windows and dropout.
        max_steps: optimiser steps; None takes the recipe's.
        max_epochs: the same in passes over the training windows; at most one of the two.
        time_limit: longest time for this call, as `90s`, `9m` or `1h30m`; where the steps would take
            longer, the learning rate falls to zero within it all the same, and time for the scores
            is left. With `refit`, half of it is for the training that is scored.
        device: `auto`, `cpu`, `cuda` or `mps`.
        precision: `auto`, `32` or `bf16`.
        refit: then train once more, on all rows there are, with what was chosen, so that the forecaster has seen the
            last of them. The one that was scored is its `scored`, and its intervals come from the errors of that one
            on validation and test rows. None does so for all data but those of the catalogue.
        resume: continue the run in `out`, if it was interrupted, start it where there is none, and read it where it is
            finished; on a CPU the result is the same to the bit as without a break.
        overwrite: replace the run in `out`, finished or not, once all that is asked for is checked and the new one is
            about to be written. A folder that holds anything but a run is refused; other files beside a run stay.
        settings: `model.*` and `training.*` by name, values typed or as text.
        progress: show a line on stderr where that is a terminal.
        data_root: where data of the catalogue is looked for.

    Returns:
        The forecaster, with `metrics` (test errors in scaled units), `validations` and
        intervals.

    Raises:
        UsageError: something asked for does not exist or does not fit, or `out` holds the run of other settings or
            data; nothing was written.
        RunFailure: the loss became NaN or infinite, the disk is full, or (as `Interrupted`) a signal came.
    """
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
    data = dataset if isinstance(dataset, Dataset) else load_dataset(dataset, data_root)
    request = replace(
        request,
        lengths=Lengths(pred_len, seq_len, protocol),
        out=folder,
        resume=resume,
        overwrite=overwrite,
        refit=refits(data) if refit is None else refit,
        progress=progress,
    )
    data = split_for(data, pred_len)
    if request.model == AUTO and overwrite and folder is not None:
        _check_choice(request, data)
        with locked(folder):
            clear_run(folder)
    made = choose(request, data) if request.model == AUTO else fit(with_look_back(request, data), data)
    for note in scale_notes(made):
        warn(f"{note}.", ScaleWarning)
    return made


def _check_overwrite(folder: Path | None, resume: bool) -> None:
    """UsageError where there is nothing that may be replaced."""
    if folder is None:
        raise UsageError("To overwrite a run, name its folder with --out (out= in Python).")
    if resume:
        raise UsageError("--resume and --overwrite cannot be combined; remove one of them.")
    check_replaceable(folder)


def _check_choice(request: FitRequest, data: Dataset) -> None:
    """UsageError where none of the candidates of `request` fits `data`."""
    steps, refused = horizon(data, request.lengths.pred_len).steps, list[UsageError]()
    lengths = request.lengths._replace(pred_len=steps)
    for each in shortlist(data, lengths):
        if each.reason:
            continue
        try:
            config = resolve_run(data, each.model, each.lengths(lengths), {}, request.training, ignores=True)
            for part in PARTS:
                check_windows(data, part, config.seq_len, steps, config.reads_raw)
            return
        except UsageError as error:
            refused.append(error)
    if refused:
        raise refused[0]


def refits(data: Dataset) -> bool:
    """Tell whether a forecaster of `data` is trained on all rows in the end where nobody says so."""
    return data.source not in CATALOG
