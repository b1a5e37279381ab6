"""A picture of a study: the validation error by trial, and by each searched setting."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from matplotlib.ticker import NullFormatter

from femts.analysis.tune.space import Dimension, Space
from femts.analysis.tune.study import COMPLETE
from femts.plotting import FORECAST, GRID, LABEL, MOST_PANELS, PAST, TRUTH, Picture
from femts.text import shown

if TYPE_CHECKING:
    import pandas as pd

    from femts.analysis.tune.result import Tuned


def trials_picture(tuned: Tuned, space: Space) -> Picture:
    """Draw the scores of a study, one panel for their course and one for each setting of `space`."""
    done = tuned.trials[tuned.trials["state"] == COMPLETE]
    keys = list(space)[: MOST_PANELS - 1]
    across = min(3, 1 + len(keys))
    down = math.ceil((1 + len(keys)) / across)
    figure = Picture(max(7.5, 3.4 * across), 0.7 + 2.1 * down)
    panels: Any = figure.subplots(down, across, squeeze=False)
    top = _top(done["score"])
    _course(panels.flat[0], tuned, done, top)
    for panel, key in zip(panels.flat[1:], keys, strict=False):
        _setting(panel, done, space[key], top)
    for panel in panels.flat[: 1 + len(keys)]:
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(labelsize=8, colors=LABEL)
        panel.grid(axis="y", color=GRID, linewidth=0.7)
        panel.set_axisbelow(True)
    for panel in panels.flat[1 + len(keys) :]:
        panel.remove()
    rest = len(tuned.trials) - len(done)
    title = f"{tuned.model}, {tuned.pred_len} steps: {len(done)} trials with a score, {rest} ended before"
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside upper left", ncols=4, title=title, frameon=False, fontsize=9, alignment="left"
    )
    return figure


def _course(panel: Any, tuned: Tuned, done: pd.DataFrame, top: float) -> None:
    _points(panel, done["trial"].tolist(), done["score"], top)
    panel.step(done["trial"], done["score"].cummin(), where="post", color=TRUTH, linewidth=1.2, label="lowest so far")
    if tuned.default_score is not None:
        panel.axhline(tuned.default_score, color=FORECAST, linewidth=1, linestyle=(0, (4, 2)), label="without tuning")
    panel.set_title("trial", loc="left", fontsize=9, fontweight="bold", color="#2b2f33")
    panel.xaxis.get_major_locator().set_params(integer=True)


def _setting(panel: Any, done: pd.DataFrame, dimension: Dimension, top: float) -> None:
    """Scores over the values of one setting, the best trial in the colour of the forecast."""
    places: list[Any] = done[dimension.key].tolist()
    if dimension.choices:
        values = list(dict.fromkeys([*dimension.choices, *places]))
        if None not in values:
            values.sort()
        places = [values.index(value) for value in places]
        panel.set_xlim(-0.5, len(values) - 0.5)
        panel.set_xticks(range(len(values)), [shown(str(value).lower(), 12) for value in values])
    elif dimension.log:
        panel.set_xscale("log")
        panel.set_xlim(min(dimension.low, *places), max(dimension.high, *places))
        panel.xaxis.set_minor_formatter(NullFormatter())
    _points(panel, places, done["score"], top)
    best = done["score"].argmin()
    panel.plot(places[best], done["score"].iloc[best], "o", color=FORECAST, markersize=6)
    panel.set_title(shown(dimension.key), loc="left", fontsize=9, fontweight="bold", color="#2b2f33", parse_math=False)


def _points(panel: Any, places: list[Any], scores: pd.Series, top: float) -> None:
    """Scores as points, those above `top` as marks at the edge."""
    below = [(place, score) for place, score in zip(places, scores, strict=True) if score <= top]
    panel.plot(*zip(*below, strict=True), "o", color=PAST, markersize=4, label="validation error")
    above = [place for place, score in zip(places, scores, strict=True) if score > top]
    room = 0.06 * (top - scores.min()) or 1e-3 * abs(top)
    panel.plot(above, [top + room] * len(above), "^", color=PAST, markersize=4, alpha=0.5)
    panel.set_ylim(scores.min() - room, top + 2 * room)


def _top(scores: pd.Series) -> float:
    """Highest score that is drawn in its place, so that the good ones can be told apart."""
    low, middle = scores.min(), scores.median()
    return float(scores[scores <= low + 4 * (middle - low)].max())
