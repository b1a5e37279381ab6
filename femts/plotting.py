"""A picture of a forecast: one panel a channel, the recent past, what is forecast and, where known, what happened."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from femts.errors import UsageError, suggest
from femts.files import write_file
from femts.text import shown

if TYPE_CHECKING:
    import pandas as pd

MOST_PANELS = 12
DPI = 200
# Okabe and Ito's palette, which colour-blind readers can tell apart; forecast and truth differ in weight, too.
PAST, TRUTH, FORECAST, SHADE = "#5f6b76", "#0072b2", "#d55e00", "#f6efe9"


def plot_forecast(
    history: pd.DataFrame,
    forecast: pd.DataFrame,
    path: str | Path,
    actual: pd.DataFrame | None = None,
    columns: Sequence[str] | None = None,
) -> Path:
    """Draw a forecast and write it as an image; the ending of `path` decides the format (png, pdf, svg).

    Args:
        history: wide frame in raw units that ends where the forecast begins; its last part is
            drawn, twice as long as the forecast.
        forecast: wide frame with the same columns; `date` may be missing in both, then steps are counted.
        path: the image's file; written whole or not at all.
        actual: what happened, a wide frame that begins where the forecast does.
        columns: the channels to draw; by default the first twelve.

    Returns:
        `path`.

    Raises:
        UsageError: a column that the forecast does not have, cells that are no numbers, or an image
            format that cannot be written.
        RunFailure: the disk refuses.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    path = Path(path)
    kind = picture_format(path)
    history = _with_numbers(history, forecast, "The history")
    actual = None if actual is None else _with_numbers(actual, forecast, "What happened")
    named = [str(c) for c in forecast.columns if c != "date" and str(c) in history.columns]
    if not named:
        raise UsageError("The forecast has no column of the history, so there is nothing to draw; give the history it is from.")
    for column in columns or ():
        if column not in named:
            raise UsageError(f"The forecast has no column '{column}'{suggest(column, named)}")
    shown = list(columns or named[:MOST_PANELS])

    across = 1 if len(shown) <= 3 else 2 if len(shown) <= 8 else 3
    down = math.ceil(len(shown) / across)
    figure = Figure(figsize=(max(7.5, 4.6 * across), 0.7 + 1.75 * down), layout="constrained")
    FigureCanvasAgg(figure)
    panels: Any = figure.subplots(down, across, sharex=True, squeeze=False)
    for column, panel in zip(shown, panels.flat, strict=False):
        _draw(panel, history.tail(2 * len(forecast)), forecast, actual, column)
    for place in range(across):  # the lowest panel of each column shows the time axis
        panels[(len(shown) - 1 - place) // across, place].tick_params(axis="x", labelbottom=True)
    for panel in panels.flat[len(shown) :]:
        panel.remove()
    _finish(figure, panels.flat[: len(shown)], dated=_dated(forecast), left_out=0 if columns else len(named) - len(shown))

    image = io.BytesIO()
    figure.savefig(image, format=kind, dpi=DPI)
    write_file(path, image.getvalue())
    return path


def picture_format(path: Path) -> str:
    """The image format that the ending of `path` names; UsageError when no picture can be written in it."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    kind = path.suffix.lstrip(".").lower()
    if kind not in FigureCanvasAgg.filetypes:
        raise UsageError(f"A picture cannot be written as '{path.name}'; name it .png, .pdf or .svg.")
    return kind


def _draw(panel: Any, history: pd.DataFrame, forecast: pd.DataFrame, actual: pd.DataFrame | None, column: str) -> None:
    past, ahead = _steps(history, -len(history) + 1, forecast), _steps(forecast, 1, forecast)
    panel.axvspan(past[-1], ahead[-1], color=SHADE, linewidth=0, zorder=0)
    panel.axvline(past[-1], color=PAST, linewidth=0.8, linestyle=(0, (2, 2)), zorder=1)
    panel.plot(past, history[column], color=PAST, linewidth=1.0, label="history")
    last = history[column].iloc[-1]  # lines start at the last value seen, so that no gap suggests missing data
    if actual is not None:
        truth = actual.head(len(forecast))
        panel.plot(
            [past[-1], *_steps(truth, 1, forecast)], [last, *truth[column]], color=TRUTH, linewidth=1.0, label="what happened"
        )
    panel.plot([past[-1], *ahead], [last, *forecast[column]], color=FORECAST, linewidth=1.7, label="forecast")
    for low in (name for name in forecast.columns if str(name).startswith(f"{column}-lo-")):
        high = forecast[str(low).replace(f"{column}-lo-", f"{column}-hi-")]
        panel.fill_between(ahead, forecast[low], high, color=FORECAST, alpha=0.15, linewidth=0)
    panel.set_title(shown(column), loc="left", fontsize=9, fontweight="bold", color="#2b2f33", parse_math=False)
    panel.margins(x=0)


def _finish(figure: Any, panels: Any, dated: bool, left_out: int) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
    from matplotlib.ticker import MaxNLocator

    for panel in panels:
        panel.spines[["top", "right", "left"]].set_visible(False)
        panel.spines["bottom"].set_color("#9aa3ab")
        panel.grid(axis="y", color="#e3e6e8", linewidth=0.7)
        panel.set_axisbelow(True)
        panel.tick_params(labelsize=8, colors="#4a5157", length=0)
        panel.tick_params(axis="x", length=3, color="#9aa3ab")
        panel.yaxis.set_major_locator(MaxNLocator(nbins=4))
        if dated:
            locator = AutoDateLocator(minticks=3, maxticks=8)
            panel.xaxis.set_major_locator(locator)
            panel.xaxis.set_major_formatter(ConciseDateFormatter(locator))
            panel.xaxis.get_offset_text().set(size=8, color="#4a5157")
    handles, labels = panels[0].get_legend_handles_labels()
    legend = figure.legend(
        handles, labels, loc="outside upper left", ncols=len(labels), frameon=False, fontsize=9, handlelength=1.6
    )
    for line in legend.get_lines():
        line.set_linewidth(2.2)
    if left_out > 0:
        figure.text(0.99, 0.99, f"and {left_out} more columns", ha="right", va="top", fontsize=8, color="#4a5157")


def _with_numbers(frame: pd.DataFrame, forecast: pd.DataFrame, where: str) -> pd.DataFrame:
    """The stamps of `frame`, and those of its columns that are forecast as float64."""
    from femts.data.frames import check_values

    named = {str(c) for c in forecast.columns} - {"date"}
    drawn = [c for c in frame.columns if str(c) in named]
    values = check_values(frame[drawn], where=where) if drawn else frame[drawn]
    return values.assign(date=frame["date"].reset_index(drop=True)) if "date" in frame.columns else values


def _steps(frame: pd.DataFrame, first: int, forecast: pd.DataFrame) -> list[Any]:
    """Places on the time axis: stamps of the forecast's kind where there are some, else steps
    counted from its start."""
    from femts.data.timestamps import read_dates

    if "date" not in frame.columns:
        return list(range(first, first + len(frame)))
    return list(read_dates(frame["date"], "The table to draw", None if _dated(forecast) else "1"))


def _dated(forecast: pd.DataFrame) -> bool:
    import pandas as pd

    return "date" in forecast.columns and pd.api.types.is_datetime64_any_dtype(forecast["date"])
