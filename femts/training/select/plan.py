"""Plan of a choice: what is tried, on how many windows, within the time that there is."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from femts.data.dataset import Dataset
from femts.models.classics import Classic
from femts.models.parts.classic_fit import forecast_all
from femts.models.registry import build_model
from femts.training.fit import FitRequest
from femts.training.resolve import resolve_run
from femts.training.schedule import RESERVED
from femts.training.select.candidates import LONG, Candidate

SOON = 60.0  # seconds that a choice takes at most where no limit is given and the table is small
SMALL = 5000  # rows, of all series, of a table that is
PATIENCE = 300.0  # seconds that the fits of the classics take at most where there is no limit at all
FITS = 0.7  # part of a limit that they may take
FITS_BESIDE = 0.25  # where networks are trained as well
WINDOWS = 8  # forecast after each of several origins, spread over the series of a panel, where a window may be a fit
WINDOWS_OF_ONE = 32  # after the only one
MANY_WINDOWS = 256  # where none is
SCORED = 24  # windows of each part that a classic is scored on in the end, and ...
SCORED_IN_TIME = 4  # ... where time is short
SLOWEST = "auto_arima"  # whose fit may take minutes, so that it is not begun where ...
STEEP = 10  # ... so many times the dearest fit of the others would be too much


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

    def before_scores(self, refit: bool) -> float | None:
        """Seconds that are left for trials: those after them are for the scores and, with `refit`, for a training on
        all rows as long as that of the trials."""
        if self.limit is None or self.left is None:
            return None
        return (self.left - RESERVED * self.limit) / (2 if refit else 1)


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

    Where time is short, windows become fewer, down to one of each series, and then the dearest classics are left out.

    Args:
        candidates: quick ones first.
        request: whose recipe and lengths they take.
        folds: the data as they were known at each origin.
        clock: the time of the choice.
    """
    fold, left = folds[0], clock.left
    learners = any(each.learns and not each.reason for each in candidates)
    room = PATIENCE if left is None else max(0.0, left) * (FITS_BESIDE if learners else FITS)
    series, columns, out = len(fold), len(fold.columns), dict[str, str]()
    scored = SCORED if left is None else SCORED_IN_TIME

    def need(seconds: float, windows: int) -> float:
        fits = len(folds) * max(1, windows // series) + 2 * max(1, scored // series)
        return seconds * columns * series * fits

    costs, late = dict[str, float](), "each fit takes {:.2g} s and there is not enough time"
    for each in (each for each in candidates if each.fitted and not each.reason):
        if (
            each.model == SLOWEST
            and costs
            and need(STEEP * max(costs.values()), 1) > room + need(max(costs.values()), 1)
        ):
            out[each.key] = f"a fit may take {STEEP * max(costs.values()):.2g} s and there is not enough time"
        else:
            costs[each.key] = seconds_of_fit(each, request, fold)
    if not costs:
        return Plan(_left_out(candidates, out), MANY_WINDOWS)
    usual = windows = WINDOWS if len(folds) > 1 or (fold.typical_rows <= LONG and not learners) else WINDOWS_OF_ONE
    while costs and sum(need(each, windows) for each in costs.values()) > room:
        if windows > max(1, usual // 4):
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
    """Seconds that a fit of a classic to the last training rows of one column takes."""
    config = resolve_run(data, candidate.model, candidate.lengths(request.lengths), {}, request.training, ignores=True)
    model = build_model(config.model, config.model_config)
    assert isinstance(model, Classic)
    rows = min(config.seq_len, data.typical_rows)
    fit, values = model.fit(config.pred_len), data.train_values[-rows:, 0]
    forecast_all(fit, [values[-1:]], 1)  # it imports the library
    began = time.monotonic()
    forecast_all(fit, [values], 1)
    return time.monotonic() - began
