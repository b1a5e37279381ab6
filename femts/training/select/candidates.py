"""Candidates of `--model auto`, by how much there is to learn from, and by how long it would take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from femts.data.dataset import Dataset
from femts.errors import UsageError
from femts.models.registry import check_library, model_card

LONG = 2000  # training rows of a series, from which on models are learned and not fitted to each look-back
WINDOWS = 8  # forecast after an origin, spread over the series of a panel, where a window may be a fit
MANY_WINDOWS = 256  # where none is
FEWEST = 1000  # windows to learn from, of all series and columns, that a network needs
FEW_SERIES = 30  # of a panel: with 10 networks lost to ridge, up to 2,802 windows, with 30 they won
FEWEST_OF_FEW = 3000  # windows that a panel of fewer series has to have
SCORED = 48  # fits of a column for its intervals and its test part; two at least for each series
LONGEST = 24  # steps of a season that the classics make a part of their state
PATIENCE = 200.0  # seconds that the fits of one candidate may take by a rough guess where no time is given
NO_STATIC = "it takes no static columns"
SPARSE = 0.3  # part of the values that are 0, from which on demand counts as intermittent


@dataclass(frozen=True)
class Candidate:
    """Model to be tried.

    Attributes:
        model: registered name.
        fit: seconds of a fit to 200 rows, a rough guess, without a season and with one of 12 steps; None for
            a model that is not fitted to each look-back.
        learns: takes steps of training.
        reason: for leaving it out; empty for one that is tried.
    """

    model: str
    fit: tuple[float, float] | None = None
    learns: bool = False
    reason: str = ""


NAIVE = (Candidate("seasonal_naive"), Candidate("naive"))
CLASSICS = (
    Candidate("auto_theta", (0.02, 0.04)),
    Candidate("mstl", (0.02, 0.05)),
    Candidate("auto_ets", (0.01, 0.1)),
    Candidate("auto_arima", (0.2, 1.2)),
)
INTERMITTENT = Candidate("croston_sba", (0.002, 0.002))
FITTED = Candidate("ridge")
LEARNED = Candidate("fem_sm_ridge", learns=True)
LEARNED_OF_PANEL = Candidate("fem_sm", learns=True)  # where a line from look-back to horizon fits no series well


def shortlist(data: Dataset, pred_len: int, origins: int, seconds: float | None) -> tuple[Candidate, ...]:
    """Candidates for `data`, quick ones first; one that is left out says why.

    Args:
        data: split for forecasts of `pred_len` steps.
        pred_len: steps.
        origins: at which each is trained.
        seconds: that there are for all; None is no limit.

    Raises:
        UsageError: static columns, and too few windows for the models that take them.
    """
    series, targets = len(data), data.n_targets
    columns, rows = series * targets, data.typical_rows
    zeros = data.train_values[:, :targets] == 0
    classics = CLASSICS + (INTERMITTENT,) * (zeros.size > 0 and float(zeros.mean()) >= SPARSE)
    scored = max(min(SCORED, 4 * data.rows // pred_len) * targets, 2 * columns)
    fits = origins * max(1, WINDOWS // series) * columns + scored
    patience = PATIENCE if seconds is None else min(PATIENCE, seconds / 4)
    chosen = [*NAIVE, FITTED]
    for each in classics if rows <= LONG else ():
        assert each.fit is not None
        plain, seasonal = each.fit
        one = plain + (seasonal - plain) * (min(data.season, LONGEST) / 12 if data.season > 1 else 0.0)
        guess = one * max(1.0, rows / 200) * fits
        reason = f"its {fits} fits would take about {guess:.0f} s" if guess > patience else _missing(each.model)
        if each.model == "mstl" and data.season == 1:
            reason = "without a season it is auto_ets"
        chosen.append(Candidate(each.model, each.fit, reason=reason))
    windows = int(np.maximum(0, data.train_lengths - pred_len).sum()) * targets
    few = _too_few(windows, series)
    learned = (LEARNED, LEARNED_OF_PANEL) if series > 1 else (LEARNED,)
    listed = (*chosen, *(replace(each, reason=few) for each in learned))
    return _that_take_static(listed, data) if data.static is not None else listed


def _that_take_static(candidates: Sequence[Candidate], data: Dataset) -> tuple[Candidate, ...]:
    """`candidates` for `data` with static columns: who takes none is left out, and if all are, that is refused."""
    left = tuple(
        each if each.reason or model_card(each.model).model_class.supports.static else replace(each, reason=NO_STATIC)
        for each in candidates
    )
    if all(each.reason for each in left):
        raise UsageError(
            f"Of the models to choose from only networks take static columns, and {left[-1].reason}; leave out "
            f"--static {','.join(data.schema.roles.static)}, or name a model, such as --model {left[-1].model}."
        )
    return left


def windows_to_score(candidates: Sequence[Candidate]) -> int:
    """Windows to forecast after each origin."""
    return WINDOWS if any(each.fit and not each.reason for each in candidates) else MANY_WINDOWS


def _too_few(windows: int, series: int) -> str:
    """Reason for learning no network from `windows` of so many `series`; empty where there are enough."""
    if windows < FEWEST:
        return f"{windows} windows are too few to learn from"
    if 1 < series < FEW_SERIES and windows < FEWEST_OF_FEW:
        return f"{windows} windows of {series} series are too few to learn from"
    return ""


def _missing(model: str) -> str:
    """Reason for leaving out a model whose library is not installed; empty where it is."""
    try:
        check_library(model)
    except UsageError as error:
        return str(error)
    return ""
