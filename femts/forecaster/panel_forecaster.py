"""A trained forecaster of a panel: one model for all its series, also for new ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import pandas as pd
import torch

from femts.config.arguments import check_path
from femts.data.describe import names
from femts.data.panel import Panel
from femts.data.panel_preprocess import PanelPreprocess
from femts.forecaster import panel_scoring
from femts.forecaster.forecasting import Ends
from femts.forecaster.panel_forecasting import forecast_panel
from femts.forecaster.restore import restore_panel
from femts.forecaster.trained import Trained, check_device

PanelSource: TypeAlias = Panel | pd.DataFrame | str | Path


class PanelForecaster(Trained[PanelPreprocess, Panel]):
    """A model with everything it needs to forecast the series of a panel in raw units.

    Its attributes are those of `femts.forecaster.trained.Trained`; `preprocess` holds the scale of
    each series, and a series that it does not hold is scaled by its own rows.
    """

    @property
    def subject(self) -> str:
        """Series of the training, in words."""
        series = tuple(self.preprocess.series)
        return f"{len(series)} series: {names(series)}"

    def predict(
        self,
        history: pd.DataFrame,
        horizon: int | None = None,
        level: Sequence[float] | None = None,
        quantiles: Sequence[float] | None = None,
        future: pd.DataFrame | None = None,
    ) -> pd.DataFrame:
        """Forecast what follows each series of `history`, from its own end on.

        Args:
            history: raw units, a long table like that of the training, of any of its series and of
                new ones. The last L steps of each are read; what is missing in them, or before a
                series began, is filled as in training.
            horizon: steps to forecast, P by default; beyond P the model reads its own forecasts as history.
            level: percent, such as [80, 95]; adds intervals.
            quantiles: such as [0.1, 0.9]; adds the ends of intervals.
            future: a long table of the columns known in advance, with the steps to come of each
                series; only for a model that was trained with some.

        Returns:
            A long table in raw units, `horizon` rows for each series in the order of `history`,
            with `level` and `quantiles` as in `Forecaster.predict`.

        Raises:
            UsageError: the history, the horizon, a level, a quantile or `future` cannot be used; the text says why.
            RunFailure: the model does not forecast finite numbers.
        """
        return forecast_panel(self, history, horizon, Ends.of(level, quantiles), future)

    def evaluate(
        self, part: str = "test", pred_len: int | None = None, dataset: PanelSource | None = None
    ) -> dict[str, float | int]:
        """Scores over every window of `part` of every series, in the scaled units of each.

        Args:
            part: `test`, `val` or `train`.
            pred_len: horizon to score, P by default; beyond P the forecasts are rolled out.
            dataset: the panel, or what `load_dataset` takes for one; None loads that of the training again.

        Returns:
            `mse`, `mae` and the number of `windows`.

        Raises:
            UsageError: unknown part, a horizon that does not fit, or data that are not there or have changed.
        """
        panel = panel_scoring.own_panel(self, dataset)
        return panel_scoring.score_panel(self, panel_scoring.score_windows(self, part, pred_len, panel))

    def scores(
        self, part: str = "test", pred_len: int | None = None, dataset: PanelSource | None = None
    ) -> pd.DataFrame:
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
        panel = panel_scoring.own_panel(self, dataset)
        return panel_scoring.score_series(self, panel_scoring.score_windows(self, part, pred_len, panel), panel)

    def _load_again(self, data_root: str | Path | None) -> Panel:
        return panel_scoring.load_panel_again(self)

    @classmethod
    def load(cls, folder: str | Path, device: str | torch.device = "cpu") -> PanelForecaster:
        """The forecaster in the run `folder` of a panel, its weights on `device`, as `femts.load` gives it."""
        where = check_device(device)
        return cls.restored(restore_panel(check_path(folder, "The run folder"))).to(where)
