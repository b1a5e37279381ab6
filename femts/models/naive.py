"""Baselines without parameters, which any useful model must beat."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch
from torch import Tensor

from femts.config.model import ModelConfig
from femts.data.batch import Batch
from femts.errors import UsageError
from femts.models.base import ForecastModel, Supports
from femts.models.registry import register
from femts.text import argument

NAIVE, SEASONAL_NAIVE, DRIFT, MEAN = "naive", "seasonal_naive", "drift", "mean"


def naive_forecasts(past: Tensor, steps: int, season: int = 1) -> dict[str, Tensor]:
    """The forecasts that a useful model must beat, all from the same look-backs.

    They are the "simple forecasting methods" of Hyndman & Athanasopoulos, "Forecasting: Principles and Practice", 5.2,
    applied to a look-back.

    Args:
        past: look-backs (B, L, C).
        steps: P, steps to forecast.
        season: steps in a season.

    Returns:
        Forecasts (B, P, C) by name: `seasonal_naive` repeats the last season, and is left out if a season is one step
        or longer than the look-back; `naive` repeats the last value; `drift` extends the line through the first and the
        last value; `mean` is the mean of the look-back.
    """
    length, last = past.shape[1], past[:, -1:]
    ahead = torch.arange(1, steps + 1, device=past.device, dtype=past.dtype)[:, None]
    every = {SEASONAL_NAIVE: repeat_season(past, steps, season)} if 1 < season <= length else {}
    return every | {
        NAIVE: last.expand(-1, steps, -1),
        DRIFT: last + (last - past[:, :1]) * (ahead / max(1, length - 1)),
        MEAN: past.mean(1, keepdim=True).expand(-1, steps, -1),
    }


def repeat_season(past: Tensor, steps: int, season: int) -> Tensor:
    """The last `season` steps of `past` (B, L, C), repeated over `steps` steps, (B, P, C)."""
    return past[:, -season:].repeat(1, -(-steps // season), 1)[:, :steps]


@register("naive", summary="Repeats the last value; no parameters.")
class Naive(ForecastModel):
    """The last value of each channel, repeated over the horizon."""

    Config = ModelConfig
    supports = Supports(channels=1, fixed=True)

    def forward(self, batch: Batch) -> Tensor:
        """Forecast (B, P, C)."""
        return batch.past[:, -1:].expand(-1, self.config.pred_len, -1)


def check_season(season: int | None, seq_len: int) -> None:
    """Raise UsageError if a look-back of `seq_len` steps does not hold a whole season."""
    if season is not None and not 1 <= season <= seq_len:
        fault = f"A season of {season} steps does not fit into a look-back of {seq_len}"
        text = f"{fault}; set model.season between 1 and {seq_len}, or use a longer {argument('seq_len')}."
        raise UsageError(text, argument="model.season", value=season)


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
    supports = Supports(channels=1, fixed=True)

    def forward(self, batch: Batch) -> Tensor:
        """Forecast (B, P, C); raise UsageError if no season was set."""
        season, steps = self.config.season, self.config.pred_len
        if season is None:
            raise UsageError("Model 'seasonal_naive' has no season; set model.season to the season length in steps.")
        return repeat_season(batch.past, steps, season)
