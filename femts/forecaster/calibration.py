"""Calibration of a trained forecaster: the intervals of its forecasts, made on the validation part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from femts.config.values import check_steps
from femts.data.dataset import Dataset
from femts.data.panel import Panel
from femts.data.source import held_out
from femts.data.windows import Windows
from femts.errors import UsageError
from femts.evaluation.conformal import calibrate, scored_windows
from femts.evaluation.intervals import LEVELS, Intervals, check_levels, refuse_unreachable
from femts.forecaster.scoring import score_windows, scorer
from femts.forecaster.trained import D, P, Trained


def new_intervals(
    forecaster: Trained[Any, Any], pred_len: int | None, level: Sequence[float], data: Dataset | Panel
) -> Intervals:
    """Intervals calibrated anew on the validation part of `data`; see `Forecaster.calibrate`."""
    own = own_intervals(forecaster, pred_len, level)
    if own is not None:
        return own
    windows = score_windows(forecaster, "val", calibrated_steps(forecaster, pred_len), data)
    return intervals_of(forecaster, windows.within_scale(), level)


def own_intervals(forecaster: Trained[Any, Any], pred_len: int | None, level: Sequence[float]) -> Intervals | None:
    """Intervals that the model has by itself; None where it has none. UsageError for another `level` than theirs."""
    if not forecaster.model.levels:
        return None
    steps = check_steps(calibrated_steps(forecaster, pred_len))
    own = Intervals.of_model(forecaster.model, steps, len(forecaster.targets))
    own.at(_further(level), steps)
    return own


def calibrated_steps(forecaster: Trained[Any, Any], pred_len: int | None) -> int:
    """Steps to calibrate: `pred_len`, or as many as before; UsageError for fewer than a forecast has."""
    own = forecaster.config.pred_len
    if pred_len is None:
        return own if forecaster.intervals is None else max(own, forecaster.intervals.steps)
    if check_steps(pred_len) < own:
        raise UsageError(
            f"Intervals for a horizon of {pred_len} would be too short for this run, which forecasts {own} steps; "
            f"calibrate at least {own} (--pred-len {own})."
        )
    return pred_len


def _further(level: Sequence[float]) -> tuple[float, ...]:
    """Levels asked for besides the usual ones."""
    usual = level is None or (isinstance(level, list | tuple) and not level)
    return () if usual else check_levels(level)


def intervals_of(forecaster: Trained[Any, Any], windows: Windows, level: Sequence[float]) -> Intervals:
    """Intervals calibrated on `windows`, of the usual levels, of those before and of `level`."""
    more, before = _further(level), () if forecaster.intervals is None else forecaster.intervals.levels
    refuse_unreachable(more, *scored_windows(forecaster.model, windows))
    levels = (*LEVELS, *before, *more)
    intervals, _ = calibrate(forecaster.model, windows, levels, forecaster.config.training.eval_batch_size)
    return intervals


def calibrate_again(
    forecaster: Trained[P, D], pred_len: int | None, level: Sequence[float], dataset: object
) -> Intervals:
    """Intervals of the forecaster calibrated anew, and where it learned from all rows, those of the one
    that is scored as well; see `Forecaster.calibrate`."""
    of = scorer(forecaster)
    data = of._own_data(dataset)
    of.intervals = new_intervals(of, pred_len, level, data)
    return of.intervals if of is forecaster else new_intervals(of, pred_len, level, held_out(data))
