#!/usr/bin/env python
"""Draw docs/femts-light.png and -dark.png: a forecast with its interval, the past it was read from, and a bar chart of
errors.

python scripts/readme_picture.py            # after new records
python scripts/readme_picture.py --check    # write nothing; status 1 if the bars are out of date

The forecast covers the last 96 steps of the test split, by `fem_sm` with its default recipe: of ETTh1 if FEMTS_DATA
names a folder that contains it, otherwise of the built-in data. The model is trained once, in minutes, and kept in
runs/. The bars come from the records of ETTh1.
"""

from __future__ import annotations

import os
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # this checkout, also where another one is installed

import matplotlib.dates as mdates  # noqa: E402
from matplotlib.colors import LinearSegmentedColormap  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.patheffects import withStroke  # noqa: E402

import femts  # noqa: E402
from scripts.picture_theme import SMALL, Theme, figure_of, stale, write_both  # noqa: E402
from scripts.results_pictures import NAIVE, measured  # noqa: E402

PICTURE = ROOT / "docs" / "femts"
MODEL, STEPS, LEVEL, TABLE = "fem_sm", 96, 80, "ETTh1"
BARS = ("fem_sm_ridge", "ridge", "fem_mamba", "fem_gla", "fem_sm", NAIVE)  # the last is part of every table
COMMAND = f"""$ femts table --datasets {TABLE} --models {",".join(BARS[:-1])} \\
              --horizons 96 --roll-out all --seeds 42,1,2,3,4"""
SHOWN_BEFORE = 192  # steps of history shown before the forecast


@dataclass(frozen=True)
class Forecast:
    """A forecast and the data shown with it.

    Attributes:
        dataset: name of the dataset.
        channels: channels whose selections are shown; the first is the one forecast.
        history, ahead, actual: wide frames with `date`, in raw units; `ahead` with bounds.
        shares: posterior weight of each segment, (N,) for each of the `channels`; sums to 1.
        starts: first time stamps of the segments, (N,).
    """

    dataset: str
    channels: tuple[str, ...]
    history: pd.DataFrame
    ahead: pd.DataFrame
    actual: pd.DataFrame
    shares: list[np.ndarray]
    starts: pd.DatetimeIndex


def forecast() -> Forecast:
    """Train the model unless it exists, and forecast the end of the test split."""
    dataset = TABLE if os.environ.get("FEMTS_DATA") else "synthetic"
    data, folder = femts.load_dataset(dataset), ROOT / "runs" / f"readme-{dataset}"
    if not folder.exists():
        femts.train(data, MODEL, STEPS, out=folder)
    forecaster, rows = femts.load(folder), data.frame().iloc[: data.split.test[0, 1]]
    history, actual = rows.iloc[:-STEPS], rows.iloc[-STEPS:]
    channels = (data.columns[0], data.columns[1], data.columns[-1])
    explained = forecaster.explain(history)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", femts.AgeWarning)  # the training rows end long before
        ahead = forecaster.predict(history, level=[LEVEL])
    weights = explained.groupby(["channel", "layer", "start"])["weight"].sum().groupby(["channel", "start"]).mean()
    return Forecast(
        dataset,
        channels,
        history,
        ahead,
        actual,
        [weights[channel].to_numpy() for channel in channels],
        pd.DatetimeIndex(sorted(explained["start"].unique())),
    )


def bars() -> dict[str, float]:
    """Mean test MSE of the models over horizons and seeds, lowest first; models without records are omitted."""
    means = {
        row.model: float(np.mean([*row.means.values()])) for row in measured() if row.dataset == TABLE and row.means
    }
    return {model: means[model] for model in sorted(means, key=lambda model: means[model]) if model in BARS}


def drawing(theme: Theme, made: Forecast, means: dict[str, float]) -> Figure:
    """The figure with three panels and the command."""
    figure = figure_of(9, 7)
    figure.get_layout_engine().set(h_pad=0.1, w_pad=0.08)  # type: ignore[union-attr, call-arg]
    rows: Any = figure.add_gridspec(3, 1, height_ratios=[1.05, 1.25, 0.2])
    _forecast(figure.add_subplot(rows[0]), theme, made)
    below = rows[1].subgridspec(1, 2, width_ratios=[1.35, 1])
    _reading(figure.add_subplot(below[0]), theme, made)
    _bars(figure.add_subplot(below[1]), theme, means)
    last = figure.add_subplot(rows[2])
    last.set_axis_off()
    box = {"facecolor": theme.paper, "edgecolor": theme.grid, "boxstyle": "round,pad=0.6"}
    look: dict[str, Any] = {"family": "monospace", "fontsize": SMALL, "linespacing": 1.4, "parse_math": False}
    last.text(0.985, 0.5, COMMAND, ha="right", va="center", multialignment="left", bbox=box, **look)
    return figure


