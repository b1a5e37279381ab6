"""Plot of a comparison: the score of each model in each window, and its difference to the best model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from femts.data.describe import count
from femts.models.naive import DRIFT, MEAN, NAIVE, SEASONAL_NAIVE
from femts.plotting import AXIS, FORECAST, GRID, LABEL, PAST, Picture

if TYPE_CHECKING:
    from femts.analysis.compare import Comparison

_INK = "#2b2f33"


def comparison_picture(comparison: Comparison) -> Picture:
    """Draw a comparison, one row for each model, the best on top; naive forecasts are grey.

    On the left, a small dot is the score in one window and a large one the mean over all. On the right, a dot is the
    difference of that mean to the best model's, and a line its 95 % interval.
    """
    table, metric = comparison.table, comparison.metric
    figure = Picture(8.5, 1.35 + 0.34 * len(table))
    left, right = panels = figure.subplots(1, 2, sharey=True)
    rows = np.arange(len(table))
    for row, model in enumerate(table["model"]):
        colour = PAST if model in (SEASONAL_NAIVE, NAIVE, DRIFT, MEAN) else FORECAST
        each = comparison.windows.loc[comparison.windows["model"] == model, metric]
        left.plot(each, np.full(len(each), row), "o", color=colour, alpha=0.35, markersize=3.5, markeredgewidth=0)
        left.plot(table[metric][row], row, "o", color=colour, markersize=7)
        right.hlines(row, table["low"][row], table["high"][row], color=colour, linewidth=1.6)
        right.plot(table["difference"][row], row, "o", color=colour, markersize=6)
    left.set_yticks(rows, list(table["model"]), parse_math=False)
    left.set_ylim(len(rows) - 0.5, -0.5)
    windows = comparison.windows["window"].nunique()
    what = f"{metric.upper()} over {windows} window{'s' * (windows > 1)} of {count(comparison.horizon, 'step')}"
    left.set_xlabel(what, size=8, color=LABEL)
    interval = f", 95 % interval over {comparison.units}" * bool(table["low"].notna().any())
    right.set_xlabel(f"difference to the best{interval}", size=8, color=LABEL)
    right.axvline(0, color=AXIS, linewidth=0.8)
    panel: Any
    for panel in panels:
        panel.grid(axis="x", color=GRID, linewidth=0.7)
        panel.set_axisbelow(True)
        panel.spines[["top", "right", "left"]].set_visible(False)
        panel.spines["bottom"].set_color(AXIS)
        panel.tick_params(labelsize=8, colors=LABEL, length=0)
    left.tick_params(axis="y", labelcolor=_INK)
    figure.suptitle("Comparison of models", x=0.01, ha="left", fontsize=10, color=_INK)
    return figure
