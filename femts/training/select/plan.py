"""Plan of a selection: the candidates and the number of windows that fit the available time or, without a limit, the
work that a selection may do."""

from __future__ import annotations

import time
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import torch

from femts.data.dataset import Dataset
from femts.data.describe import count
from femts.errors import UsageError
from femts.models.classics import MEMBERS, Classic
from femts.models.parts.classic_fit import forecast_all
from femts.models.registry import build_model
from femts.text import rough
from femts.training.constants import RESERVED
from femts.training.data_module import DataModule
from femts.training.request import FitRequest
from femts.training.select.candidates import ENSEMBLE, TREES, ZERO_SHOT, Candidate
from femts.training.select.closed_form import in_time
from femts.training.select.constants import (
    CLOSED,
    COMPARED,
    FEWEST_MEMBERS,
    FEWEST_SCORED,
    FEWEST_STEPS,
    FITTING,
    FITTING_BESIDE,
    HOPELESS,
    LONG,
    MANY_WINDOWS,
    OF_LARGE,
    OF_SMALL,
    SCORED,
    SMALL,
    WINDOWS,
    WINDOWS_OF_ONE,
    WINDOWS_WITHOUT_FITS,
    Allowance,
)
from femts.training.select.work import last_window, resolved, within, work_of_forecast, work_of_training

LATE = "a few steps of it would take too long"


@dataclass(frozen=True)
class Clock:
    """Clock of a selection.

    Attributes:
        started: `time.monotonic()` when the call began.
        limit: time limit in seconds; None is no limit, and then nothing depends on the clock.
        allowed: work that the selection may do without a limit.
    """

    started: float
    limit: float | None
    allowed: Allowance = OF_LARGE

    @classmethod
    def of(cls, request: FitRequest, data: Dataset) -> Clock:
        """The clock of a selection on `data`."""
        return cls(request.started, request.limit, OF_SMALL if len(data.values) < SMALL else OF_LARGE)

    @property
    def short(self) -> bool:
        """Whether one long training is worth more than several origins."""
        return self.limit is not None or self.allowed is OF_SMALL

    @property
    def left(self) -> float | None:
        """Remaining seconds; None is no limit."""
        return None if self.limit is None else self.started + self.limit - time.monotonic()

    def before_scores(self, refit: bool, tried: float = 0.0, overhead: float = 0.0) -> float | None:
        """Remaining seconds for trials, given that those so far took `tried` seconds: the rest is reserved for scoring
        and, with `refit`, for a refit as long as the trials, each of which takes at least `overhead` seconds."""
        if self.limit is None or self.left is None:
            return None
        left = self.left - max(RESERVED * self.limit, (1 + refit) * overhead)
        return (left - tried) / 2 if refit else left


@dataclass(frozen=True)
class Plan:
    """The candidates and windows of a selection.

    Attributes:
        candidates: candidates, with a reason for those that do not fit the time or work, and with settings that keep
            the others within the work.
        windows: number of windows to forecast after each origin.
        notes: sentences on this for the user.
        costs: seconds or work of the forecast of a window of all columns and series, by key of the slow candidates.
        left: seconds or work for their scores.
        closed: estimated seconds of fits in closed form, by key, with a time limit.
        prepared: seconds of preprocessing, with a time limit.
    """

    candidates: tuple[Candidate, ...]
    windows: int
    notes: tuple[str, ...] = ()
    costs: Mapping[str, float] = field(default_factory=dict)
    left: float = 0.0
    closed: Mapping[str, float] = field(default_factory=dict)
    prepared: float = 0.0

    def scored(self, taken: Sequence[str]) -> int | None:
        """Number of windows per split on which the candidates with the keys `taken` are scored with the work that the
        trials left; None if none of them is slow."""
        slow = sum(self.costs.get(key, 0.0) for key in taken)
        return min(SCORED, max(FEWEST_SCORED, int(self.left / (2 * slow)))) if slow else None


def plan(
    candidates: Sequence[Candidate], request: FitRequest, folds: Sequence[Dataset], clock: Clock, share: float = 1.0
) -> Plan:
    """Choose the candidates that fit the time, or without a limit the work that a selection may do, and the number of
    windows to compare all on.

    Args:
        candidates: candidates, fast ones first.
        request: request with recipe and lengths.
        folds: the data as known at each origin.
        clock: clock of the selection.
        share: fraction of the series that are in the folds; the model is scored on all.
    """
    trials, left = clock.before_scores(request.refit), clock.left
    if trials is None or left is None:
        made = [
            within(each, request, folds[0], clock.allowed.training) if each.learns and not each.reason else each
            for each in candidates
        ]
        learners = any(each.learns and not each.reason for each in made)
        return _with_fits(made, request, folds, clock, clock.allowed.beside if learners else clock.allowed.fits)
    made, fold = list(candidates), folds[0]
    began = time.monotonic()
    _prepare(made[0], request, fold)
    prepared = time.monotonic() - began
    tried = [each for each in made if not each.reason]
    closed, late = in_time(tried, request, fold, max(0.0, CLOSED * trials))
    late |= {each.key: LATE for each in tried if each.learns and _is_late(each, request, fold, trials)}
    made = list(_left_out(made, late))
    learners = any(each.learns and not each.reason for each in made)
    room = max(0.0, FITTING_BESIDE * trials if learners else FITTING * left)
    return replace(_with_fits(made, request, folds, clock, room, share), closed=closed, prepared=prepared)


