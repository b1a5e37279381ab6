"""Backtest: forecasts from past cutoffs, each as `predict` would have made it at that time."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.config.arguments import check_flag, check_kind, check_text
from femts.data.catalog import CATALOG
from femts.data.columns import is_table
from femts.data.dataset import Dataset
from femts.data.normalise import normalise
from femts.data.power import PowerTransform
from femts.data.preprocess import last_observed
from femts.data.read import read_headless
from femts.data.splits import Split
from femts.errors import UsageError, memory_checked
from femts.forecaster.bounds import QuantileSpec, SeriesForecasts, raw_bounds
from femts.forecaster.forecaster import Forecaster, Source
from femts.forecaster.forecasting import forecast_series
from femts.forecaster.inputs import ended_note, ends_of, steps_ahead, warn_new_series
from femts.forecaster.scoring import calibrated, check_step_of_training, read_like
from femts.text import quote
from femts.training.refit import refit

logger = logging.getLogger(__name__)

Array = NDArray[np.float64]
USUAL = 5  # default number of forecasts
FORECASTS = ("forecast", "seasonal_naive")


@dataclass(frozen=True, eq=False)
class _Moment:
    """Cutoff of a backtest: its number, from 1, the indices of its series (S,), and the number of rows of each before
    it (S,)."""

    window: int
    series: NDArray[np.int64]
    rows: NDArray[np.int64]


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

    Each forecast uses only the rows before its cutoff. With `refit`, the forecaster is first retrained on all of these
    rows with the settings, the seed and the number of steps of the original run, as in `femts.train`. For several
    series, cutoffs are counted from the end of each series; a series with less than one season before a cutoff is left
    out there, both from the forecast and from the training before it.

    Args:
        forecaster: a trained forecaster.
        data: catalogue name, file, frame or `Dataset` with the training columns in raw units. Future covariates are
            taken from it as well, as if they had been known exactly.
        n_windows: number of forecasts; None takes five, or as many as the rows of a single table allow.
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
        UsageError: An argument or the length of the data does not fit; the message says why.
    """
    check_kind(forecaster, Forecaster, "The forecaster", "give what femts.train or femts.load returned")
    check_flag(refit, "refit")
    bounds = QuantileSpec.of(level, quantiles)
    if refit and any(bounds):
        raise UsageError(
            "A backtest with refitting has no intervals, because a refitted model has no held-out errors; omit level "
            "and quantiles, or refit."
        )
    steps = forecaster.config.pred_len if horizon is None else horizon
    step_size = steps if step_size is None else step_size
    for name, value in (("n_windows", n_windows), ("step_size", step_size), ("horizon", steps)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1):
            raise UsageError(f"A backtest requires a whole number of at least 1 for {name}, not {value}.")
    if any(bounds):
        calibrated(forecaster).check(bounds.needed, steps)
    rows, where = _rows(forecaster, data)
    moments = _moments(forecaster, rows, n_windows, step_size, steps, where, refit)
    if rows.schema.panel:
        _log_short(rows, moments, steps)
    else:
        _check_steps(rows, moments, steps, where)
    moments = [each for each in moments if len(each.series)]
    warn_new_series(rows.series, forecaster.preprocess.places(rows.series) >= 0)
    forecasts, gaps, started = list[pd.DataFrame](), _Gaps(), time.monotonic()
    for each in moments:
        current = _fit_before(forecaster, rows, each, where) if refit else forecaster
        forecasts.append(_forecast(current, rows, each, steps, gaps, bounds))
    if all(each["forecast"].isna().all() for each in forecasts):
        raise UsageError(f"{where} has no value in its look-backs; provide at least one.")
    gaps.log(len(moments), forecaster.config.seq_len)
    if refit:
        logger.info(f"{len(moments)} refits and their forecasts took {time.monotonic() - started:.1f} s")
    else:
        _log_learned(forecaster, rows, moments)
    frame = pd.concat(forecasts, ignore_index=True)
    followed = frame[frame["actual"].notna()]
    without = int(followed["forecast"].isna().sum())
    if without:
        logger.info(
            f"{without} of {len(followed)} values have no forecast, because their look-backs contain no value; they "
            "are excluded from the scores of both models"
        )
    return frame


