"""How the linear maps of `ridge` are solved for, and what is chosen about them on held-out rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from femts.models.moments import Moments, pool, window_moments

MOST_WINDOWS = 65_536  # of all channels together, where they are made one by one
APART = (math.inf, 100.0, 10.0, 1.0, 0.1, 0.01)
SHARES = (0.0, 0.25, 0.5, 0.75)
FOLDS = ((0.6, 0.8), (0.8, 1.0))  # fitted to the training rows before the first, judged by those up to the second
MOST_JUDGED, STEPS_JUDGED = 16, 90  # channels, and steps of a forecast


class Choice(NamedTuple):
    """The penalty on what a channel's dense map differs by from the shared one, and the share of the seasonal map."""

    penalty: float
    share: float


SHARED = Choice(math.inf, 0.5)  # where there are too few rows to choose


@dataclass(frozen=True)
class TrainingRows:
    """`series` (rows, C), seen as windows of `before` steps of look-back and `after` of forecast; see `window_moments`."""

    series: Tensor
    observed: Tensor | None
    before: int
    after: int
    season: int

    def part(self, first: int, stop: int) -> TrainingRows:
        """Those of the rows from `first` up to `stop`."""
        observed = None if self.observed is None else self.observed[first:stop]
        return replace(self, series=self.series[first:stop], observed=observed)

    def moments(self, channel: int) -> Moments:
        """The moments of one channel."""
        observed = None if self.observed is None else self.observed[:, channel]
        most = max(1, MOST_WINDOWS // self.series.shape[1])
        return window_moments(self.series[:, channel], self.before, self.after, self.season, observed, most)

    def pooled(self) -> Moments:
        """The moments of all channels."""
        return pool(self.moments(channel) for channel in range(self.series.shape[1]))


def dense_map(moments: Moments, ridge: float) -> Tensor:
    """Every look-back step to every forecast step: (L, H)."""
    return _solve(moments.past, moments.cross, ridge)


def departure(own: Moments, shared: Tensor, penalty: float) -> Tensor:
    """By what a channel's own dense map differs from the `shared` one, with `penalty` on the squares of it: (L, H)."""
    if math.isinf(penalty):
        return torch.zeros_like(shared)
    return _solve(own.past, own.cross - own.past @ shared, penalty)


def seasonal_map(moments: Moments, season: int, ridge: float) -> Tensor:
    """The look-back's whole seasons to those of the forecast, one map for all phases: (L / season, H / season)."""
    skipped = len(moments.past) % season
    past, cross = moments.past[skipped:, skipped:], moments.cross[skipped:]
    past, cross = (
        torch.einsum("ifjf->ij", both.unflatten(1, (-1, season)).unflatten(0, (-1, season))) / season for both in (past, cross)
    )
    return _solve(past, cross, ridge)


def choose(windows: TrainingRows, ridge: float, penalties: Sequence[float]) -> Choice:
    """Of `penalties` and `SHARES`, those of the lowest error on held-out ends of the rows, relative to `SHARED`."""
    rows, channels = windows.series.shape
    judged = range(0, channels, -(-channels // MOST_JUDGED))
    every = -(-windows.after // STEPS_JUDGED)
    ratios = torch.zeros(len(penalties), len(SHARES), dtype=torch.float64)
    for cut, end in FOLDS:
        first, stop = int(cut * rows), int(end * rows)
        if first < 2 * (windows.before + windows.after) or stop - first < windows.after:
            return SHARED
        fitted, ahead = windows.part(0, first), windows.part(first - windows.before, stop)
        pooled = fitted.pooled()
        small = seasonal_map(pooled, windows.season, ridge)
        seasonal = _widened(small, windows.before, windows.season)[:, ::every]
        dense = dense_map(pooled.thinned(every), ridge)
        errors = torch.zeros(*ratios.shape, dense.shape[1], dtype=torch.float64)
        for channel in judged:
            own, truth = fitted.moments(channel).thinned(every), ahead.moments(channel).thinned(every)
            for i, penalty in enumerate(penalties):
                weight = dense + departure(own, dense, penalty)
                errors[i] += torch.stack([truth.error(weight.lerp(seasonal, share)) for share in SHARES])
        plain = errors[0, SHARES.index(SHARED.share)]
        ratios += ((errors + 1e-9) / (plain + 1e-9)).mean(-1)  # what is forecast without error stays as it is
    best = int(ratios.argmin())
    return Choice(penalties[best // len(SHARES)], SHARES[best % len(SHARES)])


def _widened(seasonal: Tensor, before: int, season: int) -> Tensor:
    """The same map from every step of the look-back to every step of the forecast: (L, H)."""
    phases = torch.eye(season, dtype=seasonal.dtype)
    wide = torch.einsum("ij,fg->ifjg", seasonal, phases).flatten(2).flatten(0, 1)
    return F.pad(wide, (0, 0, before - len(wide), 0))


def _solve(past: Tensor, cross: Tensor, penalty: float) -> Tensor:
    return torch.cholesky_solve(cross, torch.linalg.cholesky(past + penalty * torch.eye(len(past), dtype=past.dtype)))
