"""How the linear maps of `ridge` are solved for, and their weights in its forecast, which held-out rows choose.

Weights that are not negative and sum to one, chosen for the lowest error of the mean on what they were not fitted to, are the
stacked regressions of Breiman (Machine Learning 24, 1996). The mean errs less than the best of them, and less depends on chance.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F

from femts.models.moments import Moments, pool, window_moments

MOST_WINDOWS = 65_536  # of all channels together, where they are made one by one
FOLDS = ((0.6, 0.8), (0.8, 1.0))  # fitted to the training rows before the first, judged by those up to the second
MOST_JUDGED, STEPS_JUDGED = 16, 90  # channels where they share their weights, and steps of a forecast
KINDS, SHORTER = 3, 3  # maps that are fitted to the same windows; the part of the look-back that some maps keep to is one in so many


@dataclass(frozen=True)
class TrainingRows:
    """`series` (rows, C), seen as windows of `before` steps of look-back and `after` of forecast; see `window_moments`."""

    series: Tensor
    observed: Tensor | None
    before: int
    after: int

    def part(self, first: int, stop: int) -> TrainingRows:
        """Those of the rows from `first` up to `stop`."""
        observed = None if self.observed is None else self.observed[first:stop]
        return replace(self, series=self.series[first:stop], observed=observed)

    def moments(self, channel: int) -> Moments:
        """The moments of one channel."""
        observed = None if self.observed is None else self.observed[:, channel]
        most = max(1, MOST_WINDOWS // self.series.shape[1])
        return window_moments(self.series[:, channel], self.before, self.after, observed, most)

    def pooled(self) -> Moments:
        """The moments of all channels."""
        return pool(self.moments(channel) for channel in range(self.series.shape[1]))


def maps(moments: Moments, season: int, ridge: float, every: int = 1) -> Tensor:
    """Maps from a look-back to each `every`-th forecast step, both less the look-back's last value: (KINDS, L, H / every).

    One from every step of the look-back, one from those of a part of it, and one from steps to later ones of the same phase.
    `ridge` is the penalty on squared weights.
    """
    before, thinned = len(moments.past), moments.thinned(every)
    recent = thinned.recent(-(-before // SHORTER))
    short = F.pad(dense_map(recent, ridge), (0, 0, before - len(recent.past), 0))
    return torch.stack([dense_map(thinned, ridge), short, seasonal_map(moments, season, ridge)[:, ::every]])


def dense_map(moments: Moments, ridge: float) -> Tensor:
    """Every look-back step to every forecast step: (L, H)."""
    return _solve(moments.past, moments.cross, ridge)


def seasonal_map(moments: Moments, season: int, ridge: float) -> Tensor:
    """Steps to later ones of the same phase, one map of whole seasons for all phases, fitted less the last season's mean: (L, H)."""
    before, (whole, ahead) = len(moments.past), (size // season for size in moments.cross.shape)
    mean = F.pad(moments.past.new_full((season,), 1 / season), (before - season, 0))
    of_past, of_cross = moments.past @ mean, mean @ moments.cross  # of the last season's mean with either
    past = moments.past - of_past - of_past[:, None] + mean @ of_past
    cross = moments.cross - of_cross - of_past[:, None] + mean @ of_past
    past, cross = past[-whole * season :, -whole * season :], cross[-whole * season :, : ahead * season]
    past, cross = (
        torch.einsum("ifjf->ij", both.unflatten(1, (-1, season)).unflatten(0, (-1, season))) / season for both in (past, cross)
    )
    small, phases = _solve(past, cross, ridge), torch.eye(season, dtype=past.dtype)
    wide = torch.einsum("ij,fg->ifjg", small, phases).flatten(2).flatten(0, 1)
    wide = F.pad(wide, (0, 0, before - len(wide), 0))
    return wide + torch.outer(mean, 1 - wide.sum(0))  # of what differs from the mean, and the mean


def choose(rows: TrainingRows, season: int, ridge: float, apart: bool) -> Tensor:
    """Weights of each channel's own `maps`, then of those of all channels: (C, 2 KINDS); if not `apart`, of the latter: (1, KINDS).

    They have the lowest error on held-out ends of the rows, relative to the best map at each step. A channel's are those for
    the mean of its errors and all channels', so that one that is hard to foresee does not follow chance. Where there are too
    few rows to hold any out, the maps of all channels have equal weights.
    """
    n, channels = rows.series.shape
    judged = range(0, channels, 1 if apart else -(-channels // MOST_JUDGED))
    every = -(-rows.after // STEPS_JUDGED)
    products: list[Tensor] = []
    for cut, end in FOLDS:
        first, stop = int(cut * n), int(end * n)
        if first < 2 * (rows.before + rows.after) or stop - first < rows.after:
            even = torch.full((channels if apart else 1, KINDS), 1 / KINDS, dtype=torch.float64)
            return F.pad(even, (KINDS if apart else 0, 0))
        fitted, ahead = rows.part(0, first), rows.part(first - rows.before, stop)
        common = maps(fitted.pooled(), season, ridge, every)
        for channel in judged:
            tried = torch.cat([maps(fitted.moments(channel), season, ridge, every), common]) if apart else common
            errors = ahead.moments(channel).thinned(every).errors(tried)
            best = errors.diagonal().amin(-1)
            products.append(((errors + 1e-9) / (best + 1e-9)).mean(-1))  # what is forecast without error stays as it is
    relative = torch.stack(products).unflatten(0, (len(FOLDS), -1)).mean(0)
    return torch.stack([stacked(own + relative.mean(0)) for own in relative]) if apart else stacked(relative.mean(0))[None]


def stacked(products: Tensor) -> Tensor:
    """The weights, not negative and of sum one, that have the lowest mean square, of mean `products` (K, K): (K,).

    On the maps that have a weight the rest is a linear equation, and so few are there that all choices of them are tried.
    """
    size = len(products)
    chosen = torch.tensor(list(itertools.product((0.0, 1.0), repeat=size))[1:], dtype=products.dtype)
    both = chosen[:, :, None] * chosen[:, None]
    even = 1e-9 * products.diagonal().mean() * torch.eye(size, dtype=products.dtype)  # where two maps are the same
    system = both * (products + even) + torch.diag_embed(1 - chosen)
    weights = torch.linalg.solve(system, chosen) * chosen
    weights = weights / weights.sum(1, keepdim=True)
    squares = torch.einsum("ni,ij,nj->n", weights, products, weights)
    return weights[squares.masked_fill(~(weights >= 0).all(1), torch.inf).argmin()]


def _solve(past: Tensor, cross: Tensor, penalty: float) -> Tensor:
    return torch.cholesky_solve(cross, torch.linalg.cholesky(past + penalty * torch.eye(len(past), dtype=past.dtype)))
