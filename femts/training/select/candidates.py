"""Candidates of `--model auto`: the models and look-backs to try on a dataset, fast ones first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from femts.config.values import left_open
from femts.data.catalog import CATALOG
from femts.data.dataset import Dataset
from femts.data.describe import are, count
from femts.data.protocols import default_look_back, default_protocol, look_back_choices
from femts.errors import UsageError
from femts.models.parts.classic_fit import ARIMA_SEASON
from femts.models.pretrained import model_of_weights
from femts.models.registry import build_config, check_library
from femts.text import Message
from femts.training.resolve import Lengths
from femts.training.select.constants import (
    FEW_SERIES,
    FEWEST,
    FEWEST_COMPARED,
    FEWEST_OF_FEW,
    LONG,
    SPARSE,
)

RIDGE = "ridge"
TREES = "boost"
ZERO_SHOT, TUNED = "fem_zero", "fem_zero_tuned"
ENSEMBLE = "stat_ensemble"


@dataclass(frozen=True)
class Candidate:
    """Model to try.

    Attributes:
        model: registered name.
        seq_len: look-back in steps; None takes that of the request, or the model's default.
        slow: whether a forecast takes so long that it is timed first: it is a fit, or computed by pretrained weights.
        learns: whether it is trained on windows for as long as time permits: trees and networks.
        reason: reason for skipping it; empty otherwise.
        settings: settings of the model by name.
        training: fields of the training recipe that keep it within the time or work of the selection.
    """

    model: str
    seq_len: int | None = None
    slow: bool = False
    learns: bool = False
    reason: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Name of its folder, including the look-back if it is the candidate's own."""
        return self.model if self.seq_len is None else f"{self.model}-{self.seq_len}"

    def lengths(self, asked: Lengths) -> Lengths:
        """Lengths of its training, given those of the request, `asked`."""
        return asked if self.seq_len is None else asked._replace(seq_len=self.seq_len)


def shortlist(data: Dataset, lengths: Lengths, weights: Mapping[str, Any] | None = None) -> tuple[Candidate, ...]:
    """Candidates for `data`, fast ones first; skipped ones give a reason.

    Args:
        data: data split for forecasts of P steps.
        lengths: requested lengths, with P filled in.
        weights: settings of a pretrained model, if one is to be tried.

    Raises:
        UsageError: The weights do not exist or differ from the given hash, a setting is invalid, or their library is
            missing.
    """
    zeros = data.train_values[:, : data.n_targets] == 0
    intermittent = zeros.size > 0 and float(zeros.mean()) >= SPARSE
    classics = ("croston_sba",) * intermittent + ("dotm", "mstl", "auto_ets", "auto_ces", "auto_arima")
    blind = _too_few_to_compare(data, int(lengths.pred_len or 1))
    few = blind or _too_few(
        int(np.maximum(0, data.train_lengths - int(lengths.pred_len or 1)).sum()) * data.n_targets, len(data)
    )
    # For many series, the rule itself forms means with ridge, which fits some panels badly.
    network = "fem_sm" if len(data) > 1 else "fem_sm_ridge"
    long = "" if few or data.typical_rows <= LONG else f"series of more than {LONG:,} rows are left to trained models"
    fitted = (
        Candidate(name, slow=True, reason=blind or long * (name != "croston_sba") or _out(name, data.season))
        for name in (*classics, ENSEMBLE)
    )
    learned = (TUNED, TREES, "nhits", *["tide"] * data.has_known, network)
    return (
        Candidate("seasonal_naive"),
        Candidate("naive", reason=blind if data.season > 1 else "without a season it is seasonal_naive"),
        Candidate(ZERO_SHOT, slow=True),
        *(replace(each, reason=blind) for each in ridges(data, lengths)),
        *fitted,
        *((_pretrained(data, weights),) if weights else ()),
        *(Candidate(name, learns=True, reason=few) for name in learned),
    )


def ridges(data: Dataset, lengths: Lengths) -> tuple[Candidate, ...]:
    """`ridge` with each look-back worth trying, the default first; only one if the look-back is given or there is no
    alternative."""
    if not left_open(lengths.seq_len) or lengths.protocol is not None or data.source in CATALOG:
        return (Candidate(RIDGE),)
    shape = default_protocol(False), int(lengths.pred_len or 1), data.typical_rows, data.season
    usual = default_look_back(*shape).steps
    others = [steps for steps in look_back_choices(*shape) if steps < usual]
    return tuple(Candidate(RIDGE, steps) for steps in (usual, *others)) if others else (Candidate(RIDGE),)


def _pretrained(data: Dataset, settings: Mapping[str, Any]) -> Candidate:
    """The model of pretrained weights, which is skipped if they were trained on `data`: its error would be no estimate
    of that on new rows."""
    name = model_of_weights(settings)
    check_library(name)
    config = build_config(name, seq_len=1, pred_len=1, n_channels=len(data.columns), settings=settings)
    seen = config.for_data(data.season, data.common_rows).has_seen(data.name)
    reason = f"its weights were trained on {data.name}" if seen else ""
    return Candidate(name, slow=True, reason=reason, settings=settings)


def _out(model: str, season: int) -> str:
    """Reason for skipping a classical model: its library is missing, it equals another model, or most of its models
    ignore so long a season; empty otherwise."""
    if model == "mstl" and season == 1:
        return "without a season it is auto_ets"
    if model == ENSEMBLE and season > ARIMA_SEASON:
        return f"most of its models ignore a season of more than {ARIMA_SEASON} steps"
    try:
        check_library(model)
    except UsageError as error:
        return Message(error)
    return ""


def _too_few_to_compare(data: Dataset, pred_len: int) -> str:
    """Reason for skipping all but pretrained models and the seasonal naive one; empty if there are enough validation
    rows."""
    rows = int((data.split.val[:, 1] - data.split.val[:, 0]).max())
    if data.split.short(pred_len) and rows < FEWEST_COMPARED and len(data) < FEW_SERIES:
        return f"{count(rows, 'validation row')} {are(rows)} too few to compare more models"
    return ""


def _too_few(windows: int, series: int) -> str:
    """Reason for skipping networks, given the number of `windows` and `series`; empty if there are enough."""
    if windows < FEWEST:
        return f"{count(windows, 'window')} {are(windows)} too few for training"
    if 1 < series < FEW_SERIES and windows < FEWEST_OF_FEW:
        return f"{count(windows, 'window')} of {series} series {are(windows)} too few for training"
    return ""
