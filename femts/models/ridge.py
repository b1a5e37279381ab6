"""Ridge regression from look-back to horizon, in closed form: a baseline that few networks beat,
and a partner for them.

That a linear map fitted exactly rivals trained forecasters is a finding of Toner & Darlow, "An
Analysis of Linear Time Series Forecasting Models" (ICML 2024), and that a map between steps of
equal phase needs a thousandth of the weights one of Lin et al., "SparseTSF" (ICML 2024). Both are
fitted here, to each channel and to all, and the forecast is their mean in weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from femts.config.bounds import Positive
from femts.config.model import ModelConfig
from femts.data.batch import Batch
from femts.errors import UsageError
from femts.models.base import ForecastModel, Supports
from femts.models.naive import check_season
from femts.models.registry import register
from femts.models.ridge_fit import TrainingRows, choose, maps

FEWEST = 8  # windows that lie within the training rows; where they are fewer, others count in part
MOST_STEPS = 720  # of a forecast at once, unless the user says otherwise
MOST_MAPS = 32  # channels with a map of their own, of 3 MB each at 1024 steps of look-back and 720 of forecast


@dataclass(frozen=True)
class RidgeConfig(ModelConfig):
    """Settings of `ridge`.

    Attributes:
        season: steps of one season; None takes the season of the data set (one day for hourly data)
            where a look-back holds it, else 1.
        ridge: penalty on squared weights, beside the mean squared error in scaled units.
        longest: steps that are forecast from a look-back at once; None takes 720 in whole
            forecasts, or as many as half of the training rows leave room for.
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
                f"Setting 'model.longest' takes at least the {self.pred_len} steps of a forecast, not {self.longest}."
            )

    def for_data(self, season: int, rows: int) -> Self:
        """Season and longest forecast where they are not set; see the attributes."""
        if self.longest is not None and self.longest > max(rows, self.pred_len):
            raise UsageError(
                f"A ridge regression from {self.seq_len} to {self.longest} steps does not fit in {rows} training rows; "
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
        """The maps of this configuration, not fitted yet."""
        return LinearForecast(self.seq_len, self.longest or self.pred_len, self.season or 1, self.n_channels)


class LinearForecast(nn.Module):
    """A linear map, for each channel, of what differs from the last value of the look-back.

    It is the mean, in weights, of maps that are fitted to the channel and of maps that are fitted
    to all channels: from every step of the look-back, from its last part alone, and from steps to
    later ones of the same phase of a season. The weights are chosen on held-out ends of the
    training rows. Where channels are very many they share one map.

    Args:
        seq_len: steps of look-back L.
        longest: most steps of a forecast.
        season: steps of a season.
        n_channels: channels C.
    """

    dense: Tensor

    def __init__(self, seq_len: int, longest: int, season: int, n_channels: int) -> None:
        super().__init__()
        self.seq_len, self.longest, self.season = seq_len, longest, season
        self.register_buffer("dense", torch.zeros(n_channels if n_channels <= MOST_MAPS else 1, seq_len, longest))

    def fit(self, series: Tensor, ridge: float, observed: Tensor | None = None) -> None:
        """Minimise the mean squared error over the windows of `series` (rows, C), plus `ridge`
        times the squared weights.

        Computed in float64. `observed` (rows, C) is as in `window_moments`. UsageError when there is no window.
        """
        before, after = self.seq_len, -(-self.longest // self.season) * self.season
        if len(series) <= before:
            raise UsageError(
                f"A ridge regression from {before} steps does not fit in {len(series)} training rows; use a shorter "
                "--seq-len, or provide more rows."
            )
        series, observed = series.detach().cpu(), None if observed is None else observed.cpu()
        if (
            len(series) < before + after + FEWEST
        ):  # windows that end after the rows count as far as they are within them
            observed = torch.ones_like(series, dtype=torch.bool) if observed is None else observed
            series, observed = F.pad(series, (0, 0, 0, after - 1)), F.pad(observed, (0, 0, 0, after - 1))
        rows, by_channel = TrainingRows(series, observed, before, after), len(self.dense) > 1
        common = maps(rows.pooled(), self.season, ridge)
        for channel, weights in enumerate(choose(rows, self.season, ridge, by_channel)):
            both = torch.cat([maps(rows.moments(channel), self.season, ridge), common]) if by_channel else common
            self.dense[channel] = torch.tensordot(weights, both, 1)[:, : self.longest]

    def forward(self, x: Tensor, steps: int) -> Tensor:
        """The next `steps`, at most `longest`, of `x` (B, L, C): (B, steps, C)."""
        last = x[:, -1:]
        past, dense = (x - last).transpose(1, 2), self.dense[..., :steps]
        direct = past @ dense[0] if len(dense) == 1 else (past.transpose(0, 1) @ dense).transpose(0, 1)
        return direct.transpose(1, 2) + last


@register("ridge", summary="Ridge regressions in closed form, dense and seasonal, averaged in weights; no training.")
class Ridge(ForecastModel):
    """Mean of a dense and a seasonal ridge regression from look-back to horizon, fitted in closed form."""

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
        """As many of the next `steps` as were fitted."""
        forecast: Tensor = self.linear(batch.past, min(steps, self.linear.longest))
        return forecast
