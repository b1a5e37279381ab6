"""Base of every forecaster: a module from a batch of windows to their forecasts, with its own frozen configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from femts.config.model import ModelConfig
from femts.data.batch import Batch
from femts.errors import UsageError
from femts.models.losses import Loss
from femts.models.parts.pinball import mean_pinball

if TYPE_CHECKING:
    from femts.config.training import TrainingConfig
    from femts.data.windows import Windows


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


def _as_windows(outputs: Tensor, target: Tensor, observed: Tensor | None, dim: int) -> tuple[Tensor, Batch]:
    """Outputs and targets of one shape as forecasts (B, P, C) and a batch of what followed; the steps lie along `dim`."""
    moved = [None if each is None else each.movedim(dim, 1) for each in (outputs, target, observed)]
    forecast, future, seen = (None if each is None else each.flatten(2) for each in moved)
    assert forecast is not None and future is not None
    return forecast, Batch(future[:, :0], future=future, future_observed=seen)


@dataclass(frozen=True, eq=False)
class Forecasts:
    """Forecasts in scaled units: `points` (B, S, C), and `quantiles` (B, S, Q, C) or None."""

    points: Tensor
    quantiles: Tensor | None


@dataclass(frozen=True)
class Exchanged:
    """What is exchanged between the windows of a batch, to see what it is worth.

    Attributes:
        group: one of the `groups` of the model.
        seed: of the exchange.
    """

    group: str
    seed: int

    def others(self, count: int) -> Tensor:
        """For each of `count` windows the number of another one, (count,), each once."""
        order = torch.randperm(count, generator=torch.Generator().manual_seed(self.seed))
        return torch.empty_like(order).index_copy_(0, order, order.roll(1))


@dataclass(frozen=True)
class Supports:
    """What a model can use of its data.

    Attributes:
        known: columns known for the steps to come, and the calendar, over look-back and forecast (`Batch.known`); those
            of a model that cannot are regressed on and taken off before it (`femts.data.effects`).
        calendar: marks of the calendar over the look-back, without further columns.
        static: inputs that do not change within a series (`Batch.static`).
        recursive: made to go on beyond its horizon, where tables score it, too.
        quantiles: learns those that the pinball loss asks for.
        channels: how many a forecast reads: 1 for a model whose forecast of a channel depends on that channel alone, to
            which `femts audit` holds it; None for all of them.
        subsampling: can form its loss of some channels, in a wide table those that are drawn for the step.
        raw: reads look-backs in float64 before scaling (`Batch.raw`), and gives forecasts of the same units.
    """

    known: bool = False
    calendar: bool = False
    static: bool = False
    recursive: bool = False
    quantiles: bool = False
    channels: int | None = None
    subsampling: bool = False
    raw: bool = False


class ForecastModel(nn.Module):
    """Base of all forecasters.

    Shapes: B windows, L = `seq_len` steps of look-back, P = `pred_len` steps of forecast, C
    channels, Q quantiles; values are scaled (zero mean, unit variance on the training rows).

    Args:
        config: of the class `Config`.
        quantiles: levels in (0, 1), rising, 0.5 among them, that the pinball loss learns; none for
            a mean by the squared error.

    Attributes:
        Config: its settings, a frozen dataclass. One that supports static inputs has a field `n_static`, and one that
            reads known columns a field `n_known`: how many there are.
        supports: what it can use of its data.
        training_defaults: fields of `TrainingConfig` that this model wants different.
        absolute: `error` is the absolute one; a training by `training.loss=mae` says so.
        own_loss: what `error` is instead, where `training.loss` names a registered one.
        most_rows: longest look-back that a model of raw rows takes unasked.
        needs: a library that has to be installed for it, and the extra that brings it.
        levels: percent of its own intervals, rising; its `quantiles` bound them. None for intervals
            that are calibrated on validation.
        most_windows: windows of a part that are scored at most; None for all.
        combines: made of trained models, and never trained itself; no list of models to train has it.
        losses: names that `training.loss` may have; empty for any.
        in_torch: forecasts by operators of torch alone, as a graph has them.
        groups: of what it makes of a look-back, by name, that `exchanged` may name; none unless it says so.
        exchanged: between windows, while the importance of a group is measured; else None.
    """

    Config: ClassVar[type[ModelConfig]]
    supports: Supports = Supports()
    training_defaults: ClassVar[Mapping[str, Any]] = {}
    absolute: bool = False
    own_loss: Loss | None = None
    most_rows: ClassVar[int] = 1024
    needs: ClassVar[tuple[str, str] | None] = None
    levels: tuple[float, ...] = ()
    most_windows: int | None = None
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
        """What a model of this `config` supports, before it is built."""
        return cls.supports

    @classmethod
    def fewest_rows(cls, config: ModelConfig) -> int:
        """Rows that a history needs at least by the `config` of the model; one that reads raw rows fills the others."""
        return 1 if cls.supports_of(config).raw else config.seq_len

    @property
    def n_outputs(self) -> int:
        """Numbers that come out for a step and channel: Q, or 1 without quantiles."""
        return max(1, len(self.quantiles))

    @property
    def n_weights(self) -> int:
        """Number of weights."""
        return sum(p.numel() for p in self.parameters())

    def read_weights(self) -> None:
        """Read weights that are no part of a run folder, before the first forecast; by default there are none.

        A model that has some refuses others than those of the training.
        """

    def forward(self, batch: Batch) -> Tensor:
        """Forecast the next P steps.

        Args:
            batch: B windows, of which `past` (B, L, C) is always there.

        Returns:
            (B, P, C), or (B, P Q, C) with a step's quantiles side by side.

        Raises:
            TypeError: a model that does not define it.
        """
        raise TypeError(f"{type(self).__name__} does not define forward")

    def loss(self, batch: Batch, channels: Tensor | None = None) -> Tensor:
        """Loss of the training.

        Args:
            batch: windows with what followed; what is not observed is left out.
            channels: numbers of those that it is formed of, where it supports `subsampling`; None means all.

        Returns:
            A scalar.
        """
        if channels is not None:  # a model that reads several at once to forecast one defines a loss of its own
            batch = batch.of_channels(channels)
        assert batch.future is not None
        return self.error(self(batch), batch.future, batch.future_observed)

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
        if self.own_loss is not None:
            return self.own_loss(*_as_windows(outputs, target, observed, dim))
        if self.quantiles:
            return mean_pinball(outputs, target, self.quantiles, observed, dim)
        return mean_error(outputs, target, observed, self.absolute)

    def prepare(self, series: Tensor, observed: Tensor | None = None) -> None:
        """Fit what has a closed form, before the first step; by default nothing.

        Args:
            series: training rows (rows, C), scaled.
            observed: (rows, C), which of them are real; None means all.
        """

    def learn(
        self, train: Windows, val: Windows | None, training: TrainingConfig, chosen: ForecastModel | None = None
    ) -> None:
        """Learn from windows at once, for a model that takes no steps; by default nothing.

        Args:
            train: windows to learn from.
            val: windows to choose on; None where `chosen` says what was chosen.
            training: the recipe, of which such a model heeds seed, loss and time.
            chosen: the same model as an earlier training left it.
        """

    def at_once(self, batch: Batch, steps: int) -> Tensor:
        """Forecast the next steps without going on from a forecast.

        A forecast of fewer steps is the beginning of one of more: scores at several horizons come from one roll-out.

        Args:
            batch: windows; their known columns reach as far as the steps.
            steps: how many are wanted.

        Returns:
            (B, P or more, C). With quantiles (B, P, Q, C), rising: sorting what has crossed brings
            no quantile further from the true one (Chernozhukov, Fernandez-Val & Galichon, "Quantile
            and Probability Curves Without Crossing", Econometrica 2010).
        """
        outputs: Tensor = self(batch)
        return outputs.unflatten(1, (-1, self.n_outputs)).sort(dim=2).values if self.quantiles else outputs

    def point(self, forecast: Tensor) -> Tensor:
        """Median (B, S, C) of `forecast`, quantiles (B, S, Q, C); without quantiles what is given."""
        return forecast[:, :, self.quantiles.index(0.5)] if self.quantiles else forecast

    def forecast(self, batch: Batch, steps: int) -> Tensor:
        """Any number of next steps: beyond what it forecasts at once, the model reads its forecasts as history.

        With quantiles the forecast is the median.

        Args:
            batch: windows; their known columns reach as far as the steps.
            steps: at least 1.

        Returns:
            Forecast (B, steps, C).
        """
        return self.point(self.rolled_out(batch, steps))

    def forecasts(self, batch: Batch, steps: int) -> Forecasts:
        """Forecast points and, where there are some, quantiles, in scaled units.

        Quantiles beyond P steps follow a median fed back, and are too narrow. Of a model that reads raw rows, a channel
        without a value there is forecast at the mean of its training rows.

        Args:
            batch: windows; without `raw`, a model that reads raw rows takes the past for these.
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
        """Forecast any number of next steps, with all quantiles.

        Args:
            batch: windows; their known columns reach as far as the steps.
            steps: at least 1.

        Returns:
            (B, steps, C), or with quantiles (B, steps, Q, C), rising.

        Raises:
            UsageError: fewer than 1 step.
        """
        if steps < 1:
            raise UsageError(f"A horizon of {steps} steps cannot be forecast; ask for 1 or more.")
        pieces, left = [], steps
        while True:
            piece = self.at_once(batch, left)
            pieces.append(piece)
            left -= piece.shape[1]
            if left <= 0:
                break
            batch = batch.after(self.point(piece))
        return torch.cat(pieces, dim=1)[:, :steps]
