"""Scores of a trained forecaster, on all windows or as many as time permits, and the circumstances recorded with
them."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch

from femts._version import __version__
from femts.data.dataset import Dataset
from femts.data.describe import are, names
from femts.data.windows import FAR, Windows
from femts.evaluation.conformal import calibrate
from femts.evaluation.coverage import Bounds, coverage_notes
from femts.evaluation.evaluator import evaluate
from femts.evaluation.intervals import Intervals
from femts.evaluation.metrics.intervals import Coverage, Width
from femts.evaluation.score_sums import ScoreSums
from femts.evaluation.validation import validation_sums
from femts.evaluation.values import Viewer
from femts.evaluation.window_errors import WindowErrors
from femts.forecaster.forecaster import Forecaster
from femts.forecaster.scoring import overall_scores
from femts.models.base import ForecastModel
from femts.text import quote
from femts.training.accelerator import Accelerator
from femts.training.constants import FEWEST_FITS, FEWEST_SCORED, GRACE, MANY_TARGETS, PLANNED_SHARE, REPORTED_LEVELS
from femts.training.select.constants import NAIVE_NAMES


class Scored(NamedTuple):
    """Result of scoring a forecaster.

    Attributes:
        intervals: calibrated on the validation windows.
        scores: the keys `val`, `test`, `intervals`, `outgrown` and `thinned` of `RunMetrics`.
        test_errors: of all test windows; None if some were scored.
    """

    intervals: Intervals
    scores: dict[str, Any]
    test_errors: WindowErrors | None


def take_scores(forecaster: Forecaster, windows: Mapping[str, Windows], data: Dataset, device: str) -> Scored:
    """Calibrate the intervals of `forecaster` on the validation windows, and score it once on the test windows."""
    model, batch_size = forecaster.model, forecaster.config.training.eval_batch_size
    model.to(device)
    past, future = windows["val"].to(device), windows["test"].to(device)
    training = forecaster.config.training
    (of_val, in_val), (of_test, in_test) = (
        (overall_scores(forecaster, data), validation_sums(training, model)) for _ in ("val", "test")
    )
    intervals, val = calibrate(
        model,
        past.within_scale(),
        batch_size=batch_size,
        also=[*of_val.collectors, *in_val],
        method=training.intervals,
    )
    bounds = Bounds(intervals, future, model.quantiles)
    levels = [level for level in bounds.levels if level in REPORTED_LEVELS]
    kinds = [kind(level) for level in levels for kind in (Coverage, Width)]
    covered = ScoreSums(kinds, Viewer(forecaster.preprocess, bounds=bounds), "series", ("scaled",), len(data) > 1)
    by_window = WindowErrors()
    test = evaluate(model, future, batch_size, also=[covered, by_window, *of_test.collectors, *in_test])
    scores: dict[str, Any] = {
        part: {**overall.scores(errors), **{name: value for each in named for name, value in each.compute().items()}}
        for part, overall, errors, named in (("val", of_val, val, in_val), ("test", of_test, test, in_test))
    }
    model.eval()
    within = {
        "windows": intervals.windows,
        "disjoint": intervals.disjoint,
        "test": {
            f"{level:g}": {kind.kind: covered.overall(kind) for kind in kinds if kind.level == level}
            for level in levels
        },
    }
    missing = intervals.without(forecaster.targets)
    within |= {"missing": missing} if missing else {}
    gone = outgrown(forecaster, past)
    scores |= {"intervals": within} | ({"outgrown": gone} if gone else {})
    return Scored(intervals, scores, by_window)


def outgrown(forecaster: Forecaster, windows: Windows) -> list[str]:
    """Names of the targets or series that `windows` include but windows for selection exclude."""
    chosen = windows.within_scale().counted
    if chosen is None or chosen is windows.counted:
        return []
    gone = ~chosen if windows.counted is None else windows.counted & ~chosen
    if len(windows.names) > 1:
        return [name for name, left_out in zip(windows.names, gone.any(1).tolist(), strict=True) if left_out]
    return [name for name, left_out in zip(forecaster.targets, gone[0].tolist(), strict=True) if left_out]


def scale_notes(forecaster: Forecaster) -> list[str]:
    """Sentences on targets, or series of a panel, whose training rows do not determine the scale of their errors."""
    of, notes = forecaster.scored or forecaster, list[str]()
    varies = of.preprocess.scaler.own[:, : len(of.targets)]
    several = len(of.series) > 1
    each: list[bool] = np.asarray(varies.all(1) if several else varies[0]).tolist()
    own = dict(zip(of.series if several else of.targets, each, strict=True))
    what = "series" if several else "columns"
    flat = tuple(name for name, varies in own.items() if not varies)
    if flat:
        they = "it is" if len(flat) == 1 else "they are"
        left_out = " and excluded from mean errors" if len(flat) < len(own) else ""
        notes.append(
            f"{len(flat)} of {len(own)} {what} {are(len(flat))} nearly constant in the training rows, so {they} scaled by later "
            f"rows or by their level{left_out}: {names(flat)}"
        )
    gone = tuple(of.metrics.get("outgrown", ()))
    if gone:
        notes.append(
            f"{len(gone)} of {len(own)} {what} {'lies' if len(gone) == 1 else 'lie'} more than {FAR:g} deviations from their training rows in most "
            f"validation rows, so {'it is' if len(gone) == 1 else 'they are'} excluded from validation-based selection: {names(gone)}"
        )
    dominant = of.metrics["test"].get("dominant") if "test" in of.metrics else None
    if dominant:
        error, values = (f"{100 * dominant[key]:.3g} %" for key in ("error", "values"))
        measure = {"mse": "squared test error", "mase": "MASE"}[dominant["measure"]]
        notes.append(
            f"'{quote(dominant['name'])}' accounts for {values} of the values and {error} of the {measure}, so the "
            f"mean is not informative about the other {what}"
        )
    return notes


def accuracy_notes(metrics: Mapping[str, Any]) -> list[str]:
    """Warnings if the test errors of a run are higher than those of a naive forecast, if its intervals miss their
    coverage, or if there was no time to try a model, from its `metrics.json`."""
    test = metrics["test"]
    covered = {
        level: row["coverage"] for level, row in metrics["intervals"]["test"].items() if row["coverage"] is not None
    }
    tried = {each["model"] for each in metrics.get("auto", {}).get("tried", ()) if "error" in each}
    hurried = "only naive forecasts were tried, for lack of time; with a longer time limit, 'auto' tries other models"
    return [
        *([test["verdict"]] if test["worse"] else []),
        *coverage_notes(covered),
        *([hurried] if tried and tried.issubset(NAIVE_NAMES) else []),
    ]


def circumstances(forecaster: Forecaster, accelerator: Accelerator) -> dict[str, Any]:
    """Circumstances of a training, as in `metrics.json`: data, model, lengths, seed, device and versions."""
    config = forecaster.config
    return {
        "dataset": config.dataset,
        "model": config.model,
        "pred_len": config.pred_len,
        "seq_len": config.seq_len,
        "protocol": config.protocol,
        "seed": config.training.seed,
        "device": accelerator.device,
        "devices": accelerator.devices,
        "precision": accelerator.precision,
        "parameters": forecaster.model.n_weights,
        "versions": {"femts": __version__, "torch": torch.__version__, "python": platform.python_version()},
        "data_sha256": forecaster.data["sha256"],
    }


@contextmanager
def scored_on(model: ForecastModel, most: int | None) -> Iterator[None]:
    """Context in which `model` is scored and calibrated on at most `most` windows per split; None changes nothing."""
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
    most_windows: int | None = None,
) -> Scored:
    """As `take_scores`, but by the `deadline` of `time.monotonic()`: a few windows are scored and timed first, to
    determine how many more fit. Without a deadline, or with few windows, all are scored at once, or at most
    `most_windows` per split. If these are not all windows of the model's choice, the scores say so (`thinned`).
    """
    model = forecaster.model
    few = model.most_windows is not None or len(forecaster.targets) > MANY_TARGETS
    most = FEWEST_FITS if few else FEWEST_SCORED
    whole = _counts(model, windows)
    if deadline is None or max(whole.values()) <= 2 * most:
        with scored_on(model, most_windows):
            counts, scored = _counts(model, windows), take_scores(forecaster, windows, data, device)
        return scored if counts == whole else _thinned(scored, windows)
    while True:
        began = time.monotonic()
        with scored_on(model, most):
            counts, scored = _counts(model, windows), take_scores(forecaster, windows, data, device)
        if counts == whole:
            return scored
        now = time.monotonic()
        more = PLANNED_SHARE * max(GRACE, deadline - now) / (now - began)
        if more < 2:  # the gain would not be worth the time
            return _thinned(scored, windows)
        most = int(more * max(counts.values()))


def _thinned(scored: Scored, windows: Mapping[str, Windows]) -> Scored:
    of_all = {part: len(windows[part]) for part in ("val", "test")}
    return scored._replace(scores={**scored.scores, "thinned": of_all}, test_errors=None)


def most_scored(metrics: Mapping[str, Any]) -> int | None:
    """Total number of scored windows if time limited it; otherwise None."""
    return int(metrics["val"]["windows"] + metrics["test"]["windows"]) if "thinned" in metrics else None


def _counts(model: ForecastModel, windows: Mapping[str, Windows]) -> dict[str, int]:
    return {part: len(windows[part].subsample(model.most_windows)) for part in ("val", "test")}
