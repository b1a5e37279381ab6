"""The sections of a report on its scores: beside the yardsticks, by step, by channel, and what the intervals cover."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from femts.analysis.report.measure import Measured, Scored
from femts.analysis.report.tables import NONE, Markup, bar, escape, folded, minus, percent, raw, scaled, steps_lasting, table
from femts.forecaster.forecaster import Forecaster

MOST_ROWS = 24  # of a table by step
STRAYED = 0.05  # a coverage that is further than this from what was promised is marked


def _in_units(frame: pd.DataFrame, units: str) -> pd.DataFrame:
    return frame[frame["units"] == units].reset_index(drop=True)


def score_tables(forecaster: Forecaster, measured: Measured) -> Markup:
    """The model and the yardsticks over all windows, steps and channels, in scaled and in raw units."""
    name, parts = forecaster.config.model, []
    contenders = {name: measured.model, **measured.yardsticks}
    for units, number, caption in (
        ("scaled", scaled, "Scaled units: deviations of the training rows"),
        ("raw", raw, "Raw units of the data, a mean over all channels"),
    ):
        rows = []
        for who, of in contenders.items():
            row = _in_units(of.overall, units).iloc[0]
            errors = [number(row[k]) for k in ("mse", "mae", "rmse")]
            rows.append((who, *errors, *([scaled(row["mase"])] if units == "scaled" else []), percent(row["skill"], "+")))
        header = ("", "MSE", "MAE", "RMSE", *(["MASE"] if units == "scaled" else []), "Skill")
        parts.append(f"<div>{table(header, rows, caption, 'first')}</div>")
    season = steps_lasting(forecaster.freq, measured.season)
    uneven = abs(measured.test["mse"] - measured.model.overall["mse"].iloc[0]) > 1e-5
    alike = " As values are missing, these means, which count each step and channel alike, differ from the score at the top, "
    alike += "which counts every value alike."
    parts = [f"<div class=pair>{''.join(parts)}</div>"]
    parts.append(
        f"<p class=note>Lower is better, but for skill. <b>naive</b> repeats the last value"
        f"{_seasonal_words(forecaster, measured)}. "
        f"MASE divides the absolute error by the mean change of the training rows over a season of {escape(season)}. Skill is "
        "the part of the squared error of the last season, repeated, that is avoided."
        f"{alike if uneven else ''}</p>"
    )
    return Markup("".join(parts))


def _seasonal_words(forecaster: Forecaster, measured: Measured) -> str:
    season = steps_lasting(forecaster.freq, measured.season)
    if measured.season == 1:
        return "; no season is known of these data, so that is the last season, too"
    if "seasonal_naive" in measured.yardsticks or forecaster.config.model == "seasonal_naive":
        return f", <b>seasonal_naive</b> the last season of {escape(season)}"
    return f"; seasonal_naive is left out, as the look-back is shorter than a season of {escape(season)}"


def mse_by_step(forecaster: Forecaster, measured: Measured) -> dict[str, list[float | None]]:
    """MSE in scaled units of the model and the yardsticks, a number a step; None where there is none."""

    def numbers(of: Scored) -> list[float | None]:
        values = _in_units(of.by_step, "scaled")["mse"]
        return [float(f"{value:.5g}") if math.isfinite(value) else None for value in values]

    return {forecaster.config.model: numbers(measured.model)} | {k: numbers(v) for k, v in measured.yardsticks.items()}


def step_table(forecaster: Forecaster, by_step: dict[str, list[float | None]]) -> Markup:
    """At most `MOST_ROWS` of the steps, the first and the last among them."""
    steps = forecaster.config.pred_len
    some = dict.fromkeys(np.linspace(1, steps, min(steps, MOST_ROWS)).round().astype(int).tolist())
    rows = []
    for step in some:
        errors = (values[step - 1] for values in by_step.values())
        rows.append((steps_lasting(forecaster.freq, step), *(NONE if e is None else scaled(e) for e in errors)))
    return folded("Errors by step as a table", table(("Step", *by_step), rows, "Test MSE by step, scaled units"))


def channel_table(forecaster: Forecaster, measured: Measured) -> Markup:
    """A row a channel."""
    ours, theirs = (_in_units(measured.model.by_channel, units) for units in ("scaled", "raw"))
    most = ours["mse"].max()
    rows = [
        (
            name,
            bar(a.mse / most if most > 0 else math.nan, scaled(a.mse)),
            scaled(a.mae),
            raw(b.rmse),
            raw(b.mae),
            scaled(a.mase),
            percent(a.skill, "+"),
        )
        for name, a, b in zip(forecaster.targets, ours.itertuples(), theirs.itertuples(), strict=True)
    ]
    header = ("Channel", "MSE, scaled", "MAE, scaled", "RMSE, raw", "MAE, raw", "MASE", "Skill")
    return table(header, rows, "Test scores by channel", "long")


def interval_tables(forecaster: Forecaster, measured: Measured) -> Markup:
    """Tables of what the intervals of each level cover of the test part, as a whole and by channel."""
    if not measured.levels:
        why = "This run has no intervals for its horizon; <code>femts calibrate</code> makes them from the validation part."
        return Markup(f"<p>{why}</p>")
    whole, channels = (_in_units(f, "scaled") for f in (measured.model.overall, measured.model.by_channel))
    overall: list[Sequence[str]] = []
    for level in measured.levels:
        covered, width = (float(whole[f"{what}-{level:g}"].iloc[0]) for what in ("coverage", "width"))
        track = _track(level / 100, covered)
        overall.append((f"{level:g} %", track, percent(covered), _points(covered, level), scaled(width)))
    header = ("Promised", "", "Covered", "Points off", "Mean width, scaled")
    highest = f"{measured.levels[-1]:g}"
    widths = _in_units(measured.model.by_channel, "raw")[f"width-{highest}"]
    rows = (
        (name, *_covered(channels.iloc[c], measured.levels), raw(widths.iloc[c])) for c, name in enumerate(forecaster.targets)
    )
    kind = "Split-conformal intervals, as wide for each step and channel as the errors"
    if forecaster.model.quantiles:
        kind = "Learned quantiles, for each step and channel as far apart as the misses"
    by_channel = ("Channel", *(f"{level:g} %" for level in measured.levels), f"Width at {highest} %, raw")
    return Markup(
        table(header, overall, "Part of the test values inside the intervals", "levels")
        + table(by_channel, rows, "Covered by channel", "long")
        + f"<p class=note>{kind} on the validation part say. They promise as much as the test rows resemble that part; "
        f"\u25be and \u25b4 mark what is more than {100 * STRAYED:.0f} points below or above.</p>"
    )


def _track(promised: float, covered: float) -> Markup:
    if math.isnan(covered):
        return Markup("")
    return Markup(f'<span class=track style="--want:{100 * promised:.2f}%;--got:{100 * covered:.2f}%"></span>')


def _points(covered: float, level: float) -> str:
    return NONE if math.isnan(covered) else minus(f"{100 * covered - level:+.1f}")


def _covered(row: pd.Series, levels: Sequence[float]) -> Iterator[str]:
    for level in levels:
        covered = float(row[f"coverage-{level:g}"])
        off = covered - level / 100
        yield percent(covered) + (" \u25be" if off < -STRAYED else " \u25b4" if off > STRAYED else "")
