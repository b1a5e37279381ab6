"""Calibration of the prediction intervals of a trained forecaster on the validation split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from femts.config.values import check_steps
from femts.data.dataset import Dataset
from femts.data.describe import count
from femts.data.splits import Split
from femts.data.windows import Windows
from femts.errors import UsageError
from femts.evaluation.conformal import calibrate, scored_windows, usual_levels
from femts.evaluation.intervals import Intervals, check_levels, refuse_unreachable
from femts.forecaster.scoring import own_data, score_windows, scorer, scorer_on
from femts.forecaster.seen import Use, use_of
from femts.text import argument, quote

if TYPE_CHECKING:
    from femts.forecaster.forecaster import Forecaster


def new_intervals(
    forecaster: Forecaster,
    pred_len: int | None,
    level: Sequence[float],
    data: Dataset,
    like: Windows | None = None,
) -> Intervals:
    """Intervals recalibrated on the validation split of `data`; see `Forecaster.calibrate`. `like` are other windows of
    the same data."""
    model, steps = forecaster.model, check_steps(_steps(forecaster, pred_len), "pred_len")
    usual = level is None or (isinstance(level, list | tuple) and not level)
    further = () if usual else check_levels(level)
    if model.levels:  # the model has its own intervals
        Intervals.uncorrected(model.levels, steps, len(forecaster.targets)).check(further, steps)
    rows = int((data.split.val[:, 1] - data.split.val[:, 0]).max())
    held = max(forecaster.config.pred_len, min(steps, rows))  # steps that reach no further than the rows
    windows = score_windows(forecaster, "val", held, data, like).within_scale()
    if not model.levels:
        refuse_unreachable(further, *scored_windows(model, windows))
    before = () if forecaster.intervals is None else forecaster.intervals.levels
    levels = (*usual_levels(model), *before, *further)
    training = forecaster.config.training
    made = calibrate(model, windows, levels, training.eval_batch_size, method=training.intervals)[0]
    return made.longer(steps)


def _later_intervals(forecaster: Forecaster, pred_len: int | None, level: Sequence[float], data: Dataset) -> Intervals:
    """Intervals from the errors of the scored model on the rows of `data` that were used for nothing in training.

    Raises:
        UsageError: There are too few such rows for a window, or too few windows to replace better intervals.
    """
    series = np.repeat(np.arange(len(data)), data.lengths)
    rows = np.arange(len(series)) - np.repeat(data.spans[:, 0], data.lengths)
    used = np.bincount(series, use_of(forecaster, data, series, rows) > Use.NONE, len(data)).astype(np.int64)
    ranges = np.stack([used, data.lengths], axis=1)
    of = scorer(forecaster)
    if of.preprocess.series != data.series:
        of = replace(of, preprocess=of.preprocess.for_series(data))
    split = np.stack([np.stack([np.zeros_like(used), used], axis=1), ranges, ranges[:, [1, 1]]], axis=1)
    if int((ranges[:, 1] - ranges[:, 0]).max()) < forecaster.config.pred_len:
        raise UsageError(
            f"Data '{quote(data.name)}' have {int((ranges[:, 1] - ranges[:, 0]).max())} rows after those of training, but a "
            f"window has {forecaster.config.pred_len}; give a table with more later rows."
        )
    made = new_intervals(of, pred_len, level, replace(data, split=Split(split)))
    before = forecaster.intervals
    if not made.own and before is not None and made.disjoint < 2 <= before.disjoint:
        raise UsageError(
            f"The rows of '{quote(data.name)}' after those of training cover less than two horizons, too little to "
            f"replace intervals from {before.source}; give a table with more later rows."
        )
    return made


def _steps(forecaster: Forecaster, pred_len: int | None) -> int:
    """Number of steps to calibrate: `pred_len`, or as many as before; raise UsageError for fewer than the horizon."""
    own = forecaster.config.pred_len
    if pred_len is None:
        return own if forecaster.intervals is None else max(own, forecaster.intervals.steps)
    if check_steps(pred_len, "pred_len") < own:
        fault = f"Intervals cannot be calibrated for {count(pred_len, 'step')}, because this run forecasts {own}"
        text = f"{fault}; use {argument(f'pred_len={own}')} or more."
        raise UsageError(text, argument="pred_len", value=pred_len, remedy={"pred_len": own})
    return pred_len


def calibrate_again(
    forecaster: Forecaster, pred_len: int | None, level: Sequence[float], dataset: object
) -> Forecaster:
    """The forecaster with new intervals, also for its scored model if it was refitted on all rows; see
    `Forecaster.calibrate`."""
    data = own_data(scorer(forecaster), dataset)
    if data.record != scorer(forecaster).data:
        return replace(forecaster, intervals=_later_intervals(forecaster, pred_len, level, data))
    on, data = scorer_on(forecaster, "val", data)
    made = new_intervals(on, pred_len, level, data)
    if forecaster.scored is None:
        return replace(forecaster, intervals=made)
    held_out = new_intervals(replace(on, intervals=made), pred_len, level, data.held_out())
    return replace(forecaster, intervals=held_out, scored=replace(forecaster.scored, intervals=made))
