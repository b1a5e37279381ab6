"""Forecasts from many past moments, each made as `predict` would have made it then."""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

from femts.analysis.backtest.cutoffs import FORECASTS, Cutoffs, cutoff_rows, flattered, scores, together
from femts.analysis.backtest.panel import backtest_panel, scaled_backtest
from femts.config.arguments import check_callable, check_flag, check_kind, check_text
from femts.data.catalog import CATALOG
from femts.data.check import check_frame, check_values
from femts.data.columns import is_table, match_columns, to_frame
from femts.data.dataset import Dataset
from femts.data.frequency import steps_between
from femts.data.panel import Panel
from femts.data.read import read_headless
from femts.data.splits import Split
from femts.errors import AgeWarning, UsageError, memory_checked
from femts.forecaster.forecaster import Forecaster
from femts.forecaster.panel_forecaster import PanelForecaster, PanelSource
from femts.forecaster.scoring import read_like
from femts.forecaster.trained import Source
from femts.text import shown

KINDS = (Forecaster, PanelForecaster)


@memory_checked()
def backtest(
    forecaster: Forecaster | PanelForecaster,
    data: Source | Panel,
    cutoffs: Cutoffs,
    *,
    refit: bool = False,
    say: Callable[[str], None] | None = None,
) -> pd.DataFrame:
    """Forecast from several past moments; the last forecast ends with the data.

    Each forecast is `Forecaster.predict` of the rows before its cutoff, and of nothing else. With
    `refit`, the forecaster is first trained anew on all of these rows, as `final` of `femts.train`
    does it: by the run's own recipe and seed, as many steps as its validation chose. The cutoffs of
    a panel are counted from the end of each series; a series with less than a season before one is
    left out there, and in the training before it.

    Args:
        forecaster: a trained one.
        data: catalogue name, CSV file, frame or `Dataset` with the training columns, in raw units.
            Columns known in advance are taken from it as well, as if they had been right. Of a
            panel its table.
        cutoffs: how many, how far apart, and how long a forecast is: `femts.Cutoffs(windows=5, step=24)`.
        refit: train before each forecast.
        say: takes a sentence on what a reader should know: how long each training took, rows known from the training,
            values without a forecast.

    Returns:
        One row a cutoff, step and target, in raw units: `cutoff` (stamp of the last row before the forecast, or its row
        number), `date` (or `step`), `column`, `forecast`, `seasonal_naive` (the last season before the cutoff,
        repeated) and `actual`, NaN where it is missing. Of a panel `window` (number of the cutoff)
        and `series` come first, and there is no `column`. `backtest_scores` sums it up.

    Raises:
        UsageError: the numbers, the data or its length cannot be used; the text says why.
    """
    check_kind(forecaster, KINDS, "The forecaster", "give what femts.train or femts.load returned")
    check_kind(cutoffs, Cutoffs, "The cutoffs", "give femts.Cutoffs(windows=8, step=24)")
    check_flag(refit, "refit")
    check_callable(say, "say")
    if isinstance(forecaster, PanelForecaster):
        return backtest_panel(forecaster, cast(PanelSource, data), cutoffs, refit, say or (lambda _: None))
    if isinstance(data, Panel):
        raise UsageError("The data are a Panel, and this model was trained on a single table; pass one.")
    steps = forecaster.config.pred_len if cutoffs.horizon is None else cutoffs.horizon
    frame, where, of_training = _table(forecaster, data)
    season = forecaster.season
    needed = max(forecaster.config.fewest_rows, season)
    starts = cutoff_rows(len(frame), cutoffs, steps, needed, where)
    say = say or (lambda _: None)
    means = dict(zip(forecaster.targets, forecaster.preprocess.scaler.mean, strict=False))
    filled = frame[list(forecaster.targets)].ffill().fillna(means)  # as models read gaps, by what came before
    forecasts, seconds, current = [], 0.0, forecaster
    if refit:
        from femts.training.refit import refit as fit_again  # with sklearn, only where something is trained
    for cutoff in starts:
        past = frame.iloc[:cutoff]
        if refit:
            started = time.monotonic()
            current = fit_again(forecaster, _rows_before(cutoff, forecaster, frame, season, where))
            spent = time.monotonic() - started
            seconds += spent
            say(f"trained on the {cutoff} rows up to {_stamp(past)} in {spent:.1f} s")
        last_season, future = filled.iloc[cutoff - season : cutoff], frame.iloc[cutoff : cutoff + steps]
        forecasts.append(_forecast(current, past, last_season, future, where))
    if refit:
        say(f"{len(starts)} trainings took {seconds:.1f} s")
    rows = 0 if refit else _rows_learned(forecaster, frame, of_training)
    learned = sum(start < rows for start in starts)
    if learned:
        say(flattered(f"{learned} of {len(starts)} cutoffs", final=forecaster.scored is not None))
    return together(forecasts, say)


