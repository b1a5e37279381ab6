"""From data to forecaster in one call."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from femts.config.arguments import check_callable, check_flag, check_path
from femts.config.model import DEFAULT_MODEL
from femts.config.training import parse_span
from femts.data.dataset import Dataset
from femts.data.panel import Panel
from femts.data.source import all_rows, load_source
from femts.errors import UsageError
from femts.forecaster.forecaster import Forecaster
from femts.forecaster.saved_run import read_config
from femts.training.device import resolve_place
from femts.training.outset import Outset, at_place, ready, working_folder
from femts.training.resolve import Lengths, length_notes, resolve_run, resolve_training, thinned_notes
from femts.training.sitting import Sitting
from femts.training.stopping import Interrupted

if TYPE_CHECKING:
    import pandas as pd


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
    final: bool = False,
    settings: Mapping[str, Any] | None = None,
    progress: bool = False,
    data_root: str | Path | None = None,
    say: Callable[[str], None] | None = None,
) -> Forecaster:
    """Train `model` on `dataset` for a budget of steps, and score it once on the test part.

    Args:
        dataset: what `load_dataset` or `load_panel` gave, or anything they take; of that a long table is a panel.
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
            is left. With `final`, half of it is for the training that is scored.
        device: `auto`, `cpu`, `cuda` or `mps`.
        precision: `auto`, `32` or `bf16`.
        final: then train once more, on all rows there are, with what was chosen: for a forecaster
            that is put to use. The one that was scored is its `scored`, and its intervals come from
            the errors of that one on validation and test rows.
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
    for name, flag in {"resume": resume, "progress": progress, "final": final}.items():
        check_flag(flag, name)
    check_callable(say, "say")
    model_settings, training = resolve_training(model, given, {} if settings is None else settings)
    place = resolve_place(training)
    if place.devices > 1 and getattr(multiprocessing.current_process(), "_inheriting", False):
        raise UsageError("A script that trains on several devices needs its code under `if __name__ == '__main__':`.")
    data = dataset if isinstance(dataset, Dataset | Panel) else load_source(dataset, data_root)
    data = ready(data, pred_len)
    lengths = Lengths(pred_len, seq_len, protocol)
    config = resolve_run(data, model, lengths, model_settings, training)
    outset, whole = Outset.of(data, config), None
    if final:
        whole = Outset.of(all_rows(data), replace(config, final=True), ("train",))
    limit = None if config.training.max_time is None else parse_span(config.training.max_time)
    with at_place(place):
        if resume and out is not None:
            read_config(out)  # or the lock would make a folder to refuse
        with working_folder(out, place) as folder:
            sitting = Sitting(place, folder, out is not None, resume, started, limit, progress)
            begun = sitting.begin(outset, whole)
            if say is not None:
                thinned = thinned_notes(begun[0].forecaster.model, outset.windows)
                for note in (*data.notes, *length_notes(data, model, lengths), *thinned):
                    say(note)
            try:
                forecaster = sitting.finish(begun)
            except KeyboardInterrupt as error:
                remedy = (
                    "nothing was kept" if out is None else f"what was reached is in {out}; continue it with --resume"
                )
                raise Interrupted(f"Training was interrupted; {remedy}.") from error
            if out is not None and folder is not None:
                forecaster.write(folder)
    return cast(Forecaster, forecaster)
