"""Plan of a selection: the candidates and the number of windows that fit the available time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from femts.data.batch import Batch
from femts.data.dataset import Dataset
from femts.models.classics import Classic
from femts.models.parts.classic_fit import forecast_all
from femts.models.registry import build_model
from femts.training.request import FitRequest
from femts.training.resolve import resolve_run
from femts.training.schedule import RESERVED
from femts.training.select.candidates import LONG, Candidate

SMALL = 5000  # total rows of all series below which a selection gets a default time limit
SOON = 60.0  # that limit in seconds
PATIENCE = 300.0  # seconds for slow forecasts without a limit
# Shares of a limit for these forecasts, and of the trial time if networks are trained as well.
FITS, FITS_BESIDE = 0.7, 0.4
WINDOWS = 8  # per origin if some forecasts are slow; spread over the series of a panel
WINDOWS_OF_ONE = 32  # the same for a single origin
MANY_WINDOWS = 256  # per origin if none is
SCORED, SCORED_IN_TIME = 24, 4  # windows per split on which these are finally scored, without and with a limit
SLOWEST = "auto_arima"  # a single fit may take minutes, so it is not timed if ...
STEEP = 10  # ... this multiple of the slowest other fit would be too much


@dataclass(frozen=True)
class Clock:
    """Clock of a selection.

    Attributes:
        started: `time.monotonic()` when the call began.
        limit: time limit in seconds; None is no limit.
    """

    started: float
    limit: float | None

    @classmethod
    def of(cls, request: FitRequest, data: Dataset) -> Clock:
        """The limit of the request or, for a small table, the default one."""
        limit = request.limit
        return cls(request.started, SOON if limit is None and len(data.values) < SMALL else limit)

    @property
    def left(self) -> float | None:
        """Remaining seconds; None is no limit."""
        return None if self.limit is None else self.started + self.limit - time.monotonic()

    def before_scores(self, refit: bool, tried: float = 0.0) -> float | None:
        """Remaining seconds for trials, given that those so far took `tried` seconds: the rest is reserved for scoring
        and, with `refit`, for a refit as long as the trials."""
        if self.limit is None or self.left is None:
            return None
        left = self.left - RESERVED * self.limit
        return (left - tried) / 2 if refit else left


@dataclass(frozen=True)
class Plan:
    """The candidates and windows of a selection.

    Attributes:
        candidates: candidates, with a reason for those that do not fit the time.
        windows: number of windows to forecast after each origin.
        note: sentence on `windows` for the user; empty for the default number.
    """

    candidates: tuple[Candidate, ...]
    windows: int
    note: str = ""


def plan(candidates: Sequence[Candidate], request: FitRequest, folds: Sequence[Dataset], clock: Clock) -> Plan:
    """Choose the candidates that fit the time, by timing one forecast of each classical or pretrained model, and the
    number of windows to compare all on.

    If time is short, the number of windows is reduced, down to a half, or to a quarter for several origins; then the
    slowest of these models are skipped.

    Args:
        candidates: candidates, fast ones first.
        request: request with recipe and lengths.
        folds: the data as known at each origin.
        clock: clock of the selection.
    """
    fold, left = folds[0], clock.left
    learners = any(each.learns and not each.reason for each in candidates)
    trials = clock.before_scores(request.refit)
    room = PATIENCE if left is None or trials is None else max(0.0, FITS_BESIDE * trials if learners else FITS * left)
    series, columns, out = len(fold), len(fold.columns), dict[str, str]()
    scored = SCORED if left is None else SCORED_IN_TIME

    def need(seconds: float, windows: int) -> float:
        fits = len(folds) * max(1, windows // series) + 2 * max(1, scored // series)
        return seconds * columns * series * fits

    costs, late = dict[str, float](), "each forecast takes {:.2g} s and there is not enough time"
    for each in (each for each in candidates if each.slow and not each.reason):
        guess = STEEP * max(costs.values(), default=0.0)
        if each.model == SLOWEST and need(guess, 1) > room:
            out[each.key] = f"a forecast may take {guess:.2g} s and there is not enough time"
        else:
            costs[each.key] = seconds_of_forecast(each, request, fold)
    if not costs:
        return Plan(_left_out(candidates, out), MANY_WINDOWS)
    # With a single origin, 8 windows ranked ridge behind the seasonal naive forecast on ETTm1 and level with it on
    # ETTh1, although its error is 10 % lower over 256 windows; 16 did not.
    usual = windows = WINDOWS if len(folds) > 1 or (fold.typical_rows <= LONG and not learners) else WINDOWS_OF_ONE
    while costs and sum(need(each, windows) for each in costs.values()) > room:
        if windows > usual // (4 if len(folds) > 1 else 2):
            windows //= 2
        else:
            dearest = max(costs, key=lambda label: costs[label])
            out[dearest], windows = late.format(costs.pop(dearest)), usual
    note = f"to stay within the time limit, candidates are compared on {windows} windows of each origin"
    return Plan(
        _left_out(candidates, out), windows if costs else MANY_WINDOWS, note * (bool(costs) and windows < usual)
    )


def _left_out(candidates: Sequence[Candidate], reasons: dict[str, str]) -> tuple[Candidate, ...]:
    return tuple(replace(each, reason=reasons.get(each.key, each.reason)) for each in candidates)


def seconds_of_forecast(candidate: Candidate, request: FitRequest, data: Dataset) -> float:
    """Duration in seconds of the forecast of one column by a classical or pretrained model, from the last training rows
    of a series of median length."""
    lengths, settings = candidate.lengths(request.lengths), candidate.settings
    config = resolve_run(data, candidate.model, lengths, settings, request.training, ignores=True)
    model = build_model(config.model, config.model_config)
    first, stop = data.part("train")[np.argsort(data.train_lengths)[len(data) // 2]]
    values = data.values[max(first, stop - config.seq_len) : stop, : len(data.columns)]
    if isinstance(model, Classic):
        fits = model.fits(config.pred_len)
        forecast_all(fits[0], [values[-1:, 0]], 1)  # imports the library, outside the timing
        began = time.monotonic()
        for fit in fits:
            forecast_all(fit, [values[:, 0]], 1)
        return time.monotonic() - began
    model.to(request.accelerator.device)
    known = torch.zeros(1, len(values) + config.pred_len, getattr(model.config, "n_known", 0))
    batch = Batch(torch.from_numpy(values)[None], known=known if known.shape[2] else None)
    with torch.no_grad():
        model(batch)  # reads the weights, outside the timing
        began = time.monotonic()
        model(batch)
    return (time.monotonic() - began) / values.shape[1]