@memory_checked()
def backtest_scores(
    frame: pd.DataFrame, forecaster: Forecaster | PanelForecaster, by: str | None = None
) -> pd.DataFrame:
    """Errors of what `backtest` returned, a cutoff at a time and overall, beside those of the seasonal naive forecast.

    Args:
        frame: from `backtest`, in raw units.
        forecaster: the one that made it; its scaler gives the scaled units.
        by: `series`, to group a panel by; None groups by cutoff, those of a panel by their number, `window`.

    Returns:
        The group (`all` for the mean), `model` (`forecast` or `seasonal_naive`) and
        `mse_scaled, mae_scaled` (in units of the run's own scaler, also after refits),
        `mse_raw, mae_raw` (in the data's): means over all steps and columns where both models have a
        forecast. Of a panel the scaled units are those of each series, and raw means over series
        are left out.

    Raises:
        UsageError: a table that is no backtest, or another group.
    """
    check_kind(forecaster, KINDS, "The forecaster", "give the one that made the backtest")
    check_kind(frame, pd.DataFrame, "The backtest", "give the table that femts.backtest returned")
    panel = isinstance(forecaster, PanelForecaster)
    if by is not None and (check_text(by, "by") != "series" or not panel):
        raise UsageError(
            f"A backtest is not grouped by '{shown(by)}'; take by='series' for one of a panel, or leave it out."
        )
    needed = ("window", "series", "cutoff") if panel else ("cutoff", "column")
    missing = [name for name in (*needed, *FORECASTS, "actual") if name not in frame.columns]
    if missing:
        raise UsageError(f"The backtest lacks the column '{missing[0]}'; give the table that femts.backtest returned.")
    if isinstance(forecaster, PanelForecaster):
        table = scores(frame, None, scaled_backtest(frame, forecaster, (*FORECASTS, "actual")), by or "window")
        if by is None:
            return table.drop(columns=["mse_raw", "mae_raw"])
        table.loc[table["series"] == "all", ["mse_raw", "mae_raw"]] = np.nan
        return table
    preprocess = forecaster.preprocess
    scales, even = dict(zip(forecaster.targets, preprocess.scaler.scale, strict=False)), None
    if preprocess.power is not None:
        even = frame.copy()
        for channel, name in enumerate(forecaster.targets):
            rows, power = frame["column"] == name, preprocess.power.of(channel)
            for values in (*FORECASTS, "actual"):
                even.loc[rows, values] = power.apply(frame.loc[rows, [values]].to_numpy())[:, 0]
    return scores(frame, scales, even)


