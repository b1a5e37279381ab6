"""Forecasts of series that a network has never seen: from values to tokens, and from its outputs to quantiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from femts.models.parts.expert_network import LEVELS, Network, NetworkConfig, Tokens, origins_of, tokens_of
from femts.models.parts.experts import NAMES, Forecasts, expert_forecasts, median

SHORTEST = 64  # rows that shorter histories are padded to
AT_A_TIME = 64  # series forecast at once
NAIVE_FLOOR = 0.05  # seasonal differences; a naive forecast does not count as better
LOSS_CAP = 8.0  # times the usual loss of the naive forecast; a larger loss of one forecast has no gradient

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SeriesBatch:
    """Histories with what came after them.

    Attributes:
        x: values (T, B), the last `horizon` of which are to be forecast; each series has its own units.
        observed: which are observed, (T, B).
        season, second: steps of the seasons, 1 for none; equal if there is one.
        horizon: steps to forecast H.
    """

    x: Tensor
    observed: Tensor
    season: int
    second: int
    horizon: int


@dataclass(frozen=True)
class Units:
    """Mean and standard deviation of B histories, (B,) float64 each."""

    location: Tensor
    scale: Tensor

    @property
    def divisor(self) -> Tensor:
        """The standard deviation, 1 where it is 0."""
        return torch.where(self.scale > 0, self.scale, 1.0)

    def raw(self, values: Tensor) -> Tensor:
        """Values (B, ...) in the units of the histories, float64."""
        shape = (-1, *[1] * (values.dim() - 1))
        return values.double() * self.scale.view(shape) + self.location.view(shape)


def padded_length(rows: int) -> int:
    """The power of two, at least `SHORTEST`, that a history of `rows` rows is padded to, as histories are in training."""
    return max(SHORTEST, 1 << (rows - 1).bit_length())


def aligned(
    histories: Sequence[Array],
    season: int,
    second: int,
    length: int,
    horizon: int,
    futures: Sequence[Array] = (),
) -> tuple[SeriesBatch, Units]:
    """A batch of histories that end together, in units of their standard deviation around their mean.

    Args:
        histories: values of B series, oldest first; the last `length` are used. NaN is missing.
        season, second: steps of their seasons.
        length: rows of history in the batch.
        horizon: steps to forecast.
        futures: what came after each history, at most `horizon` values; nothing by default.

    Returns:
        The batch, and the units of its series.
    """
    x = np.full((length + horizon, len(histories)), np.nan)
    for column, history in enumerate(histories):
        x[max(length - len(history), 0) : length, column] = history[-length:]
    batch, units = in_units(torch.from_numpy(x), season, second, horizon)
    for column, future in enumerate(futures):
        rows = slice(length, length + len(future))
        z = (torch.from_numpy(future) - units.location[column]) / units.divisor[column]
        batch.observed[rows, column] = z.isfinite()
        batch.x[rows, column] = z.nan_to_num().float()
    return batch, units


def in_units(x: Tensor, season: int, second: int, horizon: int) -> tuple[SeriesBatch, Units]:
    """As `aligned`, of values (T, B) that are NaN where missing and in the last `horizon` rows."""
    observed = x.isfinite()
    count = observed.sum(0).clamp(min=1)
    location = torch.where(observed, x, 0.0).sum(0) / count
    deviations = torch.where(observed, x - location, 0.0)
    units = Units(location, (deviations.square().sum(0) / count).sqrt())
    return SeriesBatch((deviations / units.divisor).float(), observed, season, second, horizon), units


def experts_of(batch: SeriesBatch, origins: Sequence[int], context: int) -> Forecasts:
    """Forecasts of the experts of a batch from the rows `origins`."""
    seasons = batch.season, batch.second
    return expert_forecasts(batch.x, batch.observed, *seasons, batch.horizon, origins, context)


def tokenize(network: Network, batch: SeriesBatch) -> Tokens:
    """The tokens of a batch, on the device of `network`; experts are computed on the CPU."""
    config = network.config
    origins = origins_of(len(batch.x) - batch.horizon, batch.horizon, config.context)
    forecasts = experts_of(batch, origins, config.context)
    tokens = tokens_of(config, forecasts, batch.x, batch.observed, origins, batch.season, batch.second)
    return tokens.to(network.head.weight.device)


@dataclass(frozen=True)
class Losses:
    """Losses at each origin, in units of the seasonal difference.

    Attributes:
        quantile: twice the pinball loss, mean over levels and steps (SQL), (B, O).
        median: absolute error of the median (MASE), (B, O).
        naive: absolute error of the seasonal naive forecast, (B, O).
        counted: whether an origin has a history and observed steps ahead, (B, O).
    """

    quantile: Tensor
    median: Tensor
    naive: Tensor
    counted: Tensor


def losses(network: Network, batch: SeriesBatch) -> Losses:
    """Losses of a batch at the origins that `network` forecasts from."""
    tokens = tokenize(network, batch)
    quantiles = network(tokens)
    last = slice(-quantiles.shape[1], None)
    error, observed = tokens.error[:, last], tokens.observed[:, last]
    weight, count = tokens.weight[:, last] * observed, observed.sum(2).clamp(min=1)
    missed = error[..., None] - quantiles
    levels = missed.new_tensor(LEVELS)
    pinball = 2 * torch.maximum(levels * missed, (levels - 1) * missed).mean(-1)
    naive = error - tokens.experts[:, last, :, NAMES.index("seasonal naive")]

    def mean(loss: Tensor) -> Tensor:
        return (loss * weight).sum(2) / count

    median = missed[..., LEVELS.index(0.5)]
    return Losses(mean(pinball), mean(median.abs()), mean(naive.abs()), tokens.valid[:, last] & observed.any(2))


def mean_loss(network: Network, batch: SeriesBatch) -> tuple[Tensor, Tensor]:
    """Mean quantile loss over all origins, and that of the seasonal naive forecast. A larger loss than `LOSS_CAP` times
    the usual one of the latter has no gradient."""
    at = losses(network, batch)
    most = LOSS_CAP * torch.where(at.counted, at.naive, torch.nan).nanmedian().nan_to_num().clamp(min=1.0)
    count = at.counted.sum().clamp(min=1)
    quantile, naive = (torch.where(at.counted, v.clamp(max=most), 0.0).sum() / count for v in (at.quantile, at.naive))
    return quantile, naive


def network_quantiles(network: Network, histories: Sequence[Array], season: int, second: int, horizon: int) -> Array:
    """Quantiles of the steps after each history at the levels of the network.

    Args:
        network: the network.
        histories: values of S series, oldest first; NaN is missing.
        season, second: steps of their seasons, 1 for none; equal if there is one.
        horizon: steps ahead H.

    Returns:
        Quantiles in ascending order, (S, H, 9); NaN for series without a value.
    """
    patch = network.config.patch
    padded = -(-horizon // patch) * patch

    def forecast(some: list[Array], length: int) -> Tensor:
        return quantiles_of(network, *aligned(some, season, second, length, padded))[:, :horizon]

    return _in_groups(forecast, histories, (horizon, 9))


def quantiles_of(network: Network, batch: SeriesBatch, units: Units) -> Tensor:
    """Quantiles (B, H, 9) float64 of the steps ahead, in the units of the histories and in ascending order."""
    tokens = tokenize(network, batch)
    last = network(tokens, last=True)[:, -1] * tokens.unit[:, -1, :, None] + tokens.centre[:, -1, :, None]
    return units.raw(last.sort(-1).values.to(units.scale.device))


def network_weights(network: Network, histories: Sequence[Array], season: int, second: int, horizon: int) -> Array:
    """Weights of the experts in the forecasts of `network_quantiles`, (S, H, K); arguments as there."""
    patch = network.config.patch

    def weights(some: list[Array], length: int) -> Tensor:
        batch, _ = aligned(some, season, second, length, -(-horizon // patch) * patch)
        return network.expert_weights(tokenize(network, batch))[:, :horizon].cpu()

    return _in_groups(weights, histories, (horizon, len(NAMES)))


def median_of(batch: SeriesBatch, units: Units) -> Tensor:
    """Median of the experts' forecasts of the steps ahead, (B, H) float64 in the units of the histories."""
    experts = experts_of(batch, [len(batch.x) - batch.horizon], NetworkConfig.context).experts
    return units.raw(median(experts[0], -1).T)


def expert_medians(histories: Sequence[Array], season: int, second: int, horizon: int) -> Array:
    """Median of the experts' forecasts of the steps after each history, (S, H); arguments as in `network_quantiles`."""

    def forecast(some: list[Array], length: int) -> Tensor:
        return median_of(*aligned(some, season, second, length, horizon))

    return _in_groups(forecast, histories, (horizon,))


@torch.no_grad()
def _in_groups(
    forecast: Callable[[list[Array], int], Tensor], histories: Sequence[Array], shape: tuple[int, ...]
) -> Array:
    """Forecasts (S, *shape) by `forecast` of series with one padded length at a time, so that no forecast depends on
    which other series there are."""
    made = np.full((len(histories), *shape), np.nan)
    groups: dict[int, list[int]] = {}
    for i, history in enumerate(histories):
        observed = np.isfinite(history)
        if observed.any():
            groups.setdefault(padded_length(len(history) - int(observed.argmax())), []).append(i)
    for length, group in groups.items():
        for first in range(0, len(group), AT_A_TIME):
            some = group[first : first + AT_A_TIME]
            made[some] = forecast([histories[i] for i in some], length).numpy()
    return made
