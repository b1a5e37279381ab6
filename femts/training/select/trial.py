"""Trial of one candidate: trained on the rows before each origin and evaluated after it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from femts.data.batch import Batch
from femts.data.dataset import Dataset
from femts.data.limits import Limits
from femts.errors import FemtsError, RunFailure, memory_checked
from femts.evaluation.criterion import DEFAULT, losses, units
from femts.evaluation.evaluator import evaluate
from femts.forecaster.forecaster import Forecaster
from femts.forecaster.scoring import score_windows
from femts.logging import quiet_training
from femts.models.base import Forecasts
from femts.text import Message
from femts.training.data_module import DataModule
from femts.training.fit import fit
from femts.training.request import FitRequest
from femts.training.select.candidates import Candidate
from femts.training.stopping import Interrupted

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CandidateResult:
    """Result of a trial.

    Attributes:
        model: registered name.
        forecaster: forecaster trained on the training rows; None if it could not be tried.
        forecasts: forecasts of the windows after each origin, (W, P, T) in scaled units.
        targets: true values, equal for all candidates; NaN for missing ones.
        limits: bounds of the forecasts of these windows, equal for all candidates, if there are any; they clip the mean
            of several forecasts, not each forecast.
        seconds: duration of the trial.
        reason: reason for skipping it; empty if it was tried.
        failed: whether it was started and failed for a reason beyond the caller's control, such as lack of memory.
        look_back: look-back in steps if it is the candidate's own, otherwise None.
        criterion: error measure, one of `CRITERIA`.
        settings: settings of the model by name.
        units: factors from scaled errors to the units of the criterion by origin, (W, 1, T); empty for scaled units.
    """

    model: str
    forecaster: Forecaster | None = None
    forecasts: tuple[Array, ...] = ()
    targets: tuple[Array, ...] = ()
    limits: tuple[Limits | None, ...] = ()
    seconds: float = 0.0
    reason: str = ""
    failed: bool = False
    look_back: int | None = None
    criterion: str = DEFAULT
    settings: Mapping[str, Any] = field(default_factory=dict)
    units: tuple[Array, ...] = ()

    @property
    def key(self) -> str:
        """As `Candidate.key`."""
        return self.model if self.look_back is None else f"{self.model}-{self.look_back}"

    @property
    def label(self) -> str:
        """Name for messages."""
        return self.model if self.look_back is None else f"{self.model} (look-back {self.look_back})"

    def then(self, earlier: CandidateResult) -> CandidateResult:
        """Combine this result with that of an `earlier` origin; the first failure is kept."""
        if self.reason or earlier.reason:
            return replace(earlier if earlier.reason else self, seconds=self.seconds + earlier.seconds)
        return replace(
            self,
            forecasts=self.forecasts + earlier.forecasts,
            targets=self.targets + earlier.targets,
            limits=self.limits + earlier.limits,
            units=self.units + earlier.units,
            seconds=self.seconds + earlier.seconds,
        )

    @property
    def error(self) -> float:
        """Error by the criterion, averaged over the origins; NaN if it was not tried."""
        if not self.forecasts or not all(np.isfinite(each).all() for each in self.forecasts):
            return float("nan")
        return self.error_of(self.forecasts)

    def error_of(self, forecasts: Sequence[Array]) -> float:
        """The same for other `forecasts` of the same windows."""
        return float(np.mean([np.nanmean(each) for each in self.errors(forecasts)]))

    def errors(self, forecasts: Sequence[Array]) -> list[Array]:
        """Errors, (W, P, T) per origin, of other `forecasts` of the same windows, clipped to their limits."""
        limits = self.limits or (None,) * len(forecasts)
        within = [
            each if limit is None else limit.clip(torch.from_numpy(each)).numpy()
            for each, limit in zip(forecasts, limits, strict=True)
        ]
        factors = self.units or (np.ones(1),) * len(within)
        return [
            losses(self.criterion, (made - target) * factor)
            for made, target, factor in zip(within, self.targets, factors, strict=True)
        ]


class _Collected:
    """Metric that stores forecasts and targets."""

    pools = True

    def __init__(self) -> None:
        self._forecasts, self._targets = list[Tensor](), list[Tensor]()

    def update(self, forecasts: Forecasts, batch: Batch) -> None:
        """Store windows; see `femts.evaluation.evaluator.Metric`."""
        forecast, target = forecasts.points, batch.target
        self._forecasts.append(forecast.cpu().double())
        self._targets.append(target.cpu().double())

    @property
    def arrays(self) -> tuple[Array, Array]:
        """All forecasts and all targets, (W, P, T) each."""
        return torch.cat(self._forecasts).numpy(), torch.cat(self._targets).numpy()


def try_candidate(
    candidate: Candidate, request: FitRequest, fold: Dataset, most: int, folder: Path | None
) -> CandidateResult:
    """Train `candidate` on the rows before an origin, and forecast at most `most` windows per series after it.

    Args:
        candidate: the model.
        request: request with recipe, look-back and device.
        fold: the data as known at the origin.
        most: number of windows to forecast, evenly spaced.
        folder: folder of this trial; a finished training in it is not repeated if its data and settings agree.

    Raises:
        Interrupted: A signal was received.
    """
    began, model = time.monotonic(), candidate.model
    try:
        with memory_checked():
            trained = _trained(candidate, request, fold, most, folder)
            collected = _Collected()
            like = DataModule.of(fold, trained.config, ("val",)).windows["val"]
            windows = score_windows(trained, "val", None, fold, like).within_scale()
            index = windows.subsample(most)
            limits = windows.limits(index)
            windows.resident = replace(windows.resident, limits=None)
            evaluate(trained.model, windows, trained.config.training.eval_batch_size, some=most, also=[collected])
            forecasts, targets = collected.arrays
            series = windows.series_of(index).cpu().numpy()
            factors = units(request.criterion, fold, trained.preprocess, series, targets)
            trained = replace(trained, _dataset=None)  # the rows of the fold may be large
    except Interrupted:
        raise
    except FemtsError as error:
        made = CandidateResult(model, reason=Message(error), failed=isinstance(error, RunFailure))
    else:
        made = CandidateResult(
            model, trained, (forecasts,), (targets,), (limits,), criterion=request.criterion, units=(factors,)
        )
    return replace(made, seconds=time.monotonic() - began, look_back=candidate.seq_len, settings=candidate.settings)


def _trained(candidate: Candidate, request: FitRequest, fold: Dataset, most: int, folder: Path | None) -> Forecaster:
    asked = replace(request, lengths=candidate.lengths(request.lengths))
    loss = "mae" if candidate.learns and request.criterion != "mse" else "mse"  # the criterion of the selection
    with quiet_training():
        one = asked.for_candidate(candidate.model, candidate.training, folder, most, loss, candidate.settings)
        return fit(one, fold)
