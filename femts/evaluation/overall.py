"""Overall scores of a model: mean errors, relative errors, and the naive forecasts on the same windows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NotRequired, TypedDict

from femts.data.batch import Batch
from femts.data.dataset import Dataset
from femts.data.preprocess import Preprocess
from femts.evaluation.constants import DOMINANT_RATIO
from femts.evaluation.metric import Collector, Metric, own_metrics
from femts.evaluation.metrics.point import MSE
from femts.evaluation.metrics.relative import MASE, WAPE, Bias
from femts.evaluation.scale import SeasonalScale
from femts.evaluation.score_sums import ScoreSums
from femts.evaluation.sums import ErrorSums
from femts.evaluation.values import Viewer
from femts.evaluation.verdict import judge
from femts.models.base import Forecasts
from femts.models.naive import NAIVE, SEASONAL_NAIVE, naive_forecasts


class Errors(TypedDict):
    """Mean errors in scaled units: `mse`, squared, and `mae`, absolute."""

    mse: float
    mae: float


class Dominant(TypedDict):
    """A target or series that rules a mean: its `name`, the `measure` (`mse` or `mase`), its fraction of the sum of
    all errors as `error`, and of all values as `values`."""

    name: str
    measure: str
    error: float
    values: float


class Scores(Errors):
    """Scores of a model over the windows of a split; NaN where undefined.

    Keys:
        mse, mae: mean errors in scaled units.
        windows: number of windows.
        wape, bias: relative to the absolute values, in raw units (`femts.evaluation.metrics.relative`).
        mase: mean over series and targets of the absolute error divided by the mean absolute seasonal change of the
            training rows (`SeasonalScale`).
        skill: 1 minus the ratio of `mse` to that of the seasonal naive forecast, or of the naive forecast if the
            look-back is shorter than a season.
        season: number of steps that the seasonal naive forecast repeats; 1 if the look-back is shorter than a season.
        baselines: errors of the naive forecasts on the same windows, by name (`naive_forecasts`).
        dominant: the target or series that rules the mean errors; missing if there is none.
        verdict: comparison with the best of the naive forecasts in words (`femts.evaluation.verdict.judge`); None
            without values.
        worse: whether the verdict is that the model is worse.
    """

    windows: int
    wape: float
    bias: float
    mase: float
    skill: float
    season: int
    baselines: dict[str, Errors]
    dominant: NotRequired[Dominant]
    verdict: str | None
    worse: bool


class OverallScores:
    """Collects what `Scores` need besides the mean errors.

    Args:
        preprocess: conversion between scaled and raw units.
        data: dataset with the training rows of each series.
        seq_len: L, steps of look-back. If it is shorter than a season, there is no seasonal naive forecast.
    """

    def __init__(self, preprocess: Preprocess, data: Dataset, seq_len: int) -> None:
        season, several = data.season, len(data) > 1
        self._season = season if season <= seq_len else 1
        self._names = data.series if several else data.columns[: data.n_targets]
        viewer = Viewer(preprocess, season, SeasonalScale.of(data))
        self._values = ScoreSums([WAPE(), Bias()], viewer, "series", ("scaled",))
        self._means = ScoreSums([MSE(), MASE(), *own_metrics()], viewer, "series", ("scaled",), pools=True)
        self._naive, self._several = BaselineErrors(self._season), several

    @property
    def collectors(self) -> list[Collector]:
        """What to update with every window."""
        return [self._values, self._means, self._naive]

    def scores(self, errors: Mapping[str, Any]) -> Scores:
        """Complete the mean `errors` of `femts.evaluation.evaluator.evaluate`."""
        baselines = self._naive.errors()
        naive = (baselines.get(SEASONAL_NAIVE) or baselines.get(NAIVE) or {"mse": math.nan})["mse"]
        made = {
            **errors,
            **{metric.name: self._values.overall(metric) for metric in self._values.metrics},
            **{metric.name: self._means.overall(metric) for metric in self._means.metrics[1:]},
            "skill": 1 - errors["mse"] / naive if naive > 0 else math.nan,
            "season": self._season,
            "baselines": baselines,
        }
        for metric in self._means.metrics[:2]:
            dominant = self._dominant(metric)
            if dominant is not None:
                made["dominant"] = dominant
                break
        judged = judge(made)
        of_judged = (
            {"verdict": None, "worse": False} if judged is None else {"verdict": judged.words, "worse": judged.worse}
        )
        return {**made, **of_judged}  # type: ignore[typeddict-item]

    def _dominant(self, metric: Metric) -> Dominant | None:
        """The target or series with most of the sum of errors by `metric`, if its mean is also `DOMINANT_RATIO` that of the
        others."""
        sums = self._means.sums(metric)
        if sums is None or len(self._names) < 2:
            return None
        errors, values = sums.sum(2) if self._several else sums[:, 0]
        if not errors.sum() > 0:
            return None
        k = int(errors.argmax())
        error, part = float(errors[k] / errors.sum()), float(values[k] / values.sum())
        if error <= 0.5 or error * (1 - part) <= DOMINANT_RATIO * (1 - error) * part:
            return None
        return {"name": self._names[k], "measure": metric.name, "error": error, "values": part}


class BaselineErrors:
    """Mean errors of the naive forecasts of the windows, in scaled units.

    Args:
        season: steps in a season.
    """

    pools = True

    def __init__(self, season: int) -> None:
        self._season, self._sums = season, dict[str, ErrorSums]()

    def update(self, forecasts: Forecasts, batch: Batch) -> None:
        """Add windows in scaled units; see `femts.evaluation.metric.Collector`."""
        observed = ~batch.target.isnan()
        actual = batch.target.masked_fill(~observed, 0.0)
        for name, naive in naive_forecasts(batch.past, actual.shape[1], self._season).items():
            self._sums.setdefault(name, ErrorSums(actual.device)).add(naive, actual, observed)

    def errors(self) -> dict[str, Errors]:
        """Errors by name."""
        return {name: {"mse": each.mse, "mae": each.mae} for name, each in self._sums.items()}


def compared_with_naive(scores: Mapping[str, Any]) -> dict[str, Any]:
    """The comparison with the seasonal naive forecast in `scores`, as it is written to records: `season`, `mse` and
    `mae` of that forecast, and `skill` and `mase` of the model, None where undefined."""
    missing: Errors = {"mse": math.nan, "mae": math.nan}
    naive = scores["baselines"].get(SEASONAL_NAIVE) or scores["baselines"].get(NAIVE) or missing
    numbers = {**naive, "skill": scores["skill"], "mase": scores["mase"]}
    return {
        "season": scores["season"],
        **{name: None if value is None or not math.isfinite(value) else value for name, value in numbers.items()},
    }
