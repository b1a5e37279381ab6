"""Scaled values of one or several series kept on a device, from which windows are taken."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from femts.data.limits import Limits
from femts.data.pieces import ROWS
from femts.data.raw import Raw


class Context(NamedTuple):
    """Information on B forecasts of P steps other than their look-backs, for context-dependent intervals.

    Attributes:
        series: (B,) int64, series number; -1 for a new series.
        location: (B, 1, T) float64, training mean in units of the scale.
        recent: (B, 1, T) float64, scaled mean of the last values before the forecast, with effects added back.
        phase: (B, P) int64, phase of each step within the season; None without a season.
        unlike: (B, 1, T) float64, factor of at least 1 on the widths after look-backs that are rougher than any in
            training, or lack odd readings; None if all are 1.
        of_members: (B, P, Q, T), quantiles of the members of a mean (`Forecasts.of_members`); None for other models.
    """

    series: Tensor
    location: Tensor
    recent: Tensor
    phase: Tensor | None = None
    unlike: Tensor | None = None
    of_members: Tensor | None = None


class Factors(NamedTuple):
    """Factors (N, T) of at least 1, nearly all of which are 1.

    Attributes:
        rows: (M,) int64, rows in which one is larger, in increasing order.
        values: (M, T) float32, the factors of these rows.
    """

    rows: Tensor
    values: Tensor

    @classmethod
    def of(cls, factors: NDArray[np.floating[Any]], first: int = 0) -> Factors:
        """Keep those above 1 of `factors` (n, T) of the rows from `first` on."""
        single = factors.astype(np.float32)
        some = np.flatnonzero((single > 1).any(axis=1))
        return cls(torch.from_numpy(first + some), torch.from_numpy(single[some]))

    @classmethod
    def joined(cls, pieces: Sequence[Factors]) -> Factors:
        """Those of consecutive rows as one."""
        return cls(*(torch.cat(each) for each in zip(*pieces, strict=True)))

    def most(self, rows: Tensor) -> Tensor:
        """Largest factors (B, T) in the `rows` (B, n) of windows, each the row after the one before it or the same row."""
        made = torch.ones(len(rows), self.values.shape[1])
        if not rows.shape[1]:
            return made
        ends = torch.stack([rows[:, 0], rows[:, -1] + 1], dim=1).flatten()
        begin, stop = torch.searchsorted(self.rows, ends).view(-1, 2).unbind(1)
        some = begin < stop
        if some.any():
            places = torch.stack([begin[some], stop[some]], dim=1).flatten().numpy()
            padded = np.pad(self.values.numpy(), ((0, 1), (0, 0)))  # ranges may end after the last row
            made[some] = torch.from_numpy(np.maximum.reduceat(padded, places, axis=0)[::2])
        return made


class Odd(NamedTuple):
    """Readings far outside the usual range, as in `femts.data.outliers.Found`.

    Attributes:
        settled, recent: (N, C) bool, by the readings around them and, for the last rows of a look-back, by those before.
        unlike: of N rows and T targets, on the CPU, without settled and without recent ones.
    """

    settled: Tensor
    recent: Tensor
    unlike: tuple[Factors, Factors]


class SeriesFacts(NamedTuple):
    """Properties of the S series, from which the `Context` of windows is computed.

    Attributes:
        names: names of the series.
        location: (S, T) float64, mean over scale of each target.
        season: number of steps in a season; 1 for none.
        phase: (N,) of small integers, phase of each row within the season; None without a season.
        shift: (S,) int64, number to add to the row numbers of each series, so that rows at the same time have the same
            number; None for a single series.
    """

    names: tuple[str, ...]
    location: Tensor
    season: int = 1
    phase: Tensor | None = None
    shift: Tensor | None = None


@dataclass(frozen=True, eq=False)
class ScaledSeries:
    """N rows of C channels from which windows are taken.

    Attributes:
        values: (N, C), scaled, float32, gaps filled.
        observed: (N, C) bool, mask of observed values; None if nothing is missing.
        offsets: (N, C), effects subtracted from the scaled values; None without effects.
        targets: number of scored channels, which come first; None for all.
        raw: unscaled rows (N, C) with the scaling (S, 1, C) of each series, for models that read them.
        limits: limits of the forecasts of each series; None if there are none.
        counted: (S, T) bool, targets of each series included in mean scaled errors; None for all.
        facts: properties of the series, on the CPU; None for values only.
        static: (S, E), static inputs of each series; None without them.
        known: (N, K), future covariates and calendar features of each row; None if the model reads none.
        odd: readings that look-backs lack; None if there are none.
    """

    values: Tensor
    observed: Tensor | None = None
    offsets: Tensor | None = None
    targets: int | None = None
    raw: Raw | None = None
    limits: Limits | None = None
    counted: Tensor | None = None
    facts: SeriesFacts | None = None
    static: Tensor | None = None
    known: Tensor | None = None
    odd: Odd | None = None

    def learned(self, first: Tensor) -> ScaledSeries:
        """The rows to learn from, in which odd readings are missing in look-backs and targets.

        Args:
            first: (S,), first row of each series, before which no value fills a gap.
        """
        if self.odd is None or not self.odd.settled.any():
            return self
        seen = ~self.odd.settled if self.observed is None else self.observed & ~self.odd.settled
        values = torch.empty_like(self.values)
        for some in _pieces(first, len(values)):
            rows = torch.arange(some.stop - some.start)[:, None]
            begin = torch.zeros(len(rows), dtype=torch.int64)
            within = first[(first >= some.start) & (first < some.stop)] - some.start
            begin[within] = within
            last = torch.where(seen[some], rows, -1).cummax(0).values
            there = last >= begin.cummax(0).values[:, None]
            values[some] = self.values[some].gather(0, last.clamp(min=0)).where(there, 0.0)
        raw = self.raw if self.raw is None else self.raw._replace(values=self.raw.values.where(seen, torch.nan))
        return replace(self, values=values, observed=seen, raw=raw, odd=None)

    def to(self, device: torch.device | str) -> ScaledSeries:
        """Copy to `device`."""
        moved = {
            name: getattr(self, name).to(device)
            for name in ("values", "observed", "offsets", "counted", "static", "known")
            if getattr(self, name) is not None
        }
        odd = self.odd
        if odd is not None:
            odd = odd._replace(settled=odd.settled.to(device), recent=odd.recent.to(device))
        return replace(self, **moved, odd=odd)


def _pieces(first: Tensor, rows: int) -> list[slice]:
    """Slices of whole series with about `ROWS` rows each; `first` (S,) are the first rows of the series."""
    first = first.contiguous()
    begins = torch.unique(first[torch.searchsorted(first, torch.arange(0, rows, ROWS), right=True) - 1]).tolist()
    return [slice(*ends) for ends in itertools.pairwise([*begins, rows])]
