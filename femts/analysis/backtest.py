"""Backtest: forecasts from past cutoffs, each as `predict` would have made it at that time."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.analysis.rolling import rolling_forecasts, rows_at
from femts.config.arguments import check_flag, check_kind
from femts.data.catalog import CATALOG
from femts.data.columns import is_table
from femts.data.cutoffs import Cutoff, rolling_cutoffs
from femts.data.dataset import Dataset
from femts.data.describe import are
from femts.data.describe import count as counted
from femts.data.normalise import normalise
from femts.data.read import read_headless
from femts.data.splits import Split
from femts.errors import AccuracyWarning, NoNewRows, UsageError, memory_checked, warn
from femts.forecaster.bounds import QuantileSpec
from femts.forecaster.forecaster import Forecaster, Source
from femts.forecaster.inputs import steps_ahead, warn_new_series
from femts.forecaster.scoring import calibrated, check_step_of_training, read_like
from femts.forecaster.seen import Use, rows_used, use_of
from femts.text import Message, argument, quote
from femts.training.refit import refit

logger = logging.getLogger(__name__)

USUAL = 5  # default number of forecasts
Origins = list[tuple[Forecaster, Cutoff]]


@memory_checked()
def backtest(
    forecaster: Forecaster,
    data: Source,
    *,
    n_windows: int | None = None,
    step_size: int | None = None,
    horizon: int | None = None,
    refit: bool = False,
    level: Sequence[float] | None = None,
    quantiles: Sequence[float] | None = None,
) -> pd.DataFrame:
    """Forecast from several past cutoffs, of which the last forecast ends with the data.

    Each forecast uses only the rows before its cutoff, and none is made by a model that was trained on rows after it:
    for rows on which a forecaster was refitted after scoring, `scored` makes the forecast. With `refit`, the forecaster
    is instead retrained before each forecast on all rows before the cutoff, with the settings, the seed and the number
    of steps of the original run, as in `femts.train`. For several series, cutoffs are counted from the end of each
    series; a series is left out at a cutoff with less than one season before it, and without `refit` also at cutoffs
    before rows on which both models were trained.

    Args:
        forecaster: a trained forecaster.
        data: catalogue name, file, frame or `Dataset` with the training columns in raw units. Future covariates are
            taken from it as well, as if they had been known exactly.
        n_windows: number of forecasts; None takes five, or as many as the rows of a single table allow and, without
            `refit`, as cover only rows that were used neither for training nor for validation.
        step_size: rows between cutoffs; None takes the horizon.
        horizon: steps to forecast; None takes the horizon of the training, and longer forecasts are recursive.
        refit: retrain before each forecast.
        level: levels of prediction intervals in percent, such as `[80, 95]`; without `refit`.
        quantiles: quantiles to return, such as `[0.1, 0.9]`; without `refit`.

    Returns:
        One row for each cutoff, step and target, in raw units: `cutoff` (time stamp of the last row before the
        forecast, or its row number), `date` (or `step`), `column`, `forecast`, `seasonal_naive` (the last season before
        the cutoff, repeated) and `actual`, NaN where it is missing, then `lo-80`, `hi-80` and so on, and `q-10`. For a
        long table, `window` (number of the cutoff) and `series` come first, and `column` is omitted if there is a
        single target. `backtest_scores` summarises the result.

    Raises:
        UsageError: An argument or the length of the data does not fit, or forecasts would cover rows on which the
            model was trained; the message says why.

    Warns:
        AccuracyWarning: Forecasts cover rows on which the model was selected or its intervals were calibrated.
    """
    check_kind(forecaster, Forecaster, "The forecaster", "give what femts.train or femts.load returned")
    check_flag(refit, "refit")
    bounds = QuantileSpec.of(level, quantiles)
    if refit and any(bounds):
        fault = "A backtest with refitting has no intervals, because a refitted model has no held-out errors"
        text = f"{fault}; omit {argument('level')} and {argument('quantiles')}, or {argument('refit')}."
        raise UsageError(text, argument="refit", value=refit, remedy={"refit": None})
    steps = forecaster.config.pred_len if horizon is None else horizon
    step_size = steps if step_size is None else step_size
    for name, value in (("n_windows", n_windows), ("step_size", step_size), ("horizon", steps)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1):
            text = f"A backtest requires a whole number of at least 1 for {argument(name)}, not {value}."
            raise UsageError(text, argument=name, value=value, remedy={name: None})
    if any(bounds):
        calibrated(forecaster).check(bounds.needed, steps)
    rows, where = rows_of(forecaster, data)
    cutoffs = _cutoffs(forecaster, rows, n_windows, step_size, steps, where, refit)
    if rows.schema.panel:
        _log_short(rows, cutoffs)
    else:
        _check_steps(rows, cutoffs, steps, where)
    if refit:
        origins = _refitted(forecaster, rows, [each for each in cutoffs if len(each.series)], where)
    else:
        origins = iter(_unseen(forecaster, rows, cutoffs, n_windows is None))
    warn_new_series(rows.series, forecaster.preprocess.places(rows.series) >= 0)
    started = time.monotonic()
    frame = rolling_forecasts(rows, origins, steps, bounds)
    if frame["forecast"].isna().all():
        raise UsageError(f"{where} has no value in its look-backs; provide at least one.")
    if refit:
        count = frame["window"].nunique()
        logger.info(f"{counted(count, 'refit')} and their forecasts took {time.monotonic() - started:.1f} s")
    followed = frame[frame["actual"].notna()]
    without = int(followed["forecast"].isna().sum())
    if without:
        logger.info(
            f"{without} of {counted(len(followed), 'value')} have no forecast, because their look-backs contain no value; they "
            "are excluded from the scores of both models"
        )
    if not rows.schema.panel:
        return frame.drop(columns=["window", "series"])
    return frame if len(forecaster.targets) > 1 else frame.drop(columns="column")


def rows_of(forecaster: Forecaster, data: Source) -> tuple[Dataset, str]:
    """All rows with the columns of the training data in order, and a name for messages."""
    freq, schema, table, where = forecaster.freq, forecaster.config.schema, None, "The frame"
    if not schema.panel and is_table(data):
        table = data
    elif not schema.panel and freq is None and isinstance(data, str | Path) and Path(data).is_file():
        where, table = f"File {data}", read_headless(Path(data))
    else:
        data = data if isinstance(data, Dataset) else read_like(forecaster, data)
        own = data.source and data.source not in CATALOG
        where = f"File {data.source}" if own else f"Dataset '{quote(data.name)}'"
        check_step_of_training(forecaster, data.freq, where)
        if bool(data.schema.panel) != bool(schema.panel):
            one, other = ("series of their own", "one series") if data.schema.panel else ("one series", "several")
            raise UsageError(
                f"{where} has {one}, but this model was trained on {other}; provide data of the same kind."
            )
        if data.columns == forecaster.columns and data.schema.roles.future == schema.roles.future:
            return data, where
        if schema.panel:
            raise UsageError(
                f"{where} has different columns from the training data; provide data with the same columns."
            )
        table = data.frame()
    made = normalise(table, schema, where, name=where, columns=forecaster.columns, freq=freq)
    rows = made.rows
    return replace(made, season=forecaster.season, split=Split.of((0, rows), (rows, rows), (rows, rows))), where


def _cutoffs(
    forecaster: Forecaster, data: Dataset, n_windows: int | None, step: int, steps: int, where: str, refit: bool
) -> list[Cutoff]:
    """All cutoffs in order, without series that have less than one season before a cutoff.

    Raises:
        UsageError: A single table is too short; the message says what would fit.
    """
    windows, season = n_windows or USUAL, forecaster.season
    if not data.schema.panel:
        needed, last = max(forecaster.config.fewest_rows, season), data.rows - steps
        if refit:  # a training window of each model that has any
            configs = [one.config for one in forecaster.members or (forecaster,)]
            needed = max(needed, *(each.seq_len + 1 for each in configs if not each.reads_raw), 0)
        if n_windows is None:
            windows = max(1, min(USUAL, (last - needed) // step + 1))
        if last - (windows - 1) * step < needed:
            together, fitting = needed + (windows - 1) * step + steps, (last - needed) // step + 1
            most = "one window" if fitting == 1 else f"{fitting} windows"
            remedy = f"use at most {most} or provide more rows"
            if last < needed:
                ahead = f"use a horizon of at most {data.rows - needed}{' and one window' * (windows > 1)}, or "
                remedy = f"{ahead * (data.rows > needed)}provide more rows"
            text = (
                f"{where} has {counted(data.rows, 'row')}, but {counted(windows, 'window')} {counted(step, 'row')} apart with a horizon of {steps} "
                f"require {together}, {needed} of them before the first forecast; {remedy}."
            )
            fewer = {"n_windows": fitting} if fitting > 0 else None
            raise UsageError(text, argument="n_windows", value=n_windows, remedy=fewer)
    return rolling_cutoffs(data.lengths, windows, step, steps, season)


def _log_short(data: Dataset, cutoffs: list[Cutoff]) -> None:
    """Log which series are skipped at some cutoffs, unless all are."""
    everywhere = np.bincount(np.concatenate([each.series for each in cutoffs]), minlength=len(data)) == len(cutoffs)
    short = np.flatnonzero(~everywhere)
    if len(short) and any(len(each.series) for each in cutoffs):
        logger.info(
            f"{len(short)} of {len(data)} series, the first '{quote(data.series[short[0]])}', {are(len(short))} skipped at cutoffs "
            f"with less than a season of {data.season} rows before them"
        )


def _check_steps(data: Dataset, cutoffs: list[Cutoff], steps: int, where: str) -> None:
    """Raise UsageError if the rows after a cutoff do not match the forecast steps."""
    if data.freq is None or data.stamps is None:
        return
    for cutoff in cutoffs:
        row = int(cutoff.rows[0])
        ahead = steps_ahead(data.take(cutoff.series, cutoff.rows), steps)
        if not (ahead == data.stamps[row : row + steps]).all():
            stamp = data.stamps[row - 1]
            raise UsageError(f"{where} has an irregular step ('{data.freq}') after {stamp}; move the windows.")


def models_of(forecaster: Forecaster) -> list[Forecaster]:
    """The forecaster, and the one that was scored if it was refitted."""
    return [forecaster] if forecaster.scored is None else [forecaster, forecaster.scored]


def uses_of(forecaster: Forecaster, data: Dataset, cutoffs: Sequence[Cutoff]) -> list[NDArray[np.int64]]:
    """What each of `models_of` used the rows after each cutoff for, (models, series) of `Use` for each."""
    if not cutoffs:
        return []
    series, rows = np.concatenate([each.series for each in cutoffs]), np.concatenate([each.rows for each in cutoffs])
    used = np.stack([use_of(model, data, series, rows) for model in models_of(forecaster)])  # dates are read once
    return np.split(used, np.cumsum([len(each.series) for each in cutoffs])[:-1], axis=1)


def first_unseen(uses: Sequence[NDArray[np.int64]]) -> int:
    """Number of the first cutoff from which on no rows of some series were used for training or selection; that of the
    last one if there is none."""
    fresh = [not use.size or bool((use.min(axis=0) == Use.NONE).any()) for use in uses]
    return next((k + 1 for k in range(len(uses) - 2, -1, -1) if not fresh[k]), 0)


def unused_rows(forecaster: Forecaster, data: Dataset, where: str) -> int:
    """Largest number of rows at the end of a series that were used neither for training nor for validation; for a panel,
    of the series of the training.

    Raises:
        NoNewRows: There is none.
    """
    known = forecaster.preprocess.places(data.series) >= 0
    unused = data.lengths - rows_used(forecaster, data, Use.SELECTION)
    most = int(unused[known | ~known.any()].max())
    if not most:
        raise NoNewRows(f"{where} has no row after those used for training and validation; provide later rows.")
    return most


def _unseen(forecaster: Forecaster, data: Dataset, cutoffs: list[Cutoff], fewer: bool) -> Origins:
    """The forecaster to use for each series at each cutoff: itself, or the model that was scored if only that was not
    trained on the rows after the cutoff.

    Args:
        forecaster: a trained forecaster.
        data: data with time stamps, or with row numbers.
        cutoffs: all cutoffs in order.
        fewer: take only the last cutoffs, as many as cover no row that was used for training or selection.

    Raises:
        UsageError: No series is left at a cutoff.

    Warns:
        AccuracyWarning: A forecast covers rows that were used for selection.
    """
    models, uses = models_of(forecaster), uses_of(forecaster, data, cutoffs)
    if fewer:
        first = first_unseen(uses)
        cutoffs, uses = [replace(each, window=each.window - first) for each in cutoffs[first:]], uses[first:]
        if first:
            note = (
                f"{len(cutoffs)} of {len(cutoffs) + first} windows are forecast, because earlier ones cover rows used "
                f"for training or validation; {argument('refit=True')} forecasts all of them"
            )
            logger.info(Message(note))
    trained = [bool(use.size) and bool((use.min(axis=0) == Use.TRAINING).all()) for use in uses]
    if any(trained):
        free = next((k for k, each in enumerate(reversed(trained)) if each), 0)
        remedy = f"use at most {free} window{'s' * (free > 1)}" if free else "provide later rows"
        text = (
            f"Forecasts of {sum(trained)} of {counted(len(cutoffs), 'cutoff')} would cover rows on which this model was trained, "
            f"so their errors would mean nothing; {remedy}, or refit before each forecast with {argument('refit=True')}."
        )
        mended = {"n_windows": free} if free else {"refit": True}
        raise UsageError(text, argument="n_windows", value=len(cutoffs), remedy=mended)
    origins, used = Origins(), Counter[str]()
    left_out, selected = set[int](), set[int]()
    for cutoff, use in zip(cutoffs, uses, strict=True):
        best, least = use.argmin(axis=0), use.min(axis=0)
        left_out |= set(cutoff.series[least == Use.TRAINING].tolist())
        some = cutoff.series if data.schema.panel else np.full(len(least), cutoff.window)
        selected |= set(some[least == Use.SELECTION].tolist())
        for number, model in enumerate(models):
            own = np.flatnonzero((best == number) & (least < Use.TRAINING))
            if len(own):
                origins.append((model, replace(cutoff, series=cutoff.series[own], rows=cutoff.rows[own])))
                used[("all rows", "scored")[number]] += 1
    if used["scored"]:
        logger.info(
            f"forecasts of {used['scored']} of {counted(len(cutoffs), 'cutoff')} are from the model that was scored, because the "
            "one refitted on all rows has seen what follows"
        )
    remedy = f"use fewer windows, or refit before each forecast with {argument('refit=True')}"
    if left_out:
        warn(
            f"{len(left_out)} of {len(data)} series, the first '{quote(data.series[min(left_out)])}', {are(len(left_out))} left out at "
            f"cutoffs before rows on which the model was trained; {remedy}.",
            AccuracyWarning,
        )
    if selected:
        some_of = (
            f"{len(selected)} series" if data.schema.panel else f"{len(selected)} of {counted(len(cutoffs), 'cutoff')}"
        )
        warn(
            f"Forecasts of {some_of} cover rows used for validation, so their errors are optimistic; {remedy}.",
            AccuracyWarning,
        )
    return origins


def _refitted(
    forecaster: Forecaster, data: Dataset, cutoffs: list[Cutoff], where: str
) -> Iterator[tuple[Forecaster, Cutoff]]:
    """Forecasters trained on all rows before each cutoff, of all series that have one there."""
    for cutoff in cutoffs:
        started, before = time.monotonic(), rows_at(data, cutoff)
        name = f"{data.name if data.schema.panel else where}, before cutoff {cutoff.window}"
        made = refit(forecaster, replace(before, name=name))
        rows, last = int(cutoff.rows.sum()), "" if before.stamps is None else f" up to {before.stamps.max()}"
        of = f" of {len(cutoff.series)} series before cutoff {cutoff.window}" if data.schema.panel else last
        logger.info(f"trained on the {counted(rows, 'row')}{of} in {time.monotonic() - started:.1f} s")
        yield made, cutoff
