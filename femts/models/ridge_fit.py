"""Fits the linear maps of `ridge` and the weights with which they are averaged, which are chosen on held-out rows.

Non-negative weights that sum to one and minimise the held-out error of the mean are the stacked regressions of Breiman
(Machine Learning 24, 1996). The mean has a lower error than the best single map.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor
from torch.nn import functional as F

from femts.models.parts.moments import Moments, pool, window_moments

MOST_WINDOWS = 65_536  # over all channels, if they are materialised one by one
ROWS_AT_ONCE = 2**20  # rows whose windows are summed at once, which bounds memory
BLOCKS = 5  # of the training rows; each is scored by maps fitted to the others
EVEN = 0.03  # penalty on squared weights, relative to the squared error as a multiple of the best map's
MOST_JUDGED, STEPS_JUDGED = 16, 90  # channels scored for shared weights, and forecast steps
# Number of maps fitted to the same windows, and the divisor of the look-back for the map of its last part.
KINDS, SHORTER = 3, 3


@dataclass(frozen=True)
class TrainingRows:
    """`series` (rows, C) as windows with `before` steps of look-back and `after` steps of forecast; see
    `window_moments`.

    Windows do not overlap the rows from the first entry of `left_out` (inclusive) to the second (exclusive). The moments of
    whole pieces are `kept`, since the same series with later rows left out has these pieces, too.
    """

    series: Tensor
    observed: Tensor | None
    before: int
    after: int
    left_out: tuple[int, int] = (0, 0)
    kept: dict[tuple[int, int], Moments] = field(default_factory=dict)

    @property
    def pieces(self) -> list[slice]:
        """Ranges of rows that have windows: one or two, of which very long ones are cut where a window begins."""
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
        """Moments of one channel."""
        pieces = self.pieces
        most = max(1, MOST_WINDOWS // self.series.shape[1] // len(pieces))
        return pool(self._of_piece(channel, piece, most) for piece in pieces)

    def _of_piece(self, channel: int, piece: slice, most: int) -> Moments:
        kept = self.kept.get((channel, piece.start))
        whole = piece.stop - piece.start == ROWS_AT_ONCE + self.before + self.after - 1
        if whole and kept is not None and kept.fewest is not None and kept.fewest <= most:
            return kept
        observed = None if self.observed is None else self.observed[piece, channel]
        made = window_moments(self.series[piece, channel], self.before, self.after, observed, most)
        if whole and piece.start % ROWS_AT_ONCE == 0 and made.fewest is not None:
            self.kept[channel, piece.start] = made
        return made

    def pooled(self) -> Moments:
        """Moments pooled over all channels."""
        return pool(self.moments(channel) for channel in range(self.series.shape[1]))


def maps(moments: Moments, season: int, ridge: float, every: int = 1) -> Tensor:
    """Maps from a look-back to every `every`-th forecast step, both relative to the look-back's last value: (KINDS, L,
    H / every).

    One map reads all steps of the look-back, one reads its last part, and one maps steps to later steps of the same
    phase. `ridge` is the penalty on squared weights.
    """
    before, thinned = len(moments.past), moments.thinned(every)
    recent = thinned.recent(-(-before // SHORTER))
    short = F.pad(dense_map(recent, ridge), (0, 0, before - len(recent.past), 0))
    return torch.stack([dense_map(thinned, ridge), short, seasonal_map(moments, season, ridge)[:, ::every]])


def dense_map(moments: Moments, ridge: float) -> Tensor:
    """Map from every look-back step to every forecast step: (L, H)."""
    return _solve(moments.past, moments.cross, ridge)


def seasonal_map(moments: Moments, season: int, ridge: float) -> Tensor:
    """Map from steps to later steps of the same phase, shared by all phases, for the deviation from the mean of the
    last season.

    (L, H), applied to the look-back minus its last value like `dense_map`; H is a multiple of the season.
    """
    before, whole = len(moments.past), len(moments.past) // season * season
    mean = F.pad(moments.past.new_full((season,), 1 / season), (before - season, 0))
    # products of the last season's mean with past and future
    of_past, of_cross = moments.past @ mean, mean @ moments.cross
    past = (moments.past - of_past - of_past[:, None] + mean @ of_past)[-whole:, -whole:]
    cross = (moments.cross - of_cross - of_past[:, None] + mean @ of_past)[-whole:]
    past, cross = (
        torch.einsum("ifjf->ij", both.unflatten(1, (-1, season)).unflatten(0, (-1, season))) / season
        for both in (past, cross)
    )
    small, phases = _solve(past, cross, ridge), torch.eye(season, dtype=past.dtype)
    wide = torch.einsum("ij,fg->ifjg", small, phases).flatten(2).flatten(0, 1)
    wide = F.pad(wide, (0, 0, before - whole, 0))
    return wide + torch.outer(mean, 1 - wide.sum(0))  # the deviation from the mean, plus the mean


def choose(rows: TrainingRows, season: int, ridge: float, by_channel: bool) -> Tensor:
    """Weights of each channel's own `maps` and of the pooled maps, (C, 2 KINDS); without `by_channel` of the pooled
    maps alone, (1, KINDS).

    They minimise the error on held-out blocks of rows, relative to the best map at each step. A channel's weights
    minimise the mean of its own error and that of all channels, so that channels that are hard to predict do not follow
    chance. If there are too few rows to hold any out, the pooled maps have equal weights.
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
            # steps forecast without error keep their weight
            products.append(((errors + 1e-9) / (best + 1e-9)).mean(-1))
    if not products:
        even = torch.full((channels if by_channel else 1, KINDS), 1 / KINDS, dtype=torch.float64)
        return F.pad(even, (KINDS if by_channel else 0, 0))
    relative = torch.stack(products).unflatten(0, (-1, len(judged))).mean(0)
    mean = relative.mean(0)
    return (
        torch.stack([stacked((one + mean) / 2, EVEN) for one in relative]) if by_channel else stacked(mean, EVEN)[None]
    )


