"""Measurements of a report: the scores of a forecaster and of the baselines, and what its intervals
cover, in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from torch import Tensor

from femts.config.model import ModelConfig
from femts.data.dataset import Dataset
from femts.evaluation.coverage import CoverageSums
from femts.evaluation.evaluator import Accumulator, evaluate
from femts.evaluation.scores import DetailSums, scores_frame
from femts.forecaster.forecaster import Forecaster
from femts.forecaster.run_folder import RunConfig
from femts.forecaster.scoring import coverage_sums, naive_sums, score_windows
from femts.models.base import ForecastModel
from femts.models.naive import Naive, SeasonalNaive, SeasonalNaiveConfig


@dataclass(frozen=True, eq=False)
class Scored:
    """Scores of one forecaster over every test window; frames as `Forecaster.scores` gives them.

    Attributes:
        overall: a row in scaled and one in raw units.
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
        test: `mse`, `mae` and `windows`, as `Forecaster.evaluate` gives them.
        model: scores in detail, with what the intervals cover.
        baselines: scores by the name of the naive model.
        levels: percent; what is covered, rising; empty where the run has no intervals for its horizon.
        season: steps of a season of the data.
        beside: errors of the seasonal naive forecast on the same windows, skill and MASE.
    """

    test: dict[str, float | int]
    model: Scored
    baselines: dict[str, Scored]
    levels: tuple[float, ...]
    season: int
    beside: dict[str, Any]


class Baseline:
    """Accumulator of another model's errors, which forecasts from the look-backs that the evaluator hands on."""

    def __init__(self, model: ForecastModel, sums: DetailSums) -> None:
        self.model, self.sums, self.pools = model, sums, sums.pools

    def add(self, x: Tensor, forecast: Tensor, target: Tensor, quantiles: Tensor | None = None) -> None:
        self.sums.add(x, self.model.forecast(x, target.shape[1]), target)


def naive_models(config: RunConfig, targets: int, season: int) -> dict[str, ForecastModel]:
    """Models that a run is laid beside, by name: each but itself, and the seasonal one where its season is read."""
    shape = (config.seq_len, config.pred_len, targets)
    others: dict[str, ForecastModel] = {"naive": Naive(ModelConfig(*shape))}
    if 1 < season <= config.seq_len:
        others["seasonal_naive"] = SeasonalNaive(SeasonalNaiveConfig(*shape, season=season))
    others.pop(config.model, None)
    return others


def measure(forecaster: Forecaster, data: Dataset) -> Measured:
    """Score `forecaster` and the baselines over every test window of `data`; memory does not grow with the windows."""
    config, targets = forecaster.config, forecaster.targets
    windows = score_windows(forecaster, "test", None, data)
    others = naive_models(config, len(targets), data.season)

    def sums() -> DetailSums:
        return DetailSums(config.pred_len, len(targets), forecaster.preprocess, data.season)

    own, baselines = sums(), {name: Baseline(model, sums()) for name, model in others.items()}
    intervals = forecaster.intervals
    covered = None
    if intervals is not None and intervals.levels and intervals.steps >= config.pred_len:
        covered = coverage_sums(forecaster, intervals.levels, windows)
    naive = naive_sums(forecaster, data)
    also: list[Accumulator] = [naive, own, *baselines.values(), *([covered] if covered else [])]
    test = evaluate(forecaster.model, windows, config.training.eval_batch_size, also=also)

    def frames(of: DetailSums, intervals: CoverageSums | None = None) -> Scored:
        groups: tuple[Sequence[str], ...] = ((), ("step",), ("channel",))
        rows, levels = data.train_values[:, : len(targets)], intervals.levels if intervals else ()
        return Scored(*(scores_frame(of, targets, rows, by, intervals, levels) for by in groups))

    others_scored = {name: frames(baseline.sums) for name, baseline in baselines.items()}
    levels, beside = covered.levels if covered else (), naive.beside(test["mse"])
    return Measured(test, frames(own, covered), others_scored, levels, data.season, beside)