def _rows(forecaster: Forecaster, data: Source) -> tuple[Dataset, str]:
    """All rows with the columns of the training data in order, and a name for messages; data without time stamps get
    row numbers."""
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
            return data if data.stamps is not None else replace(data, stamps=pd.RangeIndex(len(data.values))), where
        if schema.panel:
            raise UsageError(
                f"{where} has different columns from the training data; provide data with the same columns."
            )
        table = data.frame()
    made = normalise(table, schema, where, name=where, columns=forecaster.columns, freq=freq)
    rows = made.rows
    return replace(made, season=forecaster.season, split=Split.of((0, rows), (rows, rows), (rows, rows))), where


def _moments(
    forecaster: Forecaster, data: Dataset, n_windows: int | None, step: int, steps: int, where: str, refit: bool
) -> list[_Moment]:
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
            raise UsageError(
                f"{where} has {data.rows} rows, but {windows} windows {step} rows apart with a horizon of {steps} "
                f"require {together}, {needed} of them before the first forecast; {remedy}."
            )
    moments = list[_Moment]()
    for window in range(1, windows + 1):
        rows = data.lengths - (windows - window) * step - steps
        some = np.flatnonzero((rows >= season) & (rows > 0))
        moments.append(_Moment(window, some, rows[some]))
    return moments


def _log_short(data: Dataset, moments: list[_Moment], steps: int) -> None:
    """Log which series are skipped at some cutoffs; raise UsageError if all are."""
    if not any(len(moment.series) for moment in moments):
        raise UsageError(
            f"No series of '{quote(data.name)}' has a season of {data.season} rows before a forecast of {steps} "
            f"steps (the longest has {data.rows} rows); ask for fewer windows, or provide more rows."
        )
    everywhere = np.bincount(np.concatenate([each.series for each in moments]), minlength=len(data)) == len(moments)
    short = np.flatnonzero(~everywhere)
    if len(short):
        logger.info(
            f"{len(short)} of {len(data)} series, the first '{quote(data.series[short[0]])}', are skipped at cutoffs "
            f"with less than a season of {data.season} rows before them"
        )


def _check_steps(data: Dataset, moments: list[_Moment], steps: int, where: str) -> None:
    """Raise UsageError if the rows after a cutoff do not match the forecast steps."""
    if data.freq is None or data.stamps is None:
        return
    for moment in moments:
        row = int(moment.rows[0])
        ahead = steps_ahead(data.take(moment.series, moment.rows), steps)
        if not (ahead == data.stamps[row : row + steps]).all():
            stamp = data.stamps[row - 1]
            raise UsageError(f"{where} has an irregular step ('{data.freq}') after {stamp}; move the windows.")


def _log_learned(forecaster: Forecaster, data: Dataset, moments: list[_Moment]) -> None:
    """Log how many cutoffs, or series, are forecast on rows used for training or validation."""
    until, places = forecaster.series_until, forecaster.preprocess.places(data.series)
    known = np.array([until[place] if 0 <= place < len(until) else None for place in places], dtype=object)
    learned = set[int]()
    for moment in moments:
        first = data.spans[moment.series, 0] + moment.rows
        assert data.stamps is not None
        if data.freq is None:  # row numbers refer to the training table only
            of_training = data.sha256 and data.sha256 == forecaster.data["sha256"]
            late = moment.rows >= (forecaster.data["split"]["test"][0] if of_training else 0)
        else:
            late = ~_no_later(data.stamps[first], known[moment.series])
        some = moment.series if data.schema.panel else np.full(len(late), moment.window)
        learned |= set(some[~late].tolist())
    if learned:
        some_of = f"{len(learned)} series" if data.schema.panel else f"{len(learned)} of {len(moments)} cutoffs"
        remedy = (
            "backtest with refitting, or use the model in scored/"
            if forecaster.scored
            else "use fewer windows, or backtest with refitting"
        )
        logger.info(
            f"forecasts of {some_of} cover rows used for training or validation, so their errors are optimistic; "
            f"{remedy}"
        )


def _no_later(stamps: pd.Index, until: NDArray[np.object_]) -> NDArray[np.bool_]:
    """Mask of the `stamps` (n,) that are not later than `until`, texts or None; False for those in another time
    zone."""
    some = [each for each in until if each is not None]
    if not isinstance(stamps, pd.DatetimeIndex):
        return np.array(
            [each is not None and at <= int(each) for at, each in zip(stamps, until, strict=True)], dtype=bool
        )
    if not some or (pd.Timestamp(some[0]).tz is None) != (stamps.tz is None):
        return np.zeros(len(stamps), dtype=np.bool_)
    ours = stamps.tz_localize("UTC") if stamps.tz is None else stamps.tz_convert("UTC")
    return np.asarray(ours <= pd.to_datetime(list(until), utc=True))


