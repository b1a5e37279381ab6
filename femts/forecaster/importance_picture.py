"""Plot of permutation importances: one bar per input, with its interval."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from femts.files import write_file
from femts.forecaster.importance import KINDS, importance_label, percent_label
from femts.plotting import AXIS, FORECAST, GRID, LABEL, PAST, TRUTH, Picture, picture_format

COLOURS = {
    "column": TRUTH,
    "lags": "#56b4e9",
    "future": FORECAST,
    "calendar": "#cc79a7",
    "static": "#009e73",
    "feature": "#8a8f94",
}


def plot_importance(importance: pd.DataFrame, path: str | Path) -> Path:
    """Plot the importance of inputs and write it as an image; the suffix of `path` determines the format (png, pdf,
    svg).

    A bar is the increase of the error when that input is exchanged between windows, a line its 95 % interval. Kinds of
    inputs keep their order and have one colour each.

    Args:
        importance: result of `Forecaster.importance`.
        path: image file to write, completely or not at all.

    Returns:
        `path`.

    Raises:
        UsageError: The image format is not supported.
        RunFailure: The file cannot be written.
    """
    path = Path(path)
    kind = picture_format(path)
    figure = Picture(7.5, 1.5 + 0.3 * len(importance))
    panel: Any = figure.subplots()
    rows = np.arange(len(importance))
    for name, colour in COLOURS.items():
        some = (importance["kind"] == name).to_numpy()
        if some.any():
            panel.barh(rows[some], 100 * importance["rise"][some], height=0.62, color=colour, label=KINDS[name])
    low, high = (100 * importance[end].to_numpy() for end in ("low", "high"))
    panel.hlines(rows, low, high, color="#2b2f33", linewidth=1.1)
    for row, (rise, end) in enumerate(zip(importance["rise"], np.maximum(high, 0), strict=True)):
        panel.annotate(
            percent_label(rise), (end, row), xytext=(5, 0), textcoords="offset points", va="center", size=8, color=PAST
        )
    names = [importance_label(*each) for each in zip(importance["kind"], importance["input"], strict=True)]
    panel.set_yticks(rows, names, parse_math=False)
    panel.set_ylim(len(rows) - 0.4, -0.6)
    panel.margins(x=0.12)
    panel.axvline(0, color=AXIS, linewidth=0.8)
    panel.grid(axis="x", color=GRID, linewidth=0.7)
    panel.set_axisbelow(True)
    panel.spines[["top", "right", "left"]].set_visible(False)
    panel.spines["bottom"].set_color(AXIS)
    panel.tick_params(labelsize=8, colors=LABEL, length=0)
    windows = importance["windows"].iloc[0]
    panel.set_xlabel(f"increase of the squared error on {windows} windows, percent", size=8, color=LABEL)
    figure.legend(
        loc="outside upper left",
        ncols=3,
        frameon=False,
        fontsize=8,
        title="Permutation importance: increase of the error when an input is exchanged between windows",
        title_fontsize=10,
        alignment="left",
    )
    write_file(path, figure.to_bytes(kind))
    return path
