"""Measurements of a report: the scores of a forecaster and of the baselines, and what its intervals
cover, in one pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from femts.analysis.report.samples import windows_scored
from femts.config.model import ModelConfig
from femts.data.batch import Batch
from femts.data.categories import origins
from femts.data.dataset import Dataset
from femts.errors import UsageError
from femts.evaluation.coverage import CoverageSums
from femts.evaluation.evaluator import evaluate
from femts.evaluation.metrics import Metric
from femts.evaluation.scores import DetailSums
from femts.evaluation.series_scores import SeriesSums
from femts.forecaster.forecaster import Forecaster
from femts.forecaster.run_folder import RunConfig
from femts.forecaster.scoring import (
    detail_sums,
    details_frame,
    interval_bounds,
    naive_sums,
    relative_errors,
    score_windows,
)
from femts.models.base import ForecastModel, Forecasts
from femts.models.naive import Naive, SeasonalNaive, SeasonalNaiveConfig

MOST_INPUTS, WINDOWS, REPEATS = 12, 32, 2  # columns to exchange, and how often: it is to take seconds


@dataclass(frozen=True, eq=False)
class Scored:
    """Scores of one forecaster over the test windows; frames as `Forecaster.scores` gives them.

    Attributes:
        overall: a row in scaled and, of one series, one in raw units.
        by_step: the same for each step.
        by_channel: the same for each channel.
    """

    overall: pd.DataFrame
    by_step: pd.DataFrame
    by_channel: pd.DataFrame


@dataclass(frozen=True, eq=False)
class Measured:
    """Measurements of the test part for a report.

    Attributes:
        test: `mse`, `mae`, `windows`, `wape` and `bias`, as `Forecaster.evaluate` gives them.
        model: scores in detail, with what the intervals cover.
        baselines: scores by the name of the naive model.
        series: scores of each series, the highest MASE first.
        ratios: mean MASE and RMSSE of the series.
        levels: percent; what is covered, rising; empty where the run has no intervals for its horizon.
        season: steps of a season of the data.
        beside: errors of the seasonal naive forecast on the same windows, skill and MASE.
    """

    test: dict[str, float | int]
    model: Scored
    baselines: dict[str, Scored]
    series: pd.DataFrame
    ratios: dict[str, float]
    levels: tuple[float, ...]
    season: int
    beside: dict[str, Any]


class Baseline:
    """Metric of another model's errors, which forecasts from the look-backs that the evaluator hands on."""

    def __init__(self, model: ForecastModel, sums: DetailSums) -> None:
        self.model, self.sums, self.pools = model, sums, sums.pools

    def update(self, forecasts: Forecasts, batch: Batch) -> None:
        points = self.model.forecast(Batch(batch.past), batch.target.shape[1])
        self.sums.update(Forecasts(points, None), batch)


def naive_models(config: RunConfig, targets: int, season: int) -> dict[str, ForecastModel]:
    """Models that a run is laid beside, by name: each but itself, and the seasonal one where its season is read."""
    shape = (config.seq_len, config.pred_len, targets)
    others: dict[str, ForecastModel] = {"naive": Naive(ModelConfig(*shape))}
    if 1 < season <= config.seq_len:
        others["seasonal_naive"] = SeasonalNaive(SeasonalNaiveConfig(*shape, season=season))
    others.pop(config.model, None)
    return others


def measure(forecaster: Forecaster, data: Dataset) -> Measured:
    """Score `forecaster` and the baselines over the test windows of `data` (`windows_scored`); memory does not grow
    with them."""
    config, targets, intervals = forecaster.config, forecaster.targets, forecaster.intervals
    windows = score_windows(forecaster, "test", None, data)
    others = naive_models(config, len(targets), data.season)
    own = detail_sums(forecaster, windows, data)
    baselines = {name: Baseline(model, detail_sums(forecaster, windows, data)) for name, model in others.items()}
    naive, relative = naive_sums(forecaster, data), relative_errors(forecaster, windows)
    by_series = SeriesSums(windows, forecaster.preprocess, data, forecaster.model.most_windows)
    covered = None
    if intervals is not None and intervals.standard and intervals.steps >= config.pred_len:
        covered = CoverageSums(interval_bounds(forecaster, (), windows))
    also: list[Metric] = [naive, relative, own, by_series, *baselines.values(), *([covered] if covered else [])]
    scored = windows_scored(forecaster, windows)
    test = evaluate(forecaster.model, windows, config.training.eval_batch_size, some=scored, also=also)
    test.update(relative.compute())
    levels = covered.levels if covered else ()

    def frames(of: DetailSums, intervals: CoverageSums | None = None) -> Scored:
        some = levels if intervals else ()
        groups: tuple[tuple[str, ...], ...] = ((), ("step",), ("channel",))
        return Scored(*(details_frame(forecaster, of, data, by, intervals, some) for by in groups))

    return Measured(
        test,
        frames(own, covered),
        {name: frames(baseline.sums) for name, baseline in baselines.items()},
        by_series.frame().sort_values("mase", ascending=False, kind="stable", ignore_index=True),
        by_series.ratios(),
        levels,
        data.season,
        naive.beside(test["mse"]),
    )


def input_importance(forecaster: Forecaster, data: Dataset) -> pd.DataFrame | None:
    """Importance of inputs on some validation windows, as `Forecaster.importance` gives it; None where there are too
    few windows, and of a model that is fitted to each look-back, where it takes minutes."""
    if forecaster.model.supports.raw:
        return None
    columns = origins(forecaster.columns, forecaster.config.schema.form)[:MOST_INPUTS]
    try:
        return forecaster.importance("val", WINDOWS, columns, REPEATS, dataset=data)
    except UsageError:
        return None
