"""Ridge regression from look-back to horizon, in closed form: a yardstick that few networks beat, and a partner for them.

That a linear map fitted exactly rivals trained forecasters is a finding of Toner & Darlow, "An Analysis of Linear Time Series
Forecasting Models" (ICML 2024), and that a map between steps of equal phase needs a thousandth of the weights one of Lin et
al., "SparseTSF" (ICML 2024). Both are fitted here, and their forecasts averaged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor, nn

from femts.errors import UsageError
from femts.models.base import ForecastModel
from femts.models.registry import register

MOST_WINDOWS = 65_536  # neighbouring windows are nearly the same, so that more of them cost time and change little
CHUNK = 2048  # windows at a time


@dataclass(frozen=True)
class RidgeConfig:
    """Settings of `ridge`.

    Attributes:
        seq_len: steps of look-back L.
        pred_len: steps of forecast P.
        n_channels: channels.
        season: steps of one season; None takes the season of the data set (one day for hourly data) where a look-back holds
            it, else 1.
        ridge: penalty on the squared weights, beside the mean squared error in scaled units.
        longest: steps that are forecast from a look-back at once; None takes 720 in whole forecasts, or as many as half of
            the training rows leave room for.
    """

    seq_len: int
    pred_len: int
    n_channels: int
    season: int | None = None
    ridge: float = 0.3
    longest: int | None = None

    def __post_init__(self) -> None:
        check_linear(self)


class LinearConfig(Protocol):
    """What a `LinearForecast` is made of; see `RidgeConfig`."""

    @property
    def seq_len(self) -> int: ...
    @property
    def pred_len(self) -> int: ...
    @property
    def season(self) -> int | None: ...
    @property
    def ridge(self) -> float: ...
    @property
    def longest(self) -> int | None: ...


def check_linear(config: LinearConfig) -> None:
    """UsageError for settings that no `LinearForecast` can be made of."""
    if config.season is not None and not 1 <= config.season <= config.seq_len:
        raise UsageError(
            f"A season of {config.season} steps does not fit into a look-back of {config.seq_len}; "
            f"set model.season to between 1 and {config.seq_len} or take a longer --seq-len."
        )
    if not 0 < config.ridge < float("inf"):
        raise UsageError(f"Setting 'model.ridge' takes a number above 0, not {config.ridge}.")
    if config.longest is not None and config.longest < config.pred_len:
        raise UsageError(
            f"Setting 'model.longest' takes at least the {config.pred_len} steps of a forecast, not {config.longest}."
        )


class PhaseMap(nn.Module):
    """A linear map from a look-back's steps to the later ones of the same phase, one for all phases and channels.

    Args:
        seq_len: steps of look-back L, of which the last whole periods are used.
        longest: most steps of a forecast.
        period: steps of a period; with 1, every step counts for every later one.
    """

    weight: Tensor

    def __init__(self, seq_len: int, longest: int, period: int) -> None:
        super().__init__()
        self.period = period
        self.register_buffer("weight", torch.zeros(seq_len // period, -(-longest // period)))

    def fit(self, series: Tensor, season: int, ridge: float, observed: Tensor | None = None) -> None:
        """Minimise the mean squared error over the windows of `series` (rows, C), plus `ridge` times the squared weights.

        Computed in float64; of very many windows, some are drawn. Where `observed` (rows, C) is given, a window counts by how
        much of what it forecasts is real, and with each later step only where that is. UsageError when there is no window.
        """
        before, after = (count * self.period for count in self.weight.shape)
        if len(series) < before + after:
            raise UsageError(
                f"A ridge regression from {before} to {after} steps does not fit in {len(series)} training rows; "
                "set model.longest lower, take a shorter --seq-len, or bring more rows."
            )
        windows = series.detach().cpu().double().unfold(0, before + after, 1)  # (N, C, before + after), not copied
        real = (torch.ones_like(series) if observed is None else observed).cpu().double().unfold(0, before + after, 1)
        most = max(1, MOST_WINDOWS // series.shape[1])
        drawn = torch.randperm(len(windows), generator=torch.Generator().manual_seed(0))[:most]  # each phase of each season
        gram, moments, counts = torch.zeros(3, 1, dtype=torch.float64)
        for some in drawn.split(max(1, CHUNK // series.shape[1])):
            chunk = windows[some].flatten(0, 1)
            phases = self._phases(chunk - level(chunk[:, :before], season)).flatten(0, 1)
            past, future = phases.split(list(self.weight.shape), dim=1)
            there = self._phases(real[some].flatten(0, 1)).flatten(0, 1)[:, len(self.weight) :]
            gram = gram + past.T @ (past * there.mean(1, keepdim=True))
            moments, counts = moments + past.T @ (future * there), counts + there.sum(0)
        penalty = ridge * torch.eye(len(self.weight), dtype=torch.float64)
        self.weight.copy_(torch.linalg.solve(gram / counts.mean() + penalty, moments / counts.clamp(min=1)))

    def forward(self, x: Tensor, steps: int) -> Tensor:
        """The next `steps` of `x` (..., L): (..., steps)."""
        past = self._phases(x[..., -self.weight.shape[0] * self.period :])
        return (past @ self.weight[:, : -(-steps // self.period)]).transpose(-1, -2).flatten(-2)[..., :steps]

    def _phases(self, x: Tensor) -> Tensor:
        """(..., T), whole periods, to (..., period, T / period)."""
        return x.unflatten(-1, (-1, self.period)).transpose(-1, -2)


def level(x: Tensor, season: int) -> Tensor:
    """Mean of the last season of `x` (..., T): (..., 1)."""
    return x[..., -season:].mean(-1, keepdim=True)


class LinearForecast(nn.Module):
    """Mean of a dense and a seasonal map, both of what differs from the level of the last season.

    Args:
        seq_len: steps of look-back L.
        longest: most steps of a forecast.
        season: steps of a season.
    """

    def __init__(self, seq_len: int, longest: int, season: int) -> None:
        super().__init__()
        self.longest, self.season = longest, season
        self.dense, self.seasonal = (PhaseMap(seq_len, longest, period) for period in (1, season))

    def fit(self, series: Tensor, ridge: float, observed: Tensor | None = None) -> None:
        """Fit both maps to `series` (rows, C); see `PhaseMap.fit`."""
        self.dense.fit(series, self.season, ridge, observed)
        self.seasonal.fit(series, self.season, ridge, observed)

    def forward(self, x: Tensor, steps: int) -> Tensor:
        """The next `steps`, at most `longest`, of `x` (B, L, C): (B, steps, C)."""
        x = x.transpose(1, 2)
        middle = level(x, self.season)
        mean = (self.dense(x - middle, steps) + self.seasonal(x - middle, steps)) / 2
        return (mean + middle).transpose(1, 2)


@register("ridge", summary="Ridge regressions in closed form, dense and seasonal, averaged; no training.")
class Ridge(ForecastModel):
    """See the module."""

    Config: ClassVar[type] = RidgeConfig
    channel_independent = True
    rolls_out = True

    def __init__(self, config: RidgeConfig) -> None:
        super().__init__(config)
        self.linear = make_linear(config)

    def prepare(self, series: Tensor, observed: Tensor | None = None) -> None:
        """Fit to the training rows."""
        self.linear.fit(series, self.config.ridge, observed)

    def forward(self, x: Tensor) -> Tensor:
        """Forecast: `x` (B, L, C) -> (B, P, C)."""
        return self.at_once(x, self.config.pred_len)

    def at_once(self, x: Tensor, steps: int) -> Tensor:
        """As many of the next `steps` as were fitted."""
        forecast: Tensor = self.linear(x, min(steps, self.linear.longest))
        return forecast


def make_linear(config: LinearConfig) -> LinearForecast:
    """The maps of a configuration, not fitted yet."""
    return LinearForecast(config.seq_len, config.longest or config.pred_len, config.season or 1)
