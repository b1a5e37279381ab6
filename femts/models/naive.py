"""Baselines without parameters, which any useful model must beat."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from torch import Tensor

from femts.config.model import ModelConfig
from femts.data.batch import Batch
from femts.errors import UsageError
from femts.models.base import ForecastModel, Supports
from femts.models.registry import register


@register("naive", summary="Repeats the last value; no parameters.")
class Naive(ForecastModel):
    """The last value of each channel, repeated over the horizon."""

    Config = ModelConfig
    supports = Supports(channels=1)

    def forward(self, batch: Batch) -> Tensor:
        """Forecast (B, P, C)."""
        return batch.past[:, -1:].expand(-1, self.config.pred_len, -1)


def check_season(season: int | None, seq_len: int) -> None:
    """Raise UsageError if a look-back of `seq_len` steps does not hold a whole season."""
    if season is not None and not 1 <= season <= seq_len:
        raise UsageError(
            f"A season of {season} steps does not fit into a look-back of {seq_len}; set model.season between 1 and "
            f"{seq_len}, or use a longer seq_len."
        )


@dataclass(frozen=True)
class SeasonalNaiveConfig(ModelConfig):
    """Settings of `seasonal_naive`.

    Attributes:
        season: season length in steps; None takes the season of the dataset (one day for hourly data).
    """

    season: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_season(self.season, self.seq_len)

    def for_data(self, season: int, rows: int) -> Self:
        """Fill in the season of the data if none is set."""
        return replace(self, season=season) if self.season is None else self


@register("seasonal_naive", summary="Repeats the last season (a day of hourly data); no parameters.")
class SeasonalNaive(ForecastModel):
    """The last season of each channel, repeated over the horizon."""

    Config: ClassVar[type] = SeasonalNaiveConfig
    supports = Supports(channels=1)

    def forward(self, batch: Batch) -> Tensor:
        """Forecast (B, P, C); raise UsageError if no season was set."""
        season, steps = self.config.season, self.config.pred_len
        if season is None:
            raise UsageError("Model 'seasonal_naive' has no season; set model.season to the season length in steps.")
        return batch.past[:, -season:].repeat(1, -(-steps // season), 1)[:, :steps]
