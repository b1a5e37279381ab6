"""Calibration of the prediction intervals of a trained forecaster on the validation split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from femts.config.values import check_steps
from femts.data.dataset import Dataset
from femts.errors import UsageError
from femts.evaluation.conformal import calibrate, scored_windows, usual_levels
from femts.evaluation.intervals import Intervals, check_levels, refuse_unreachable
from femts.forecaster.scoring import score_windows, scorer_on
from femts.text import argument

if TYPE_CHECKING:
    from femts.forecaster.forecaster import Forecaster


def new_intervals(forecaster: Forecaster, pred_len: int | None, level: Sequence[float], data: Dataset) -> Intervals:
    """Intervals recalibrated on the validation split of `data`; see `Forecaster.calibrate`."""
    model, steps = forecaster.model, check_steps(_steps(forecaster, pred_len), "pred_len")
    usual = level is None or (isinstance(level, list | tuple) and not level)
    further = () if usual else check_levels(level)
    if model.levels:  # the model has its own intervals
        Intervals.of_model(model, steps, len(forecaster.targets)).check(further, steps)
    rows = int((data.split.val[:, 1] - data.split.val[:, 0]).max())
    held = max(forecaster.config.pred_len, min(steps, rows))  # steps that reach no further than the rows
    windows = score_windows(forecaster, "val", held, data).within_scale()
    if not model.levels:
        refuse_unreachable(further, *scored_windows(model, windows))
    before = () if forecaster.intervals is None else forecaster.intervals.levels
    levels = (*usual_levels(model), *before, *further)
    training = forecaster.config.training
    made = calibrate(model, windows, levels, training.eval_batch_size, method=training.intervals)[0]
    return made.longer(steps)


def _steps(forecaster: Forecaster, pred_len: int | None) -> int:
    """Number of steps to calibrate: `pred_len`, or as many as before; raise UsageError for fewer than the horizon."""
    own = forecaster.config.pred_len
    if pred_len is None:
        return own if forecaster.intervals is None else max(own, forecaster.intervals.steps)
    if check_steps(pred_len, "pred_len") < own:
        fault = f"Intervals cannot be calibrated for {pred_len} steps, because this run forecasts {own}"
        text = f"{fault}; use {argument(f'pred_len={own}')} or more."
        raise UsageError(text, argument="pred_len", value=pred_len, remedy={"pred_len": own})
    return pred_len


def calibrate_again(
    forecaster: Forecaster, pred_len: int | None, level: Sequence[float], dataset: object
) -> Forecaster:
    """The forecaster with new intervals, also for its scored model if it was refitted on all rows; see
    `Forecaster.calibrate`."""
    on, data = scorer_on(forecaster, "val", dataset)
    made = new_intervals(on, pred_len, level, data)
    if forecaster.scored is None:
        return replace(forecaster, intervals=made)
    held_out = new_intervals(replace(on, intervals=made), pred_len, level, data.held_out())
    return replace(forecaster, intervals=held_out, scored=replace(forecaster.scored, intervals=made))
