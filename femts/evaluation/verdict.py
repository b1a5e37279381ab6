"""One-line comparison of a model with the naive forecasts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from femts.evaluation.constants import EVEN, NOTHING
from femts.models.naive import DRIFT, MEAN, NAIVE, SEASONAL_NAIVE
from femts.text import quote

MEASURES = {"mse": "squared error", "mae": "absolute error"}


@dataclass(frozen=True)
class Judgement:
    """Comparison of a model with the best of the naive forecasts.

    Attributes:
        worse: whether its squared or its absolute error is higher than the lowest of the naive forecasts.
        words: text to show the user.
    """

    worse: bool
    words: str


def judge(scores: Mapping[str, Any]) -> Judgement | None:
    """Compare the squared and the absolute error in `scores` (`Scores`) with the lowest of the naive forecasts.

    Returns:
        The comparison, or None if there are no values to compare.
    """
    baselines = {name: each for name, each in scores["baselines"].items() if all(map(_finite, each.values()))}
    if not baselines or not all(_finite(scores[measure]) for measure in MEASURES):
        return None
    best = {measure: min(baselines, key=lambda name: baselines[name][measure]) for measure in MEASURES}
    lowest = {measure: baselines[name][measure] for measure, name in best.items()}
    if lowest["mse"] < NOTHING:
        worse = scores["mse"] > NOTHING
        other = _words(best["mse"], scores["season"])
        return Judgement(worse, f"{'worse than' if worse else 'as good as'} {other}, which has no error here")
    changes = {measure: scores[measure] / lowest[measure] - 1 for measure in MEASURES}
    higher = [measure for measure, change in changes.items() if change > EVEN]
    lower = [measure for measure, change in changes.items() if change < -EVEN]
    comparison = "worse than" if higher else "better than" if lower else "as good as"
    by = f"by its {MEASURES[higher[0]]} " if higher and lower else ""
    if best["mse"] == best["mae"]:
        other = _words(best["mse"], scores["season"])
        figures = [f"{MEASURES[measure]} {_change(change)}" for measure, change in changes.items()]
        whole = f"{other}, the best of {len(baselines)} naive forecasts" if len(baselines) > 1 else other
    else:
        whole = f"the best of {len(baselines)} naive forecasts"
        figures = [
            f"{MEASURES[measure]} {_change(change)} {'as' if abs(change) <= EVEN or change > 1 else 'than'} that of "
            f"{_words(best[measure], scores['season'])}"
            for measure, change in changes.items()
        ]
    if _finite(scores["mase"]):
        figures.append(f"MASE {scores['mase']:.2f}")
    return Judgement(bool(higher), f"{by}{comparison} {whole}: {', '.join(figures)}{_dominated(scores)}")


def _finite(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _words(name: str, season: int) -> str:
    return {
        SEASONAL_NAIVE: f"the seasonal naive forecast, which repeats the last {season} steps",
        NAIVE: "the naive forecast, which repeats the last value",
        DRIFT: "the drift forecast, which extends the line through both ends of the look-back",
        MEAN: "the mean of the look-back",
    }[name]


def _dominated(scores: Mapping[str, Any]) -> str:
    dominant = scores.get("dominant")
    if dominant is None:
        return ""
    what = "squared error" if dominant["measure"] == "mse" else "MASE"
    return f" ({100 * dominant['error']:.3g} % of the {what} is that of '{quote(dominant['name'])}')"


def _change(change: float) -> str:
    if abs(change) <= EVEN:
        return "the same"
    if change > 1:
        return f"{change + 1:,.1f} times as high"
    return f"{100 * abs(change):.1f} % {'higher' if change > 0 else 'lower'}"