def _forecast(panel: Any, theme: Theme, made: Forecast) -> None:
    channel, past = made.channels[0], made.history.tail(SHOWN_BEFORE)
    begin, last = past[["date", channel]].iloc[-1]  # later lines start there, to leave no gap
    when = [begin, *made.ahead["date"]]
    bounds = [[last, *made.ahead[f"{channel}-{side}-{LEVEL}"]] for side in ("lo", "hi")]
    orange, blue = theme.colours["orange"], theme.colours["blue"]
    panel.fill_between(when, *bounds, color=orange, alpha=0.25, linewidth=0, label=f"{LEVEL} % interval")
    panel.plot(past["date"], past[channel], color=theme.faint, linewidth=1.3, label="past")
    panel.plot(when, [last, *made.actual[channel]], color=blue, linewidth=1.5, label="what happened")
    panel.plot(when, [last, *made.ahead[channel]], color=orange, linewidth=2.2, label="forecast")
    panel.set_title(f"Forecast of {channel} of {made.dataset}, {STEPS} steps", loc="left")
    panel.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=4, borderpad=0, borderaxespad=0.4, handlelength=1.4)
    panel.margins(x=0)
    panel.grid(axis="y", linewidth=0.7)
    _dates(panel)


def _reading(panel: Any, theme: Theme, made: Forecast) -> None:
    """One row per channel: its past, shaded by the weight of each segment in the forecast."""
    colours = LinearSegmentedColormap.from_list("share", [theme.paper, theme.colours["orange"]])
    least, most = (of([of(share) for share in made.shares]) for of in (min, max))
    past = made.history[made.history["date"] >= made.starts[0]]
    edges = mdates.date2num([*made.starts, made.ahead["date"].iloc[0]])
    halo = [withStroke(linewidth=2.5, foreground=theme.paper)]
    thin = [withStroke(linewidth=2.2, foreground=theme.paper, alpha=0.6)]
    for row, (channel, share) in enumerate(zip(made.channels, made.shares, strict=True)):
        panel.pcolormesh(
            edges, [row + 0.06, row + 0.94], share[None], cmap=colours, vmin=0.5 * least, vmax=most, rasterized=True
        )
        values = past[channel].to_numpy()
        height = (values - values.min()) / (values.max() - values.min())
        panel.plot(past["date"], row + 0.88 - 0.5 * height, color=theme.ink, linewidth=0.8, path_effects=thin)
        top = int(share.argmax())
        middle = min(edges[top : top + 2].mean(), edges[-1] - 0.04 * (edges[-1] - edges[0]))
        text = {"ha": "center", "va": "center", "fontsize": SMALL, "fontweight": "bold", "path_effects": halo}
        panel.text(middle, row + 0.2, f"{100 * share[top]:.0f} %", **text)
    panel.set_ylim(len(made.channels), 0)
    panel.set_yticks([row + 0.5 for row in range(len(made.channels))], labels=made.channels)
    panel.set_title("The past that it read (stronger: more)", loc="left")
    panel.spines[["left", "bottom"]].set_visible(False)
    _dates(panel)


def _bars(panel: Any, theme: Theme, means: dict[str, float]) -> None:
    for place, (model, mean) in enumerate(means.items()):
        colour = theme.colours["orange"] if model.startswith("fem") else theme.faint
        panel.barh(place, mean, height=0.68, color=colour, gid=model)
        panel.text(mean, place, f" {mean:.3f}", va="center", fontsize=SMALL)
    panel.set_ylim(len(means) - 0.4, -0.6)
    panel.set_yticks(range(len(means)), labels=means)
    panel.set_xlim(0, 1.18 * max(means.values()))
    panel.set_xticks([])
    panel.set_title(f"Mean test MSE on {TABLE}", loc="left")
    panel.spines["bottom"].set_visible(False)
    panel.tick_params(length=0)


def _dates(panel: Any) -> None:
    locator = mdates.AutoDateLocator(minticks=3, maxticks=7)
    panel.xaxis.set_major_locator(locator)
    panel.xaxis.set_major_formatter(mdates.DateFormatter("%-d %b"))
    panel.spines["left"].set_visible(False)
    panel.tick_params(length=0)


if __name__ == "__main__":
    ours = bars()
    if "--check" in sys.argv[1:]:
        sys.exit("The bars are out of date; run scripts/readme_picture.py." if stale(PICTURE, ours) else 0)
    forecasted = forecast()
    write_both(PICTURE, lambda theme: drawing(theme, forecasted, ours), ours)