def _table(forecaster: Forecaster, data: Source) -> tuple[pd.DataFrame, str, bool]:
    """The wide table with the columns in order, what to call it, and whether it is that of the training."""
    freq, schema = forecaster.freq, forecaster.config.schema
    columns = (*forecaster.columns, *schema.roles.future)
    if is_table(data):
        where = "The frame"
        table = to_frame(data, where, None if freq is None else schema.form)
        schema = replace(schema, form=match_columns(table, schema.form))
        data = schema.roles.narrow(table, schema.form, where)
        if freq is None:
            return check_values(data, columns, where, schema.na).reset_index(drop=True), where, False
        return check_frame(data, schema, columns, freq, where), where, False
    if freq is None and isinstance(data, str | Path) and Path(data).is_file():
        where = f"File {data}"
        return check_values(read_headless(data), columns, where, schema.na).reset_index(drop=True), where, False
    dataset = data if isinstance(data, Dataset) else read_like(forecaster, data, None)
    where = (
        f"File {dataset.source}" if dataset.source and dataset.source not in CATALOG else f"Data set '{dataset.name}'"
    )
    first = 0 if dataset.dates is None else 1
    table = check_values(dataset.frame().iloc[:, first:], columns, where, schema.na)
    if (freq is None) != (dataset.dates is None) or (freq is not None and dataset.freq != freq):
        steps = ("no dates" if each is None else f"the step '{each}'" for each in (dataset.freq, freq))
        raise UsageError("{} has {}, but the training data had {}; give data like those.".format(where, *steps))
    if dataset.dates is not None:
        table.insert(0, "date", dataset.dates)
    return table, where, dataset.sha256 == forecaster.data["sha256"]


def _rows_learned(forecaster: Forecaster, frame: pd.DataFrame, of_training: bool) -> int:
    """Number of first rows that the forecaster was trained or chosen on: by their stamps, for the table may have
    grown, or, where there are none, of the very table of the training, `of_training`."""
    split = forecaster.data["split"]
    if forecaster.until is not None and forecaster.freq is not None and "date" in frame:
        later = steps_between(forecaster.until, frame["date"].iloc[-1], forecaster.freq)
        if later is not None:
            return len(frame) - later + int(split["test"][0] - split["train"][1])
    return int(split["test"][0]) if of_training else 0


def _stamp(past: pd.DataFrame) -> Any:
    return past["date"].iloc[-1] if "date" in past else len(past) - 1


def _forecast(
    forecaster: Forecaster, past: pd.DataFrame, last_season: pd.DataFrame, future: pd.DataFrame, where: str
) -> pd.DataFrame:
    """One window of the result."""
    columns, ahead = list(forecaster.targets), forecaster.config.schema.roles.future
    form = forecaster.config.schema.form
    named = {"date": form.time or "date"}
    in_advance = future.drop(columns=columns).rename(columns=named) if ahead else None
    # cutoffs lie beyond the rows learned from on purpose
    with warnings.catch_warnings(action="ignore", category=AgeWarning):
        wide = forecaster.predict(past.rename(columns=named), len(future), future=in_advance)
    wide = wide.rename(columns={form.time: "date"})
    when = wide.columns[0]
    if when == "date" and not np.array_equal(
        wide["date"].to_numpy(), future["date"].astype(wide["date"].dtype).to_numpy()
    ):
        raise UsageError(f"{where} leaves its step '{forecaster.freq}' after {_stamp(past)}; take windows elsewhere.")
    repeated = last_season.to_numpy()[np.arange(len(future)) % len(last_season)]
    return pd.DataFrame(
        {
            "cutoff": _stamp(past),
            when: np.repeat(wide[when].to_numpy(), len(columns)),
            "column": columns * len(future),
            "forecast": wide[columns].to_numpy().ravel(),
            "seasonal_naive": repeated.ravel(),
            "actual": future[columns].to_numpy().ravel(),
        }
    )


def _rows_before(cutoff: int, forecaster: Forecaster, frame: pd.DataFrame, season: int, where: str) -> Dataset:
    """The first rows of `frame`, as many as `cutoff` says, to train on."""
    past, schema = frame.iloc[:cutoff], forecaster.config.schema
    values = past[list(forecaster.columns)].to_numpy()
    in_advance = past[list(schema.roles.future)].to_numpy() if schema.roles.future or schema.roles.calendar else None
    dates = pd.Index(past["date"]) if "date" in past else None
    split, sha256 = Split((0, cutoff), (cutoff, cutoff), (cutoff, cutoff)), hashlib.sha256(values.tobytes())
    name = f"{where}, before row {cutoff}"
    rows = Dataset(name, values, dates, forecaster.columns, forecaster.freq, split, sha256.hexdigest(), season)
    return replace(rows, schema=schema, covariates=in_advance)
