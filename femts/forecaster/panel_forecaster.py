"""A trained forecaster of a panel: one model for all its series, also for new ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, Unpack

import pandas as pd
import torch

from femts.config.arguments import check_path
from femts.data.describe import names
from femts.data.panel import Panel
from femts.data.panel_preprocess import PanelPreprocess
from femts.errors import memory_checked
from femts.evaluation.intervals import Intervals
from femts.forecaster import calibration, panel_scoring, scoring
from femts.forecaster.forecaster import Forecaster
from femts.forecaster.forecasting import Ends
from femts.forecaster.panel_explaining import explain_panel
from femts.forecaster.panel_forecasting import chosen_series, forecast_panel, read_history
from femts.forecaster.restore import restore_panel
from femts.forecaster.series_view import series_view
from femts.forecaster.trained import Trained, check_device

if TYPE_CHECKING:
    from femts.forecaster.onnx import Exported
    from femts.forecaster.panel_picture import PanelDrawing
    from femts.plotting import Picture

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

    @memory_checked()
    def predict(
        self,
        history: pd.DataFrame,
        horizon: int | None = None,
        level: Sequence[float] | None = None,
        future: pd.DataFrame | None = None,
        quantiles: Sequence[float] | None = None,
        series: Sequence[str] | None = None,
    ) -> pd.DataFrame:
        """Forecast what follows each series of `history`, from its own end on.

        Args:
            history: raw units, a long table like that of the training, of any of its series and of
                new ones. The last L steps of each are read; what is missing in them, or before a
                series began, is filled as in training. That the latest end is more than P steps after
                the last row learned from, an `AgeWarning` says; that values are fifty times as large
                or small as those rows, as in another unit, a `UnitsWarning`.
            horizon: steps to forecast, P by default; beyond P the model reads its own forecasts as history.
            level: percent, such as [80, 95]; adds intervals.
            future: a long table of the columns known in advance, with the steps to come of each
                series; only for a model that was trained with some.
            quantiles: such as [0.1, 0.9]; adds the ends of intervals.
            series: names of those to forecast; None forecasts all.

        Returns:
            A long table in raw units, `horizon` rows for each series in the order of `history`,
            with `level` and `quantiles` as in `Forecaster.predict`.

        Raises:
            UsageError: an argument cannot be used; the text says which, and why.
            RunFailure: the model does not forecast finite numbers.
        """
        panel = chosen_series(read_history(self, history), series)
        return forecast_panel(self, panel, horizon, Ends.of(level, quantiles), future)

    def plot(self, history: pd.DataFrame, horizon: int | None = None, **drawn: Unpack[PanelDrawing]) -> Picture:
        """Draw the forecast of what follows each series of `history`, a panel a series with its own dates.

        Args:
            history, horizon: as in `predict`.
            drawn: `level` and `future` as in `predict`; `actual`, what happened, a table like `history`;
                `series`, names to draw, by default the first twelve.

        Returns:
            A figure of matplotlib, which a notebook shows and `savefig` writes.

        Raises:
            UsageError: as in `predict`, or a series that the history does not have.
        """
        from femts.forecaster.panel_picture import draw_panel  # matplotlib takes long to import

        forecast = self.predict(history, horizon, drawn.get("level"), drawn.get("future"))
        return draw_panel(self, history, forecast, drawn.get("actual"), drawn.get("series"))

    @memory_checked()
    def explain(self, history: pd.DataFrame, series: Sequence[str] | None = None) -> pd.DataFrame:
        """Explain which past segments each series of `history` chose for the P steps that follow it, and how sharply.

        Args:
            history: as in `predict`.
            series: names of those to explain; None explains all.

        Returns:
            The rows of `Forecaster.explain` for each series, its name first, in `series`.

        Raises:
            UsageError: a model that has no such read, or a history or a name that cannot be used; the text says why.
        """
        return explain_panel(self, history, series)

    def of(self, name: str) -> Forecaster:
        """View of one series as a forecaster of a single table, for what is about single series.

        Args:
            name: of a series of the training.

        Returns:
            The same model and intervals with the preprocessing of that series. Its tables are wide:
            `date` and the columns, called as in the panel. Its data are the rows of the series,
            where those of the training are to be had.

        Raises:
            UsageError: no series of the training has this name.
        """
        return series_view(self, name)

    @memory_checked()
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
        return scoring.score(*scoring.scored_part(self, part, pred_len, dataset)[:2])

    @memory_checked()
    def scores(
        self,
        part: str = "test",
        pred_len: int | None = None,
        by: str | Sequence[str] | None = "series",
        level: Sequence[float] | None = None,
        dataset: PanelSource | None = None,
    ) -> pd.DataFrame:
        """Scores in detail, over every window of `part`.

        Args:
            part, pred_len, dataset: as in `evaluate`.
            by: `series` or `step`, to group by; None averages over all.
            level: percent; adds what the intervals cover.

        Returns:
            By series one row for each that has windows, in raw units: `series`, `units`, `windows`,
            `mse`, `mae`, `mase` and `rmsse` (over the mean absolute and the root mean squared
            change over a season of its training rows; NaN where those are 0), `skill` as in
            `Forecaster.scores`, and for each level `coverage-80` and mean `width-80`. Else rows in
            the scaled units of each series, as in `Forecaster.scores`; the one of all has the means
            of `mase` and `rmsse` over the series. A season before a series began counts as its mean.

        Raises:
            UsageError: as in `evaluate`, or an unknown group, or a level or horizon that is not calibrated.
        """
        of, windows, panel = scoring.scored_part(self, part, pred_len, dataset)
        return panel_scoring.score_details(of, windows, by, level, panel)

    @memory_checked()
    def coverage(
        self,
        part: str = "test",
        level: Sequence[float] = (80, 95),
        pred_len: int | None = None,
        dataset: PanelSource | None = None,
    ) -> pd.DataFrame:
        """Coverage of `part` of all series by the intervals, by step.

        Args:
            part, level, pred_len, dataset: as in `scores`.

        Returns:
            As `Forecaster.coverage`; `units` are scaled, those of each series.

        Raises:
            UsageError: as in `scores`.
        """
        of, windows, _ = scoring.scored_part(self, part, pred_len, dataset)
        return scoring.coverage_frame(of, windows, level)

    @memory_checked()
    def calibrate(
        self, pred_len: int | None = None, level: Sequence[float] = (), dataset: PanelSource | None = None
    ) -> Intervals:
        """Calibrate `intervals` anew on the validation part of all series, as training has done for P
        steps; those of `scored` as well.

        Args:
            pred_len: longest horizon, at least P; None takes what was calibrated before, or P.
            level: percent; levels to have besides 50, 80, 90, 95, 99 and those calibrated before.
            dataset: as in `evaluate`.

        Returns:
            The new intervals, which the forecaster keeps.

        Raises:
            UsageError: as in `evaluate`, fewer steps than P, or a level for which there are too few validation windows.
            RunFailure: forecasts are not finite.
        """
        self.intervals = calibration.calibrate_again(self, pred_len, level, dataset)
        return self.intervals

    @memory_checked()
    def export(self, series: str, path: str | Path, horizon: int | None = None) -> Exported:
        """Write the model as ONNX to `path` for the one of the `series`, `horizon` steps in a forecast; see `of`."""
        return self.of(series).export(path, horizon)

    def _load_again(self, data_root: str | Path | None) -> Panel:
        return panel_scoring.load_panel_again(self)

    def _own_data(self, dataset: object, data_root: str | Path | None = None) -> Panel:
        return panel_scoring.own_panel(self, dataset)

    @classmethod
    def load(cls, folder: str | Path, device: str | torch.device = "cpu") -> PanelForecaster:
        """The forecaster in the run `folder` of a panel, its weights on `device`, as `femts.load` gives it."""
        where = check_device(device)
        return cls._restored(restore_panel(check_path(folder, "The run folder"))).to(where)
