"""Comparison of models at several past cutoffs, beside the naive forecasts."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import pandas as pd

from femts.analysis.rolling import (
    readable,
    rolling_forecasts,
    rolling_naive_forecasts,
    rows_at,
    training_rows_at,
)
from femts.analysis.rolling_scores import (
    PROBABILISTIC,
    QUANTILES,
    RollingSums,
    rolling_metrics,
    win_rates,
)
from femts.config.arguments import check_flag, check_names, check_text
from femts.config.values import check_count, left_open
from femts.data.cutoffs import Cutoff, Rows, rolling_cutoffs, rows_before
from femts.data.dataset import Dataset
from femts.data.describe import count
from femts.data.protocols import default_look_back
from femts.data.schema import Reading
from femts.data.splits import SHORTEST
from femts.errors import UsageError, blamed, memory_checked, renamed, unknown
from femts.evaluation.block_bootstrap import mean_interval
from femts.evaluation.constants import BLOCK, FEWEST_BLOCKS
from femts.evaluation.metric import Metric
from femts.evaluation.scale import SeasonalScale
from femts.forecaster.bounds import QuantileSpec
from femts.forecaster.forecaster import Forecaster, Source
from femts.logging import PROGRESS
from femts.models.naive import DRIFT, MEAN, NAIVE, SEASONAL_NAIVE
from femts.text import argument, arguments, quote
from femts.training.data_module import as_dataset, split_for
from femts.training.refit import refit as refit_on
from femts.training.request import FitRequest
from femts.training.resolve import Lengths
from femts.training.resolve import horizon as resolve_horizon
from femts.training.train import train_to_score

if TYPE_CHECKING:
    from femts.plotting import Picture

logger = logging.getLogger(__name__)

MODELS = ("ridge", "dlinear", "boost")
WINDOWS = 10
NAIVES = (SEASONAL_NAIVE, NAIVE, DRIFT, MEAN)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Scores of several models on the same windows; returned by `compare`.

    Attributes:
        table: one row for each model, the best first; see `compare`.
        windows: `model`, `window` and its scores, one row for each.
        forecasts: `model`, `window`, `series` (of a panel), `cutoff`, `date` (or `step`), `column`, `forecast`,
            `actual` and quantiles such as `q-10`, one row for each forecast value, in raw units.
        metric: the score by which models are ordered, one of `rolling_metrics`.
        horizon: steps in a window.
        units: `windows` or `series`, over which the intervals of the differences are.
    """

    table: pd.DataFrame
    windows: pd.DataFrame
    forecasts: pd.DataFrame
    metric: str
    horizon: int
    units: str

    def __repr__(self) -> str:
        return self.table.to_string(index=False, float_format=lambda value: f"{value:.4g}")

    def _repr_html_(self) -> str:
        return str(self.table.to_html(index=False, float_format=lambda value: f"{value:.4g}"))

    def plot(self) -> Picture:
        """Plot the score of each model, in each window and on average, and its difference to the best one.

        Returns:
            A matplotlib figure, which a notebook displays and `savefig` writes.
        """
        from femts.analysis.compare_picture import comparison_picture  # matplotlib takes long to import

        return comparison_picture(self)


