"""Measurements for a report: scores of a forecaster and of baselines, and coverage of its intervals, in one pass."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from femts.analysis.report.samples import windows_scored
from femts.config.model import ModelConfig
from femts.data.batch import Batch
from femts.data.categories import origins
from femts.data.dataset import Dataset
from femts.errors import UsageError
from femts.evaluation.evaluator import evaluate
from femts.evaluation.metric import Collector
from femts.evaluation.overall import Scores
from femts.evaluation.score_sums import ScoreSums
from femts.forecaster.forecaster import Forecaster
from femts.forecaster.run_folder import RunConfig
from femts.forecaster.scoring import (
    interval_bounds,
    means_over_series,
    overall_scores,
    score_windows,
    series_frame,
    series_sums,
    step_sums,
)
from femts.models.base import ForecastModel, Forecasts
from femts.models.naive import Naive, SeasonalNaive, SeasonalNaiveConfig

# inputs, windows and repetitions of the permutation importance, so that it takes seconds
MOST_INPUTS, WINDOWS, REPEATS = 12, 32, 2


@dataclass(frozen=True, eq=False)
class Scored:
    """Scores of one forecaster over the test windows; frames as returned by `Forecaster.scores`.

    Attributes:
        overall: a row in scaled and, for a single series, one in raw units.
        by_step: the same for each step.
        by_channel: the same for each channel.
    """

    overall: pd.DataFrame
    by_step: pd.DataFrame
    by_channel: pd.DataFrame


@dataclass(frozen=True, eq=False)
class Measured:
    """Measurements on the test split for a report.

    Attributes:
        test: scores as returned by `Forecaster.evaluate`.
        model: detailed scores, with coverage of the intervals.
        baselines: scores by name of the naive model.
        series: scores by series, the highest MASE first.
        ratios: mean MASE and RMSSE over the series.
        levels: levels of the intervals in percent, increasing; empty if the run has no intervals for its horizon.
        season: season length of the data in steps.
    """

    test: Scores
    model: Scored
    baselines: dict[str, Scored]
    series: pd.DataFrame
    ratios: dict[str, float]
    levels: tuple[float, ...]
    season: int


class Baseline:
    """Metric of the errors of another model, which forecasts from the look-backs that are passed to it."""

    def __init__(self, model: ForecastModel, sums: ScoreSums) -> None:
        self.model, self.sums, self.pools = model, sums, sums.pools

    def update(self, forecasts: Forecasts, batch: Batch) -> None:
        points = self.model.forecast(Batch(batch.past), batch.target.shape[1])
        self.sums.update(Forecasts(points, None), batch)


def naive_models(config: RunConfig, targets: int, season: int) -> dict[str, ForecastModel]:
    """Baselines of a run by name: all except itself, and the seasonal one only if the look-back covers a season."""
    shape = (config.seq_len, config.pred_len, targets)
    others: dict[str, ForecastModel] = {"naive": Naive(ModelConfig(*shape))}
    if 1 < season <= config.seq_len:
        others["seasonal_naive"] = SeasonalNaive(SeasonalNaiveConfig(*shape, season=season))
    others.pop(config.model, None)
    return others


def measure(forecaster: Forecaster, data: Dataset) -> Measured:
    """Score `forecaster` and the baselines over the test windows of `data` (`windows_scored`) in constant memory."""
    config, targets, intervals = forecaster.config, forecaster.targets, forecaster.intervals
    windows = score_windows(forecaster, "test", None, data)
    others = naive_models(config, len(targets), data.season)
    bounds = None
    if intervals is not None and intervals.standard and intervals.steps >= config.pred_len:
        bounds = interval_bounds(forecaster, (), windows)
    levels = () if bounds is None else bounds.levels
    own = step_sums(forecaster, data, bounds, levels)
    baselines = {name: Baseline(model, step_sums(forecaster, data)) for name, model in others.items()}
    overall = overall_scores(forecaster, data)
    by_series = series_sums(forecaster, data)
    also: list[Collector] = [*overall.collectors, own, by_series, *baselines.values()]
    scored = windows_scored(forecaster, windows)
    test = overall.scores(evaluate(forecaster.model, windows, config.training.eval_batch_size, some=scored, also=also))

    def frames(of: ScoreSums) -> Scored:
        groups: tuple[tuple[str, ...], ...] = ((), ("step",), ("channel",))
        return Scored(*(of.frame(forecaster.targets, by) for by in groups))

    return Measured(
        test,
        frames(own),
        {name: frames(baseline.sums) for name, baseline in baselines.items()},
        series_frame(forecaster, by_series, windows).sort_values(
            "mase", ascending=False, kind="stable", ignore_index=True
        ),
        means_over_series(by_series, windows),
        levels,
        data.season,
    )


def input_importance(forecaster: Forecaster, data: Dataset) -> pd.DataFrame | None:
    """Importance of inputs on some validation windows, see `Forecaster.importance`; None if there are too few windows,
    or for a model that is fitted to each look-back, for which it would take minutes."""
    if forecaster.model.supports.raw:
        return None
    columns = origins(forecaster.columns, forecaster.config.schema.form)[:MOST_INPUTS]
    try:
        return forecaster.importance("val", WINDOWS, columns, REPEATS, dataset=data)
    except UsageError:
        return None
