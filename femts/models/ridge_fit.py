"""Fit of the linear maps of `ridge`, and of their weights in its forecast, which held-out rows choose.

Weights that are not negative and sum to one, chosen for the lowest error of the mean on what the
maps were not fitted to, make the stacked regressions of Breiman (Machine Learning 24, 1996). The
mean errs less than the best of the maps.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F

from femts.models.parts.moments import Moments, pool, window_moments

MOST_WINDOWS = 65_536  # of all channels together, where they are made one by one
ROWS_AT_ONCE = 2**20  # whose windows are added up together, which bounds the memory that they take
BLOCKS = 5  # of the training rows; each is judged by what is fitted to the others
EVEN = 0.03  # penalty on squared weights, beside the square of the forecast's error as a multiple of the best map's
MOST_JUDGED, STEPS_JUDGED = 16, 90  # channels where they share their weights, and steps of a forecast
# Maps that are fitted to the same windows; the part of the look-back that one keeps to is one in so
# many.
KINDS, SHORTER = 3, 3


@dataclass(frozen=True)
class TrainingRows:
    """`series` (rows, C), seen as windows of `before` steps of look-back and `after` of forecast; see `window_moments`.

    No window has one of the rows from the first of `left_out` up to the second.
    """

    series: Tensor
    observed: Tensor | None
    before: int
    after: int
    left_out: tuple[int, int] = (0, 0)

    @property
    def pieces(self) -> list[slice]:
        """Rows that have windows: one or two runs of them, very long ones cut where a window begins."""
        steps = self.before + self.after
        both = (0, self.left_out[0]), (self.left_out[1], len(self.series))
        return [
            slice(begin, min(begin + ROWS_AT_ONCE + steps - 1, stop))
            for first, stop in both
            for begin in range(first, stop - steps + 1, ROWS_AT_ONCE)
        ]

    @property
    def windows(self) -> int:
        """Number of windows of one channel."""
        return sum(piece.stop - piece.start - self.before - self.after + 1 for piece in self.pieces)

    def moments(self, channel: int) -> Moments:
        """The moments of one channel."""
        pieces = self.pieces
        most = max(1, MOST_WINDOWS // self.series.shape[1] // len(pieces))
        series, observed = self.series[:, channel], None if self.observed is None else self.observed[:, channel]
        return pool(
            window_moments(series[piece], self.before, self.after, None if observed is None else observed[piece], most)
            for piece in pieces
        )

    def pooled(self) -> Moments:
        """The moments of all channels."""
        return pool(self.moments(channel) for channel in range(self.series.shape[1]))


def maps(moments: Moments, season: int, ridge: float, every: int = 1) -> Tensor:
    """Maps from a look-back to each `every`-th forecast step, both less the look-back's last value:
    (KINDS, L, H / every).

    One from every step of the look-back, one from those of a part of it, and one from steps to
    later ones of the same phase. `ridge` is the penalty on squared weights.
    """
    before, thinned = len(moments.past), moments.thinned(every)
    recent = thinned.recent(-(-before // SHORTER))
    short = F.pad(dense_map(recent, ridge), (0, 0, before - len(recent.past), 0))
    return torch.stack([dense_map(thinned, ridge), short, seasonal_map(moments, season, ridge)[:, ::every]])


def dense_map(moments: Moments, ridge: float) -> Tensor:
    """Every look-back step to every forecast step: (L, H)."""
    return _solve(moments.past, moments.cross, ridge)


def seasonal_map(moments: Moments, season: int, ridge: float) -> Tensor:
    """Steps to later ones of the same phase, one map of whole seasons for all phases, of what
    differs from the last one's mean.

    (L, H), from the look-back less its last value, as `dense_map` is; H is a number of whole seasons.
    """
    before, whole = len(moments.past), len(moments.past) // season * season
    mean = F.pad(moments.past.new_full((season,), 1 / season), (before - season, 0))
    of_past, of_cross = moments.past @ mean, mean @ moments.cross  # products of the last season's mean with either
    past = (moments.past - of_past - of_past[:, None] + mean @ of_past)[-whole:, -whole:]
    cross = (moments.cross - of_cross - of_past[:, None] + mean @ of_past)[-whole:]
    past, cross = (
        torch.einsum("ifjf->ij", both.unflatten(1, (-1, season)).unflatten(0, (-1, season))) / season
        for both in (past, cross)
    )
    small, phases = _solve(past, cross, ridge), torch.eye(season, dtype=past.dtype)
    wide = torch.einsum("ij,fg->ifjg", small, phases).flatten(2).flatten(0, 1)
    wide = F.pad(wide, (0, 0, before - whole, 0))
    return wide + torch.outer(mean, 1 - wide.sum(0))  # of what differs from the mean, and the mean


def choose(rows: TrainingRows, season: int, ridge: float, by_channel: bool) -> Tensor:
    """Weights of each channel's own `maps` and those of all channels: (C, 2 KINDS); else of the latter: (1, KINDS).

    They have the lowest error on blocks of the rows that were held out, relative to the best map at
    each step. A channel's are those for the mean of its errors and all channels', so that one that
    is hard to foresee does not follow chance. Where there are too few rows to hold any out, the
    maps of all channels have equal weights.
    """
    channels = rows.series.shape[1]
    judged = range(0, channels, 1 if by_channel else -(-channels // MOST_JUDGED))
    every = -(-rows.after // STEPS_JUDGED)
    products = []
    for fitted, ahead in _held_out(rows):
        own: list[Tensor] = []
        common = maps(pool(_noting(fitted, own, season, ridge, every, by_channel)), season, ridge, every)
        for channel in judged:
            tried = torch.cat([own[channel], common]) if by_channel else common
            errors = ahead.moments(channel).thinned(every).errors(tried)
            best = errors.diagonal().amin(-1)
            products.append(((errors + 1e-9) / (best + 1e-9)).mean(-1))  # what is forecast without error stays as it is
    if not products:
        even = torch.full((channels if by_channel else 1, KINDS), 1 / KINDS, dtype=torch.float64)
        return F.pad(even, (KINDS if by_channel else 0, 0))
    relative = torch.stack(products).unflatten(0, (-1, len(judged))).mean(0)
    mean = relative.mean(0)
    return (
        torch.stack([stacked((one + mean) / 2, EVEN) for one in relative]) if by_channel else stacked(mean, EVEN)[None]
    )


def _held_out(rows: TrainingRows) -> Iterator[tuple[TrainingRows, TrainingRows]]:
    """All rows but a block, less any piece of fewer windows than a window has steps, and that block
    after a look-back."""
    n, least = len(rows.series), 2 * (rows.before + rows.after) - 1
    for block in range(BLOCKS):
        first, stop = n * block // BLOCKS, n * (block + 1) // BLOCKS
        start = max(0, first - rows.before)
        left_out = (first if first >= least else 0, stop if n - stop >= least else n)
        observed = None if rows.observed is None else rows.observed[start:stop]
        ahead = replace(rows, series=rows.series[start:stop], observed=observed)
        if ahead.windows and left_out != (0, n):
            yield replace(rows, left_out=left_out), ahead


def _noting(
    rows: TrainingRows, own: list[Tensor], season: int, ridge: float, every: int, by_channel: bool
) -> Iterator[Moments]:
    """The moments of each channel, whose maps are added to `own` on the way if `by_channel`."""
    for channel in range(rows.series.shape[1]):
        moments = rows.moments(channel)
        if by_channel:
            own.append(maps(moments, season, ridge, every))
        yield moments


def stacked(products: Tensor, even: float = 1e-9) -> Tensor:
    """Weights, not negative and of sum one, of the lowest mean square where `products` (K, K) are means: (K,).

    `even` is a penalty on their squares, which brings them nearer to each other. Given which maps
    have a weight, the weights solve a linear equation; there are so few that all subsets are tried.
    """
    size = len(products)
    chosen = torch.tensor(list(itertools.product((0.0, 1.0), repeat=size))[1:], dtype=products.dtype)
    products = products + even * torch.eye(size, dtype=products.dtype)
    system = chosen[:, :, None] * chosen[:, None] * products + torch.diag_embed(1 - chosen)
    weights = torch.linalg.solve(system, chosen) * chosen
    weights = weights / weights.sum(1, keepdim=True)
    squares = torch.einsum("ni,ij,nj->n", weights, products, weights)
    return weights[squares.masked_fill(~(weights >= 0).all(1), torch.inf).argmin()]


def _solve(past: Tensor, cross: Tensor, penalty: float) -> Tensor:
    return torch.cholesky_solve(cross, torch.linalg.cholesky(past + penalty * torch.eye(len(past), dtype=past.dtype)))
