"""A trained forecaster: forecasts raw data, scores itself, and lives in a folder."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from femts.config.values import check_steps
from femts.data.dataset import Dataset
from femts.data.grid import future_dates
from femts.data.scaler import Scaler
from femts.data.windows import single
from femts.errors import RunFailure, UsageError
from femts.evaluation.intervals import Intervals, check_levels, with_bounds
from femts.evaluation.quantiles import check_quantiles, level_of
from femts.explain.posterior import explainable, explanation
from femts.files import locked
from femts.forecaster.inputs import in_form_of, known_ahead, look_back, tell_ended
from femts.forecaster.restore import restore, weights_bytes
from femts.forecaster.run_folder import RunConfig, check_new_folder, write_run
from femts.forecaster.scoring import Scoring
from femts.models.base import ForecastModel

if TYPE_CHECKING:
    from femts.forecaster.onnx import Exported


# A fork has none of the threads that OpenMP began before it, and would wait for them for ever.
os.register_at_fork(after_in_child=partial(torch.set_num_threads, 1))


@dataclass(eq=False)
class Forecaster(Scoring):
    """A model with everything it needs to forecast new data in raw units.

    Shapes: L = `config.seq_len` steps of look-back, P = `config.pred_len` steps of one forecast, C channels, of which the first
    T are targets and the others known up to now; T = C unless some are named so.

    Attributes:
        model: the network, in scaled units.
        config: what was trained, and how.
        scaler: the training rows' mean and scale; never fitted again.
        columns: names of the C channels, in the model's order.
        freq: step between stamps, a pandas frequency; None for data without dates.
        data: hash and split of the training data, to know it again.
        metrics: scores and circumstances of the training, as in `metrics.json`.
        history: one row for each validation, as in `metrics.csv`.
        intervals: what bounds a forecast, calibrated on the validation part; None for a run that has none.
    """

    model: ForecastModel
    config: RunConfig
    scaler: Scaler
    columns: tuple[str, ...]
    freq: str | None
    data: Mapping[str, Any]
    metrics: Mapping[str, Any] = field(default_factory=dict)
    history: Sequence[Mapping[str, Any]] = ()
    intervals: Intervals | None = None
    _dataset: Dataset | None = field(default=None, repr=False)

    @property
    def device(self) -> torch.device:
        """Device of the model's weights, trained or fitted; the CPU for one without."""
        weights = chain(self.model.parameters(), self.model.buffers())
        return next((weight.device for weight in weights), torch.device("cpu"))

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of the T columns that are forecast."""
        return self.columns[: len(self.columns) - len(self.config.roles.past)]

    def to(self, device: torch.device | str) -> Forecaster:
        """Move the model to `device` and return the forecaster."""
        self.model.to(device)
        return self

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
            history: raw units; `date` (unless trained without) and the training columns, in any order, at least L rows; or
                the same in long form, `unique_id, ds, y`.
                Only the last L rows (in long form those of the last L stamps) are used and checked; the frame is not changed.
                What is missing in them is filled as in training, and a `GapWarning` says how much that was; a target without a
                value in them, such as a series that has ended, has none in the forecast.
            horizon: steps to forecast, P by default; beyond P the model reads its own forecasts as history.
            level: percent, such as [80, 95]; adds conformal intervals (see `femts.evaluation.intervals`, and for a run that has
                learned quantiles, whose forecast is the median, `femts.evaluation.quantiles`).
            future: for a model trained with columns known in advance, these columns in a table like `history`, for each of the
                steps to come; other rows and columns of it do not matter.
            quantiles: such as [0.1, 0.5, 0.9]; adds the ends of intervals (0.1 and 0.9 are those of 80), of 0.5 the forecast.

        Returns:
            `horizon` rows in raw units: future stamps in `date` (or row numbers in `step`, counting on from the last
            index of `history`), then the targets, with `level` each followed by `NAME-lo-80`, `NAME-hi-80` and so on, with
            `quantiles` by `NAME-q-10`; in long form where `history` has it, and under its names.

        Raises:
            UsageError: the history, the horizon, a level, a quantile or the known columns cannot be used; the text says why.
            RunFailure: the model does not forecast finite numbers.
        """
        steps = check_steps(self.config.pred_len if horizon is None else horizon)
        levels = () if level is None else check_levels(level)
        wanted = () if quantiles is None else check_quantiles(quantiles)
        if levels or wanted:
            self._calibrated().at((*levels, *(level_of(q) for q in wanted if q != 0.5)), steps)
        past = look_back(history, self.config, self.columns, self.freq)
        if self.freq is None:
            when: pd.Index = pd.RangeIndex(past.when[-1] + 1, past.when[-1] + 1 + steps)
        else:
            when = future_dates(past.when[-1], self.freq, steps)
        known = np.concatenate([past.known, known_ahead(future, self.config, when, self.freq)])
        effects = None if self.scaler.effects is None else self.scaler.effects.of(known, past.when.append(when))[None]
        found = self.predict_array(past.values[None], steps, effects)[0]
        if not np.isfinite(found).all():
            raise RunFailure("The forecast is not finite; train again with a lower training.lr, or with other data.")
        forecast = pd.DataFrame(found, columns=list(self.targets))
        ahead = pd.DataFrame({"step" if self.freq is None else "date": when})
        if levels or wanted:
            bounds = self._bounds(past.values[None], effects, forecast.to_numpy(), levels, wanted)
            forecast = with_bounds(forecast, bounds)
        ended = np.asarray(np.isnan(past.values[:, : len(self.targets)]).all(axis=0))
        forecast.loc[:, np.repeat(ended, forecast.shape[1] // len(self.targets))] = np.nan
        if ended.any():
            tell_ended([name for name, over in zip(self.targets, ended, strict=True) if over], self.config.seq_len)
        return in_form_of(pd.concat([ahead, forecast], axis=1), past, self.config.form, self.targets)

    def explain(self, history: pd.DataFrame) -> pd.DataFrame:
        """Explain which past segments each channel chose for the P steps that follow `history`, and how sharply.

        For models that read segments through a Free Energy Mixer (`fem_*`, with L among their components). In each layer the
        last token of a channel reads N segments of P steps, each as two tokens: `main`, the channel's own, and `context`, mixed
        from all channels. The layers above the first read tokens that already hold what came before them. `fem_*_ridge` is
        explained by its mixer, which is one half of the forecast.

        Args:
            history: as in `predict`.

        Returns:
            One row for each channel, layer (1 is the lowest), segment (the oldest first) and token:
            `start`, `end`: first and last stamp of the segment, or step numbers that end where those of `predict` begin.
            `weight`: what the posterior gives the token (eq. 5 of the paper at the hidden temperature, proposition G.2), the
            mean over the components of the read, each counting as far as it moves the token (`femts.explain.posterior`); sums
            to 1 over the 2 N tokens of a channel and layer.
            `prior`: the same of the prior, which is what the keys chose before the values did.
            And for the channel and layer, repeated in its rows: `hidden_temperature`, the mean beta*, an inverse temperature
            that is 0 where the mean is read; `effective_segments`, exp of the mean entropy of the components' posteriors over
            segments, from 1 (each component reads one) to N (all alike); `prior_segments`, the same of their priors.

        Raises:
            UsageError: a model that has no such read, or a history that cannot be used; the text says why.
        """
        model = explainable(self.model, self.config.model)
        past = look_back(history, self.config, self.columns, self.freq)
        effects = None if self.scaler.effects is None else self.scaler.effects.of(past.known, past.when)
        return explanation(model, self._scaled(past.values[None], effects), self.columns, past.when)

    def predict_array(
        self, x: ArrayLike, horizon: int | None = None, effects: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Forecast many look-backs at once, as arrays.

        Args:
            x: (B, L, C) in raw units, channels as in `columns`; NaN is filled as in training.
            horizon: steps to forecast, P by default.
            effects: (B, L + horizon, C) as `scaler.effects.of` gives them, for a model that was trained with columns known in
                advance or with the calendar.

        Returns:
            (B, horizon, T) in raw units.

        Raises:
            UsageError: another shape, a horizon below 1, or effects that are missing or not wanted.
        """
        try:
            values = np.asarray(x, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise UsageError(f"The look-backs are a {type(x).__name__} that is no array of numbers; give one.") from error
        steps = self.config.pred_len if horizon is None else check_steps(horizon)
        if values.ndim != 3 or values.shape[1:] != (self.config.seq_len, len(self.columns)):
            wanted = f"(windows, {self.config.seq_len}, {len(self.columns)})"
            raise UsageError(f"The look-backs have shape {values.shape}; this model takes {wanted}.")
        if (effects is None) != (self.scaler.effects is None):
            raise UsageError(
                "predict_array takes effects= for a model that was trained with columns known in advance, and for no other; "
                "use predict, which sees to it."
            )
        self.model.eval()
        with torch.no_grad():
            scaled = self._scaled(values, None if effects is None else effects[:, : self.config.seq_len])
            forecast = self.model.forecast(scaled, steps)
        found = forecast.cpu().double().numpy()
        found = found if effects is None else found + effects[:, self.config.seq_len :]
        return self.scaler.inverse(found)[..., : len(self.targets)]

    def _scaled(self, values: NDArray[np.float64], effects: NDArray[np.float64] | None = None) -> Tensor:
        """Raw look-backs (B, L, C) as the model reads them: what is known taken off, gaps filled."""
        scaled = self.scaler.transform(values)
        scaled = scaled if effects is None else scaled - effects
        return single(scaled, self.columns, "The history").to(self.device)

    def save(self, folder: str | Path) -> None:
        """Write a run folder that `load` reads; UsageError when `folder` holds something, RunFailure when the disk refuses."""
        with locked(Path(folder)):
            check_new_folder(Path(folder))
            self.write(Path(folder))

    def write(self, folder: Path) -> None:
        """As `save`, over whatever `folder` holds."""
        intervals, preprocess = None if self.intervals is None else self.intervals.to_bytes(), self.preprocess()
        weights = weights_bytes(self.model, preprocess)
        write_run(folder, self.config, weights, preprocess, self.history, self.metrics, intervals)

    def export(self, path: str | Path, horizon: int | None = None) -> Exported:
        """Write the model as ONNX to `path`, raw units in, `horizon` steps of them out; see `femts.forecaster.onnx`."""
        from femts.forecaster.onnx import export

        return export(self, path, None if horizon is None else check_steps(horizon))

    def preprocess(self) -> dict[str, Any]:
        """Record of what turns raw data into the model's input, in plain types; `preprocess.json`."""
        return {
            "scaler": self.scaler.to_dict(),
            "columns": list(self.columns),
            "freq": self.freq,
            "data": dict(self.data),
        }

    @classmethod
    def load(cls, folder: str | Path, device: str | torch.device = "cpu") -> Forecaster:
        """The forecaster in a run folder, verified by its hashes and read without pickle.

        Args:
            folder: written by `femts train`, by `train` with `out`, or by `save`.
            device: where its weights go.

        Returns:
            A forecaster, ready to predict.

        Raises:
            UsageError: no run, an unfinished or a changed one, or one of a later femts.
        """
        run, model, scaler, intervals = restore(folder)
        forecaster = cls(
            model=model,
            config=run.config,
            scaler=scaler,
            columns=tuple(run.preprocess["columns"]),
            freq=run.preprocess["freq"],
            data=run.preprocess["data"],
            metrics=run.metrics,
            history=run.history,
            intervals=intervals,
        )
        return forecaster.to(device)
