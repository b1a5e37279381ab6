"""A verdict in words on a model beside the seasonal naive forecast."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

EVEN = 5e-4  # of an error; what differs by less has the same one, as printed
NOTHING = 1e-10  # squared error in scaled units that rounding alone may leave


@dataclass(frozen=True)
class Judgement:
    """A verdict on a model beside the seasonal naive forecast.

    Attributes:
        worse: its squared or its absolute error is the higher one.
        words: what a reader should know.
    """

    worse: bool
    words: str


def judge(scores: Mapping[str, Any], naive: Mapping[str, Any]) -> Judgement | None:
    """The verdict on the `scores` of a model beside those of the `naive` forecast (`NaiveSums.beside`).

    Returns:
        None where there are no values to judge by.
    """
    pairs = {"squared": (scores["mse"], naive["mse"]), "absolute": (scores["mae"], naive["mae"])}
    if any(value is None or not math.isfinite(value) for pair in pairs.values() for value in pair):
        return None
    other = f"the seasonal naive forecast, which repeats the last {naive['season']} steps"
    if naive["season"] == 1:
        other = "the naive forecast, which repeats the last value"
    if naive["mse"] < NOTHING:
        worse = scores["mse"] > NOTHING
        return Judgement(worse, f"{'worse than' if worse else 'as good as'} {other}, and that makes no error here")
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
