"""One candidate: trained on the rows before each origin, and what it forecasts after them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from femts.data.batch import Batch
from femts.data.dataset import Dataset
from femts.data.limits import Limits
from femts.errors import FemtsError, RunFailure, memory_checked
from femts.evaluation.criterion import USUAL, losses, units
from femts.evaluation.evaluator import evaluate
from femts.forecaster.forecaster import Forecaster, load
from femts.forecaster.run_folder import METRICS
from femts.forecaster.scoring import score_windows
from femts.logging import quiet_training
from femts.models.base import Forecasts
from femts.training.fit import FitRequest, fit
from femts.training.select.candidates import Candidate
from femts.training.stopping import Interrupted

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CandidateResult:
    """Candidate after its trial.

    Attributes:
        model: registered name.
        forecaster: trained on the training rows; None for one that could not be tried.
        forecasts: by origin, of the windows after it, (W, P, T) in scaled units.
        targets: what followed, the same for all candidates; NaN where it is missing.
        limits: of the forecasts of these windows, the same for all candidates, where they have some; a mean of
            several forecasts ends at them, and not each by itself.
        seconds: that the trial took.
        reason: for leaving it out; empty for one that was tried.
        failed: it was begun, and failed for a reason that is not the caller's, such as want of memory.
        look_back: steps, of a candidate that has its own; None of others.
        criterion: one of `CRITERIA`, which errors are measured by.
        units: of these errors, by origin, (W, 1, T); none where they are scaled ones.
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
    criterion: str = USUAL
    units: tuple[Array, ...] = ()

    @property
    def label(self) -> str:
        """Name for messages."""
        return self.model if self.look_back is None else f"{self.model} (look-back {self.look_back})"

    def then(self, earlier: CandidateResult) -> CandidateResult:
        """This result with that of an `earlier` origin behind it; the first one that fails is what stays."""
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
        """Mean over the origins of its mean error by the criterion; NaN where it was not tried."""
        if not self.forecasts or not all(np.isfinite(each).all() for each in self.forecasts):
            return float("nan")
        return self.error_of(self.forecasts)

    def error_of(self, forecasts: Sequence[Array]) -> float:
        """The same of other `forecasts` of the same windows."""
        return float(np.mean([np.nanmean(each) for each in self.errors(forecasts)]))

    def errors(self, forecasts: Sequence[Array]) -> list[Array]:
        """Errors, (W, P, T) for each origin, of other `forecasts` of the same windows, within their limits."""
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
    """Metric that keeps forecasts and targets as they are."""

    pools = True

    def __init__(self) -> None:
        self._forecasts, self._targets = list[Tensor](), list[Tensor]()

    def update(self, forecasts: Forecasts, batch: Batch) -> None:
        """Keep windows; see `femts.evaluation.evaluator.Metric`."""
        forecast, target = forecasts.points, batch.target
        self._forecasts.append(forecast.cpu().double())
        self._targets.append(target.cpu().double())

    @property
    def arrays(self) -> tuple[Array, Array]:
        """All forecasts and all targets, (W, P, T) each."""
        return torch.cat(self._forecasts).numpy(), torch.cat(self._targets).numpy()


def try_candidate(
    candidate: Candidate, request: FitRequest, fold: Dataset, most: int, seconds: float | None, folder: Path | None
) -> CandidateResult:
    """Train `candidate` on the rows before an origin, and forecast at most so many windows of each series after it.

    Args:
        candidate: the model.
        request: whose recipe, look-back and device it takes.
        fold: the data as they were known at the origin.
        most: windows to forecast, spread evenly.
        seconds: that there are for it; None is no limit.
        folder: keeps the training, all of this request; one that is finished there is not made again.

    Raises:
        Interrupted: a signal came.
    """
    began, model = time.monotonic(), candidate.model
    try:
        with memory_checked():
            trained = _trained(candidate, request, fold, most, seconds, folder)
            collected = _Collected()
            windows = score_windows(trained, "val", None, fold).within_scale()
            index = windows.subsample(most)
            limits = windows.limits(index)
            windows.resident = replace(windows.resident, limits=None)
            evaluate(trained.model, windows, trained.config.training.eval_batch_size, some=most, also=[collected])
            forecasts, targets = collected.arrays
            series = windows.series_of(index).cpu().numpy()
            factors = units(request.criterion, fold, trained.preprocess, series, targets)
    except Interrupted:
        raise
    except FemtsError as error:
        made = CandidateResult(model, reason=str(error), failed=isinstance(error, RunFailure))
    else:
        made = CandidateResult(model, trained, (forecasts,), (targets,), (limits,), criterion=request.criterion)
        made = made if request.criterion in ("mae", "mse") else replace(made, units=(factors,))
    return replace(made, seconds=time.monotonic() - began, look_back=candidate.seq_len)


def _trained(
    candidate: Candidate, request: FitRequest, fold: Dataset, most: int, seconds: float | None, folder: Path | None
) -> Forecaster:
    if folder is not None and (folder / METRICS).is_file():
        before: Forecaster = load(folder, request.accelerator.device)
        return before
    asked = replace(request, lengths=candidate.lengths(request.lengths))
    loss = "mae" if candidate.learns and request.criterion != "mse" else "mse"  # as the choice is made
    with quiet_training():
        return fit(asked.for_candidate(candidate.model, seconds, folder, most, loss), fold)
