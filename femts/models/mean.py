"""The mean of several trained models: each reads its own look-back, and their forecasts are averaged.

Models make different errors, so the mean of their forecasts is hard to beat, and weights learned from a few validation
windows are seldom better (Bates & Granger, "The Combination of Forecasts", OR 1969; Makridakis et al., "The M4
Competition", IJF 2020). With many windows, each channel can have weights of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar, Self, cast

import torch
from torch import Tensor, nn

from femts.config.model import ModelConfig
from femts.config.records import RecordError
from femts.data.batch import Batch
from femts.data.describe import count
from femts.errors import UsageError
from femts.models.base import MEMBER_QUANTILES, ForecastModel, Forecasts, Supports
from femts.models.parts.quantiles import quantile_at
from femts.models.registry import build_model, check_trained, model_card, read_config, register

MEAN = "mean"


@dataclass(frozen=True)
class Member:
    """One of the models whose forecasts are averaged.

    Attributes:
        model: registered name.
        config: its resolved configuration.
    """

    model: str
    config: ModelConfig

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Read an entry of `config.yaml`; raise RecordError if it does not describe a member."""
        try:
            check_trained(record["model"])
            return cls(record["model"], read_config(record["model"], record["config"]))
        except UsageError as error:
            raise RecordError("model.members", record["model"], f"a model that can be built: {error}"[:-1]) from error
        except (LookupError, TypeError) as error:
            raise RecordError("model.members", record, "a model and its config") from error

    def build(self) -> ForecastModel:
        """Build the model with its initial weights."""
        return build_model(self.model, self.config)

    @property
    def model_class(self) -> type[ForecastModel]:
        """Class of the model."""
        return model_card(self.model).model_class


