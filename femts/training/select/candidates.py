"""Candidates of `--model auto`: which models and look-backs are tried on a data set, quick ones first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from femts.config.values import left_open
from femts.data.catalog import CATALOG
from femts.data.dataset import Dataset
from femts.data.frequency import further_seasons
from femts.data.protocols import default_look_back, default_protocol, look_back_choices
from femts.errors import UsageError
from femts.models.registry import check_library
from femts.training.resolve import Lengths

LONG = 2000  # training rows of a series, from which on the classics are fitted to recent rows alone
RECENT = 512  # rows that they are fitted to then
RECENT_SEASONS = 3  # of the longest season of the data, which `mstl` is fitted to at least
MANY_SERIES = 100  # each with a window, from which on a choice follows many rows, however short the series
FEWEST = 1000  # windows to learn from, of all series and columns, that trees and networks need
FEW_SERIES = 30  # of a panel: with 10 networks lost to ridge, up to 2,802 windows, with 30 they won
FEWEST_OF_FEW = 3000  # windows that a panel of fewer series has to have
SPARSE = 0.3  # part of the values that are 0, from which on demand counts as intermittent
RIDGE = "ridge"
NAIVE_NAMES = ("seasonal_naive", "naive")


@dataclass(frozen=True)
class Candidate:
    """Model to be tried.

    Attributes:
        model: registered name.
        seq_len: steps of look-back; None takes that of the request, or the default of the model.
        fitted: anew to each look-back, so that every forecast costs a fit.
        learns: from windows for as long as it may: trees and networks.
        reason: for leaving it out; empty for one that is tried.
    """

    model: str
    seq_len: int | None = None
    fitted: bool = False
    learns: bool = False
    reason: str = ""

    @property
    def key(self) -> str:
        """Name of its folder, with the look-back where that is the candidate's own."""
        return self.model if self.seq_len is None else f"{self.model}-{self.seq_len}"

    def lengths(self, asked: Lengths) -> Lengths:
        """Lengths of its training where `asked` are those of the request."""
        return asked if self.seq_len is None else asked._replace(seq_len=self.seq_len)


def shortlist(data: Dataset, lengths: Lengths) -> tuple[Candidate, ...]:
    """Candidates for `data`, quick ones first; one that is left out says why.

    Args:
        data: split for forecasts of P steps.
        lengths: as asked for, with P filled in.
    """
    zeros = data.train_values[:, : data.n_targets] == 0
    intermittent = zeros.size > 0 and float(zeros.mean()) >= SPARSE
    classics = ("croston_sba",) * intermittent + ("dotm", "mstl", "auto_ets", "auto_arima")
    fitted = (
        Candidate(name, _recent(name, data, lengths), fitted=True, reason=_out(name, data.season)) for name in classics
    )
    few = _too_few(
        int(np.maximum(0, data.train_lengths - int(lengths.pred_len or 1)).sum()) * data.n_targets, len(data)
    )
    # Of many series the rule itself makes means with ridge, whose line fits those of some panels badly.
    learned = ("boost", "nhits", *["tide"] * data.has_known, "fem_sm" if len(data) > 1 else "fem_sm_ridge")
    return (
        Candidate("seasonal_naive"),
        Candidate("naive", reason="" if data.season > 1 else "without a season it is seasonal_naive"),
        *ridges(data, lengths),
        *fitted,
        *(Candidate(name, _few_seasons(name, data, lengths), learns=True, reason=few) for name in learned),
    )


def ridges(data: Dataset, lengths: Lengths) -> tuple[Candidate, ...]:
    """`ridge` with each look-back that is worth a try, the usual one first; one alone where the look-back is not femts'
    to choose, or there is no other."""
    if not left_open(lengths.seq_len) or lengths.protocol is not None or data.source in CATALOG:
        return (Candidate(RIDGE),)
    shape = default_protocol(False), int(lengths.pred_len or 1), data.typical_rows, data.season
    usual = default_look_back(*shape).steps
    others = [steps for steps in look_back_choices(*shape) if steps < usual]
    return tuple(Candidate(RIDGE, steps) for steps in (usual, *others)) if others else (Candidate(RIDGE),)


def _recent(model: str, data: Dataset, lengths: Lengths) -> int | None:
    """Rows of a long series that `model` is fitted to; None where that is left to the model or to the request."""
    if data.typical_rows <= LONG or not left_open(lengths.seq_len):
        return None
    seasons = (data.season, *further_seasons(data.freq)) if model == "mstl" else ()
    return min(LONG, max(RECENT, *(RECENT_SEASONS * each for each in seasons), 0))


def _few_seasons(model: str, data: Dataset, lengths: Lengths) -> int | None:
    """Look-back of `nhits` on a panel, whose short series leave more windows to learn from with a season or two
    horizons than with the usual one; None where that is left to the model or to the request."""
    if model != "nhits" or len(data) == 1 or not left_open(lengths.seq_len) or lengths.protocol is not None:
        return None
    steps = int(lengths.pred_len or 1)
    usual = default_look_back(default_protocol(False), steps, data.typical_rows, data.season).steps
    return min(usual, max(data.season, 2 * steps))


def _out(model: str, season: int) -> str:
    """Reason for leaving out a classic: its library is not installed, or it is another one; empty where there is
    none."""
    if model == "mstl" and season == 1:
        return "without a season it is auto_ets"
    try:
        check_library(model)
    except UsageError as error:
        return str(error)
    return ""


def _too_few(windows: int, series: int) -> str:
    """Reason for learning no network from `windows` of so many `series`; empty where there are enough."""
    if windows < FEWEST:
        return f"{windows} windows are too few to learn from"
    if 1 < series < FEW_SERIES and windows < FEWEST_OF_FEW:
        return f"{windows} windows of {series} series are too few to learn from"
    return ""
