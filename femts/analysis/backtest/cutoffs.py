"""Cutoffs of a backtest in its data, and scores of the forecasts from there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from femts.errors import UsageError

USUAL = 5  # forecasts, where nobody says how many
FORECASTS = ("forecast", "seasonal_naive")


@dataclass(frozen=True)
class Cutoffs:
    """Moments that a backtest forecasts from; the last forecast ends with the data.

    Attributes:
        windows: forecasts; None for five, or as many as the rows allow.
        step: rows from one cutoff to the next.
        horizon: steps of a forecast; None for as many as the forecaster was trained for, longer ones are rolled out.
    """

    windows: int | None
    step: int
    horizon: int | None = None


def check_cutoffs(cutoffs: Cutoffs, horizon: int) -> None:
    """UsageError where a number of `cutoffs`, or the `horizon`, is not a whole one of at least 1."""
    for name, value in (("windows", cutoffs.windows), ("step", cutoffs.step), ("horizon", horizon)):
        if name == "windows" and value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
            raise UsageError(f"A backtest takes a whole number of at least 1 for its {name}, not {value}.")


def cutoff_rows(rows: int, cutoffs: Cutoffs, horizon: int, needed: int, where: str) -> list[int]:
    """Number of rows that precede each forecast, in rising order; the last forecast ends with the data.

    Args:
        rows: rows of the data.
        cutoffs: how many, and how far apart.
        horizon: steps of one forecast.
        needed: rows that must precede the first one.
        where: what the data are, to begin a message with.

    Raises:
        UsageError: a number is not a whole one of at least 1, or the data are too short; the text says what would fit.
    """
    check_cutoffs(cutoffs, horizon)
    windows, step = cutoffs.windows, cutoffs.step
    last = rows - horizon
    if windows is None:
        windows = max(1, min(USUAL, (last - needed) // step + 1))
    first = last - (windows - 1) * step
    if first < needed:
        together = needed + (windows - 1) * step + horizon
        fitting = (last - needed) // step + 1
        most = "one window" if fitting == 1 else f"{fitting} windows"
        remedy = f"ask for at most {most} or bring more rows" if last >= needed else "bring more rows"
        raise UsageError(
            f"{where} has {rows} rows, but {windows} windows {step} rows apart with a horizon of {horizon} take "
            f"{together}, {needed} of them before the first forecast; {remedy}."
        )
    return list(range(first, last + 1, step))


def flattered(some: str, final: bool) -> str:
    """The note that forecasts of `some` are of known rows, by a model that learned from all, `final`, or from some."""
    remedy = "refit, or take the run that was scored" if final else "take fewer windows, or refit"
    rows = "rows that this model was trained or chosen on"
    return f"forecasts of {some} are of {rows}, so their errors flatter it; {remedy}"


def together(forecasts: Sequence[pd.DataFrame], say: Callable[[str], None]) -> pd.DataFrame:
    """One table of the `forecasts` of all cutoffs; says how many cells have none, as `scores` leaves them out."""
    frame = pd.concat(forecasts, ignore_index=True)
    followed = frame[frame["actual"].notna()]
    without = int(followed["forecast"].isna().sum())
    if without:
        say(
            f"{without} of {len(followed)} values have no forecast, as no look-back before them has a value; "
            "the scores of both models leave them out"
        )
    return frame


def scores(
    frame: pd.DataFrame, scales: Mapping[str, float] | None, even: pd.DataFrame | None = None, by: str = "cutoff"
) -> pd.DataFrame:
    """Errors of a backtest, a cutoff at a time and overall.

    Args:
        frame: `cutoff, column, forecast, seasonal_naive, actual` in raw units, one row a step and column.
        scales: one scaled unit of each column in raw units, or in those of `even`; None where that is 1.
        even: the same as `frame`, its values transformed as the model has them; None where there is no transform.
        by: the column to group by.

    Returns:
        Two rows a group and two where it is `all`, for `forecast` and `seasonal_naive` in `model`, with
        `mse_scaled, mae_scaled, mse_raw, mae_raw`: means over all steps and columns that have an
        actual value, and a forecast of both models.
    """
    both = frame[list(FORECASTS)].notna().all(axis=1)
    scale = 1.0 if scales is None else frame["column"].map(dict(scales))
    tables = []
    for model in FORECASTS:
        raw = frame[model] - frame["actual"]
        scaled = raw / scale if even is None else (even[model] - even["actual"]) / scale
        errors = pd.DataFrame(
            {"mse_scaled": scaled**2, "mae_scaled": scaled.abs(), "mse_raw": raw**2, "mae_raw": raw.abs()}
        ).where(both)
        each = errors.groupby(frame[by], sort=False).mean().rename_axis(by).reset_index()
        overall = errors.mean().to_frame().T
        overall.insert(0, by, "all")
        table = pd.concat([each.astype({by: object}), overall], ignore_index=True)
        table.insert(1, "model", model)
        tables.append(table)
    return pd.concat(tables).sort_index(kind="stable").reset_index(drop=True)
