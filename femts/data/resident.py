"""Resident values of one or several series, which windows are cut out of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from femts.data.limits import Limits
from femts.data.raw import Raw


class Context(NamedTuple):
    """What is known of B forecasts of P steps besides their look-backs, for intervals that depend on it.

    Attributes:
        series: (B,) int64, number of the series that each is of; -1 for one that is new.
        location: (B, 1, T) float64, how far above 0 the training mean lies, in deviations.
        recent: (B, 1, T) float64, mean of the last values before the forecast, scaled, effects put back.
        phase: (B, P) int64, phase of the season of each step; None where there is no season.
    """

    series: Tensor
    location: Tensor
    recent: Tensor
    phase: Tensor | None = None


class SeriesFacts(NamedTuple):
    """Facts about the S series of resident values, from which the `Context` of windows is made.

    Attributes:
        names: of the series.
        location: (S, T) float64, mean over scale of each target.
        season: steps of a season; 1 for none.
        phase: (N,) int32, phase of the season of each row; None where there is no season.
    """

    names: tuple[str, ...]
    location: Tensor
    season: int = 1
    phase: Tensor | None = None


@dataclass(frozen=True, eq=False)
class ScaledSeries:
    """Resident values that windows are cut out of, N rows of C channels.

    Attributes:
        values: (N, C), scaled, float32, gaps filled.
        observed: (N, C) bool, which values are real and no filling; None where all are.
        offsets: (N, C), what was taken off the scaled values, for it is known; None where nothing was.
        targets: how many of the channels, the first ones, are scored; None for all.
        raw: the rows (N, C) before scaling, where a model reads them so, and the scaling (S, 1, C) of each series.
        limits: of the forecasts of each series; None where nothing limits them.
        counted: (S, T) bool of S series and T targets, whose errors mean scaled errors are made of; None for all.
        facts: about the series; None for values alone. They stay on the CPU.
        static: E inputs that do not change within a series, (S, E); None where there are none.
        known: K inputs of each row that are known in advance, (N, K); None where the model reads none.
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

    def to(self, device: torch.device | str) -> ScaledSeries:
        """A copy on `device`."""
        moved = {
            name: getattr(self, name).to(device)
            for name in ("values", "observed", "offsets", "counted", "static", "known")
            if getattr(self, name) is not None
        }
        return replace(self, **moved)
