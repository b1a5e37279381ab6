"""Overall scores of a model: mean errors, relative errors, and the naive forecasts on the same windows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NotRequired, TypedDict

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from femts.data.batch import Batch
from femts.data.dataset import Dataset
from femts.data.preprocess import Preprocess
from femts.evaluation.metrics import ErrorSums, Metric, WindowSeries
from femts.evaluation.relative import RelativeErrors
from femts.evaluation.scale import SeasonalScale
from femts.evaluation.verdict import judge
from femts.models.base import Forecasts
from femts.models.naive import NAIVE, SEASONAL_NAIVE, naive_forecasts

Array = NDArray[np.float64]

TIMES = 10  # a target or series is reported if its mean error is this many times that of the others


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
        wape, bias: relative to the absolute values, in raw units (`RelativeErrors`).
        mase: mean over series and targets of the absolute error divided by the mean absolute seasonal change of the
            training rows (`SeasonalScale`).
        skill: 1 minus the ratio of `mse` to that of the seasonal naive forecast, or of the naive forecast if the
            look-back is shorter than a season.
        season: number of steps that the seasonal naive forecast repeats; 1 if the look-back is shorter than a season.
        baselines: errors of the naive forecasts on the same windows, by name (`naive_forecasts`).
        dominant: the target or series that rules the mean errors; missing if there is none.
        verdict: comparison with the best of the naive forecasts in words (`femts.evaluation.verdict.judge`); None
            without values.
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


class OverallScores:
    """Collects what `Scores` need besides the mean errors.

    Args:
        preprocess: conversion between scaled and raw units.
        data: dataset with the training rows of each series.
        seq_len: L, steps of look-back. If it is shorter than a season, there is no seasonal naive forecast.
    """

    def __init__(self, preprocess: Preprocess, data: Dataset, seq_len: int) -> None:
        self._relative = RelativeErrors(preprocess, len(data), data.n_targets)
        self._compared = _Compared(preprocess, data, seq_len)

    @property
    def metrics(self) -> list[Metric]:
        """Metrics to update with every window."""
        return [self._relative, self._compared]

    def scores(self, errors: Mapping[str, Any]) -> Scores:
        """Complete the mean `errors` of `femts.evaluation.evaluator.evaluate`."""
        made = {**errors, **self._relative.compute(), **self._compared.compute(errors["mse"])}
        judged = judge(made)
        return {**made, "verdict": None if judged is None else judged.words}  # type: ignore[typeddict-item]


class _Compared:
    """Float64 sums of the errors of naive forecasts, and of the model by series and target.

    Targets excluded from means over targets and series are missing here (`Metric`).
    """

    pools = True

    def __init__(self, preprocess: Preprocess, data: Dataset, seq_len: int) -> None:
        self._season = data.season if data.season <= seq_len else 1
        self._preprocess, self._data = preprocess, data
        shape = (len(data), data.n_targets)
        self._absolute, self._squared, self._count = torch.zeros(3, *shape, dtype=torch.float64)
        self._unit = (
            torch.from_numpy(preprocess.scaler.scale[:, : shape[1]]) if preprocess.linear else torch.ones(shape)
        )
        self._naive = dict[str, ErrorSums]()

    def update(self, forecasts: Forecasts, batch: Batch) -> None:
        """Add windows in scaled units; see `femts.evaluation.metrics.Metric`."""
        forecast, target = forecasts.points, batch.target
        observed = ~target.isnan()
        actual = target.masked_fill(~observed, 0.0)
        for name, naive in naive_forecasts(batch.past, target.shape[1], self._season).items():
            self._naive.setdefault(name, ErrorSums(target.device)).add(naive, actual, observed)
        numbers = WindowSeries.of_batch(batch, len(self._data))
        error = forecast.float() - target.float()
        self._squared += numbers.sums(error.square())
        if self._preprocess.linear:  # raw errors are then scaled errors times the scale
            error = error.abs_()
        else:
            own = self._preprocess.at(numbers.of.numpy())
            error = (own.inverse(forecast.cpu().double()) - own.restore(target.cpu().double())).abs_()
        self._absolute += numbers.sums(error) * self._unit
        self._count += numbers.sums(observed.double())

    def compute(self, mse: float) -> dict[str, Any]:
        """The fields of `Scores` that depend on naive forecasts, given the `mse` of the model."""
        change = torch.from_numpy(SeasonalScale.of(self._data).absolute)
        ratios = torch.where(self._count > 0, self._absolute / self._count / change, torch.nan)
        baselines: dict[str, Errors] = {name: {"mse": each.mse, "mae": each.mae} for name, each in self._naive.items()}
        naive = (baselines.get(SEASONAL_NAIVE) or baselines.get(NAIVE) or {"mse": math.nan})["mse"]
        weights = (~ratios.isnan()).double()
        dominant = self._dominant("mse", self._squared, self._count) or self._dominant("mase", ratios, weights)
        return {
            "mase": float(ratios[~ratios.isnan()].mean()),
            "skill": 1 - mse / naive if naive > 0 else math.nan,
            "season": self._season,
            "baselines": baselines,
            **({} if dominant is None else {"dominant": dominant}),
        }

    def _dominant(self, measure: str, errors: Tensor, weights: Tensor) -> Dominant | None:
        """The target or series with most of the sum of `errors` (S, T), NaN where undefined, if their mean, weighted
        by `weights` (S, T), is also `TIMES` that of the others."""
        several = len(self._data) > 1
        names = self._data.series if several else self._data.columns[: self._data.n_targets]
        sums, counts = (each.nansum(1) if several else each[0].nan_to_num() for each in (errors, weights))
        if len(names) < 2 or not sums.sum() > 0:
            return None
        k = int(sums.argmax())
        error, part = float(sums[k] / sums.sum()), float(counts[k] / counts.sum())
        if error <= 0.5 or error * (1 - part) <= TIMES * (1 - error) * part:
            return None
        return {"name": names[k], "measure": measure, "error": error, "values": part}


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
