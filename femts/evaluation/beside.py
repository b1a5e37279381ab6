"""The seasonal naive forecast beside a model: errors on the same windows, skill, MASE, and a verdict in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from femts.data.preprocess import Preprocess
from femts.evaluation.metrics import ErrorSums
from femts.evaluation.scores import seasonal_error

EVEN = 5e-4  # of an error; what differs by less has the same one, as printed
NOTHING = 1e-10  # squared error in scaled units that rounding alone may leave


class NaiveSums:
    """Float64 sums of the errors of the seasonal naive forecast; memory does not grow with the windows.

    Args:
        preprocess: between scaled and raw units.
        train_values: training rows (rows, T) of the targets, raw units.
        season: steps of a season; a look-back that is shorter repeats its last value.
        seq_len: L, steps of look-back.
    """

    def __init__(self, preprocess: Preprocess, train_values: NDArray[np.float64], season: int, seq_len: int) -> None:
        self.season = season if season <= seq_len else 1
        self._preprocess, targets = preprocess, train_values.shape[1]
        self._change = torch.from_numpy(seasonal_error(train_values, season))
        self._scale = torch.from_numpy(preprocess.scaler.scale[:targets])
        self._absolute, self._count = torch.zeros(2, targets, dtype=torch.float64)
        self._naive: ErrorSums | None = None

    def add(self, x: Tensor, forecast: Tensor, target: Tensor, quantiles: Tensor | None = None) -> None:
        """Add windows in scaled units; see `femts.evaluation.evaluator.Accumulator`."""
        if self._naive is None:
            self._naive = ErrorSums(target.device)
        steps = torch.arange(target.shape[1], device=x.device) % self.season
        observed = ~target.isnan()
        self._naive.add(x[:, -self.season :][:, steps], target.masked_fill(~observed, 0.0), observed)
        if self._preprocess.linear:  # then a raw error is a scaled one times the scale
            error = (forecast.float() - target.float()).abs_().nansum((0, 1), dtype=torch.float64).cpu() * self._scale
        else:
            raw = self._preprocess.inverse(forecast.cpu().double()) - self._preprocess.restore(target.cpu().double())
            error = raw.abs_().nansum((0, 1))
        self._absolute += error
        self._count += observed.sum((0, 1)).cpu()

    def beside(self, mse: float) -> dict[str, Any]:
        """Errors of the seasonal naive forecast beside the `mse` of the model.

        Returns:
            `season` (steps that are repeated), `mse` and `mae` of the naive forecast in scaled
            units, and of the model `skill`, 1 - its `mse` over that, and `mase`, the mean over the
            channels of its absolute error over that of the seasonal naive forecast on the training
            rows. None stands for what there is not: without values, or with a division by 0.
        """
        naive = self._naive or ErrorSums()
        some = (self._count > 0) & (self._change > 0)
        mase = float((self._absolute / self._count / self._change)[some].mean())
        skill = 1 - mse / naive.mse if naive.mse > 0 else math.nan
        numbers = {"mse": naive.mse, "mae": naive.mae, "skill": skill, "mase": mase}
        return {"season": self.season, **{name: v if math.isfinite(v) else None for name, v in numbers.items()}}


@dataclass(frozen=True)
class Judgement:
    """A verdict on a model beside the seasonal naive forecast.

    Attributes:
        worse: its squared or its absolute error is the higher one.
        words: what a reader should know.
    """

    worse: bool
    words: str


def judge(scores: Mapping[str, Any], naive: Mapping[str, Any]) -> Judgement | None:
    """The verdict on the `scores` of a model beside those of the `naive` forecast (`NaiveSums.beside`).

    Returns:
        None where there are no values to judge by.
    """
    pairs = {"squared": (scores["mse"], naive["mse"]), "absolute": (scores["mae"], naive["mae"])}
    if any(value is None or not math.isfinite(value) for pair in pairs.values() for value in pair):
        return None
    other = f"the seasonal naive forecast, which repeats the last {naive['season']} steps"
    if naive["season"] == 1:
        other = "the naive forecast, which repeats the last value"
    if naive["mse"] < NOTHING:
        worse = scores["mse"] > NOTHING
        return Judgement(worse, f"{'worse than' if worse else 'as good as'} {other}, and that makes no error here")
    changes = {name: own / naive_error - 1 for name, (own, naive_error) in pairs.items()}
    higher = [name for name, change in changes.items() if change > EVEN]
    lower = [name for name, change in changes.items() if change < -EVEN]
    figures = ", ".join(f"{name} error {_change(change)}" for name, change in changes.items())
    mase = "" if naive["mase"] is None else f", MASE {naive['mase']:.2f}"
    if higher:
        by = f"by its {higher[0]} error " if lower else ""
        return Judgement(True, f"{by}worse than {other}: {figures}{mase}")
    return Judgement(False, f"{'better than' if lower else 'as good as'} {other}: {figures}{mase}")


def _change(change: float) -> str:
    if abs(change) <= EVEN:
        return "the same"
    if change > 1:
        return f"{change + 1:,.1f} times as high"
    return f"{100 * abs(change):.1f} % {'higher' if change > 0 else 'lower'}"
