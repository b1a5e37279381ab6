"""Base of every forecaster: a module from a scaled look-back to a scaled forecast, with its own
frozen configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from femts.config.model import ModelConfig
from femts.errors import UsageError
from femts.models.parts.pinball import mean_pinball

if TYPE_CHECKING:
    from femts.data.raw import Raw


def check_shape(forecast: Tensor, shape: Sequence[int]) -> None:
    """UsageError where `forecast` has not the `shape` of what followed: broadcasting would make a plausible score."""
    if tuple(forecast.shape) != tuple(shape):
        raise UsageError(
            f"The model gives a forecast of shape {tuple(forecast.shape)}, not {tuple(shape)}, which is windows, "
            "steps and channels; mend its forward."
        )


def mean_error(forecast: Tensor, target: Tensor, observed: Tensor | None = None, absolute: bool = False) -> Tensor:
    """Mean squared, or `absolute`, error of two tensors of one shape, over what is `observed` of the target."""
    error = F.l1_loss if absolute else F.mse_loss
    if observed is None:
        return error(forecast, target)
    return (error(forecast, target, reduction="none") * observed).sum() / observed.sum().clamp(min=1)


@dataclass(frozen=True, eq=False)
class Forecasts:
    """Forecasts in scaled units: `points` (B, S, C), and `quantiles` (B, S, Q, C) or None."""

    points: Tensor
    quantiles: Tensor | None


class ForecastModel(nn.Module):
    """Base of all forecasters.

    Shapes: B windows, L = `seq_len` steps of look-back, P = `pred_len` steps of forecast, C
    channels, Q quantiles; values are scaled (zero mean, unit variance on the training rows).

    Args:
        config: of the class `Config`.
        quantiles: levels in (0, 1), rising, 0.5 among them, that the pinball loss learns; none for
            a mean by the squared error.

    Attributes:
        Config: its settings, a frozen dataclass.
        training_defaults: fields of `TrainingConfig` that this model wants different.
        absolute: `error` is the absolute one; a training by `training.loss=mae` says so.
        rolls_out: made to go on beyond its horizon, where tables score it, too.
        channel_independent: claims that the forecast of a channel depends on that channel alone;
            `femts audit` holds it to it.
        draws_channels: can form its loss of some of the channels, in a wide table those that are drawn for the step.
        takes_static: reads, after the C channels of a look-back, E further ones that do not change
            within it; they describe its series, and `n_static` of the configuration says how many.
        learns_quantiles: takes `quantiles`, and then has `n_outputs` numbers a step and channel come out of `forward`.
        reads_raw: takes look-backs in float64 before scaling, NaN where a value is missing or before
            the series began, and gives forecasts of the same units.
        most_rows: longest look-back that it takes unasked, where `reads_raw`.
        needs: a library that has to be installed for it, and the extra that brings it.
        levels: percent of its own intervals, rising; its `quantiles` bound them. None for intervals
            that are calibrated on validation.
        most_windows: windows of a part that are scored at most; None for all.
        combines: made of trained models, and never trained itself; no list of models to train has it.
    """

    Config: ClassVar[type[ModelConfig]]
    training_defaults: ClassVar[Mapping[str, Any]] = {}
    absolute: bool = False
    rolls_out: ClassVar[bool] = False
    channel_independent: bool = False
    draws_channels: ClassVar[bool] = False
    takes_static: ClassVar[bool] = False
    learns_quantiles: ClassVar[bool] = False
    reads_raw: bool = False
    most_rows: ClassVar[int] = 1024
    needs: ClassVar[tuple[str, str] | None] = None
    levels: ClassVar[tuple[float, ...]] = ()
    most_windows: int | None = None
    combines: ClassVar[bool] = False

    def __init__(self, config: Any, quantiles: Sequence[float] = ()) -> None:
        super().__init__()
        self.config, self.quantiles = config, tuple(quantiles)

    @classmethod
    def reads_raw_by(cls, config: ModelConfig) -> bool:
        """Tell by its `config`, before a model is built, if it `reads_raw`."""
        return cls.reads_raw

    @classmethod
    def fewest_rows(cls, config: ModelConfig) -> int:
        """Rows that a history needs at least by the `config` of the model; one that reads raw rows fills the others."""
        return 1 if cls.reads_raw else config.seq_len

    @property
    def n_outputs(self) -> int:
        """Numbers that come out for a step and channel: Q, or 1 without quantiles."""
        return max(1, len(self.quantiles))

    def forward(self, x: Tensor) -> Tensor:
        """Forecast the next P steps.

        Args:
            x: look-back (B, L, C), scaled.

        Returns:
            (B, P, C), or (B, P Q, C) with a step's quantiles side by side.

        Raises:
            TypeError: a model that does not define it.
        """
        raise TypeError(f"{type(self).__name__} does not define forward")

    def loss(self, x: Tensor, y: Tensor, observed: Tensor | None = None, channels: Tensor | None = None) -> Tensor:
        """Loss of the training.

        Args:
            x: look-back (B, L, C).
            y: values that followed (B, P, C).
            observed: (B, L + P, C), which of these values are real; the loss leaves the others out. None means all.
            channels: numbers of those that it is formed of, where `draws_channels`; None means all.

        Returns:
            A scalar.
        """
        if channels is not None:  # a model that reads several at once to forecast one defines a loss of its own
            x, y, observed = x[..., channels], y[..., channels], None if observed is None else observed[..., channels]
        return self.error(self(x), y, None if observed is None else observed[:, x.shape[1] :])

    def error(self, outputs: Tensor, target: Tensor, observed: Tensor | None = None, dim: int = -2) -> Tensor:
        """Error that is trained down: the mean squared or `absolute` one, or with quantiles their mean pinball loss.

        Args:
            outputs: n_outputs P along `dim`. Each learns its own quantile, whether or not they
                cross; `at_once` sorts them.
            target: P along `dim`.
            observed: which targets are real, of the shape of `target`; None means all.
            dim: axis of the steps.

        Returns:
            A scalar.

        Raises:
            UsageError: outputs of another shape, which broadcasting would turn into a plausible loss.
        """
        shape = list(target.shape)
        shape[dim] *= self.n_outputs
        check_shape(outputs, shape)
        if self.quantiles:
            return mean_pinball(outputs, target, self.quantiles, observed, dim)
        return mean_error(outputs, target, observed, self.absolute)

    def prepare(self, series: Tensor, observed: Tensor | None = None) -> None:
        """Fit what has a closed form, before the first step; by default nothing.

        Args:
            series: training rows (rows, C), scaled.
            observed: (rows, C), which of them are real; None means all.
        """

    def at_once(self, x: Tensor, steps: int) -> Tensor:
        """Forecast the next steps without going on from a forecast.

        A forecast of fewer steps is the beginning of one of more: scores at several horizons come from one roll-out.

        Args:
            x: look-back (B, L, C).
            steps: how many are wanted.

        Returns:
            (B, P or more, C). With quantiles (B, P, Q, C), rising: sorting what has crossed brings
            no quantile further from the true one (Chernozhukov, Fernandez-Val & Galichon, "Quantile
            and Probability Curves Without Crossing", Econometrica 2010).
        """
        outputs: Tensor = self(x)
        return outputs.unflatten(1, (-1, self.n_outputs)).sort(dim=2).values if self.quantiles else outputs

    def point(self, forecast: Tensor) -> Tensor:
        """Median (B, S, C) of `forecast`, quantiles (B, S, Q, C); without quantiles what is given."""
        return forecast[:, :, self.quantiles.index(0.5)] if self.quantiles else forecast

    def forecast(self, x: Tensor, steps: int) -> Tensor:
        """Any number of next steps: beyond what it forecasts at once, the model reads its forecasts as history.

        With quantiles the forecast is the median.

        Args:
            x: look-back (B, L, C).
            steps: at least 1.

        Returns:
            Forecast (B, steps, C).
        """
        return self.point(self._rolled(x, steps))

    def forecast_quantiles(self, x: Tensor, steps: int) -> Tensor:
        """Forecast all quantiles.

        Args:
            x: look-back (B, L, C), scaled.
            steps: how many; beyond P the quantiles follow a median fed back, and are too narrow.

        Returns:
            (B, steps, Q, C), rising.

        Raises:
            TypeError: a model that learned none.
        """
        if not self.quantiles:
            raise TypeError(f"this {type(self).__name__} has learned no quantiles")
        return self._rolled(x, steps)

    def forecasts(self, x: Tensor, steps: int, raw: Raw | None = None) -> Forecasts:
        """Forecast points and, where there are some, quantiles.

        Args:
            x: look-back (B, L, C), scaled.
            steps: at least 1.
            raw: the same before scaling, for a model that `reads_raw`; None where nothing was scaled.
                A channel without a value there is forecast at the mean of its training rows.

        Returns:
            Points, and quantiles where the model has some.
        """
        if self.reads_raw:
            values = x.cpu().double() if raw is None else raw.values
            made = self._rolled(values, steps)
            if raw is not None:
                mean, scale = (each[:, None] if self.quantiles else each for each in (raw.mean, raw.scale))
                made = (made - mean) / scale
            blank = values.isnan().all(1)[:, None]
            made = made.masked_fill(blank[:, None] if self.quantiles else blank, 0.0)
            made = made.to(x.device, torch.float32 if x.device.type == "mps" else torch.float64)
        else:
            made = self._rolled(x, steps)
        return Forecasts(self.point(made), made if self.quantiles else None)

    def _rolled(self, x: Tensor, steps: int) -> Tensor:
        if steps < 1:
            raise UsageError(f"A horizon of {steps} steps cannot be forecast; ask for 1 or more.")
        pieces, left = [], steps
        while True:
            piece = self.at_once(x, left)
            pieces.append(piece)
            left -= piece.shape[1]
            if left <= 0:
                break
            x = follow(x, self.point(piece))
        return torch.cat(pieces, dim=1)[:, :steps]


def follow(x: Tensor, forecast: Tensor) -> Tensor:
    """The look-back `x` (B, L, C + E) after the steps `forecast` (B, S, C); its last E channels do not change."""
    forecast = forecast.to(x.dtype)
    if x.shape[-1] > forecast.shape[-1]:
        static = x[:, -1:, forecast.shape[-1] :].expand(-1, forecast.shape[1], -1)
        forecast = torch.cat([forecast, static], dim=-1)
    return torch.cat([x, forecast], dim=1)[:, -x.shape[1] :]
