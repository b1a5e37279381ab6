"""The candidates that `auto` tried, in the order of their errors, for tables and reports."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

MEAN = "their mean"


class Tried(NamedTuple):
    """A candidate, or the mean of those that were selected.

    Attributes:
        name: model, with its look-back if that was varied.
        error: validation error; None if it was not tried.
        of_naive: error relative to that of the seasonal naive forecast; None if there is none.
        seconds: duration of the trials; None for a mean.
        selected: `selected`, with its weight if weights differ, `for intervals` if it is 0, or empty.
        reason: why it was not tried; empty if it was.
    """

    name: str
    error: float | None
    of_naive: float | None
    seconds: float | None
    selected: str
    reason: str


def ranked(choice: Mapping[str, Any]) -> list[Tried]:
    """The candidates in `metrics["auto"]`, the lowest error first and those not tried last; before them, if several
    were selected, their mean."""
    naive = next(
        (each["error"] for each in choice["tried"] if each["model"] == "seasonal_naive" and "error" in each), 0
    )
    weights = dict(zip(choice["taken"], choice["weights"], strict=True))
    rows = []
    for each in choice["tried"]:
        error, selected = each.get("error"), ""
        if each["taken"]:
            weight, equal = weights[each["model"]], len(set(weights.values())) == 1
            selected = "selected" if equal else f"selected, weight {weight:.2f}" if weight else "for intervals"
        name = f"{each['model']} (look-back {each['seq_len']})" if "seq_len" in each else each["model"]
        of_naive = error / naive if error is not None and naive else None
        rows.append(Tried(name, error, of_naive, each["seconds"], selected, each.get("reason", "")))
    rows.sort(key=lambda row: math.inf if row.error is None else row.error)
    if len(choice["taken"]) > 1:
        rows.insert(0, Tried(MEAN, choice["error"], choice["error"] / naive if naive else None, None, "selected", ""))
    return rows
