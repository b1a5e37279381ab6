"""Base class of all forecasters: a module that maps a batch of windows to forecasts, with a frozen configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from femts.config.model import ModelConfig
from femts.data.batch import Batch
from femts.errors import UsageError
from femts.models.losses import Loss
from femts.models.parts.quantiles import mean_pinball

if TYPE_CHECKING:
    from femts.config.training import TrainingConfig
    from femts.data.windows import Windows


def check_shape(forecast: Tensor, shape: Sequence[int]) -> None:
    """Raise UsageError unless `forecast` has the given `shape`; broadcasting would silently give a plausible score."""
    if tuple(forecast.shape) != tuple(shape):
        raise UsageError(
            f"The model returns a forecast of shape {tuple(forecast.shape)}, not {tuple(shape)} (windows, steps, "
            "channels); fix its forward."
        )


def mean_error(forecast: Tensor, target: Tensor, observed: Tensor | None = None, absolute: bool = False) -> Tensor:
    """Mean squared or `absolute` error of two tensors of equal shape over the `observed` values of the target."""
    error = F.l1_loss if absolute else F.mse_loss
    if observed is None:
        return error(forecast, target)
    return (error(forecast, target, reduction="none") * observed).sum() / observed.sum().clamp(min=1)


def _as_windows(outputs: Tensor, target: Tensor, observed: Tensor | None, dim: int) -> tuple[Tensor, Batch]:
    """Rearrange outputs and targets of one shape, with steps along `dim`, to forecasts (B, P, C) and a batch of true
    values."""
    moved = [None if each is None else each.movedim(dim, 1) for each in (outputs, target, observed)]
    forecast, future, seen = (None if each is None else each.flatten(2) for each in moved)
    assert forecast is not None and future is not None
    return forecast, Batch(future[:, :0], future=future, future_observed=seen)


MEMBER_QUANTILES = (0.005, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975, 0.995)


@dataclass(frozen=True, eq=False)
class Forecasts:
    """Forecasts in scaled units.

    Attributes:
        points: (B, S, C).
        quantiles: (B, S, Q, C) for a quantile model; otherwise None.
        of_members: (B, S, Q, C) for a mean with members that forecast quantiles: their `MEMBER_QUANTILES`, on average
            and moved so that the median is the point forecast; otherwise None.
    """

    points: Tensor
    quantiles: Tensor | None
    of_members: Tensor | None = None

    def with_each(self, points: Callable[[Tensor], Tensor], quantiles: Callable[[Tensor], Tensor]) -> Forecasts:
        """The forecasts after a function of `points` and one of `quantiles`."""
        others = (None if each is None else quantiles(each) for each in (self.quantiles, self.of_members))
        return Forecasts(points(self.points), *others)

    @classmethod
    def joined(cls, pieces: Sequence[Forecasts]) -> Forecasts:
        """The forecasts of several batches, one after the other."""
        every = zip(*((one.points, one.quantiles, one.of_members) for one in pieces), strict=True)
        return cls(*(None if each[0] is None else torch.cat(each) for each in every))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Exchanged:
    """Exchange of a group of features between the windows of a batch, for permutation importance.

    Attributes:
        group: one of the `groups` of the model.
        seed: seed of the exchange.
    """

    group: str
    seed: int

    def others(self, count: int) -> Tensor:
        """Permutation (count,) of the windows that leaves none in its place."""
        order = torch.randperm(count, generator=torch.Generator().manual_seed(self.seed))
        return torch.empty_like(order).index_copy_(0, order, order.roll(1))


@dataclass(frozen=True)
class Supports:
    """Capabilities of a model.

    Attributes:
        known: reads future covariates and the calendar over look-back and horizon (`Batch.known`). For other models,
            their effects are estimated by regression and removed before the model (`femts.data.effects`).
        calendar: reads calendar features over the look-back, without other covariates.
        dated: reads calendar features of any table with dates, also if nobody asked for them.
        static: reads static covariates (`Batch.static`).
        recursive: designed for recursive forecasts beyond its horizon, so that result tables include these.
        quantiles: can be trained on quantiles by the pinball loss.
        channels: number of channels that a forecast reads: 1 for a model whose forecast of a channel depends on that
            channel alone, which `femts audit` verifies; None for all channels.
        subsampling: can compute its loss on a subset of the channels, which is drawn at each step for wide tables.
        raw: reads look-backs in float64 before scaling (`Batch.raw`) and forecasts in the same units.
        fixed: has no parameters, so that it needs no second season to learn from.
        fine_tuned: is trained on windows from pretrained weights on, which are validated after the first step, too.
    """

    known: bool = False
    calendar: bool = False
    dated: bool = False
    static: bool = False
    recursive: bool = False
    quantiles: bool = False
    channels: int | None = None
    subsampling: bool = False
    raw: bool = False
    fixed: bool = False
    fine_tuned: bool = False

    @property
    def untrained(self) -> bool:
        """Whether a model is ready for any table without training."""
        return self.fixed or (self.raw and not self.fine_tuned)


class ForecastModel(nn.Module):
    """Base class of all forecasters.

    Shapes: B windows, L = `seq_len` steps of look-back, P = `pred_len` steps of forecast, C channels, Q quantiles;
    values are scaled (zero mean, unit variance on the training rows).

    Args:
        config: an instance of the class `Config`.
        quantiles: increasing levels in (0, 1), including 0.5, to be trained by the pinball loss; empty for point
            forecasts.

    Attributes:
        Config: class of the settings, a frozen dataclass. A model with static inputs has a field `n_static`, one with
            known inputs a field `n_known`: their numbers.
        supports: capabilities of the model.
        training_defaults: fields of `TrainingConfig` whose defaults differ for this model.
        short_training_defaults: further ones for the few hundred steps that `auto` has time for.
        absolute: whether `error` is the absolute error, as set by `training.loss=mae`.
        own_loss: registered loss that replaces `error`, if `training.loss` names one.
        most_rows: longest default look-back of a model that reads raw rows.
        most_horizons: longest default look-back in horizons under the protocol `seasons`, if it exceeds two seasons and
            a week of steps below a day; None for that of the protocol.
        needs: required library, and the extra that installs it.
        levels: levels of the model's own intervals in percent, increasing, which its `quantiles` bound. Empty if
            intervals are calibrated on the validation split.
        most_windows: largest number of windows to score per split; None for all.
        averages_quantiles: whether forecasts have quantiles of members (`Forecasts.of_members`).
        combines: whether the model is built from trained models and never trained itself; such models are not listed.
        losses: allowed values of `training.loss`; empty for any.
        in_torch: whether forecasts use torch operators only, so that they can be exported as a graph.
        groups: names of groups of features computed from the look-back, which `exchanged` may name.
        exchanged: features to exchange between windows while the importance of a group is measured; otherwise None.
    """

    Config: ClassVar[type[ModelConfig]]
    supports: Supports = Supports()
    training_defaults: ClassVar[Mapping[str, Any]] = {}
    short_training_defaults: ClassVar[Mapping[str, Any]] = {}
    absolute: bool = False
    own_loss: Loss | None = None
    most_rows: ClassVar[int] = 1024
    most_horizons: ClassVar[int | None] = None
    needs: ClassVar[tuple[str, str] | None] = None
    levels: tuple[float, ...] = ()
    most_windows: int | None = None
    averages_quantiles: bool = False
    combines: ClassVar[bool] = False
    losses: ClassVar[tuple[str, ...]] = ()
    in_torch: ClassVar[bool] = True
    groups: ClassVar[tuple[str, ...]] = ()
    exchanged: Exchanged | None = None

    def __init__(self, config: Any, quantiles: Sequence[float] = ()) -> None:
        super().__init__()
        self.config, self.quantiles = config, tuple(quantiles)

    @classmethod
    def supports_of(cls, config: ModelConfig) -> Supports:
        """Capabilities of a model with this `config`, before it is built."""
        return cls.supports

    @classmethod
    def fewest_rows(cls, config: ModelConfig) -> int:
        """Smallest number of history rows for a model with `config`; models that read raw rows fill the others."""
        return 1 if cls.supports_of(config).raw else config.seq_len

    @classmethod
    def longest_look_back(cls, season: int) -> int:
        """Longest default look-back of a model that reads raw rows: `most_rows`, unless it needs more for a `season`."""
        return cls.most_rows

    @classmethod
    def about(cls) -> Sequence[str]:
        """Lines on weights that come with the model: what they were trained on, and how well they forecast."""
        return ()

    @property
    def n_outputs(self) -> int:
        """Number of outputs per step and channel: Q, or 1 without quantiles."""
        return max(1, len(self.quantiles))

    @property
    def n_weights(self) -> int:
        """Number of weights."""
        return sum(p.numel() for p in self.parameters())

    def read_weights(self) -> None:
        """Read weights that are stored outside the run folder, before the first forecast; does nothing by default.

        Models with such weights refuse any but those used in training.
        """

    def forward(self, batch: Batch) -> Tensor:
        """Forecast the next P steps.

        Args:
            batch: B windows; `past` (B, L, C) is always present.

        Returns:
            (B, P, C), or (B, P Q, C) with the quantiles of a step side by side.

        Raises:
            TypeError: The model does not define it.
        """
        raise TypeError(f"{type(self).__name__} does not define forward")

    def loss(self, batch: Batch, channels: Tensor | None = None) -> Tensor:
        """Training loss.

        Args:
            batch: windows with their futures; missing values do not count.
            channels: indices of the channels to compute the loss on, if the model supports `subsampling`; None means
                all.

        Returns:
            A scalar.
        """
        if channels is not None:  # models that read several channels to forecast one override this method
            batch = batch.of_channels(channels)
        assert batch.future is not None
        return self.error(self(batch), batch.future, batch.future_observed)

    def error(self, outputs: Tensor, target: Tensor, observed: Tensor | None = None, dim: int = -2) -> Tensor:
        """Error to minimise: the mean squared or `absolute` error, or with quantiles the mean pinball loss.

        Args:
            outputs: n_outputs P along `dim`. Each output is trained for its own quantile even if quantiles cross;
                `direct_forecast` sorts them.
            target: P along `dim`.
            observed: mask of the targets that are not missing, in the shape of `target`; None means all.
            dim: axis of the steps.

        Returns:
            A scalar.

        Raises:
            UsageError: The outputs have another shape, which broadcasting would turn into a plausible loss.
        """
        shape = list(target.shape)
        shape[dim] *= self.n_outputs
        check_shape(outputs, shape)
        if self.own_loss is not None:
            return self.own_loss(*_as_windows(outputs, target, observed, dim))
        if self.quantiles:
            return mean_pinball(outputs, target, self.quantiles, observed, dim)
        return mean_error(outputs, target, observed, self.absolute)

    def prepare(self, series: Tensor, observed: Tensor | None = None) -> None:
        """Fit what has a closed form before the first step; does nothing by default.

        Args:
            series: training rows (rows, C), scaled.
            observed: mask (rows, C) of the values that are not missing; None means all.
        """

    def learn(
        self, train: Windows, val: Windows | None, training: TrainingConfig, chosen: ForecastModel | None = None
    ) -> None:
        """Train on all windows at once, for models without gradient steps; does nothing by default.

        Args:
            train: training windows.
            val: validation windows; None if `chosen` gives the choices of an earlier training.
            training: recipe, of which such models use seed, loss and time limit.
            chosen: the same model after an earlier training.
        """

    def direct_forecast(self, batch: Batch, steps: int) -> Tensor:
        """Forecast the next steps without recursion.

        A shorter forecast is the beginning of a longer one, so scores at several horizons need only one forecast.

        Args:
            batch: windows; known inputs cover all steps.
            steps: number of steps wanted.

        Returns:
            (B, P or more, C). With quantiles (B, P, Q, C), increasing: sorting crossed quantiles never increases their
            error (Chernozhukov, Fernandez-Val & Galichon, "Quantile and Probability Curves Without Crossing",
            Econometrica 2010).
        """
        return self.ordered(self(batch))

    def ordered(self, outputs: Tensor) -> Tensor:
        """Increasing quantiles (B, P, Q, C) of the `outputs` (B, P Q, C); without quantiles, `outputs` itself."""
        return outputs.unflatten(1, (-1, self.n_outputs)).sort(dim=2).values if self.quantiles else outputs

    def point(self, forecast: Tensor) -> Tensor:
        """Median (B, S, C) of the quantiles `forecast` (B, S, Q, C); without quantiles, `forecast` itself."""
        return forecast[:, :, self.quantiles.index(0.5)] if self.quantiles else forecast

    def forecast(self, batch: Batch, steps: int) -> Tensor:
        """Forecast any number of steps, recursively beyond those that the model forecasts at once.

        With quantiles, the forecast is the median.

        Args:
            batch: windows; known inputs cover all steps.
            steps: at least 1.

        Returns:
            Forecast (B, steps, C).
        """
        return self.point(self.rolled_out(batch, steps))

    def forecasts(self, batch: Batch, steps: int) -> Forecasts:
        """Forecast points and, if the model has them, quantiles, in scaled units.

        Beyond P steps, the median is fed back, so quantiles there are too narrow. For a model that reads raw rows, a
        channel without any value is forecast as the mean of its training rows.

        Args:
            batch: windows; without `raw`, a model that reads raw rows uses `past` instead.
            steps: at least 1.

        Returns:
            The forecasts.
        """
        if not self.supports.raw:
            made = self.rolled_out(batch, steps)
            return Forecasts(self.point(made), made if self.quantiles else None)
        x, raw = batch.past, batch.raw
        values = x.cpu().double() if raw is None else raw.values
        made = self.rolled_out(Batch(values, known=batch.known), steps)
        if raw is not None:
            mean, scale = (each[:, None] if self.quantiles else each for each in (raw.mean, raw.scale))
            made = (made - mean) / scale
        blank = values.isnan().all(1)[:, None]
        made = made.masked_fill(blank[:, None] if self.quantiles else blank, 0.0)
        made = made.to(x.device, torch.float32 if x.device.type == "mps" else torch.float64)
        return Forecasts(self.point(made), made if self.quantiles else None)

    def rolled_out(self, batch: Batch, steps: int) -> Tensor:
        """Forecast any number of steps recursively, with all quantiles.

        Args:
            batch: windows; known inputs cover all steps.
            steps: at least 1.

        Returns:
            (B, steps, C), or with quantiles (B, steps, Q, C), increasing.

        Raises:
            UsageError: `steps` is below 1.
        """
        if steps < 1:
            raise UsageError(f"A horizon of {steps} steps is not supported; use 1 or more.")
        pieces, left = [], steps
        while True:
            piece = self.direct_forecast(batch, left)
            pieces.append(piece)
            left -= piece.shape[1]
            if left <= 0:
                break
            batch = batch.after(self.point(piece))
        return torch.cat(pieces, dim=1)[:, :steps]
