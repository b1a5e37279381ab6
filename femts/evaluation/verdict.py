"""One-line comparison of a model with the seasonal naive forecast."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

EVEN = 5e-4  # relative difference below which errors count as equal, as printed
NOTHING = 1e-10  # squared error in scaled units that may be due to rounding


@dataclass(frozen=True)
class Judgement:
    """Comparison of a model with the seasonal naive forecast.

    Attributes:
        worse: whether its squared or its absolute error is higher.
        words: text to show the user.
    """

    worse: bool
    words: str


def judge(scores: Mapping[str, Any], naive: Mapping[str, Any]) -> Judgement | None:
    """Compare the `scores` of a model with those of the `naive` forecast (`NaiveSums.beside`).

    Returns:
        The comparison, or None if there are no values to compare.
    """
    pairs = {"squared": (scores["mse"], naive["mse"]), "absolute": (scores["mae"], naive["mae"])}
    if any(value is None or not math.isfinite(value) for pair in pairs.values() for value in pair):
        return None
    other = f"the seasonal naive forecast, which repeats the last {naive['season']} steps"
    if naive["season"] == 1:
        other = "the naive forecast, which repeats the last value"
    if naive["mse"] < NOTHING:
        worse = scores["mse"] > NOTHING
        return Judgement(worse, f"{'worse than' if worse else 'as good as'} {other}, which has no error here")
    changes = {name: own / naive_error - 1 for name, (own, naive_error) in pairs.items()}
    higher = [name for name, change in changes.items() if change > EVEN]
    lower = [name for name, change in changes.items() if change < -EVEN]
    figures = ", ".join(f"{name} error {_change(change)}" for name, change in changes.items())
    mase = "" if naive["mase"] is None else f", MASE {naive['mase']:.2f}"
    if higher:
        by = f"by its {higher[0]} error " if lower else ""
        return Judgement(True, f"{by}worse than {other}: {figures}{mase}")
    return Judgement(False, f"{'better than' if lower else 'as good as'} {other}: {figures}{mase}")


def _change(change: float) -> str:
    if abs(change) <= EVEN:
        return "the same"
    if change > 1:
        return f"{change + 1:,.1f} times as high"
    return f"{100 * abs(change):.1f} % {'higher' if change > 0 else 'lower'}"
