"""Plan of a choice: what is tried, on how many windows, within the time that there is."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from femts.data.dataset import Dataset
from femts.models.classics import Classic
from femts.models.parts.classic_fit import forecast_all
from femts.models.registry import build_model
from femts.training.fit import FitRequest
from femts.training.resolve import resolve_run
from femts.training.schedule import RESERVED
from femts.training.select.candidates import LONG, Candidate

SMALL = 5000  # rows of all series together, below which a choice is limited even where nobody asks for it
SOON = 60.0  # seconds of that limit
PATIENCE = 300.0  # seconds for the fits of the classics where there is no limit
# Parts of a limit for these fits, and of the time for trials where networks are trained as well.
FITS, FITS_BESIDE = 0.7, 0.4
WINDOWS = 8  # per origin where a forecast may be a fit; spread over the series of a panel
WINDOWS_OF_ONE = 32  # the same for a single origin
MANY_WINDOWS = 256  # per origin where no forecast is a fit
SCORED, SCORED_IN_TIME = (
    24,
    4,
)  # windows of each part that a classic is scored on in the end, without a limit and within
SLOWEST = "auto_arima"  # a single fit may take minutes, so it is not timed where ...
STEEP = 10  # ... this many times the dearest fit of the others would be too much


@dataclass(frozen=True)
class Clock:
    """Time of a choice.

    Attributes:
        started: `time.monotonic()` when the call began.
        limit: seconds that it may take; None is no limit.
    """

    started: float
    limit: float | None

    @classmethod
    def of(cls, request: FitRequest, data: Dataset) -> Clock:
        """The limit of the request; where it has none, that of a small table."""
        limit = request.limit
        return cls(request.started, SOON if limit is None and len(data.values) < SMALL else limit)

    @property
    def left(self) -> float | None:
        """Seconds that are left; None is no limit."""
        return None if self.limit is None else self.started + self.limit - time.monotonic()

    def before_scores(self, refit: bool, tried: float = 0.0) -> float | None:
        """Seconds that are left for trials: those after them are for the scores and, with `refit`, for a training on
        all rows as long as that of the trials, of which those before took `tried` seconds."""
        if self.limit is None or self.left is None:
            return None
        left = self.left - RESERVED * self.limit
        return (left - tried) / 2 if refit else left


@dataclass(frozen=True)
class Plan:
    """What is tried.

    Attributes:
        candidates: those for which there is no time say so.
        windows: to forecast after each origin.
        note: what a reader should know of `windows`; empty where they are the usual ones.
    """

    candidates: tuple[Candidate, ...]
    windows: int
    note: str = ""


def plan(candidates: Sequence[Candidate], request: FitRequest, folds: Sequence[Dataset], clock: Clock) -> Plan:
    """The candidates for which there is time, by one measured fit of each classic, and the windows to compare all on.

    Where time is short, windows become fewer, down to half of them, of several origins to a quarter, and then the most
    expensive classics are left out.

    Args:
        candidates: quick ones first.
        request: whose recipe and lengths they take.
        folds: the data as they were known at each origin.
        clock: the time of the choice.
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

    costs, late = dict[str, float](), "each fit takes {:.2g} s and there is not enough time"
    for each in (each for each in candidates if each.fitted and not each.reason):
        guess = STEEP * max(costs.values(), default=0.0)
        if each.model == SLOWEST and need(guess, 1) > room:
            out[each.key] = f"a fit may take {guess:.2g} s and there is not enough time"
        else:
            costs[each.key] = seconds_of_fit(each, request, fold)
    if not costs:
        return Plan(_left_out(candidates, out), MANY_WINDOWS)
    # Of a single origin, 8 windows ranked ridge behind the seasonal naive forecast on ETTm1 and beside it on ETTh1, on
    # which it errs 10 % less over 256; 16 did not.
    usual = windows = WINDOWS if len(folds) > 1 or (fold.typical_rows <= LONG and not learners) else WINDOWS_OF_ONE
    while costs and sum(need(each, windows) for each in costs.values()) > room:
        if windows > usual // (4 if len(folds) > 1 else 2):
            windows //= 2
        else:
            dearest = max(costs, key=lambda label: costs[label])
            out[dearest], windows = late.format(costs.pop(dearest)), usual
    note = f"to stay within the time, candidates are compared on {windows} windows of each origin"
    return Plan(
        _left_out(candidates, out), windows if costs else MANY_WINDOWS, note * (bool(costs) and windows < usual)
    )


def _left_out(candidates: Sequence[Candidate], reasons: dict[str, str]) -> tuple[Candidate, ...]:
    return tuple(replace(each, reason=reasons.get(each.key, each.reason)) for each in candidates)


def seconds_of_fit(candidate: Candidate, request: FitRequest, data: Dataset) -> float:
    """Seconds that a fit of a classic to the last training rows of one column, of a series of middle length, takes."""
    config = resolve_run(data, candidate.model, candidate.lengths(request.lengths), {}, request.training, ignores=True)
    model = build_model(config.model, config.model_config)
    assert isinstance(model, Classic)
    first, stop = data.part("train")[np.argsort(data.train_lengths)[len(data) // 2]]
    fits, values = model.fits(config.pred_len), data.values[max(first, stop - config.seq_len) : stop, 0]
    forecast_all(fits[0], [values[-1:]], 1)  # it imports the library
    began = time.monotonic()
    for fit in fits:
        forecast_all(fit, [values], 1)
    return time.monotonic() - began
