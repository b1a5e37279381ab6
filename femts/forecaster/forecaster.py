"""A trained forecaster: forecasts raw data, scores itself, and lives in a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import pandas as pd
import torch
from numpy.typing import ArrayLike

from femts.config.arguments import check_path
from femts.config.values import check_steps
from femts.data.dataset import Dataset
from femts.data.describe import count, names
from femts.data.preprocess import Preprocess
from femts.errors import memory_checked
from femts.evaluation.intervals import Intervals
from femts.forecaster import calibration, scoring
from femts.forecaster.forecasting import Array, Ends, explain_table, forecast_array, forecast_table
from femts.forecaster.restore import restore
from femts.forecaster.trained import Source, Trained, check_device

if TYPE_CHECKING:
    from femts.forecaster.onnx import Exported
    from femts.forecaster.picture import Drawing
    from femts.plotting import Picture

Scores = dict[str, float | int]


class Forecaster(Trained[Preprocess, Dataset]):
    """A model with everything it needs to forecast new data in raw units.

    Shapes: L = `config.seq_len` steps of look-back, P = `config.pred_len` steps of one forecast, C
    channels, of which the first T are targets and the others, if any, known up to now. Its
    attributes are those of `femts.forecaster.trained.Trained`.
    """

    @property
    def subject(self) -> str:
        """Columns that are forecast, in words."""
        return f"{count(len(self.targets), 'column')} to forecast: {names(self.targets)}"

    @memory_checked()
    def predict(
        self,
        history: pd.DataFrame,
        horizon: int | None = None,
        level: Sequence[float] | None = None,
        future: pd.DataFrame | None = None,
        quantiles: Sequence[float] | None = None,
    ) -> pd.DataFrame:
        """Forecast what follows `history`.

        Args:
            history: raw units; stamps (unless trained without) and the training columns, in any
                order, at least L rows; or the same in long form. Only the last L are read and checked,
                and not changed. Gaps are filled as in training, those at their start from the rows before,
                and a `GapWarning` says how many; a target without a value in all L, such as a series that
                has ended, has no forecast. That the history ends more than P steps after the last row learned
                from, an `AgeWarning` says; that its values are fifty times as large or small as those
                rows, as in another unit, a `UnitsWarning`.
            horizon: steps to forecast, P by default; beyond P the model reads its own forecasts as history.
            level: percent, such as [80, 95]; adds intervals (`femts.evaluation.intervals`, `...quantiles`).
            future: the columns known in advance, if there are any, in a table like `history` with the steps to come.
            quantiles: such as [0.1, 0.9], the ends of the interval of 80; of 0.5 the forecast.

        Returns:
            `horizon` rows in raw units: stamps in `date` (or row numbers in `step`, counting on from
            `history`), then the targets, each followed by `NAME-lo-80`, `NAME-hi-80` and so on, or
            `NAME-q-10`; in long form where `history` has it, and under its names.

        Raises:
            UsageError: history, horizon, level, quantiles or known columns cannot be used; the text says why.
            RunFailure: the model does not forecast finite numbers.
        """
        return forecast_table(self, history, horizon, Ends.of(level, quantiles), future)

    @memory_checked()
    def explain(self, history: pd.DataFrame) -> pd.DataFrame:
        """Explain which past segments each channel chose for the P steps that follow `history`, and how sharply.

        For models that read segments through a Free Energy Mixer (`fem_*`, with L among their components).

        Args:
            history: as in `predict`.

        Returns:
            One row for each channel, layer, segment and token, as `femts.explain.posterior.explanation` says.

        Raises:
            UsageError: a model that has no such read, or a history that cannot be used; the text says why.
        """
        return explain_table(self, history)

    def plot(self, history: pd.DataFrame, horizon: int | None = None, **drawn: Unpack[Drawing]) -> Picture:
        """Draw the forecast of what follows `history`.

        Args:
            history, horizon: as in `predict`.
            drawn: `level` and `future` as in `predict`; `actual`, what happened; `columns`, names to draw.

        Returns:
            A figure of matplotlib, which a notebook shows and `savefig` writes.

        Raises:
            UsageError: as in `predict`, or a column that is not forecast.
        """
        from femts.forecaster.picture import draw_forecast  # matplotlib takes long to import

        forecast = self.predict(history, horizon, drawn.get("level"), drawn.get("future"))
        return draw_forecast(self, history, forecast, drawn.get("actual"), drawn.get("columns"))

    @memory_checked()
    def predict_array(self, x: ArrayLike, horizon: int | None = None, offsets: Array | None = None) -> Array:
        """Forecast many look-backs at once, as arrays.

        Args:
            x: (B, L, C) in raw units, channels as in `columns`; NaN is filled as in training.
            horizon: steps to forecast, P by default.
            offsets: (B, L + horizon, C) of `preprocess.offsets`, where columns are known in advance.

        Returns:
            (B, horizon, T) in raw units.

        Raises:
            UsageError: another shape, a horizon below 1, or offsets that are missing or not wanted.
        """
        return forecast_array(self, x, self.config.pred_len if horizon is None else check_steps(horizon), offsets)

    def _load_again(self, data_root: str | Path | None) -> Dataset:
        return scoring.load_again(self, data_root)

    def _own_data(self, dataset: object, data_root: str | Path | None = None) -> Dataset:
        return scoring.own_data(self, dataset, data_root)

    @memory_checked()
    def evaluate(self, part: str = "test", pred_len: int | None = None, dataset: Source | None = None) -> Scores:
        """Scores over every window of `part`, in scaled units.

        Args:
            part: `test`, `val` or `train`.
            pred_len: horizon to score, P by default; beyond P the forecasts are rolled out.
            dataset: the data, as `load_dataset` takes them; None loads those of the training again.

        Returns:
            `mse`, `mae` and the number of `windows`.

        Raises:
            UsageError: unknown part, a horizon that does not fit, or data that is not there or has changed.
        """
        return scoring.score(*scoring.scored_part(self, part, pred_len, dataset)[:2])

    @memory_checked()
    def scores(
        self,
        part: str = "test",
        pred_len: int | None = None,
        by: str | Sequence[str] | None = None,
        level: Sequence[float] | None = None,
        dataset: Source | None = None,
    ) -> pd.DataFrame:
        """Scores in detail, over every window of `part`.

        Args:
            part, pred_len, dataset: as in `evaluate`.
            by: `step`, `channel` or both, to group by; None averages over all.
            level: percent; adds what the intervals cover, and the CRPS.

        Returns:
            One row a group in scaled units, then one in raw ones, as `femts.forecaster.scoring.score_details` says.

        Raises:
            UsageError: as in `evaluate`, or an unknown group, or a level or horizon that is not calibrated.
        """
        of, windows, data = scoring.scored_part(self, part, pred_len, dataset)
        return scoring.score_details(of, windows, by, level, data)

    @memory_checked()
    def coverage(
        self,
        part: str = "test",
        level: Sequence[float] = (80, 95),
        pred_len: int | None = None,
        dataset: Source | None = None,
    ) -> pd.DataFrame:
        """Coverage of `part` by the intervals, by step and channel.

        Args:
            part, level, pred_len, dataset: as in `scores`.

        Returns:
            One row each: `level`, `step`, `channel`, `coverage` (a part of 1), mean `width`, and its `units`, raw.

        Raises:
            UsageError: as in `scores`.
        """
        of, windows, _ = scoring.scored_part(self, part, pred_len, dataset)
        return scoring.score_coverage(of, windows, level)

    @memory_checked()
    def calibrate(
        self, pred_len: int | None = None, level: Sequence[float] = (), dataset: Source | None = None
    ) -> Intervals:
        """Calibrate `intervals` anew, as training has done for P steps; those of `scored` as well.

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
    def export(self, path: str | Path, horizon: int | None = None) -> Exported:
        """Write the model as ONNX to `path`, raw units in, `horizon` steps of them out; see `femts.forecaster.onnx`."""
        from femts.forecaster.onnx import export

        return export(self, check_path(path, "The ONNX file"), None if horizon is None else check_steps(horizon))

    @classmethod
    def load(cls, folder: str | Path, device: str | torch.device = "cpu") -> Forecaster:
        """The forecaster in the run `folder`, its weights on `device`, as `femts.load` gives it."""
        where = check_device(device)
        return cls._restored(restore(check_path(folder, "The run folder"))).to(where)
