"""The trained forecaster, which forecasts raw data, scores itself, and is saved in a run folder."""

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
from femts.errors import UsageError, memory_checked, nearest, suggest
from femts.evaluation.intervals import Intervals
from femts.evaluation.overall import Scores
from femts.evaluation.window_errors import WindowErrors
from femts.forecaster import calibration, run_folder, scoring
from femts.forecaster.bounds import QuantileSpec
from femts.forecaster.forecasting import Array, explain_table, forecast_array, forecast_table
from femts.forecaster.inputs import Future
from femts.forecaster.metrics import RunMetrics
from femts.forecaster.replacing import locked_run
from femts.forecaster.restore import Restored, restore, weights_bytes
from femts.forecaster.run_folder import INTERVALS, PREPROCESS, SCORED, WEIGHTS, RunConfig
from femts.models.base import ForecastModel
from femts.models.mean import MeanConfig
from femts.text import quote

if TYPE_CHECKING:
    from femts.forecaster.onnx import Exported
    from femts.forecaster.picture import Drawing
    from femts.forecaster.totals import How, Over
    from femts.plotting import Picture

Source: TypeAlias = Dataset | pd.DataFrame | str | Path  # data as accepted by `load_dataset`


@dataclass(frozen=True, eq=False, repr=False)
class Forecaster:
    """A trained model with everything that it needs to forecast new data in raw units.

    Shapes: L = `config.seq_len` steps of look-back, P = `config.pred_len` steps of forecast, and C channels, of which
    the first T are targets and the others, if any, past covariates. A model of a panel was trained on S series and
    forecasts these and new ones, each from its own end.

    Attributes:
        model: the network, which works in scaled units.
        config: what was trained and how.
        preprocess: preprocessing from raw values to model inputs, fitted to the training rows once.
        freq: step between time stamps, a pandas frequency; None for data without dates.
        data: hash and split of the training data, by which they are recognised.
        metrics: scores and circumstances of the training, as in `metrics.json`; see `RunMetrics`.
        validations: one row for each validation during training, as in `metrics.csv`.
        intervals: calibrated prediction intervals; None if the run has none.
        until: time stamp of the last training row, as text; None without time stamps.
        series_until: time stamp of the last row of each series that was used for training or selection, as text, or
            None.
        series_trained: the same for training alone.
        scored: the forecaster that was scored and calibrated, if this one was refitted on all rows; otherwise None.
        test_errors: errors of all test windows, as scored after the training; None if the run was loaded, or scored on
            some of them.
    """

    model: ForecastModel
    config: RunConfig
    preprocess: Preprocess
    freq: str | None
    data: Mapping[str, Any]
    metrics: RunMetrics = field(default_factory=lambda: RunMetrics())
    validations: Sequence[Mapping[str, Any]] = ()
    intervals: Intervals | None = None
    until: str | None = None
    series_until: Sequence[str | None] = ()
    series_trained: Sequence[str | None] = ()
    scored: Forecaster | None = None
    test_errors: WindowErrors | None = None
    _dataset: Dataset | None = None

    def __repr__(self) -> str:
        config, metrics = self.config, self.metrics
        step = "" if self.freq is None else f" of {self.freq}"
        lines = [
            f"Forecaster '{config.model}': {count(config.pred_len, 'step')}{step} ahead from "
            f"{count(config.seq_len, 'step')}",
            f"  data: '{quote(config.dataset)}', {self.subject}",
        ]
        if isinstance(config.model_config, MeanConfig):
            lines.append(f"  mean of: {', '.join(member.model for member in config.model_config.members)}")
        if "refit" in metrics:
            first = metrics["scored"]["train"][1]
            on = f"{first} of them" if "series" in metrics["scored"] else f"the first {first}"
            lines.append(
                f"  trained on: all {count(metrics['refit']['rows'], 'row')}; scores are of a model trained on {on}"
            )
        for part, of in (("val", metrics.get("val")), ("test", metrics.get("test"))):
            if of is not None:
                windows = count(of["windows"], "window")
                lines.append(f"  {part}: mse {of['mse']:.4f}, mae {of['mae']:.4f} over {windows}, scaled")
        if self.intervals is None:
            return "\n".join([*lines, "  intervals: none"])
        if not self.intervals.levels:
            return "\n".join([*lines, "  intervals: no calibrated levels"])
        highest, source = self.intervals.levels[-1], self.intervals.source
        return "\n".join([*lines, f"  intervals: any level up to {highest:g} %, from {source}"])

    @property
    def subject(self) -> str:
        """Description of the series or columns that are forecast."""
        if self.config.schema.panel:
            return f"{len(self.series)} series: {names(self.series)}"
        return f"{count(len(self.targets), 'column')} to forecast: {names(self.targets)}"

    @property
    def device(self) -> torch.device:
        """Device of the model's weights; the CPU if it has none."""
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
        """Names of the S training series; empty for a wide table."""
        return self.preprocess.series

    @property
    def season(self) -> int:
        """Season length of the training data in steps."""
        entry, schema = CATALOG.get(self.config.source or ""), self.config.schema
        return entry.season if entry is not None and not schema.season else schema.season_of(self.freq)

    @property
    def members(self) -> tuple[Forecaster, ...]:
        """Forecasters that this mean combines, in order and as they were before; empty for any other model."""
        from femts.forecaster.members import members_of  # imports this module in turn

        return members_of(self)

    def to(self, device: torch.device | str) -> Forecaster:
        """Move the model to `device` and return the forecaster; raise UsageError if the device is not available."""
        place = check_device(device)
        self.model.to(place)
        if self.scored is not None:
            self.scored.to(place)
        return self

    def of(self, name: str) -> Forecaster:
        """View of one series of a panel as a forecaster of a single table, for methods that need one.

        Args:
            name: name of a training series.

        Returns:
            A forecaster with the same model and intervals and the preprocessing of that series. Its tables are wide:
            `date` and the columns, named as in the long table. Its data are the rows of the series, if the training
            data can be loaded.

        Raises:
            UsageError: The series was not in the training data, or the model identifies series by static covariates.
        """
        if self.preprocess.static is not None:
            raise UsageError("A model with static covariates cannot be narrowed to one series; use it as it is.")
        if check_text(name, "series") not in self.series:
            text = f"Series '{quote(name)}' was not in the training data{suggest(name, self.series)}"
            raise UsageError(text, argument="series", value=name, remedy={"series": nearest(name, self.series)})
        number = self.series.index(name)
        try:
            data: Dataset | None = self.training_data()[name]
        except UsageError:  # forecasts do not need the data
            data = None
        schema = replace(self.config.schema.wide(), panel=False)
        if data is not None:
            data = replace(data, name=name, series=("",), source=None, schema=schema)
        return replace(
            self,
            config=replace(self.config, dataset=name, source=None, schema=schema),
            preprocess=replace(self.preprocess.take(torch.tensor([number]).numpy()), series=("",)),
            data=self.data if data is None else data.record,
            metrics=RunMetrics(),
            validations=(),
            series_until=self.series_until[number : number + 1],
            series_trained=self.series_trained[number : number + 1],
            intervals=None if self.intervals is None else self.intervals.of(name),
            scored=None if self.scored is None else self.scored.of(name),
            test_errors=None,
            _dataset=data,
        )

    @memory_checked()
    def predict(
        self,
        history: pd.DataFrame | Dataset,
        horizon: int | None = None,
        level: Sequence[float] | None = None,
        future: Future | None = None,
        quantiles: Sequence[float] | None = None,
        series: Sequence[str] | None = None,
        outliers: str | None = None,
        new: Sequence[str] | pd.DataFrame | None = None,
    ) -> pd.DataFrame:
        """Forecast the steps after the end of `history`, for each of its series.

        Args:
            history: table in raw units with time stamps (unless trained without) and the training columns, in any
                order, with at least L rows; the same in long form; or a Dataset. Only the last L steps are read and
                checked, with those before by which `outliers` are found, and the table is not modified. Gaps are filled as in training, those at the start from the rows
                before, and a `GapWarning` says how many. A target without any value in the last L rows, such as a
                series that has ended, gets no forecast. A model of a panel accepts known and new series of any length.
                An `AgeWarning` is issued if the history ends more than P steps after the last training row, and a
                `UnitsWarning` if its values are fifty times larger or smaller than those seen in training.
            horizon: number of steps to forecast, P by default; beyond P, the model forecasts recursively.
            level: levels of prediction intervals in percent, such as `[80, 95]`.
            future: future covariates over the horizon, as a table like `history`. A mapping from scenario names to such
                tables gives one forecast for each scenario. None takes them from the rows of `history` after the last
                readings of all targets and past covariates, if there are any, and a `GapWarning` says so; see
                `femts.data.ahead`. A `UnitsWarning` says which are perhaps in another unit than in training; see
                `femts.data.usual_values`.
                A `ForecastWarning` names those on which the forecast does not depend, because the training rows show too
                little effect.
            quantiles: quantiles to return, such as `[0.1, 0.9]`, which bound the 80 % interval.
            series: names of the series to forecast; None forecasts all of them.
            outliers: `missing` reads single values far outside the usual range as missing, which a `GapWarning` says,
                and `keep` keeps them; see `femts.data.outliers`. None does as in training.
            new: names of series without history, such as a shop that opens tomorrow, or a table with a row for each
                and its static covariates. They are forecast like the series that share most of these and of the parts of
                their names, with the future covariates of the new one, and their intervals are as wide as these series
                differ; see `femts.forecaster.new_series`.

        Returns:
            `horizon` rows in raw units for each series, in the order of `history`: the time stamp in `date` (or the row
            number in `step`), then the targets, each followed by `NAME-lo-80`, `NAME-hi-80` and so on, or by
            `NAME-q-10`. The table is in long form if `history` is, with its column names. With several scenarios, the
            first column, `scenario`, names them. Steps at times of the day, week or year at which a series never has
            a value, such as nights or Sundays, are left out, and a `GapWarning` says so; see `femts.data.closures`.

        Raises:
            UsageError: An argument cannot be used; the message says which one and why.
            RunFailure: The forecast is not finite.
        """
        ends = QuantileSpec.of(level, quantiles)
        if new is None:
            return forecast_table(self, history, horizon, ends, future, series, outliers)
        from femts.forecaster.new_series import forecast_with_new

        return forecast_with_new(self, history, horizon, ends, future, series, outliers, new)

    @memory_checked()
    def sample(
        self,
        history: pd.DataFrame | Dataset,
        n: int = 100,
        horizon: int | None = None,
        future: pd.DataFrame | None = None,
        series: Sequence[str] | None = None,
        outliers: str | None = None,
        new: Sequence[str] | pd.DataFrame | None = None,
        seed: int = 0,
    ) -> pd.DataFrame:
        """Draw joint sample paths of the steps after the end of `history`, over all steps, targets and series.

        Paths are the forecast plus errors of whole validation windows, all steps and series of an origin together, so
        that sums, maxima and other functions of a path have honest distributions; see `femts.evaluation.joint`. Those of
        `new` series are drawn together with them from those of series like them; see `femts.forecaster.new_series`.

        Args:
            history, horizon, future, series, outliers, new: as in `predict`, with a single scenario.
            n: number of paths.
            seed: seed of the draws.

        Returns:
            `horizon` rows for each path and series: the number of the path in `sample`, from 0, the name of the series
            for a panel, the time stamp, and the targets in raw units.

        Raises:
            UsageError: As in `predict`, or the run has no intervals for so many steps.
            RunFailure: The forecast is not finite.
        """
        from femts.forecaster.totals import sample

        return sample(self, history, n, horizon, future, series, outliers, new, seed)

    @memory_checked()
    def totals(
        self,
        history: pd.DataFrame | Dataset,
        over: Over = "total",
        by: str | Sequence[str] | None = None,
        how: How = "sum",
        level: Sequence[float] = (80,),
        horizon: int | None = None,
        future: pd.DataFrame | None = None,
        series: Sequence[str] | None = None,
        outliers: str | None = None,
        new: Sequence[str] | pd.DataFrame | None = None,
        n: int = 500,
        seed: int = 0,
    ) -> pd.DataFrame:
        """Forecast sums over periods and groups of series, with intervals.

        The interval of a sum is not the sum of the intervals, and the median of a sum is not the sum of the medians.
        Totals are therefore means of `n` sample paths; see `sample`. These have the errors of the validation windows and
        with them their mean, so a total also corrects a bias of the forecasts there; a `ForecastWarning` says so if a sum
        or mean differs from that of the forecasts of `predict` by more than 1 %.

        Args:
            history, horizon, future, series, outliers, new: as in `predict`, with a single scenario.
            over: the periods: `total` for all steps together, `year`, `quarter`, `month`, `week` (from Monday), `day` or
                `step`.
            by: columns of the history, and of `new`, that are constant within each series, such as a region: the series with
                the same values are added up. `all` adds up all series; None keeps each by itself.
            how: `sum`, `mean`, `max` or `min` of the steps of a period, after series have been added up.
            level: levels of the intervals in percent.
            n: number of sample paths.
            seed: seed of the draws.

        Returns:
            One row for each group and period: the columns `by`, or the name of the series; the start of the period, or
            of the forecast for `total`; the number of `steps`, which is smaller for a period that the forecast covers
            in part; and for each target the mean over the paths, with `NAME-lo-80` and `NAME-hi-80`.

        Raises:
            UsageError: As in `sample`, or an argument cannot be used.
            RunFailure: The forecast is not finite.
        """
        from femts.forecaster.totals import totals

        return totals(self, history, over, by, how, level, horizon, future, series, outliers, new, n, seed)

    @memory_checked()
    def predict_array(self, x: ArrayLike, horizon: int | None = None) -> Array:
        """Forecast a batch of look-backs of one table without covariates, as arrays. Unlike in `predict`, a bound that
        was inferred in training is kept even if look-backs contradict it.

        Args:
            x: look-backs (B, L, C) in raw units, with channels as in `columns`; NaN is filled as in training.
            horizon: number of steps to forecast, P by default.

        Returns:
            Forecasts (B, horizon, T) in raw units.

        Raises:
            UsageError: A shape is wrong, the horizon is below 1, or the model reads covariates or dates.
        """
        return forecast_array(self, x, self.config.pred_len if horizon is None else check_steps(horizon))

    @memory_checked()
    def explain(self, history: pd.DataFrame | Dataset, series: Sequence[str] | None = None) -> pd.DataFrame:
        """Show why a model forecasts the P steps after `history` as it does.

        For models that read segments through a Free Energy Mixer (`fem_*` with component L): which past segments each
        channel selected, and how sharply. For `fem_zero`: the weights of the closed-form forecasts that it combines.

        Args:
            history: as in `predict`.
            series: names of the series to explain; None explains all of them.

        Returns:
            One row for each channel, layer, segment and token; see `femts.explain.posterior.explanation`. For
            `fem_zero`, one row for each channel, step and closed-form forecast; see
            `femts.explain.experts.weights_of_experts`. For a long table, the first column is the name of the series,
            `series`.

        Raises:
            UsageError: The model has neither, or a history or a name cannot be used.
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
        """Permutation importance of each input, for any model: the increase of the squared error when an input is
        exchanged between windows (Breiman, "Random Forests", 2001).

        Whole look-backs, blocks of lags or covariates are exchanged, so their inner order stays intact. Inputs that
        carry the same information can replace each other, and each of them then appears less important than both
        together. For a forecaster that was refitted on all rows, the scored model is examined.

        Args:
            part: split whose windows are forecast, `val`, `test` or `train`.
            windows: largest number of windows, spread evenly over the split; by default 128, or 12 for a model that is
                fitted to each look-back.
            columns: columns whose look-backs are exchanged one at a time; None takes the first 32.
            repeats: number of exchanges of each input; by default 5, or 2 for a model that is fitted to each look-back.
            seed: seed of the windows and exchanges.
            dataset: as in `evaluate`.

        Returns:
            One row for each input, identified by `kind` and `input`: `column`, the look-back of a column; `lags`, a
            block of steps of all columns, one season long (P steps without a season), from the most recent on, the
            eighth with all older ones; `future`, a future covariate over look-back and horizon; `calendar`; `static`, a
            static covariate; `feature`, a group of features that the model computes from the look-back (`boost`: last
            values, rolling means, earlier seasons). `rise` is the mean increase relative to the error without an
            exchange: 0 for an input without effect, 1 for one without which the error doubles. `low` and `high` bound a
            95 % interval of that mean over the `windows` (block bootstrap).

        Raises:
            UsageError: As in `evaluate`; or there are fewer than two windows, a column is unknown, or the forecasts
                have no error.
            RunFailure: The forecasts are not finite.
        """
        from femts.forecaster.importance import permutation_importance

        return permutation_importance(self, part, windows, columns, repeats, seed, dataset)

    def plot(self, history: pd.DataFrame | Dataset, horizon: int | None = None, **drawn: Unpack[Drawing]) -> Picture:
        """Plot the forecast of the steps after `history`, with one panel for each column or series.

        Args:
            history, horizon: as in `predict`.
            drawn: `level` and `future` as in `predict` (several scenarios share a panel); `actual`, a table of what
                happened; `columns` or `series`, the names to plot, by default the first twelve.

        Returns:
            A matplotlib figure, which a notebook displays and `savefig` writes.

        Raises:
            UsageError: As in `predict`, or a column or series is not forecast.
        """
        from femts.forecaster.picture import draw_forecast  # matplotlib takes long to import

        forecast = self.predict(history, horizon, drawn.get("level"), drawn.get("future"))
        return draw_forecast(self, history, forecast, drawn)

    def training_data(self, data_root: str | Path | None = None) -> Dataset:
        """Load the training data again, by name or path.

        Args:
            data_root: folder with the files of the catalogue.

        Returns:
            The dataset; every call returns the same object.

        Raises:
            UsageError: The data are missing, have changed, or were passed as an object, which a run does not store.
        """
        if self._dataset is None:
            object.__setattr__(self, "_dataset", scoring.load_again(self, data_root))
        assert self._dataset is not None
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
        """Scores over every window of a split, beside the naive forecasts of the same windows.

        Args:
            part: split to score, `test`, `val` or `train`.
            pred_len: horizon to score, P by default; beyond P, forecasts are recursive. Several horizons, such as `[24,
                48]`, are scored from one forecast of each window of a table.
            dataset: data to score on, as accepted by `load_dataset`; None loads the training data again.

        Returns:
            `mse` and `mae` in scaled units, the number of `windows`, `wape` and `bias` in raw units, `mase`, `skill`,
            the errors of the naive forecasts as `baselines`, and a `verdict` in words (see
            `femts.evaluation.overall.Scores`); for several horizons, a dictionary of these by horizon.

        Raises:
            UsageError: The split is unknown, a horizon does not fit, or the data are missing or have changed.
        """
        if isinstance(pred_len, Sequence):
            return scoring.score_horizons(self, part, pred_len, dataset)
        return scoring.score_overall(*scoring.scored_part(self, part, pred_len, dataset))

    @memory_checked()
    def scores(
        self,
        part: str = "test",
        pred_len: int | Sequence[int] | None = None,
        by: str | Sequence[str] | None = None,
        level: Sequence[float] | None = None,
        dataset: Source | None = None,
    ) -> pd.DataFrame:
        """Detailed scores over every window of a split.

        Args:
            part, pred_len, dataset: as in `evaluate`.
            by: group by `step`, `channel`, both, or `series`; None averages over everything.
            level: interval levels in percent, for which coverage and the CRPS are added.

        Returns:
            One row for each group in scaled units, then one in raw units; see `femts.forecaster.scoring.score_details`.
            With several horizons, the first column is `pred_len`.

        Raises:
            UsageError: As in `evaluate`, or a group is unknown, or a level or horizon is not calibrated.
        """
        if isinstance(pred_len, Sequence):
            return scoring.score_details_at_horizons(self, part, pred_len, by, level, dataset)
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
        """Coverage of a split by the prediction intervals, by step and channel.

        Args:
            part, level, pred_len, dataset: as in `scores`.

        Returns:
            One row each with `level`, `step`, `channel`, `coverage` (between 0 and 1), mean `width` and its `units`:
            raw, or scaled for several series.

        Raises:
            UsageError: As in `scores`.
        """
        of, windows, _ = scoring.scored_part(self, part, pred_len, dataset)
        return scoring.score_coverage(of, windows, level)

    @memory_checked()
    def calibrate(
        self, pred_len: int | None = None, level: Sequence[float] = (), dataset: Source | None = None
    ) -> Forecaster:
        """Calibrate prediction intervals again, as done after training for P steps, and those of `scored`.

        Args:
            pred_len: longest horizon to calibrate, at least P; None keeps the current one, or takes P.
            level: levels in percent to calibrate in addition to the default ones, up to 99.9, and to those calibrated
                before. A forecast can use any level up to the highest.
            dataset: as in `evaluate`. Of other data than those of training, the rows after these are used, and `scored`
                keeps its intervals.

        Returns:
            The forecaster with the new `intervals`; this one keeps its own.

        Raises:
            UsageError: As in `evaluate`; or the horizon is shorter than P, or there are too few validation windows for
                a level.
            RunFailure: The forecasts are not finite.
        """
        return calibration.calibrate_again(self, pred_len, level, dataset)

    @memory_checked()
    def export(self, path: str | Path, horizon: int | None = None, series: str | None = None) -> Exported:
        """Export the model to ONNX, with inputs and outputs in raw units; requires `pip install 'femts[onnx]'`.

        Args:
            path: file to write.
            horizon: number of steps to forecast; None takes as many as the model forecasts at once.
            series: series to export, if the model has several.

        Returns:
            The file, its size in bytes, the horizon, and the largest difference from PyTorch.
        """
        from femts.forecaster.onnx import export

        of = self if series is None else self.of(series)
        return export(of, check_path(path, "The ONNX file"), None if horizon is None else check_steps(horizon))

    def save(self, folder: str | Path) -> None:
        """Write a run to `folder` for `load`; UsageError if it is not empty, RunFailure if it cannot be written."""
        place = check_path(folder, "The run folder")
        with locked_run(place):
            run_folder.check_new_folder(place)
            self.write(place)

    def write(self, folder: Path) -> None:
        """As `save`, replacing the contents of `folder`; the run of the scored model is written within it."""
        preprocess, folder = self.preprocess_record(), check_path(folder, "The run folder")
        files = {WEIGHTS: weights_bytes(self.model, preprocess), PREPROCESS: run_folder.preprocess_bytes(preprocess)}
        files |= {} if self.intervals is None else {INTERVALS: self.intervals.to_bytes()}
        if self.scored is not None:
            run_folder.unfinish(folder)  # before its scored half changes
            self.scored.write(folder / SCORED)
        config = replace(self.config, refit=self.scored is not None)
        run_folder.write_run(folder, config, files, self.validations, self.metrics)

    def preprocess_record(self) -> dict[str, Any]:
        """Record of the preprocessing from raw data to model inputs, in plain types, as in `preprocess.json`."""
        until = {"until": self.until, "series_until": list(self.series_until)}
        until |= {"series_trained": list(self.series_trained)}
        return {**self.preprocess.to_dict(), "freq": self.freq, "data": dict(self.data), **until}

    @classmethod
    def load(cls, folder: str | Path, device: str | torch.device = "cpu") -> Forecaster:
        """Load the forecaster in the run `folder` with its weights on `device`; see `femts.load`."""
        where, run = check_device(device), restore(check_path(folder, "The run folder"))
        return cls._restored(run).to(where)

    @classmethod
    def _restored(cls, run: Restored) -> Forecaster:
        """Forecaster of a `run` that was read from its folder, with its scored model."""
        return cls(**run.fields(), scored=None if run.scored is None else cls(**run.scored.fields()))


@memory_checked()
def load(folder: str | Path, device: str | torch.device = "cpu") -> Forecaster:
    """Load the forecaster in a run folder, verified by its hashes and without unpickling anything.

    Args:
        folder: folder written by `femts train`, by `train` with `out`, or by `save`.
        device: device for the weights.

    Returns:
        A forecaster, ready to predict.

    Raises:
        UsageError: The folder holds no run, an unfinished or modified one, or one of a later version of femts.
    """
    return Forecaster.load(folder, device)


def check_device(device: object) -> torch.device:
    """Resolve `device` to a torch device; raise UsageError if it is unknown or not available."""
    try:
        place = torch.device(device)  # type: ignore[call-overload]
        torch.empty(0, device=place)
    except (RuntimeError, TypeError, ValueError, AssertionError, NotImplementedError) as error:
        text = f"Device '{quote(device)}' is not available; use cpu, or one that femts doctor lists."
        raise UsageError(text, argument="device", value=device, remedy={"device": "cpu"}) from error
    return place