@memory_checked()
@renamed({"pred_len": "horizon", "model": "models", "training.max_time": "time_limit"})
def compare(
    data: Source,
    models: Sequence[str] | str = MODELS,
    horizon: int | str | None = None,
    *,
    n_windows: int = WINDOWS,
    step_size: int | None = None,
    refit: bool = False,
    metric: str = "mase",
    probabilistic: bool = True,
    seq_len: int | str | None = None,
    seed: int = 42,
    settings: Mapping[str, Any] | None = None,
    time_limit: str | None = None,
    device: str = "auto",
    data_root: str | Path | None = None,
    **reading: Unpack[Reading],
) -> Comparison:
    """Compare models on the last windows of a table, each with four naive forecasts of the same windows.

    Each model is trained once on all rows before the first window, with its own recipe as in `femts.train`, so no
    forecast covers rows that a model has seen. Each forecast then reads the rows before its window. Models that cannot
    read past or static covariates run without them.

    Args:
        data: catalogue name, file, frame or `Dataset`.
        models: names from `femts.models()`, or `auto`.
        horizon: steps in a window; None or `auto` takes that of `femts.train`.
        n_windows: number of windows, of which the last one ends with each series.
        step_size: rows between windows; None takes the horizon.
        refit: retrain before each further window on all rows before it, with the settings and the number of steps of
            the first training.
        metric: the score by which models are ordered: `mase`, `rmsse`, `wape`, `sql`, `wql`, or the name of a
            registered metric in raw units, the highest first if its `greater_is_better` is true.
        probabilistic: also score the quantiles 0.1 to 0.9 by `sql` and `wql`.
        seq_len: look-back of all models; None takes that of `femts.train` for each. The naive forecasts `drift` and
            `mean` read as many rows, by default whole seasons that cover at most half of the training rows.
        seed: seed of weights, order and dropout.
        settings: `model.*` and `training.*` settings of all models, by name.
        time_limit: longest duration of the first training of each model, such as `5m`.
        device: `auto`, `cpu`, `cuda` or `mps`.
        data_root: folder with the files of the catalogue.
        reading: keywords of `load_dataset`, such as `target` or `future_covariates`.

    Returns:
        The comparison. Its `table` has one row for each model, the best first:

        - `model`: its name; `seasonal_naive` (if a season is longer than one step), `naive`, `drift` and `mean` are
          naive forecasts (`femts.models.naive.naive_forecasts`).
        - `mase` and `rmsse`: mean absolute and root mean squared error relative to the mean seasonal change of all rows
          before the window; `wape`: sum of absolute errors relative to that of absolute values; `sql` and `wql`: the
          same as `mase` and `wape` for twice the mean quantile loss, which is the absolute error for the naive
          forecasts, whose quantiles are all the same; then metrics that plugins register. Scores are means over the
          windows. Values that some model does not forecast are left out for all.
        - `skill`: 1 minus the `metric` relative to that of the seasonal naive forecast, or of the naive one without a
          season; the opposite for a metric of which greater is better, so that a positive skill is better than the
          naive forecast; `win_rate`: share of windows and other models with a worse score.
        - `difference`: score minus that of the best model, which is negative for a metric of which greater is better,
          with the bounds `low` and `high` of a 95 % interval by a
          circular block bootstrap of the paired differences over windows, or over series if there are more of them; NaN
          for the best model and where windows are too few (five or less, a horizon apart).
        - `train_seconds` and `predict_seconds`: wall time of all trainings and of all forecasts.

    Raises:
        UsageError: An argument is unknown or does not fit, or there are too few rows; nothing was trained.
        RunFailure: A training failed, or a download.
    """
    names = tuple(name for name in check_names(models, "models") if name not in NAIVES)
    check_flag(refit, "refit")
    check_flag(probabilistic, "probabilistic")
    windows = check_count(n_windows, "n_windows")
    metrics = {each.name: each for each in rolling_metrics(probabilistic=True)}
    if check_text(metric, "metric") not in metrics:
        raise unknown("metric", metric, metrics, "metric")
    if metric in PROBABILISTIC and not probabilistic:
        remedy = f"leave {argument('probabilistic=False')} out, or use {arguments({'metric': 'mase'})}"
        text = f"Metric '{metric}' needs quantiles; {remedy}."
        raise UsageError(text, argument="metric", value=metric, remedy={"probabilistic": None})
    given = {"seed": seed, "max_time": time_limit, "device": device}
    # Of a naive forecast, where no model is trained, so that its settings are checked as well.
    settings = {} if settings is None else settings
    requests = {name: FitRequest.of(name, given, settings, 0.0) for name in names or (NAIVE,)}
    dataset = as_dataset(data, data_root, reading, compare)
    steps = resolve_horizon(dataset, horizon).steps
    apart = steps if step_size is None else check_count(step_size, "step_size")
    before = rows_before(dataset.lengths, windows, apart, steps)
    with blamed("n_windows", n_windows):
        _check_rows(dataset, before[:, 0], apart, windows, steps)
    trained = rolling_cutoffs(dataset.lengths, windows, apart, steps)
    origins = rolling_cutoffs(dataset.lengths, windows, apart, steps, dataset.season)
    known = training_rows_at(dataset, trained[0])
    refits, lengths = trained if refit else (), Lengths(steps, seq_len)
    runs = [
        _Run(dataset, replace(request, lengths=lengths), readable(known, name), steps, refits)
        for name, request in requests.items()
        if name in names
    ]
    for run in runs:
        run.request.check_fits(split_for(run.known, steps), lengths)
    bounds = QuantileSpec.of(None, QUANTILES if probabilistic else None)
    forecasts = {run.model: run.forecasts(origins, bounds) for run in runs}
    look_back = default_look_back("seasons", steps, known.rows, known.season).steps
    look_back = max(dataset.season, look_back if left_open(seq_len) else check_count(seq_len, "seq_len"))
    for name, frame in rolling_naive_forecasts(dataset, origins, steps, look_back).items():
        points = {f"q-{100 * q:g}": frame["forecast"] for q in bounds.quantiles}
        forecasts[name] = frame.assign(**points)
    scale = SeasonalScale.before(dataset, before, dataset.season)
    missing = np.any([each[["forecast", "actual"]].isna().any(axis=1) for each in forecasts.values()], axis=0)
    common = {name: each.assign(actual=each["actual"].mask(missing)) for name, each in forecasts.items()}
    sums = {name: RollingSums.of(each, dataset, scale) for name, each in common.items()}
    scores = pd.concat([each.by_window().assign(model=name) for name, each in sums.items()], ignore_index=True)
    scores.insert(0, "model", scores.pop("model"))
    table, units = _table(scores, sums, metrics[metric], math.ceil(BLOCK * steps / apart))
    seconds = {run.model: (run.training, run.predicting) for run in runs}
    for place, name in enumerate(("train_seconds", "predict_seconds")):
        table[name] = [seconds[model][place] if model in seconds else 0.0 for model in table["model"]]
    every = pd.concat([each.assign(model=name) for name, each in forecasts.items()], ignore_index=True)
    left_out = ("model", "seasonal_naive") if dataset.schema.panel else ("model", "seasonal_naive", "series")
    order = [name for name in every if name not in left_out]
    return Comparison(table, scores, every[["model", *order]], metric, steps, units)


