"""A trained forecaster of a panel: one model for all its series, also for new ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from femts.data.panel import Panel, load_panel, panel_for_horizon
from femts.data.panel_preprocess import PanelPreprocess, panel_windows
from femts.data.windows import PanelWindows
from femts.errors import UsageError
from femts.evaluation.evaluator import evaluate
from femts.evaluation.intervals import Intervals
from femts.evaluation.series_scores import SeriesSums
from femts.files import locked
from femts.forecaster.forecasting import Ends
from femts.forecaster.panel_forecasting import forecast_panel
from femts.forecaster.restore import restore_panel, weights_bytes
from femts.forecaster.run_folder import (
    INTERVALS,
    PREPROCESS,
    WEIGHTS,
    RunConfig,
    check_new_folder,
    json_bytes,
    write_run,
)
from femts.models.base import ForecastModel
from femts.text import shown


@dataclass(eq=False)
class PanelForecaster:
    """A model with everything it needs to forecast the series of a panel in raw units.

    Attributes:
        model: the network, in scaled units.
        config: what was trained, and how.
        preprocess: that of each series; a new one is scaled by its own rows.
        freq: step between stamps, a pandas frequency.
        data: hash of the training data, and rows of their parts.
        metrics: scores and circumstances of the training, as in `metrics.json`.
        validations: one row for each validation, as in `metrics.csv`.
        intervals: what bounds a forecast, calibrated on the validation rows of all series together.
    """

    model: ForecastModel
    config: RunConfig
    preprocess: PanelPreprocess
    freq: str
    data: Mapping[str, Any]
    metrics: Mapping[str, Any] = field(default_factory=dict)
    validations: Sequence[Mapping[str, Any]] = ()
    intervals: Intervals | None = None
    _dataset: Panel | None = field(default=None, repr=False)

    @property
    def device(self) -> torch.device:
        """Device of the model's weights, trained or fitted; the CPU for one without."""
        weights = chain(self.model.parameters(), self.model.buffers())
        return next((weight.device for weight in weights), torch.device("cpu"))

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the C columns of each series."""
        return self.preprocess.columns

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of the T columns that are forecast."""
        return self.columns[: len(self.columns) - len(self.config.schema.roles.past)]

    def to(self, device: torch.device | str) -> PanelForecaster:
        """Move the model to `device` and return the forecaster."""
        self.model.to(device)
        return self

    def predict(
        self,
        history: pd.DataFrame,
        horizon: int | None = None,
        level: Sequence[float] | None = None,
        quantiles: Sequence[float] | None = None,
    ) -> pd.DataFrame:
        """Forecast what follows each series of `history`, from its own end on.

        Args:
            history: raw units, a long table like that of the training, of any of its series and of
                new ones. The last L steps of each are read; what is missing in them, or before a
                series began, is filled as in training.
            horizon: steps to forecast, P by default; beyond P the model reads its own forecasts as history.
            level: percent, such as [80, 95]; adds intervals.
            quantiles: such as [0.1, 0.9]; adds the ends of intervals.

        Returns:
            A long table in raw units, `horizon` rows for each series in the order of `history`,
            with `level` and `quantiles` as in `Forecaster.predict`.

        Raises:
            UsageError: the history, the horizon, a level or a quantile cannot be used; the text says why.
            RunFailure: the model does not forecast finite numbers.
        """
        return forecast_panel(self, history, horizon, Ends.of(level, quantiles))

    def evaluate(self, part: str = "test", pred_len: int | None = None, dataset: Panel | None = None) -> dict[str, Any]:
        """Scores over every window of `part` of every series, in the scaled units of each.

        Args:
            part: `test`, `val` or `train`.
            pred_len: horizon to score, P by default.
            dataset: the panel; None takes that of the training, loaded again by its path and verified by its hash.

        Returns:
            `mse`, `mae` and the number of `windows`.

        Raises:
            UsageError: unknown part, a horizon that does not fit, or data that are not there or have changed.
        """
        windows, _ = self._windows(part, pred_len, dataset)
        return evaluate(self.model, windows, self.config.training.eval_batch_size)

    def scores(self, part: str = "test", pred_len: int | None = None, dataset: Panel | None = None) -> pd.DataFrame:
        """Scores of each series over every window of `part`.

        Args:
            part, pred_len, dataset: as in `evaluate`.

        Returns:
            One row a series that has windows: `series`, `windows`, `mse`, `mae` (raw units), `mase`
            and `rmsse` (over the mean absolute and the root mean squared change over a season of
            its training rows; NaN where those are 0).

        Raises:
            UsageError: as in `evaluate`.
        """
        windows, panel = self._windows(part, pred_len, dataset)
        sums = SeriesSums(windows, self.preprocess, self.model.most_windows)
        evaluate(self.model, windows, self.config.training.eval_batch_size, also=[sums])
        return sums.frame(panel)

    def _windows(self, part: str, pred_len: int | None, dataset: Panel | None) -> tuple[PanelWindows, Panel]:
        panel = self.training_data() if dataset is None else dataset
        if not isinstance(panel, Panel):
            raise UsageError(f"The data are a {type(panel).__name__}, and this model was trained on a panel; pass one.")
        panel = panel_for_horizon(panel, self.config.pred_len)
        new = next((name for name in panel.series if name not in self.preprocess.series), None)
        if new is not None:
            raise UsageError(
                f"Series '{shown(new)}' was not in the training, so it has no training rows; leave it out."
            )
        steps = self.config.pred_len if pred_len is None else pred_len
        return panel_windows(panel, self.preprocess, part, self.config.seq_len, steps).to(self.device), panel

    def training_data(self, data_root: str | Path | None = None) -> Panel:
        """The panel of the training, loaded again by its path.

        Args:
            data_root: not needed, as a panel is always a file of one's own.

        Returns:
            The panel, the same object at every call.

        Raises:
            UsageError: it is gone, has changed, or was passed as an object, which a run does not keep.
        """
        if self._dataset is None:
            source = self.config.source
            if source is None or not Path(source).is_file():
                raise UsageError(
                    f"The training data '{source or self.config.dataset}' are not there; pass them as dataset=."
                )
            panel = panel_for_horizon(load_panel(source, self.config.schema), self.config.pred_len)
            if panel.record != self.data:
                raise UsageError(
                    f"The data {source} are not what this model was trained on; pass other data as dataset=."
                )
            self._dataset = panel
        return self._dataset

    def save(self, folder: str | Path) -> None:
        """Write a run to `folder`, for `load`; UsageError where it is not empty, RunFailure where the disk refuses."""
        with locked(Path(folder)):
            check_new_folder(Path(folder))
            self.write(Path(folder))

    def write(self, folder: Path) -> None:
        """As `save`, over whatever `folder` holds."""
        preprocess = self.preprocess_record()
        files = {WEIGHTS: weights_bytes(self.model, preprocess), PREPROCESS: json_bytes(preprocess)}
        files |= {} if self.intervals is None else {INTERVALS: self.intervals.to_bytes()}
        write_run(folder, self.config, files, self.validations, self.metrics)

    def preprocess_record(self) -> dict[str, Any]:
        """Record of what turns raw data into the model's input, in plain types; `preprocess.json`."""
        return {**self.preprocess.to_dict(), "freq": self.freq, "data": dict(self.data)}

    @classmethod
    def load(cls, folder: str | Path, device: str | torch.device = "cpu") -> PanelForecaster:
        """The forecaster in a run folder, verified as `Forecaster.load` does it.

        Args:
            folder: of a run that was trained on a panel.
            device: where its weights go.

        Returns:
            A forecaster, ready to predict.

        Raises:
            UsageError: no run of a panel, an unfinished or a changed one.
        """
        run, model, preprocess, intervals = restore_panel(folder)
        saved = run.preprocess
        made = cls(
            model, run.config, preprocess, str(saved["freq"]), saved["data"], run.metrics, run.validations, intervals
        )
        return made.to(device)
