"""Forecasts of any series with a trained network."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from scripts.pretrain.corpus import LENGTHS, LONGEST_HORIZON, SEASONS, Batch
from scripts.pretrain.network import Network
from scripts.pretrain.scores import tokens_and_forecasts
from scripts.pretrain.series import Array

HISTORIES = (2048, 8192)  # rows that are read; forecasts are averaged where there are more than the first number
TOGETHER = 64  # series forecast at once


@torch.no_grad()
def forecast(network: Network, histories: Sequence[Array], season: int, horizon: int) -> Array:
    """Quantiles of the steps after each history.

    Args:
        network: the network.
        histories: values of S series, oldest first; NaN is missing.
        season: steps of their season, 1 for none.
        horizon: steps ahead H.

    Returns:
        Quantiles at the levels .1 to .9 in ascending order, (S, H, 9); NaN for series without a value.

    Raises:
        ValueError: The horizon is longer than any that the network was trained on.
    """
    patch = network.config.patch
    padded = -(-horizon // patch) * patch
    if padded > LONGEST_HORIZON:
        raise ValueError(f"A horizon of {horizon} steps is beyond {LONGEST_HORIZON}, the longest trained on.")
    network.eval()
    quantiles = np.full((len(histories), horizon, 9), np.nan)
    # Series of one padded length go together, so that no forecast depends on which others there are.
    groups: dict[int, list[int]] = {}
    for i, history in enumerate(histories):
        if np.isfinite(history).any():
            groups.setdefault(_padded_length(len(history)), []).append(i)
    for length, group in groups.items():
        for first in range(0, len(group), TOGETHER):
            some = group[first : first + TOGETHER]
            read = [_quantiles(network, [histories[i] for i in some], season, padded, n) for n in _lengths(length)]
            quantiles[some] = np.mean(read, axis=0)[:, :horizon]
    return quantiles


def _padded_length(rows: int) -> int:
    return next((length for length in (*LENGTHS, HISTORIES[-1] // 2) if rows <= length), HISTORIES[-1])


def _lengths(length: int) -> list[int]:
    return [min(length, limit) for k, limit in enumerate(HISTORIES) if not k or length > HISTORIES[k - 1]]


def _quantiles(network: Network, histories: list[Array], season: int, horizon: int, length: int) -> Array:
    histories = [history[-length:] for history in histories]
    x = np.full((length + horizon, len(histories)), np.nan)
    for column, history in enumerate(histories):
        x[length - len(history) : length, column] = history
    with np.errstate(invalid="ignore"):
        location, scale = np.nanmean(x, axis=0), np.nanstd(x, axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    z = (x - location) / scale
    seen = torch.from_numpy(np.isfinite(z))
    values = torch.from_numpy(np.nan_to_num(z).astype(np.float32))
    second = SEASONS[season][0] if season in SEASONS else season
    tokens, _, _ = tokens_and_forecasts(network, Batch(values, seen, season, second, horizon))
    last = network(tokens)[:, -1] * tokens.unit[:, -1, :, None] + tokens.centre[:, -1, :, None]
    ordered: Array = last.sort(-1).values.double().numpy() * scale[:, None, None] + location[:, None, None]
    return ordered