@dataclass(frozen=True)
class MeanConfig(ModelConfig):
    """Configuration of `mean`; its look-back is the longest of its members'.

    Attributes:
        members: the models, in order.
        weights: for each member, one non-negative weight per channel; the weights of a channel sum to 1. None weights
            all members equally.
    """

    members: tuple[Member, ...] = ()
    weights: tuple[tuple[float, ...], ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.members:
            check_trained(MEAN)
        if self.weights is not None:
            _check_weights(self.weights, len(self.members), self.n_channels)
        for name, config in ((member.model, member.config) for member in self.members):
            if isinstance(config, MeanConfig):
                raise UsageError("A mean cannot be a member of another mean; pass its members instead.")
            if (config.pred_len, config.n_channels) != (
                self.pred_len,
                self.n_channels,
            ) or config.seq_len > self.seq_len:
                raise UsageError(
                    f"Member '{name}' forecasts {count(config.pred_len, 'step')} of {config.n_channels} channels from "
                    f"{config.seq_len}, but the mean forecasts {self.pred_len} of {self.n_channels} from {self.seq_len}; "
                    "combine models of the same shape."
                )

    def has_seen(self, dataset: str) -> bool:
        """Return whether any member was pretrained on `dataset`."""
        return any(member.config.has_seen(dataset) for member in self.members)

    @property
    def n_static(self) -> int:
        """Number of static inputs; members without static inputs do not receive them."""
        return max(_inputs(member.config, "n_static") for member in self.members)

    @property
    def n_known(self) -> int:
        """Number of known inputs, of which each member reads the first ones."""
        return max(_inputs(member.config, "n_known") for member in self.members)


@register(MEAN, "The mean of several models' forecasts; built from trained models, not trained itself.")
class MeanModel(ForecastModel):
    """Mean of the point forecasts of several models; its intervals are calibrated, and averaged with those of members
    that forecast quantiles.

    Args:
        config: configuration with the members.
        members: the models in the same order; None builds them with initial weights.
    """

    Config: ClassVar[type[ModelConfig]] = MeanConfig
    combines = True
    supports = Supports(static=True)
    weights: Tensor | None

    def __init__(self, config: MeanConfig, members: Sequence[ForecastModel] | None = None) -> None:
        super().__init__(config)
        self.members = nn.ModuleList([each.build() for each in config.members] if members is None else members)
        most = [each.most_windows for each in self.models if each.most_windows is not None]
        self.most_windows = min(most, default=None)
        self.averages_quantiles = any(each.quantiles for each in self.models)
        weights = None if config.weights is None else torch.tensor(config.weights)
        self.register_buffer("weights", weights, persistent=False)  # stored in the configuration
        self.supports = self.supports_of(config)

    @property
    def models(self) -> list[ForecastModel]:
        """The members, in order."""
        return [cast(ForecastModel, each) for each in self.members]

    @classmethod
    def supports_of(cls, config: ModelConfig) -> Supports:
        """What any member needs and all members can do."""
        each = [one.model_class.supports_of(one.config) for one in cast(MeanConfig, config).members]
        return Supports(
            known=any(one.known for one in each),
            calendar=any(one.calendar for one in each),
            dated=any(one.dated for one in each),
            static=True,
            channels=1 if all(one.channels == 1 for one in each) else None,
            raw=any(one.raw for one in each),
        )

    @classmethod
    def fewest_rows(cls, config: ModelConfig) -> int:
        """Largest number of rows that any member in `config` needs."""
        return max(each.model_class.fewest_rows(each.config) for each in cast(MeanConfig, config).members)

    @property
    def n_weights(self) -> int:
        """Number of weights of all members."""
        return sum(each.n_weights for each in self.models)

    def read_weights(self) -> None:
        """Read the weights of members that store them elsewhere."""
        for each in self.models:
            each.read_weights()

    def forward(self, batch: Batch) -> Tensor:
        """Forecast (B, P, C), if no member reads raw rows."""
        return self.direct_forecast(batch, self.config.pred_len)

    def direct_forecast(self, batch: Batch, steps: int) -> Tensor:
        """Forecast at least `steps` steps; each member continues recursively from its own forecasts.

        Raises:
            TypeError: a member reads raw rows; call `forecasts` instead.
        """
        if self.supports.raw:
            raise TypeError("this mean has members that read raw rows; call forecasts")
        return self.forecasts(batch, steps).points

    def forecasts(self, batch: Batch, steps: int) -> Forecasts:
        """Mean of the members' forecasts, each from the last rows that it reads; see `ForecastModel.forecasts`."""
        made = [
            each.forecasts(batch.recent(each.config.seq_len, _inputs(each.config, "n_known")), steps)
            for each in self.models
        ]
        points = [each.points for each in made]
        if self.weights is not None:
            points = [each * weight.to(each.dtype) for each, weight in zip(points, self.weights, strict=True)]
        mean = reduce(torch.add, points) / (len(points) if self.weights is None else 1)
        distances = [
            torch.stack([quantile_at(one.quantiles, each.quantiles, level) for level in MEMBER_QUANTILES], dim=2)
            - one.points[:, :, None]
            for one, each in zip(made, self.models, strict=True)
            if one.quantiles is not None
        ]
        of_members = mean[:, :, None] + reduce(torch.add, distances) / len(distances) if distances else None
        return Forecasts(mean, None, of_members)


def _check_weights(weights: tuple[tuple[float, ...], ...], members: int, channels: int) -> None:
    """Raise UsageError unless each member has a weight for each channel and the weights of each channel sum to 1."""
    shape = len(weights) == members and all(len(each) == channels for each in weights)
    if not shape or any(not 0 <= one <= 1 for each in weights for one in each):
        raise UsageError(
            f"The weights of a mean are {members} times {channels} numbers between 0 and 1, one per member and channel."
        )
    for channel, total in enumerate(map(math.fsum, zip(*weights, strict=True))):
        if not math.isclose(total, 1.0, rel_tol=1e-6):
            raise UsageError(f"The weights of channel {channel} sum to {total:.6g}, not to 1; normalise them.")


def _inputs(config: ModelConfig, name: str) -> int:
    """Number of static or known inputs of `config`; 0 if it has none."""
    return int(getattr(config, name, 0))
