"""Ridge regression from look-back to horizon in closed form: a baseline that few networks beat, and a partner for them.

Toner & Darlow, "An Analysis of Linear Time Series Forecasting Models" (ICML 2024), find that an exactly fitted linear
map rivals trained forecasters, and Lin et al., "SparseTSF" (ICML 2024), that a map between steps of equal phase needs a
thousandth of the weights. Both are fitted here, per channel and pooled, and the forecast is their weighted mean.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from femts.config.bounds import Positive
from femts.config.model import ModelConfig
from femts.data.batch import Batch
from femts.data.describe import count
from femts.errors import UsageError
from femts.models.base import ForecastModel, Supports
from femts.models.naive import check_season
from femts.models.registry import register
from femts.models.ridge_fit import TrainingRows, choose, maps, parts_of_fit
from femts.text import argument

FEWEST = 8  # windows within the training rows; if there are fewer, partial windows count in part
MOST_STEPS = 720  # default steps forecast at once
TIMED, LONG = 3, 0.1  # calls by which a fit is timed, unless one takes so many seconds
MOST_MAPS = 32  # channels with their own map, each of 3 MB at 1024 steps of look-back and 720 of forecast


@dataclass(frozen=True)
class RidgeConfig(ModelConfig):
    """Settings of `ridge`.

    Attributes:
        season: season length in steps; None takes the season of the dataset (one day for hourly data) if a look-back
            holds it, otherwise 1.
        ridge: penalty on squared weights, relative to the mean squared error in scaled units.
        longest: steps forecast at once; None takes 720 rounded to whole forecasts, or as many as half of the training
            rows allow.
    """

    SEARCH: ClassVar[Mapping[str, str]] = {"ridge": "0.003..30"}

    season: int | None = None
    ridge: Positive = 0.3
    longest: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_season(self.season, self.seq_len)
        if self.longest is not None and self.longest < self.pred_len:
            raise UsageError(
                f"Setting 'model.longest' takes at least the {count(self.pred_len, 'step')} of a forecast, not {self.longest}."
            )

    def for_data(self, season: int, rows: int) -> Self:
        """Fill in season and `longest` if they are not set; see the attributes."""
        if self.longest is not None and self.longest > max(rows, self.pred_len):
            raise UsageError(
                f"A ridge regression from {self.seq_len} to {count(self.longest, 'step')} does not fit in {count(rows, 'training row')}; "
                "set model.longest lower, or provide more rows."
            )
        config = super().for_data(season, rows)
        if config.season is None:
            config = replace(config, season=season if season <= config.seq_len else 1)
        if config.longest is None:
            room, steps = (rows - config.seq_len) // 2, config.pred_len
            config = replace(config, longest=steps * max(1, min(-(-MOST_STEPS // steps), room // steps)))
        return config

    def linear(self) -> LinearForecast:
        """The maps of this configuration, not yet fitted."""
        return LinearForecast(self.seq_len, self.longest or self.pred_len, self.season or 1, self.n_channels)


class LinearForecast(nn.Module):
    """A linear map, per channel, of the differences from the last value of the look-back.

    It is the weighted mean of maps fitted to the channel and of maps fitted to all channels: from every step of the
    look-back, from its last part, and from steps to later steps of the same phase of a season. The weights are chosen
    on held-out blocks of the training rows. If there are very many channels, they share one map.

    Args:
        seq_len: look-back L in steps.
        longest: largest number of forecast steps.
        season: season length in steps.
        n_channels: number of channels C.
    """

    dense: Tensor

    def __init__(self, seq_len: int, longest: int, season: int, n_channels: int) -> None:
        super().__init__()
        self.seq_len, self.longest, self.season = seq_len, longest, season
        self.register_buffer("dense", torch.zeros(n_channels if n_channels <= MOST_MAPS else 1, seq_len, longest))

    def fit(self, series: Tensor, ridge: float, observed: Tensor | None = None) -> None:
        """Minimise the mean squared error over the windows of `series` (rows, C), plus `ridge` times the squared
        weights.

        Computed in float64. `observed` (rows, C) is as in `window_moments`. Raises UsageError if there is no window.
        """
        rows, by_channel = self._rows(series, observed), len(self.dense) > 1
        common = maps(rows.pooled(), self.season, ridge)
        for channel, weights in enumerate(choose(rows, self.season, ridge, by_channel)):
            both = torch.cat([maps(rows.moments(channel), self.season, ridge), common]) if by_channel else common
            self.dense[channel] = torch.tensordot(weights, both, 1)[:, : self.longest]

    def seconds_of_fit(self, series: Tensor, ridge: float, observed: Tensor | None = None) -> float:
        """Estimated duration of `fit` in seconds, from that of the moments and maps of one channel, the one with the
        most gaps."""
        rows, by_channel = self._rows(series, observed), len(self.dense) > 1
        channel = 0 if rows.observed is None else int((~rows.observed).sum(0).argmax())
        summed = fitted = math.inf
        for _ in range(TIMED):  # the first call is slower
            began = time.monotonic()
            moments = rows.moments(channel)
            middle = time.monotonic()
            maps(moments, self.season, ridge)
            summed, fitted = min(summed, middle - began), min(fitted, time.monotonic() - middle)
            if summed + fitted > LONG:
                break
        sums, solutions = parts_of_fit(series.shape[1], by_channel)
        return sums * summed + solutions * fitted

    def _rows(self, series: Tensor, observed: Tensor | None) -> TrainingRows:
        before, after = self.seq_len, -(-self.longest // self.season) * self.season
        if len(series) <= before:
            fault = (
                f"A ridge regression from {count(before, 'step')} does not fit in {count(len(series), 'training row')}"
            )
            text = f"{fault}; use a shorter {argument('seq_len')}, or provide more rows."
            raise UsageError(text, argument="seq_len", value=before)
        series, observed = series.detach().cpu(), None if observed is None else observed.cpu()
        if len(series) < before + after + FEWEST:  # windows that extend beyond the rows count in part
            observed = torch.ones_like(series, dtype=torch.bool) if observed is None else observed
            series, observed = F.pad(series, (0, 0, 0, after - 1)), F.pad(observed, (0, 0, 0, after - 1))
        return TrainingRows(series, observed, before, after)

    def forward(self, x: Tensor, steps: int) -> Tensor:
        """Forecast `steps` steps, at most `longest`, after `x` (B, L, C): (B, steps, C)."""
        last = x[:, -1:]
        past, dense = (x - last).transpose(1, 2), self.dense[..., :steps]
        direct = past @ dense[0] if len(dense) == 1 else (past.transpose(0, 1) @ dense).transpose(0, 1)
        return direct.transpose(1, 2) + last


@register("ridge", summary="Weighted mean of dense and seasonal ridge regressions in closed form; no training.")
class Ridge(ForecastModel):
    """Weighted mean of dense and seasonal ridge regressions from look-back to horizon, fitted in closed form."""

    Config = RidgeConfig
    supports = Supports(channels=1, recursive=True)

    def __init__(self, config: RidgeConfig) -> None:
        super().__init__(config)
        self.linear = config.linear()

    def prepare(self, series: Tensor, observed: Tensor | None = None) -> None:
        """Fit to the training rows."""
        self.linear.fit(series, self.config.ridge, observed)

    def forward(self, batch: Batch) -> Tensor:
        """Forecast (B, P, C)."""
        return self.direct_forecast(batch, self.config.pred_len)

    def direct_forecast(self, batch: Batch, steps: int) -> Tensor:
        """Forecast `steps` steps, or as many as were fitted."""
        forecast: Tensor = self.linear(batch.past, min(steps, self.linear.longest))
        return forecast