def _prepare(candidate: Candidate, request: FitRequest, data: Dataset) -> None:
    """Fit the preprocessing, which all candidates share."""
    with suppress(UsageError):  # the trial itself reports the reason
        DataModule.of(data, resolved(candidate, request, data), ("train",))


def _is_late(candidate: Candidate, request: FitRequest, data: Dataset, left: float) -> bool:
    """Return whether a few steps of a network would take far more than the seconds that are `left`."""
    if candidate.model == TREES:
        return False
    with suppress(UsageError):
        return HOPELESS * FEWEST_STEPS * work_of_training(resolved(candidate, request, data), data)[0] > left
    return False


def _with_fits(
    candidates: Sequence[Candidate],
    request: FitRequest,
    folds: Sequence[Dataset],
    clock: Clock,
    room: float,
    share: float = 1.0,
) -> Plan:
    """Choose the classical and pretrained models and the windows: if the `room`, seconds or work, is short, the number
    of windows is reduced, down to a half, or to a quarter for several origins; then the slowest of these models are
    skipped. The ensemble takes no time of its own, as it is computed from forecasts of the models that are left."""
    fold, timed = folds[0], clock.limit is not None
    learners = any(each.learns and not each.reason for each in candidates)
    short = "there is not enough time" if timed else "that is too long without a time limit"
    series, columns, out = len(fold), len(fold.columns), dict[str, str]()
    scored = FEWEST_SCORED if clock.short else SCORED
    many = MANY_WINDOWS
    if timed:
        many = max(1, min(many, COMPARED // (columns * int(request.lengths.pred_len or 1))))

    def need(cost: float, windows: int) -> float:
        every = round(series / share)
        fits = series * len(folds) * max(1, windows // series) + every * 2 * max(1, scored // every)
        return cost * columns * fits

    costs, late = dict[str, float](), f"each forecast takes about {{}} s and {short}"
    for each in (each for each in candidates if each.slow and not each.reason and each.model != ENSEMBLE):
        if timed and not each.settings and need(guess := work_of_forecast(each, request, fold), 1) > room / HOPELESS:
            out[each.key] = late.format(rough(guess))
        else:
            costs[each.key] = (seconds_of_forecast if timed else work_of_forecast)(each, request, fold)
    if not costs:
        return Plan(_left_out(candidates, out), many)
    fits = any(key != ZERO_SHOT for key in costs)
    several = len(folds) > 1 or (fold.typical_rows <= LONG and not learners)
    usual = windows = (WINDOWS if several else WINDOWS_OF_ONE) if fits else WINDOWS_WITHOUT_FITS
    while costs and sum(need(each, windows) for each in costs.values()) > room:
        if windows > usual // (4 if len(folds) > 1 else 2):
            windows //= 2
        else:
            dearest = max(costs, key=lambda label: costs[label])
            out[dearest], windows = late.format(rough(costs.pop(dearest))), usual
    why = "to stay within the time limit" if timed else "as fits take long on this table"
    note = f"{why}, candidates are compared on {count(windows, 'window')} of each origin"
    notes = (note,) * (bool(costs) and windows < usual)
    made = _with_members(_left_out(candidates, out), costs)
    windows = min(windows, many) if costs else many
    per_window = {key: cost * columns * series * max(1, windows // series) / windows for key, cost in costs.items()}
    left = room - len(folds) * windows * sum(per_window.values())
    for each in (each for each in made if each.model == ENSEMBLE and not each.reason):
        per_window[each.key] = sum(per_window[other.key] for other in made if other.model in each.settings["members"])
    return Plan(made, windows, notes, per_window, left)


def _with_members(candidates: Sequence[Candidate], tried: Container[str]) -> tuple[Candidate, ...]:
    """`candidates` with the ensemble of those of its models whose keys are in `tried`, if these are enough."""
    members = tuple(each.model for each in candidates if each.model in MEMBERS and each.key in tried)
    if len(members) < FEWEST_MEMBERS:
        return _left_out(
            candidates,
            {
                each.key: "too few of its models are tried"
                for each in candidates
                if each.model == ENSEMBLE and not each.reason
            },
        )
    return tuple(
        replace(each, settings={"members": members}) if each.model == ENSEMBLE else each for each in candidates
    )


def _left_out(candidates: Sequence[Candidate], reasons: dict[str, str]) -> tuple[Candidate, ...]:
    return tuple(replace(each, reason=reasons.get(each.key, each.reason)) for each in candidates)


def seconds_of_forecast(candidate: Candidate, request: FitRequest, data: Dataset) -> float:
    """Duration in seconds of the forecast of one column by a classical or pretrained model, from the last training rows
    of a series of median length."""
    config = resolved(candidate, request, data)
    model = build_model(config.model, config.model_config)
    batch = last_window(model, config, data)
    values = batch.past[0, :, 0].double().numpy()
    if isinstance(model, Classic):
        fits = model.fits(config.pred_len)
        forecast_all(fits[0], [values[-1:]], 1)  # imports the library, outside the timing
        began = time.monotonic()
        for fit in fits:
            forecast_all(fit, [values], 1)
        return time.monotonic() - began
    model.to(request.accelerator.device)
    with torch.no_grad():
        model(batch)  # reads the weights, outside the timing
        began = time.monotonic()
        model(batch)
    return (time.monotonic() - began) / batch.past.shape[2]
