"""A trained forecaster: forecasts raw data, scores itself, and lives in a folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack, overload

import pandas as pd
import torch
from numpy.typing import ArrayLike

from femts.config.arguments import check_path, check_text
from femts.config.values import check_steps
from femts.data.catalog import CATALOG
from femts.data.dataset import Dataset
from femts.data.describe import count, names
from femts.data.preprocess import Preprocess
from femts.errors import UsageError, memory_checked, suggest
from femts.evaluation.intervals import Intervals
from femts.files import locked
from femts.forecaster import calibration, run_folder, scoring
from femts.forecaster.bounds import QuantileSpec
from femts.forecaster.forecasting import Array, explain_table, forecast_array, forecast_table
from femts.forecaster.inputs import Future
from femts.forecaster.restore import Restored, restore, weights_bytes
from femts.forecaster.run_folder import INTERVALS, PREPROCESS, SCORED, SCORED_WEIGHTS, WEIGHTS, RunConfig
from femts.models.base import ForecastModel
from femts.models.mean import MeanConfig
from femts.text import shown

if TYPE_CHECKING:
    from femts.forecaster.onnx import Exported
    from femts.forecaster.picture import Drawing
    from femts.plotting import Picture

Scores = dict[str, float | int]
Source: TypeAlias = Dataset | pd.DataFrame | str | Path  # of data, as `load_dataset` takes them


@dataclass(eq=False, repr=False)
class Forecaster:
    """A model with everything it needs to forecast new data in raw units.

    Shapes: L = `config.seq_len` steps of look-back, P = `config.pred_len` steps of one forecast, C
    channels, of which the first T are targets and the others, if any, known up to now. A model of a long table has
    learned from S series, and forecasts these and new ones, each from its own end on.

    Attributes:
        model: the network, in scaled units.
        config: what was trained, and how.
        preprocess: what turns raw values into what the model reads; fitted on the training rows, and never again.
        freq: step between stamps, a pandas frequency; None for data without dates.
        data: hash and split of the training data, to know it again.
        metrics: scores and circumstances of the training, as in `metrics.json`.
        validations: one row for each validation, as in `metrics.csv`.
        intervals: what bounds a forecast, calibrated on the validation part; None for a run that has none.
        until: stamp of the last row that was learned from, as text; None without stamps.
        series_until: of each series, the stamp of its last row that was learned from or chosen on, as text, or None.
        scored: the one that scores and errors for intervals are of, beside one that learned from all rows; else None.
    """

    model: ForecastModel
    config: RunConfig
    preprocess: Preprocess
    freq: str | None
    data: Mapping[str, Any]
    metrics: Mapping[str, Any] = field(default_factory=dict)
    validations: Sequence[Mapping[str, Any]] = ()
    intervals: Intervals | None = None
    until: str | None = None
    series_until: Sequence[str | None] = ()
    scored: Forecaster | None = None
    _dataset: Dataset | None = None

    def __repr__(self) -> str:
        config, metrics = self.config, self.metrics
        step = "" if self.freq is None else f" of {self.freq}"
        lines = [
            f"Forecaster '{config.model}': {count(config.pred_len, 'step')}{step} ahead from "
            f"{count(config.seq_len, 'step')}",
            f"  data: '{shown(config.dataset)}', {self.subject}",
        ]
        if isinstance(config.model_config, MeanConfig):
            lines.append(f"  mean of: {', '.join(member.model for member in config.model_config.members)}")
        if "refit" in metrics:
            first = metrics["scored"]["train"][1]
            on = f"{first} of them" if "series" in metrics["scored"] else f"the first {first}"
            lines.append(f"  learned from: all {count(metrics['refit']['rows'], 'row')}; scores are of one on {on}")
        for part in ("val", "test"):
            if part in metrics:
                of = metrics[part]
                windows = count(of["windows"], "window")
                lines.append(f"  {part}: mse {of['mse']:.4f}, mae {of['mae']:.4f} over {windows}, scaled")
        if self.intervals is None:
            return "\n".join([*lines, "  intervals: none"])
        if not self.intervals.levels:
            return "\n".join([*lines, "  intervals: of no level"])
        highest, source = self.intervals.levels[-1], self.intervals.source
        return "\n".join([*lines, f"  intervals: any level up to {highest:g} %, from {source}"])

    @property
    def subject(self) -> str:
        """Series or columns that are forecast, in words."""
        if self.config.schema.panel:
            return f"{len(self.series)} series: {names(self.series)}"
        return f"{count(len(self.targets), 'column')} to forecast: {names(self.targets)}"

    @property
    def device(self) -> torch.device:
        """Device of the model's weights, trained or fitted; the CPU for one without."""
        weights = chain(self.model.parameters(), self.model.buffers())
        return next((weight.device for weight in weights), torch.device("cpu"))

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the C channels, in the model's order."""
        return self.preprocess.columns

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of the T columns that are forecast."""
        return self.columns[: len(self.columns) - len(self.config.schema.roles.past)]

    @property
    def series(self) -> tuple[str, ...]:
        """Names of the S series of the training; that of a wide table is empty."""
        return self.preprocess.series

    @property
    def season(self) -> int:
        """Steps in the season of the training data."""
        entry, schema = CATALOG.get(self.config.source or ""), self.config.schema
        return entry.season if entry is not None and not schema.season else schema.season_of(self.freq)

    @property
    def members(self) -> tuple[Forecaster, ...]:
        """Forecasters whose mean this one is, in order, each as it was before; empty for any other model."""
        from femts.forecaster.members import members_of  # it makes forecasters

        return members_of(self)

    def to(self, device: torch.device | str) -> Forecaster:
        """Move the model to `device` and return the forecaster; UsageError where that is not there."""
        place = check_device(device)
        self.model.to(place)
        if self.scored is not None:
            self.scored.to(place)
        return self

    def of(self, name: str) -> Forecaster:
        """View of one series as a forecaster of a single table, for what is about single series.

        Args:
            name: of a series of the training.

        Returns:
            The same model and intervals with the preprocessing of that series. Its tables are wide:
            `date` and the columns, called as in the long table. Its data are the rows of the series,
            where those of the training are to be had.

        Raises:
            UsageError: no series of the training has this name, or the model knows its series by static columns.
        """
        if self.preprocess.static is not None:
            raise UsageError(
                "A model with static columns knows its series by them, and no single one; use it as it is."
            )
        if check_text(name, "series") not in self.series:
            raise UsageError(f"Series '{shown(name)}' was not in the training{suggest(name, self.series)}")
        number = self.series.index(name)
        try:
            data: Dataset | None = self.training_data()[name]
        except UsageError:  # it forecasts without them, too
            data = None
        schema = replace(self.config.schema.wide(), panel=False)
        if data is not None:
            data = replace(data, name=name, series=("",), source=None, schema=schema)
        one = replace(
            self,
            config=replace(self.config, dataset=name, source=None, schema=schema),
            preprocess=replace(self.preprocess.take(torch.tensor([number]).numpy()), series=("",)),
            data=self.data if data is None else data.record,
            metrics={},
            validations=(),
            series_until=self.series_until[number : number + 1],
            scored=None if self.scored is None else self.scored.of(name),
            _dataset=data,
        )
        if self.intervals is not None:
            one.intervals = self.intervals.of(name)
        return one

    @memory_checked()
    def predict(
        self,
        history: pd.DataFrame,
        horizon: int | None = None,
        level: Sequence[float] | None = None,
        future: Future | None = None,
        quantiles: Sequence[float] | None = None,
        series: Sequence[str] | None = None,
    ) -> pd.DataFrame:
        """Forecast what follows `history`, each of its series from its own end on.

        Args:
            history: raw units; stamps (unless trained without) and the training columns, in any
                order, at least L rows; or the same in long form. Only the last L steps are read and checked,
                and not changed. Gaps are filled as in training, those at their start from the rows before,
                and a `GapWarning` says how many; a target without a value in all L, such as a series that
                has ended, has no forecast. A model of a long table takes any of its series and new ones, of whatever
                length. That the history ends more than P steps after the last row learned
                from, an `AgeWarning` says; that its values are fifty times as large or small as those
                rows, as in another unit, a `UnitsWarning`.
            horizon: steps to forecast, P by default; beyond P the model reads its own forecasts as history.
            level: percent, such as [80, 95]; adds intervals (`femts.evaluation.intervals`, `...quantiles`).
            future: the columns known in advance, if there are any, in a table like `history` with the steps to come.
                Several such tables, in a mapping by the names of their scenarios, give a forecast each.
            quantiles: such as [0.1, 0.9], the ends of the interval of 80; of 0.5 the forecast.
            series: names of those to forecast; None forecasts all.

        Returns:
            `horizon` rows in raw units, of each series in the order of `history`: stamps in `date` (or row numbers in
            `step`, counting on from `history`), then the targets, each followed by `NAME-lo-80`, `NAME-hi-80` and
            so on, or `NAME-q-10`; in long form where `history` has it, and under its names. Of several tables of
            `future` the rows of each, which `scenario`, the first column, names.

        Raises:
            UsageError: an argument cannot be used; the text says which, and why.
            RunFailure: the model does not forecast finite numbers.
        """
        return forecast_table(self, history, horizon, QuantileSpec.of(level, quantiles), future, series)

    @memory_checked()
    def predict_array(self, x: ArrayLike, horizon: int | None = None, offsets: Array | None = None) -> Array:
        """Forecast many look-backs of one table at once, as arrays.

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

    @memory_checked()
    def explain(self, history: pd.DataFrame, series: Sequence[str] | None = None) -> pd.DataFrame:
        """Explain which past segments each channel chose for the P steps that follow `history`, and how sharply.

        For models that read segments through a Free Energy Mixer (`fem_*`, with L among their components).

        Args:
            history: as in `predict`.
            series: names of those to explain; None explains all.

        Returns:
            One row for each channel, layer, segment and token, as `femts.explain.posterior.explanation` says; of a long
            table for each series, its name first, in `series`.

        Raises:
            UsageError: a model that has no such read, or a history or a name that cannot be used; the text says why.
        """
        return explain_table(self, history, series)

    @memory_checked()
    def importance(
        self,
        part: str = "val",
        windows: int | None = None,
        columns: Sequence[str] | None = None,
        repeats: int | None = None,
        seed: int = 0,
        dataset: Source | None = None,
    ) -> pd.DataFrame:
        """Permutation importance of each input, of any model: how much the squared error of P steps rises when it is
        exchanged between windows (Breiman, "Random Forests", 2001).

        Whole look-backs, blocks of lags or covariates are exchanged, so that their inner order stays. Inputs that carry
        the same information stand in for each other, and each then counts for less than both together. Of a forecaster
        that was refitted on all rows, it is the importance for the one that is scored.

        Args:
            part: whose windows are forecast, `val`, `test` or `train`.
            windows: of the part, how many at most, one out of each of as many equal stretches; by default 128, or 12 for
                a model that is fitted to each look-back.
            columns: whose look-backs are exchanged, each by itself; None takes the first 32.
            repeats: exchanges of each input; by default 5, or 2 for a model that is fitted to each look-back.
            seed: of the windows and the exchanges.
            dataset: as in `evaluate`.

        Returns:
            One row for each input. `kind` and `input` name it: `column`, the look-back of one; `lags`, a block of steps
            of all columns, a season long (without a season P steps), from the most recent on, the eighth with all older
            ones; `future`, a column known in advance, over look-back and horizon; `calendar`; `static`, a column;
            `feature`, a group of what the model makes of a look-back (`boost`: last values, rolling means, seasons
            before). `rise` is the mean rise of the error, a part of the error without an exchange: 0 for an input that
            does not matter, 1 for one without which the error doubles. `low` and `high` are an interval of 95 % of that
            mean over the `windows` forecast (block bootstrap).

        Raises:
            UsageError: as in `evaluate`, fewer than two windows, an unknown column, or forecasts without any error.
            RunFailure: forecasts are not finite.
        """
        from femts.forecaster.importance import permutation_importance

        return permutation_importance(self, part, windows, columns, repeats, seed, dataset)

    def plot(self, history: pd.DataFrame, horizon: int | None = None, **drawn: Unpack[Drawing]) -> Picture:
        """Draw the forecast of what follows `history`, a panel for each column, or each series with its own dates.

        Args:
            history, horizon: as in `predict`.
            drawn: `level` and `future` as in `predict`, several scenarios in one panel; `actual`, what happened; `columns`
                or `series`, names to draw, by default the first twelve.

        Returns:
            A figure of matplotlib, which a notebook shows and `savefig` writes.

        Raises:
            UsageError: as in `predict`, or a column or a series that is not forecast.
        """
        from femts.forecaster.picture import draw_forecast  # matplotlib takes long to import

        forecast = self.predict(history, horizon, drawn.get("level"), drawn.get("future"))
        return draw_forecast(self, history, forecast, drawn)

    def training_data(self, data_root: str | Path | None = None) -> Dataset:
        """The data of the training, loaded again by its name or path.

        Args:
            data_root: where a data set of the catalogue is looked for.

        Returns:
            The data, the same object at every call.

        Raises:
            UsageError: it is gone, has changed, or was passed as an object, which a run does not keep.
        """
        if self._dataset is None:
            self._dataset = scoring.load_again(self, data_root)
        return self._dataset

    @overload
    def evaluate(self, part: str = ..., pred_len: int | None = ..., dataset: Source | None = ...) -> Scores: ...
    @overload
    def evaluate(
        self, part: str = ..., *, pred_len: Sequence[int], dataset: Source | None = ...
    ) -> dict[int, Scores]: ...
    @overload
    def evaluate(self, part: str, pred_len: Sequence[int], dataset: Source | None = ...) -> dict[int, Scores]: ...

    @memory_checked()
    def evaluate(
        self, part: str = "test", pred_len: int | Sequence[int] | None = None, dataset: Source | None = None
    ) -> Scores | dict[int, Scores]:
        """Scores over every window of `part`, errors in scaled units, those of each series.

        Args:
            part: `test`, `val` or `train`.
            pred_len: horizon to score, P by default; beyond P the forecasts are rolled out. Several, as `[24, 48]`, are
                scored from one roll-out of each window of a table.
            dataset: the data, as `load_dataset` takes them; None loads those of the training again.

        Returns:
            `mse`, `mae` and the number of `windows`, and in raw units `wape` and `bias` (`RelativeErrors`); of several
            horizons these by horizon, in the order given.

        Raises:
            UsageError: unknown part, a horizon that does not fit, or data that is not there or has changed.
        """
        if isinstance(pred_len, Sequence):
            return scoring.score_beside(self, part, pred_len, dataset)[0]
        return scoring.score_overall(*scoring.scored_part(self, part, pred_len, dataset)[:2])

    @memory_checked()
    def scores(
        self,
        part: str = "test",
        pred_len: int | Sequence[int] | None = None,
        by: str | Sequence[str] | None = None,
        level: Sequence[float] | None = None,
        dataset: Source | None = None,
    ) -> pd.DataFrame:
        """Scores in detail, over every window of `part`.

        Args:
            part, pred_len, dataset: as in `evaluate`.
            by: `step`, `channel` or both, or `series`, to group by; None averages over all.
            level: percent; adds what the intervals cover, and the CRPS.

        Returns:
            One row a group in scaled units, then one in raw ones, as `femts.forecaster.scoring.score_details` says; of
            several horizons the rows of each, which `pred_len`, the first column, names.

        Raises:
            UsageError: as in `evaluate`, or an unknown group, or a level or horizon that is not calibrated.
        """
        if isinstance(pred_len, Sequence):
            return scoring.score_details_beside(self, part, pred_len, by, level, dataset)
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
            One row each: `level`, `step`, `channel`, `coverage` (a part of 1), mean `width`, and its `units`, raw, or of
            several series scaled.

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
            level: percent; levels to calibrate besides the usual ones, up to 99.9, and those calibrated before. Any level
                up to the highest can be asked of a forecast.
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
    def export(self, path: str | Path, horizon: int | None = None, series: str | None = None) -> Exported:
        """Write the model as ONNX, raw units in and out; it needs `pip install 'femts[onnx]'`.

        Args:
            path: the file.
            horizon: steps of the forecast; None for as many as the model has at once.
            series: which series it is for, where the model has several.

        Returns:
            The file, its size in bytes, the steps of a forecast, and how far it differs from torch at most.
        """
        from femts.forecaster.onnx import export

        of = self if series is None else self.of(series)
        return export(of, check_path(path, "The ONNX file"), None if horizon is None else check_steps(horizon))

    def save(self, folder: str | Path) -> None:
        """Write a run to `folder`, for `load`; UsageError where it is not empty, RunFailure where the disk refuses."""
        place = check_path(folder, "The run folder")
        with locked(place):
            run_folder.check_new_folder(place)
            self.write(place)

    def write(self, folder: Path) -> None:
        """As `save`, over whatever `folder` holds; within it the run of the one that is scored."""
        preprocess, folder = self.preprocess_record(), check_path(folder, "The run folder")
        files = {WEIGHTS: weights_bytes(self.model, preprocess), PREPROCESS: run_folder.json_bytes(preprocess)}
        files |= {} if self.intervals is None else {INTERVALS: self.intervals.to_bytes()}
        if self.scored is not None:
            run_folder.unfinish(folder)  # before its other half changes
            self.scored.write(folder / SCORED)
            files[SCORED_WEIGHTS] = (folder / SCORED_WEIGHTS).read_bytes()
        config = replace(self.config, refit=self.scored is not None)
        run_folder.write_run(folder, config, files, self.validations, self.metrics)

    def preprocess_record(self) -> dict[str, Any]:
        """Record of what turns raw data into the model's input, in plain types; `preprocess.json`."""
        until = {"until": self.until, "series_until": list(self.series_until)}
        return {**self.preprocess.to_dict(), "freq": self.freq, "data": dict(self.data), **until}

    @classmethod
    def load(cls, folder: str | Path, device: str | torch.device = "cpu") -> Forecaster:
        """The forecaster in the run `folder`, its weights on `device`, as `femts.load` gives it."""
        where, run = check_device(device), restore(check_path(folder, "The run folder"))
        return cls._restored(run).to(where)

    @classmethod
    def _restored(cls, run: Restored) -> Forecaster:
        """The forecaster of a `run` that was read from its folder, and that which is scored beside it."""
        return cls(**run.fields(), scored=None if run.scored is None else cls(**run.scored.fields()))


@memory_checked()
def load(folder: str | Path, device: str | torch.device = "cpu") -> Forecaster:
    """The forecaster in a run folder, verified by its hashes and read without pickle.

    Args:
        folder: written by `femts train`, by `train` with `out`, or by `save`.
        device: where its weights go.

    Returns:
        A forecaster, ready to predict.

    Raises:
        UsageError: no run, an unfinished or a changed one, or one of a later femts.
    """
    return Forecaster.load(folder, device)


def check_device(device: object) -> torch.device:
    """`device` as one of torch; UsageError for what is none, or is not there."""
    try:
        place = torch.device(device)  # type: ignore[call-overload]
        torch.empty(0, device=place)
    except (RuntimeError, TypeError, ValueError, AssertionError, NotImplementedError) as error:
        raise UsageError(f"Device '{shown(device)}' is not there; take cpu, or one that femts doctor lists.") from error
    return place
