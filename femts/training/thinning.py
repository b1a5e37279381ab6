"""Scores within a limit of time: of all windows, or evenly spread over them of as many as there is time for."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from femts.data.dataset import Dataset
from femts.data.windows import Windows
from femts.forecaster.forecaster import Forecaster
from femts.models.base import ForecastModel
from femts.training.schedule import FEWEST
from femts.training.scores import take_scores

GRACE = 1.0  # seconds that there always are for scores
_SURE = 0.8  # part of the time that is left for which more windows are taken on: other processes run, too


@contextmanager
def scored_on(model: ForecastModel, most: int | None) -> Iterator[None]:
    """Within it, `model` is scored and calibrated on that many windows of a part at most; None changes nothing."""
    before = model.most_windows
    if most is not None:
        model.most_windows = most if before is None else min(before, most)
    try:
        yield
    finally:
        model.most_windows = before


def scores_within(
    deadline: float | None,
    forecaster: Forecaster,
    windows: Mapping[str, Windows],
    data: Dataset,
    device: str,
) -> dict[str, Any]:
    """As `take_scores`, but by the `deadline` of `time.monotonic()`: a few windows are scored first, and from the time
    that they took follows how many more there is time for. All are scored at once by None, and where they are few.

    Returns:
        The same, and where not all windows were scored, how many there are by part, as `thinned`.
    """
    model, most = forecaster.model, FEWEST
    whole = _counts(model, windows)
    if deadline is None or max(whole.values()) <= 2 * FEWEST:
        return take_scores(forecaster, windows, data, device)
    while True:
        began = time.monotonic()
        with scored_on(model, most):
            counts, scores = _counts(model, windows), take_scores(forecaster, windows, data, device)
        if counts == whole:
            return scores
        now = time.monotonic()
        more = _SURE * max(GRACE, deadline - now) / (now - began)
        if more < 2:  # what is gained would not be worth the time
            return {**scores, "thinned": {part: len(windows[part]) for part in counts}}
        most = int(more * max(counts.values()))


def most_scored(metrics: Mapping[str, Any]) -> int | None:
    """Windows that were scored in all where time made them fewer; None where it did not."""
    return int(metrics["val"]["windows"] + metrics["test"]["windows"]) if "thinned" in metrics else None


def _counts(model: ForecastModel, windows: Mapping[str, Windows]) -> dict[str, int]:
    return {part: len(windows[part].spread(model.most_windows)) for part in ("val", "test")}