def _fit_before(forecaster: Forecaster, data: Dataset, moment: _Moment, where: str) -> Forecaster:
    """A forecaster trained on all rows before the cutoff, of all series that have one there."""
    before, started = data.take(moment.series, moment.rows), time.monotonic()
    if forecaster.freq is None:
        before = replace(before, stamps=None)
    name = f"{data.name if data.schema.panel else where}, before cutoff {moment.window}"
    made = refit(forecaster, replace(before, name=name, source=None, sha256=before.fingerprint()))
    rows, last = int(moment.rows.sum()), "" if before.stamps is None else f" up to {before.stamps.max()}"
    of = f" of {len(moment.series)} series before cutoff {moment.window}" if data.schema.panel else last
    logger.info(f"trained on the {rows} rows{of} in {time.monotonic() - started:.1f} s")
    return made


@dataclass
class _Gaps:
    """Number of forecasts from rows with gaps, by how these are filled, and names of targets without a value."""

    filled: Counter[str] = field(default_factory=Counter)
    ended: dict[str, None] = field(default_factory=dict)

    def add(self, forecaster: Forecaster, before: Dataset, made: SeriesForecasts) -> None:
        """Count one forecast; gaps at the start and end of panel series are not reported."""
        if forecaster.config.schema.panel:
            names, gone = before.series, np.flatnonzero(made.ended.all(axis=1))
        else:
            names, (recent,) = forecaster.targets, made.recent
            gone = np.flatnonzero(made.ended.T[:, 0])
            if np.isnan(recent).any():
                earlier = before.values[: -len(recent), np.isnan(recent[0])]
                never = np.isnan(earlier).all(axis=0).any() and not forecaster.config.reads_raw
                mean = " or, if there is none, with the training mean" * bool(never)
                self.filled[f"rows with gaps, which are filled with the last value before them{mean}"] += 1
            if np.isnan(before.covariates[-len(recent) :]).any():
                self.filled["rows with gaps in future covariates, which are filled with the training mean"] += 1
        self.ended |= dict.fromkeys(names[each] for each in gone)

    def log(self, forecasts: int, steps: int) -> None:
        """Log the counts for `forecasts` forecasts from `steps` steps each."""
        for rows, count in self.filled.items():
            logger.info(f"{count} of {forecasts} forecasts use {rows}")
        if self.ended:
            logger.info(ended_note(tuple(self.ended), steps))


def _forecast(
    forecaster: Forecaster, data: Dataset, moment: _Moment, steps: int, gaps: _Gaps, bounds: QuantileSpec
) -> pd.DataFrame:
    """All forecasts of one cutoff, with the seasonal naive forecast, the actual values, and the requested bounds."""
    targets, before = data.n_targets, data.take(moment.series, moment.rows)
    start, needed = (data.spans[moment.series, 0] + moment.rows)[:, None], forecaster.config.known_steps(steps)
    after, ahead = start + np.arange(steps), steps_ahead(before, needed)
    # After the last row, its future covariates are repeated.
    read = np.minimum(start + np.arange(needed), data.spans[moment.series, 1:] - 1)
    made = forecast_series(forecaster, before, ahead, data.covariates[read]).first(steps)
    ahead = made.stamps
    gaps.add(forecaster, before, made)
    season = forecaster.season
    first = np.repeat(before.spans[:, 0], before.lengths)
    last = last_observed(before.values[:, :targets], first)
    rows = before.spans[:, 1:] - season + np.arange(steps) % season
    from_row = last[rows]  # (S, steps, T)
    level = made.preprocess.restore(np.zeros((len(before), 1, targets)))
    repeated = np.take_along_axis(before.values[:, :targets], from_row.reshape(-1, targets).clip(0), axis=0)
    naive = np.where(from_row < 0, level, repeated.reshape(from_row.shape))
    count, columns, points = len(before) * steps, list(forecaster.targets), made.raw()
    table = {
        "window": moment.window,
        "series": np.repeat(np.array(before.series, dtype=object), steps * targets),
        "cutoff": ends_of(before).repeat(steps * targets),
        "step" if data.freq is None else "date": ahead.repeat(targets),
        "column": columns * count,
        "forecast": points.ravel(),
        "seasonal_naive": naive.ravel(),
        "actual": data.values[after][..., :targets].ravel(),
    }
    if any(bounds):
        table |= {name: each.ravel() for name, each in raw_bounds(forecaster, made, points, bounds).items()}
    left_out = () if data.schema.panel and targets > 1 else ("column",) if data.schema.panel else ("window", "series")
    return pd.DataFrame({name: each for name, each in table.items() if name not in left_out})


