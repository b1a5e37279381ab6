"""Forecasts of any series with a trained network."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from scripts.pretrain.corpus import LONGEST_HORIZON, aligned, padded_length
from scripts.pretrain.network import Network
from scripts.pretrain.scores import tokenize
from scripts.pretrain.series import Array

HISTORIES = (2048, 8192)  # rows that are read at most; the forecasts from both are averaged
BATCH_SIZE = 64  # series forecast at once


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
            groups.setdefault(padded_length(len(history)), []).append(i)
    for length, group in groups.items():
        for first in range(0, len(group), BATCH_SIZE):
            some = group[first : first + BATCH_SIZE]
            read = [histories[i] for i in some]
            lengths = {min(length, most) for most in HISTORIES}
            quantiles[some] = np.mean([_quantiles(network, read, season, padded, n) for n in lengths], axis=0)[
                :, :horizon
            ]
    return quantiles


def _quantiles(network: Network, histories: list[Array], season: int, horizon: int, length: int) -> Array:
    batch, location, scale = aligned(histories, season, length, horizon)
    tokens = tokenize(network.config, batch)
    last = network(tokens)[:, -1] * tokens.unit[:, -1, :, None] + tokens.centre[:, -1, :, None]
    ordered: Array = last.sort(-1).values.double().numpy() * scale[:, None, None] + location[:, None, None]
    return ordered
