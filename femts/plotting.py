"""Plots of forecasts: one panel per channel with the recent past, the forecast and, if known, the actual values."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from femts.data.describe import count, shown_past
from femts.errors import UsageError, suggest
from femts.text import quote

if TYPE_CHECKING:
    import pandas as pd

MOST_PANELS = 12
DPI = 200
# Okabe and Ito's palette, for colour-blind readers; forecast and actual values also differ in line width.
PAST, TRUTH, FORECAST, SHADE = "#5f6b76", "#0072b2", "#d55e00", "#f6efe9"
LABEL, AXIS, GRID = "#4a5157", "#9aa3ab", "#e3e6e8"
BAND = 0.2  # opacity of an interval
SCENARIOS = (
    FORECAST,
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
    "#000000",
)  # reused in order if there are more


class Picture(Figure):
    """A figure of this width and height in inches that notebooks display directly."""

    def __init__(self, width: float, height: float) -> None:
        super().__init__(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(self)

    def _repr_png_(self) -> bytes:
        return self.to_bytes("png")

    def to_bytes(self, kind: str) -> bytes:
        """The figure as the content of an image file in the format `kind`."""
        image = io.BytesIO()
        self.savefig(image, format=kind, dpi=DPI)
        return image.getvalue()


class Strip(NamedTuple):
    """Content of one panel: `column` of all frames under the title `name`, and forecasts by scenario, or one without a
    name."""

    name: str
    column: str
    history: pd.DataFrame
    forecasts: Mapping[str, pd.DataFrame]
    actual: pd.DataFrame | None

    @property
    def forecast(self) -> pd.DataFrame:
        """The first forecast."""
        return next(iter(self.forecasts.values()))


def forecast_picture(
    history: pd.DataFrame,
    forecasts: pd.DataFrame | Mapping[str, pd.DataFrame],
    actual: pd.DataFrame | None = None,
    columns: Sequence[str] | None = None,
    season: int = 1,
) -> Picture:
    """Draw a forecast, one panel per channel.

    Args:
        history: wide frame in raw units that ends where the forecast begins. Its last two seasons are drawn, at least
            twice and at most five times the length of the forecast.
        forecasts: wide frame with the same columns, and interval bounds in `NAME-lo-80` and `NAME-hi-80`; or a mapping
            from scenario names to such frames. `date` may be missing in both, in which case steps are counted. A column
            may lack values at the end of the history and at the beginning of the forecast.
        actual: observed values, a wide frame that begins where the forecast does.
        columns: channels to draw; by default the first twelve with a forecast.
        season: number of steps in a season.

    Raises:
        UsageError: A column is not in the forecast, or cells are not numbers.
    """
    forecasts = forecasts if isinstance(forecasts, Mapping) else {"": forecasts}
    forecast = next(iter(forecasts.values()))
    history = _with_numbers(history, forecast, "The history")
    actual = None if actual is None else _with_numbers(actual, forecast, "What happened")
    named = [str(c) for c in forecast.columns if c != "date" and str(c) in history.columns]
    if not named:
        raise UsageError("The forecast has no column in common with the history; pass the history it was made from.")
    for column in columns or ():
        if column not in named:
            raise UsageError(f"The forecast has no column '{column}'{suggest(column, named)}")
    if history.empty or forecast.empty:
        raise UsageError(f"The {'history' if history.empty else 'forecast'} has no rows to plot; provide some.")
    # Columns that have ended come last, because there is nothing to draw for them.
    shown = list(columns or sorted(named, key=lambda column: bool(forecast[column].isna().all()))[:MOST_PANELS])
    missing = [] if actual is None else [column for column in shown if column not in actual.columns]
    if missing:
        raise UsageError(f"The actual values have no column '{missing[0]}'; pass a table like the history, or omit it.")

    past = _placed(history, -len(history) + 1, forecast)
    ahead = {name: _placed(each, 1, forecast) for name, each in forecasts.items()}
    after = None if actual is None else _placed(actual.head(len(forecast)), 1, forecast)
    strips = [Strip(column, column, past, ahead, after) for column in shown]
    left_out = 0 if columns else len(named) - len(shown)
    return _drawn(strips, season, f"and {left_out} more columns" * (left_out > 0), one_clock=True)


def strips_picture(strips: Sequence[Strip], season: int = 1, which: str = "") -> Picture:
    """Draw forecasts of series with time axes of their own, one panel per series.

    Args:
        strips: at least one; frames with `date` as in `forecast_picture`.
        season: number of steps in a season.
        which: words on which series are drawn, if not all are, stated in the picture.
    """
    placed = []
    for strip in strips:
        history, forecast, actual = strip.history, strip.forecast, strip.actual
        past = _placed(history, -len(history) + 1, forecast)
        ahead = {name: _placed(each, 1, forecast) for name, each in strip.forecasts.items()}
        after = None if actual is None else _placed(actual, 1, forecast)
        placed.append(strip._replace(history=past, forecasts=ahead, actual=after))
    return _drawn(placed, season, which, one_clock=False)


def _drawn(strips: Sequence[Strip], season: int, more: str, one_clock: bool) -> Picture:
    """The figure of `strips`, whose frames are placed on the time axis; `one_clock` means that they share it."""
    across = 1 if len(strips) <= 3 else 2 if len(strips) <= 8 else 3
    down = math.ceil(len(strips) / across)
    figure = Picture(max(7.5, 4.6 * across), 0.95 + 1.75 * down)
    panels: Any = figure.subplots(down, across, sharex=one_clock, squeeze=False)
    for strip, panel in zip(strips, panels.flat, strict=False):
        name, column, past, ahead, after = strip
        # the same rows for all columns, so that one that ended early does not move the time axis
        recent = past.tail(shown_past(len(strip.forecast), season))
        end = max(recent[column].notna().to_numpy().nonzero()[0], default=len(recent) - 1)  # it may end before others
        _draw(panel, recent[: end + 1], ahead, after, column)
        panel.set_title(quote(name), loc="left", fontsize=9, fontweight="bold", color="#2b2f33", parse_math=False)
    for place in range(across):  # only the lowest panel of each column shows the time axis
        panels[(len(strips) - 1 - place) // across, place].tick_params(axis="x", labelbottom=True)
    for panel in panels.flat[len(strips) :]:
        panel.remove()
    _finish(figure, panels.flat[: len(strips)], dated=_dated(strips[0].forecast), more=more)
    ends = {str(strip.history.index[-1]).removesuffix(" 00:00:00") for strip in strips}
    after = "the end of each series" if len(ends) > 1 else ends.pop() if "date" in strips[0].history else "the history"
    steps = len(strips[0].forecast)
    _explain(figure, panels.flat[0], f"Forecast of {steps} step{'s' * (steps > 1)} after {after}")
    return figure


def picture_format(path: Path) -> str:
    """Image format implied by the suffix of `path`; UsageError if it is not supported."""
    kind = path.suffix.lstrip(".").lower()
    if kind not in FigureCanvasAgg.filetypes:
        raise UsageError(f"A picture cannot be written as '{path.name}'; name it .png, .pdf or .svg.")
    return kind


def _draw(
    panel: Any,
    history: pd.DataFrame,
    forecasts: Mapping[str, pd.DataFrame],
    actual: pd.DataFrame | None,
    column: str,
) -> None:
    """Draw the channel `column` of `history`, which ends at a value or has none, and its forecasts."""
    last, begin = history[column].iloc[-1], history.index[-1]  # later lines start there, to leave no gap
    forecast = next(iter(forecasts.values()))
    if forecast[column].isna().all() and history[column].isna().all():
        said = f"no value in the last {count(len(history), 'step')}, so no forecast"
        panel.text(0.02, 0.5, said, transform=panel.transAxes, va="center", fontsize=8, color=LABEL)
        if actual is None or actual[column].isna().all():
            panel.yaxis.set_visible(False)  # nothing is drawn to this scale
    panel.axvspan(begin, max(begin, forecast.index[-1]), color=SHADE, linewidth=0, zorder=0)
    panel.axvline(begin, color=PAST, linewidth=0.8, linestyle=(0, (2, 2)), zorder=1)
    panel.plot(history.index, history[column], color=PAST, linewidth=1.0, label="history")
    if actual is not None:
        panel.plot([begin, *actual.index], [last, *actual[column]], color=TRUTH, linewidth=1.0, label="what happened")
    # from the first value to the last, with gaps between them
    follow = {
        name: each[each[column].bfill().notna() & each[column].ffill().notna()] for name, each in forecasts.items()
    }
    for name, each, colour in zip(follow, follow.values(), cycle(SCENARIOS), strict=False):
        label = f"forecast, {quote(name)}" if name else "forecast"
        panel.plot([begin, *each.index], [last, *each[column]], color=colour, linewidth=1.7, label=label)
    for number, (each, colour) in enumerate(zip(follow.values(), cycle(SCENARIOS), strict=False)):
        for level in _levels(each, column):
            low, high = ([last, *each[f"{column}-{side}-{level}"]] for side in ("lo", "hi"))
            band = None if number else f"{level} % interval"  # one legend entry is enough: scenarios differ by colour
            panel.fill_between([begin, *each.index], low, high, color=colour, alpha=BAND, linewidth=0, label=band)
    _level_off(panel, history[column])
    panel.margins(x=0)


def _levels(forecast: pd.DataFrame, column: str) -> list[str]:
    """Interval levels of `column` in percent as written in the column names, in increasing order."""
    begin = f"{column}-lo-"
    levels = [str(name).removeprefix(begin) for name in forecast.columns if str(name).startswith(begin)]
    numbers = [
        each for each in levels if re.fullmatch(r"\d+(\.\d+)?", each) and f"{column}-hi-{each}" in forecast.columns
    ]
    return sorted(numbers, key=float)


def _level_off(panel: Any, past: pd.Series) -> None:
    """Widen the axis of a constant `past`, so that rounding errors of a forecast do not fill the panel."""
    panel.ticklabel_format(axis="y", useOffset=False)
    middle, span = (
        float(past.iloc[-1]),
        float(past.max() - past.min()),
    )  # NaN without values, which leaves the axis alone
    if span <= 1e-6 * abs(middle):
        low, high = panel.get_ylim()
        room = 0.1 * abs(middle) or 1.0
        panel.set_ylim(min(low, middle - room), max(high, middle + room))


def _finish(figure: Any, panels: Any, dated: bool, more: str) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
    from matplotlib.ticker import MaxNLocator

    for panel in panels:
        panel.spines[["top", "right", "left"]].set_visible(False)
        panel.spines["bottom"].set_color(AXIS)
        panel.grid(axis="y", color=GRID, linewidth=0.7)
        panel.set_axisbelow(True)
        panel.tick_params(labelsize=8, colors=LABEL, length=0)
        panel.tick_params(axis="x", length=3, color=AXIS)
        panel.yaxis.set_major_locator(MaxNLocator(nbins=4))
        if dated:
            locator = AutoDateLocator(minticks=3, maxticks=8)
            panel.xaxis.set_major_locator(locator)
            panel.xaxis.set_major_formatter(ConciseDateFormatter(locator))
            panel.xaxis.get_offset_text().set(size=8, color=LABEL)
    if more:
        figure.text(0.99, 0.99, more, ha="right", va="top", fontsize=8, color=LABEL)


def _explain(figure: Any, panel: Any, title: str) -> None:
    """Put the title and the legend of `panel` above all panels."""
    handles, labels = panel.get_legend_handles_labels()
    look: dict[str, Any] = {
        "frameon": False,
        "fontsize": 9,
        "title_fontsize": 10,
        "alignment": "left",
        "handlelength": 1.6,
    }
    legend = figure.legend(handles, labels, loc="outside upper left", ncols=min(6, len(labels)), title=title, **look)
    for line in legend.get_lines():
        line.set_linewidth(2.2)
    patches = legend.get_patches()  # a panel draws its bands last
    bands = {
        float(label.split()[0]): patch
        for label, patch in zip(labels[len(labels) - len(patches) :], patches, strict=True)
    }
    for within, level in enumerate(sorted(bands, reverse=True), 1):  # a narrow band is drawn over all wider ones
        bands[level].set_alpha(1 - (1 - BAND) ** within)


def _with_numbers(frame: pd.DataFrame, forecast: pd.DataFrame, where: str) -> pd.DataFrame:
    """Time stamps of `frame` and those of its columns that are in the forecast, as float64."""
    from femts.data.check import check_values

    named = {str(c) for c in forecast.columns} - {"date"}
    drawn = [c for c in frame.columns if str(c) in named]
    values = check_values(frame[drawn], where=where) if drawn else frame[drawn]
    return values.assign(date=frame["date"].reset_index(drop=True)) if "date" in frame.columns else values


def _placed(frame: pd.DataFrame, first: int, forecast: pd.DataFrame) -> pd.DataFrame:
    """`frame` indexed by position on the time axis: time stamps if the forecast has them, otherwise steps from its
    start."""
    from femts.data.stamps import read_dates

    when: Any = range(first, first + len(frame))
    if "date" in frame.columns:
        when = read_dates(frame["date"], "The table to draw", "D" if _dated(forecast) else "1")
    return frame.set_axis(when, axis=0)


def _dated(forecast: pd.DataFrame) -> bool:
    import pandas as pd

    return "date" in forecast.columns and pd.api.types.is_datetime64_any_dtype(forecast["date"])