def parts_of_fit(channels: int, by_channel: bool) -> tuple[int, int]:
    """Number of times that a fit computes moments of a channel and `maps`, at most; see `choose`."""
    own = channels if by_channel else 0
    judged = channels if by_channel else min(channels, MOST_JUDGED)
    return channels * (1 + BLOCKS) + own + BLOCKS * judged, 1 + own + BLOCKS * (1 + own)


def _held_out(rows: TrainingRows) -> Iterator[tuple[TrainingRows, TrainingRows]]:
    """Pairs of the remaining rows (without pieces that have fewer windows than a window has steps) and one held-out
    block with the look-back before it."""
    n, least = len(rows.series), 2 * (rows.before + rows.after) - 1
    for block in range(BLOCKS):
        first, stop = n * block // BLOCKS, n * (block + 1) // BLOCKS
        start = max(0, first - rows.before)
        left_out = (first if first >= least else 0, stop if n - stop >= least else n)
        observed = None if rows.observed is None else rows.observed[start:stop]
        ahead = replace(rows, series=rows.series[start:stop], observed=observed, kept={})
        if ahead.windows and left_out != (0, n):
            yield replace(rows, left_out=left_out), ahead


def _noting(
    rows: TrainingRows, own: list[Tensor], season: int, ridge: float, every: int, by_channel: bool
) -> Iterator[Moments]:
    """Yield the moments of each channel and append its maps to `own` if `by_channel`."""
    for channel in range(rows.series.shape[1]):
        moments = rows.moments(channel)
        if by_channel:
            own.append(maps(moments, season, ridge, every))
        yield moments


def stacked(products: Tensor, even: float = 1e-9) -> Tensor:
    """Non-negative weights (K,) that sum to one and minimise the mean square, given mean products of errors (K, K).

    `even` penalises squared weights, which makes them more equal. Given the subset of maps with non-zero weights, the
    weights solve a linear equation; with so few maps, all subsets are tried.
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
