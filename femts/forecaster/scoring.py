"""Errors of a forecaster by its own account: scores in detail, intervals, and what those cover."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from femts.config.values import check_steps
from femts.data.catalog import CATALOG
from femts.data.dataset import Dataset, load_dataset
from femts.data.protocols import HORIZONS
from femts.data.scaler import Scaler
from femts.data.windows import Windows, part_windows
from femts.errors import UsageError
from femts.evaluation.coverage import CoverageSums
from femts.evaluation.evaluator import Sums, evaluate, evaluate_horizons
from femts.evaluation.intervals import LEVELS, Intervals, calibrate, check_levels, refuse_unreachable
from femts.evaluation.quantiles import conformal_bounds, level_of
from femts.evaluation.scores import DetailSums, check_groups, scores_frame
from femts.forecaster.run_folder import RunConfig
from femts.models.base import ForecastModel
from femts.text import shown


class Scoring(ABC):
    """Part of `Forecaster`, which says what the attributes are. P is the model's own horizon."""

    model: ForecastModel
    config: RunConfig
    scaler: Scaler
    columns: tuple[str, ...]
    data: Mapping[str, Any]
    intervals: Intervals | None
    _dataset: Dataset | None

    @property
    @abstractmethod
    def device(self) -> torch.device:
        """Device of the model."""

    @property
    @abstractmethod
    def targets(self) -> tuple[str, ...]:
        """Names of the columns that are scored."""

    @abstractmethod
    def _scaled(self, values: NDArray[np.float64], effects: NDArray[np.float64] | None = None) -> Tensor:
        """Raw look-backs (B, L, C) as the model reads them."""

    def evaluate(
        self,
        part: str = "test",
        pred_len: int | None = None,
        dataset: Dataset | None = None,
        data_root: str | Path | None = None,
    ) -> dict[str, float | int]:
        """Scores over every window of `part`, in scaled units.

        Args:
            part: `test`, `val` or `train`.
            pred_len: horizon to score, P by default; beyond P the forecasts are rolled out.
            dataset: the data; None takes that of the training, loaded again by its name or path and verified by its hash.
            data_root: where a data set of the catalogue is looked for.

        Returns:
            `mse`, `mae` and the number of `windows`.

        Raises:
            UsageError: unknown part, a horizon that does not fit, or data that is not there or has changed.
        """
        windows = self._windows(part, pred_len, self._data(dataset, data_root))
        return evaluate(self.model, windows, self.config.training.eval_batch_size)

    def evaluate_horizons(
        self,
        part: str = "test",
        horizons: Sequence[int] = HORIZONS,
        dataset: Dataset | None = None,
        data_root: str | Path | None = None,
        most: int | None = None,
    ) -> dict[int, dict[str, float | int]]:
        """Scores at several horizons, each as `evaluate` has it, from one roll-out of each window.

        Args:
            part, dataset, data_root: as in `evaluate`.
            horizons: steps of each forecast to score.
            most: windows at most, spread evenly over those of the longest horizon; None scores all of each horizon.

        Returns:
            What `evaluate` returns, by horizon, in the order given.

        Raises:
            UsageError: as in `evaluate`.
        """
        if not horizons:
            raise UsageError("No horizon was given to score; write evaluate_horizons(horizons=[96, 192]).")
        data = self._data(dataset, data_root)
        windows = [self._windows(part, horizons[0], data)]
        for steps in horizons[1:]:
            windows.append(self._windows(part, steps, data, windows[0]))
        return evaluate_horizons(self.model, windows, self.config.training.eval_batch_size, most)

    def _windows(self, part: str, pred_len: int | None, data: Dataset, like: Windows | None = None) -> Windows:
        steps = self.config.pred_len if pred_len is None else check_steps(pred_len)
        return part_windows(data, self.scaler, part, self.config.seq_len, steps, like).to(self.device)

    def _data(self, dataset: Dataset | None, data_root: str | Path | None) -> Dataset:
        data = dataset if dataset is not None else self.training_data(data_root)
        if not isinstance(data, Dataset):
            raise UsageError(f"The data are a {type(data).__name__}; pass what femts.load_dataset made of them as dataset=.")
        if data.columns != self.columns:
            raise UsageError(f"Data set '{shown(data.name)}' has other columns than the training data; give one with the same.")
        return data

    def training_data(self, data_root: str | Path | None = None) -> Dataset:
        """The data of the training, loaded again by its name or path.

        Args:
            data_root: where a data set of the catalogue is looked for.

        Returns:
            The data set, the same object at every call.

        Raises:
            UsageError: it is gone, has changed, or was passed as an object, which a run does not keep.
        """
        if self._dataset is None:
            source = self.config.source
            if source is None:
                raise UsageError(
                    f"The training data '{self.config.dataset}' was passed as an object and is not kept in the run; "
                    "pass it again as dataset= (--dataset)."
                )
            if source not in CATALOG and not Path(source).is_file():
                raise UsageError(
                    f"The training data {source} is no longer there; put it back, or pass it as dataset= (--dataset)."
                )
            data = load_dataset(
                source, data_root, na=self.config.na, columns=self.config.form.named(), **asdict(self.config.roles)
            )
            if data.record != self.data:
                raise UsageError(f"The data {source} is not what this model was trained on; pass other data as dataset=.")
            self._dataset = data
        return self._dataset

    def scores(
        self,
        part: str = "test",
        pred_len: int | None = None,
        by: str | Sequence[str] | None = None,
        level: Sequence[float] | None = None,
        dataset: Dataset | None = None,
        data_root: str | Path | None = None,
    ) -> pd.DataFrame:
        """Scores in detail, over every window of `part`.

        Args:
            part, pred_len, dataset, data_root: as in `evaluate`.
            by: `step`, `channel` or both, to group by; None averages over all.
            level: percent; adds what the intervals cover, and the CRPS.

        Returns:
            One row for each group in scaled units, then one in raw ones, as `units` says, with the columns `step` (from 1) and
            `channel` as asked for, `windows`, `mse`, `mae`, `rmse` and

            - `smape`: mean of 200 |y - f| / (|y| + |f|), percent (Makridakis et al., the M4 competition); it depends on where
              the units put 0, and is NaN where a forecast and its target both are 0.
            - `mase`: absolute error over that of the seasonal naive forecast on the training rows (Hyndman & Koehler, 2006);
              NaN where those repeat their season exactly.
            - `skill`: 1 - `mse` / that of the seasonal naive forecast on the same windows; NaN where that makes no error, and
              where the look-back is shorter than a season.
            - with `level` the continuous ranked probability score `crps`, from all quantiles that are calibrated, whichever
              levels are asked for (`intervals.quantiles`; see `CoverageSums.crps`); scores of other quantiles do not compare.
            - for each level `coverage-80`, mean `width-80` and `pinball-80`, the mean pinball loss of both ends.

        Raises:
            UsageError: as in `evaluate`, or an unknown group, or a level or horizon that is not calibrated.
        """
        groups, data = check_groups(by), self._data(dataset, data_root)
        windows = self._windows(part, pred_len, data)
        levels = () if level is None else check_levels(level)
        covered = self._coverage_sums(levels, windows.pred_len) if levels else None
        sums = DetailSums(windows.pred_len, self.scaler.first(windows.targets), data.season)
        also: list[Sums] = [sums] if covered is None else [sums, covered]
        evaluate(self.model, windows, self.config.training.eval_batch_size, also=also)
        return scores_frame(sums, self.targets, data.train_values[:, : windows.targets], groups, covered, levels)

    def coverage(
        self,
        part: str = "test",
        level: Sequence[float] = (80, 95),
        pred_len: int | None = None,
        dataset: Dataset | None = None,
        data_root: str | Path | None = None,
    ) -> pd.DataFrame:
        """Coverage of `part` by the intervals, by step and channel.

        Args:
            part, level, pred_len, dataset, data_root: as in `scores`.

        Returns:
            One row each, `level`, `step`, `channel`, `coverage` (a part of 1), mean `width` and its `units`, which are raw.

        Raises:
            UsageError: as in `scores`.
        """
        windows = self._windows(part, pred_len, self._data(dataset, data_root))
        levels = check_levels(level)
        sums = self._coverage_sums(levels, windows.pred_len)
        evaluate(self.model, windows, self.config.training.eval_batch_size, also=[sums])
        index = pd.MultiIndex.from_product(
            [levels, range(1, windows.pred_len + 1), self.targets], names=["level", "step", "channel"]
        )
        places = [sums.levels.index(level) for level in levels]
        width = sums.width[places] * self.scaler.scale[: windows.targets]
        cells = {"coverage": sums.coverage[places].ravel(), "width": width.ravel(), "units": "raw"}
        return pd.DataFrame(cells, index).reset_index()

    def calibrate(
        self,
        pred_len: int | None = None,
        level: Sequence[float] = (),
        dataset: Dataset | None = None,
        data_root: str | Path | None = None,
    ) -> Intervals:
        """Calibrate `intervals` anew on the validation part, which training has done for P steps.

        Args:
            pred_len: longest horizon; None takes what was calibrated before, or P.
            level: percent; levels to have besides 50, 80, 90, 95 and 99.
            dataset, data_root: as in `evaluate`.

        Returns:
            The new intervals, which the forecaster keeps; half-widths in scaled units.

        Raises:
            UsageError: as in `evaluate`, or a level for which there are too few validation windows.
            RunFailure: forecasts are not finite.
        """
        before = self.config.pred_len if self.intervals is None else self.intervals.steps
        more = check_levels(level) if level else ()
        windows = self._windows("val", before if pred_len is None else pred_len, self._data(dataset, data_root))
        refuse_unreachable(more, len(windows))
        batch_size = self.config.training.eval_batch_size
        self.intervals, _ = calibrate(self.model, windows, (*LEVELS, *more), batch_size)
        return self.intervals

    def _calibrated(self) -> Intervals:
        if self.intervals is None:
            raise UsageError("This run has no intervals; make them by `femts calibrate RUN`, or in Python by calibrate().")
        return self.intervals

    def _coverage_sums(self, levels: Sequence[float], steps: int) -> CoverageSums:
        """Of all levels that are calibrated, `levels` among them."""
        intervals = self._calibrated()
        intervals.at(levels, steps)
        return CoverageSums(intervals.levels, intervals.half_widths[:, :steps], self.model.quantiles)

    def _bounds(
        self,
        past: NDArray[np.float64],
        effects: NDArray[np.float64] | None,
        forecast: NDArray[np.float64],
        levels: Sequence[float],
        quantiles: Sequence[float],
    ) -> dict[str, NDArray[np.float64]]:
        """Bounds beside the `forecast` (S, T) from the look-back `past` (1, L, C), in raw units: `lo-80`, `hi-80`, `q-10`.

        `effects` (1, L + S, C) are those of `predict_array`.
        """
        intervals, (steps, targets), ends = self._calibrated(), forecast.shape, {0.0: (forecast, forecast)}
        corrections = intervals.half_widths[:, :steps]
        if self.model.quantiles:
            before = None if effects is None else effects[:, : past.shape[1]]
            after = 0.0 if effects is None else effects[:, past.shape[1] :, :targets]
            with torch.no_grad():
                learned = self.model.forecast_quantiles(self._scaled(past, before), steps)[..., :targets]
            bounds = conformal_bounds(learned, self.model.quantiles, intervals.levels, corrections)
            scaler = self.scaler.first(targets)
            for level, (lower, upper) in zip(intervals.levels, bounds, strict=True):
                ends[level] = scaler.inverse(lower.numpy() + after)[0], scaler.inverse(upper.numpy() + after)[0]
        else:
            for level, width in zip(intervals.levels, corrections * self.scaler.scale[:targets], strict=True):
                ends[level] = forecast - width, forecast + width
        found = {f"{side}-{level:g}": ends[level][k] for level in levels for k, side in enumerate(("lo", "hi"))}
        return found | {f"q-{100 * q:g}": ends[level_of(q)][q > 0.5] for q in quantiles}