def _check_rows(data: Dataset, before: Rows, apart: int, windows: int, steps: int) -> None:
    """Raise UsageError if no series has a season, and rows to train, validate and test on, `before` (S,) the first
    window."""
    needed = max(data.season, 2 * steps + SHORTEST)
    if before.max() < needed:
        fitting = windows - -(-(needed - int(before.max())) // apart)
        remedy = f"ask for at most {fitting} window{'s' * (fitting > 1)}, " if fitting > 0 else ""
        of = "the longest series of " if len(data) > 1 else ""
        raise UsageError(
            f"{count(windows, 'window')} of {count(steps, 'step')}, {count(apart, 'row')} apart, leave too few of the {count(data.rows, 'row')} of "
            f"{of}'{quote(data.name)}' to train on; {remedy}use a shorter horizon, or provide more rows."
        )


@dataclass
class _Run:
    """One model of a comparison, and the time that it took.

    Attributes:
        data: the data.
        request: the model and its recipe.
        known: the rows before the first window, without covariates that the model cannot read.
        horizon: steps in a window.
        refits: cutoffs at which to train; empty to train only before the first window.
        training: seconds of all trainings so far.
        predicting: seconds of all forecasts.
    """

    data: Dataset
    request: FitRequest
    known: Dataset
    horizon: int
    refits: Sequence[Cutoff]
    training: float = 0.0
    predicting: float = 0.0

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.request.model

    def forecasts(self, origins: Sequence[Cutoff], bounds: QuantileSpec) -> pd.DataFrame:
        """Forecasts at all cutoffs."""
        started = time.monotonic()
        made = rolling_forecasts(self.data, self._trained(origins), self.horizon, bounds)
        self.predicting = time.monotonic() - started - self.training
        PROGRESS.info(f"{self.model}: trained in {self.training:.1f} s, forecast in {self.predicting:.1f} s")
        return made

    def _trained(self, origins: Sequence[Cutoff]) -> Iterator[tuple[Forecaster, Cutoff]]:
        """The cutoffs, each with the forecaster that is used there."""
        started = time.monotonic()
        if len(self.known.columns) < len(self.data.columns) or (self.known.static is None) != (
            self.data.static is None
        ):
            logger.info(f"{self.model} cannot read all past and static covariates and runs without them")
        made = train_to_score(replace(self.request, started=started), self.known)
        self.training += time.monotonic() - started
        for number, origin in enumerate(origins):
            if self.refits and number:
                started = time.monotonic()
                rows = readable(rows_at(self.data, self.refits[number]), self.model)
                made = refit_on(made, rows if rows.columns == made.columns else rows.targets_alone())
                self.training += time.monotonic() - started
            if len(origin.series):
                yield made, origin


def _table(scores: pd.DataFrame, sums: Mapping[str, RollingSums], by: Metric, block: int) -> tuple[pd.DataFrame, str]:
    """The table of `compare` without seconds, and what its intervals are over; `block` is in windows."""
    metric, sign = by.name, -1 if by.greater_is_better else 1
    means = scores.drop(columns="window").groupby("model").mean()
    means = means.sort_values(metric, ascending=not by.greater_is_better, kind="stable")
    cases, units = scores.pivot(index="window", columns="model", values=metric)[means.index], "windows"
    table = means.assign(
        skill=sign * (1 - means[metric] / means[metric].get(SEASONAL_NAIVE, means[metric][NAIVE])),
        win_rate=win_rates(sign * cases.dropna().to_numpy()),
        difference=means[metric] - means[metric].iloc[0],
    )
    of_series = pd.DataFrame({name: each.by_series(metric) for name, each in sums.items()})[means.index].dropna(
        how="all"
    )
    if by.over_series == "averaged" and len(of_series) > len(cases):
        cases = of_series
        block, units = 1, "series"
    for place, model in enumerate(means.index):
        paired = (cases[model] - cases[means.index[0]]).dropna().to_numpy()
        known = place > 0 and len(paired) >= FEWEST_BLOCKS * block
        ends = mean_interval(paired, block, float(table.loc[model, "difference"])) if known else (np.nan, np.nan)
        table.loc[model, ["low", "high"]] = ends
    return table.reset_index(), units
