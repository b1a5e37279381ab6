"""Scores on held-out series: MASE and scaled quantile loss over those of the seasonal naive forecast."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import torch

from femts.models.parts.expert_network import Network
from femts.models.parts.zero_shot import SeriesBatch, aligned, losses, padded_length
from scripts.pretrain.corpus import LENGTHS, Corpus, season_of
from scripts.pretrain.series import Array

POOL_SEASONS = (1, 4, 5, 7, 12, 24, 48, 52, 96, 144, 288)  # of the synthetic series that are held out
POOL_SEED = 20_261_128
WINDOWS = 4  # forecasts from the end of each real series
# Horizon of the real series that are held out, and the fewest rows before it, by season.
REAL_HORIZONS = {
    24: (48, 256),
    52: (13, 104),
    1: (13, 64),
    7: (14, 16),
    48: (48, 256),
    96: (96, 512),
    144: (144, 512),
    288: (96, 1024),
}


def held_out_pool(patch: int = 16) -> dict[str, list[SeriesBatch]]:
    """Synthetic series of each season that no training draws, by name."""
    corpus = Corpus({}, patch=patch, size=64, seed=POOL_SEED)
    pool = {}
    for season in POOL_SEASONS:
        horizons = season_of(season).horizons
        long = 2048 if season > 12 else 512
        shapes = [(long, horizons[len(horizons) // 2]), (max(long // 8, 64, 2 * season), horizons[0])]
        pool[f"synthetic {season}"] = [
            corpus.draw(np.random.default_rng((POOL_SEED, season, i)), season, length, -(-h // patch) * patch)
            for i, (length, h) in enumerate(shapes)
        ]
    return pool


def held_out_real(real: Mapping[int, Sequence[Array]], patch: int = 16) -> dict[str, list[SeriesBatch]]:
    """The last rows of real series of each season, by name; forecasts start `WINDOWS` times, a horizon apart."""
    groups = {}
    for season, (horizon, least) in sorted(REAL_HORIZONS.items()):
        batches = []
        for window in range(WINDOWS):
            ends = [len(values) - (window + 1) * horizon for values in real.get(season, ())]
            some = [(values, end) for values, end in zip(real.get(season, ()), ends, strict=True) if end >= least]
            if some:
                pasts = [values[:end] for values, end in some]
                futures = [values[end : end + horizon] for values, end in some]
                length = min(padded_length(max(len(past) for past in pasts)), LENGTHS[-1])
                batches.append(
                    aligned(pasts, season, season_of(season).second, length, -(-horizon // patch) * patch, futures)[0]
                )
        if batches:
            groups[f"real {season}"] = batches
    return groups


@torch.no_grad()
def score(network: Network, groups: dict[str, list[SeriesBatch]]) -> dict[str, tuple[float, float]]:
    """MASE and SQL of the last origin over the MASE of the seasonal naive forecast, for each group and, as geometric
    means, over those of one kind, the first word of their names."""
    network.eval()
    scores = {name: _ratios(network, batches) for name, batches in groups.items()}
    network.train()
    for kind in sorted({name.split()[0] for name in scores}):
        logs = np.log([value for name, value in scores.items() if name.startswith(kind + " ")]).mean(0)
        scores[kind] = (float(np.exp(logs[0])), float(np.exp(logs[1])))
    return scores


def _ratios(network: Network, batches: Iterable[SeriesBatch]) -> tuple[float, float]:
    sums = torch.zeros(3)
    for batch in batches:
        at = losses(network, batch)
        last = at.counted[:, -1]
        for i, values in enumerate((at.median, at.quantile, at.naive)):
            sums[i] += values[last, -1].clamp(max=20).sum()
    return float(sums[0] / sums[2]), float(sums[1] / sums[2])