@memory_checked()
def backtest_scores(frame: pd.DataFrame, forecaster: Forecaster, by: str | None = None) -> pd.DataFrame:
    """Errors of a backtest by cutoff and overall, compared with the seasonal naive forecast.

    Args:
        frame: result of `backtest`, in raw units.
        forecaster: the forecaster that made it, whose scaler defines the scaled units.
        by: `series` to group a long table by series; None groups by cutoff, for a long table by its number, `window`.

    Returns:
        The group (`all` for the mean), `model` (`forecast` or `seasonal_naive`) and `mse_scaled, mae_scaled` (in units
        of the run's own scaler, even after refits), `mse_raw, mae_raw` (in units of the data): means over all steps and
        columns for which both models have a forecast. For a long table, the scaled units are those of each series, NaN
        for one that was not in the training data, and raw means over series are omitted.

    Raises:
        UsageError: The table is not a backtest, or the group is unknown.
    """
    check_kind(forecaster, Forecaster, "The forecaster", "give the one that made the backtest")
    check_kind(frame, pd.DataFrame, "The backtest", "give the table that femts.backtest returned")
    panel = bool(forecaster.config.schema.panel)
    if by is not None and (check_text(by, "by") != "series" or not panel):
        raise UsageError(
            f"A backtest cannot be grouped by '{quote(by)}'; use by='series' for a long table, or omit it."
        )
    needed = ("window", "series", "cutoff") if panel else ("cutoff", "column")
    missing = [name for name in (*needed, *FORECASTS, "actual") if name not in frame.columns]
    if missing:
        raise UsageError(f"The backtest has no column '{missing[0]}'; pass the table that femts.backtest returned.")
    table = _scores(frame, _scaled(frame, forecaster), by or ("window" if panel else "cutoff"))
    if not panel:
        return table
    if by is None:
        return table.drop(columns=["mse_raw", "mae_raw"])
    table.loc[table["series"] == "all", ["mse_raw", "mae_raw"]] = np.nan
    return table


def _scaled(frame: pd.DataFrame, forecaster: Forecaster) -> pd.DataFrame:
    """The values of a backtest in the scaled units of the run, by series; NaN for series that were not in the training
    data."""
    columns, preprocess = [*FORECASTS, "actual"], forecaster.preprocess
    names = frame["series"] if "series" in frame else pd.Series("", frame.index)
    codes, series = pd.factorize(names.astype(str))
    place = preprocess.places(tuple(series))[codes]
    channel = np.zeros(len(frame), dtype=np.int64)
    if "column" in frame:
        channel = pd.Index(forecaster.targets).get_indexer(frame["column"].astype(str))
    values = frame[columns].to_numpy(dtype=np.float64)
    if preprocess.power is not None:
        values = PowerTransform(preprocess.power.shift, preprocess.power.powers[place, channel][:, None]).apply(values)
    mean, scale = (each[place, channel][:, None] for each in (preprocess.scaler.mean, preprocess.scaler.scale))
    scaled = np.where((place < 0)[:, None], np.nan, (values - mean) / scale)
    return pd.DataFrame(scaled, columns=columns, index=frame.index)


def _scores(frame: pd.DataFrame, scaled: pd.DataFrame, by: str) -> pd.DataFrame:
    """Two rows per group and two for `all`; see `backtest_scores`."""
    both, tables = frame[list(FORECASTS)].notna().all(axis=1), []
    for model in FORECASTS:
        raw, own = frame[model] - frame["actual"], scaled[model] - scaled["actual"]
        errors = pd.DataFrame(
            {"mse_scaled": own**2, "mae_scaled": own.abs(), "mse_raw": raw**2, "mae_raw": raw.abs()}
        ).where(both)
        each = errors.groupby(frame[by], sort=False).mean().rename_axis(by).reset_index()
        overall = errors.mean().to_frame().T
        overall.insert(0, by, "all")
        table = pd.concat([each.astype({by: object}), overall], ignore_index=True)
        table.insert(1, "model", model)
        tables.append(table)
    return pd.concat(tables).sort_index(kind="stable").reset_index(drop=True)
