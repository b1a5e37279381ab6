"""Effects of known columns and the calendar in a panel: those that its series share, and those of a series alone.

A series that is short shows little of what a holiday does, so one model of effects is fitted to the
training rows of all series, each in its own scaled units. A series that is long enough has one of
its own, where that explains more of its changes in rows that were left out than the shared one
does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from femts.data.dataset import Dataset
from femts.data.effects import Array, Effects
from femts.data.effects_fit import fit_effects
from femts.data.panel import Panel
from femts.data.preprocess import Preprocess

ENOUGH = 20  # rows for each term of the effects of a series alone


def shared_effects(panel: Panel, scales: Mapping[str, Preprocess]) -> Effects | None:
    """Effects on all series, in the scaled units of each; None where nothing is known in advance."""
    pieces = [_training(data, scales[name]) for name, data in panel.series.items() if data.covariates is not None]
    if not pieces:
        return None
    lengths = [len(scaled) for scaled, _, _ in pieces]
    dates = joined([dates for _, _, dates in pieces])
    scaled, covariates = (np.concatenate([piece[k] for piece in pieces]) for k in (0, 1))
    return fit_effects(scaled, covariates, dates, panel.season, panel.schema.roles.calendar, lengths)


def own_effects(data: Dataset, scale: Preprocess, shared: Effects) -> Effects:
    """Effects on a series of a panel alone, where they explain more than the `shared` ones, else those."""
    scaled, covariates, dates = _training(data, scale)
    if len(scaled) < ENOUGH * len(shared.weight):
        return shared
    own = fit_effects(scaled, covariates, dates, data.season, data.schema.roles.calendar)
    season = min(data.season, len(scaled) // 2)
    change, effect = (each[season:] - each[:-season] for each in (scaled, shared.of(covariates, dates)))
    square = np.nansum(change**2, axis=0)
    explained = 1 - np.nansum((change - effect) ** 2, axis=0) / np.where(square > 0, square, 1)
    better = own.explained[: data.targets].mean() > explained[: data.targets].mean()
    return own if better else shared


def _training(data: Dataset, scale: Preprocess) -> tuple[Array, Array, pd.Index | None]:
    """Training rows of a series: its scaled values, its known columns and its stamps."""
    rows = slice(*data.split.train)
    assert data.covariates is not None
    return scale.scale(data.values[rows]), data.covariates[rows], None if data.dates is None else data.dates[rows]


def joined(stamps: Sequence[pd.Index]) -> pd.Index:
    """Stamps of several series, one after the other."""
    return stamps[0].append(list(stamps[1:]))
