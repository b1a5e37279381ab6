"""Plot of an explanation: each channel's look-back over the weights of its segments, with its sharpness at the side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from femts.errors import UsageError, suggest
from femts.files import write_file
from femts.plotting import AXIS, GRID, LABEL, MOST_PANELS, Picture, picture_format
from femts.text import quote

if TYPE_CHECKING:
    import pandas as pd

# Blue to orange over white, which remains distinguishable with colour blindness; the blue is pale, so that what was not
# read does not stand out.
LESS, EVEN, MORE, INK, FAINT = "#8dbbe0", "#ffffff", "#e6700a", "#22272b", "#6b757d"
# Vertical positions, in a row of height 1, of a channel's own segments, its series over them, and the segments of all
# channels.
MAIN, SERIES, CONTEXT = (0.04, 0.68), (0.22, 0.64), (0.72, 0.92)
FINEST = 1.5  # smallest multiple of a uniform share that saturates the colours, so that noise stays pale
ALIKE = 1.05  # multiples of a uniform share between this and its inverse are drawn as uniform


class _Rows(NamedTuple):
    """Values to draw for C channels and N segments: means over the layers in the frame."""

    names: list[str]
    weights: np.ndarray  # (C, N, 2), context and main
    beta: np.ndarray  # (C,)
    segments: np.ndarray  # (C,)
    prior_segments: np.ndarray  # (C,)


def plot_explanation(
    history: pd.DataFrame, explanation: pd.DataFrame, path: str | Path, columns: Sequence[str] | None = None
) -> Path:
    """Plot an explanation and write it as an image; the suffix of `path` determines the format (png, pdf, svg).

    Each row is a channel: its look-back over the posterior weights of its own segments and, below them, the weights of
    the context tokens, both as multiples of a uniform share; on the right the effective number of segments under the
    prior and the posterior, and the hidden temperature. Weights and temperatures are means over the layers in the
    frame, numbers of segments geometric means (the mean of entropies); for a single layer, pass its rows only.

    Args:
        history: the explained wide frame.
        explanation: result of `Forecaster.explain` for it.
        path: image file to write, completely or not at all.
        columns: channels to draw; by default the first twelve.

    Returns:
        `path`.

    Raises:
        UsageError: The explanation lacks a column, or the image format is not supported.
        RunFailure: The file cannot be written.
    """
    path = Path(path)
    kind = picture_format(path)
    named = list(dict.fromkeys(explanation["channel"]))
    for column in columns or ():
        if column not in named:
            raise UsageError(f"The explanation has no column '{column}'{suggest(column, named)}")
    rows = _rows(explanation, list(columns or named[:MOST_PANELS]))
    history = history.set_axis([str(c) for c in history.columns], axis=1)  # named as by the forecaster

    figure = Picture(9.6, 1.75 + 0.66 * len(rows.names))
    past, sharpness, temperature = figure.subplots(1, 3, sharey=True, width_ratios=[7, 1.5, 1.1])
    image, length, clipped = _draw_past(past, history, explanation, rows)
    _draw_sharpness(sharpness, rows)
    _draw_temperature(temperature, rows)
    for panel in (past, sharpness, temperature):
        panel.spines[["top", "right", "left"]].set_visible(False)
        panel.spines["bottom"].set_color(AXIS)
        panel.tick_params(axis="x", labelsize=8, colors=LABEL, length=3)
        panel.tick_params(axis="y", length=0)
        panel.set_ylim(len(rows.names), 0)
    layers = explanation["layer"].unique()
    of = f"layer {layers[0]}" if len(layers) == 1 else f"mean of {len(layers)} layers"
    left_out = 0 if columns else len(named) - len(rows.names)
    more = f" ({left_out} more columns not drawn)" if left_out else ""
    figure.suptitle(
        f"What each channel read to forecast its next {length} steps{more}",
        x=0.01,
        ha="left",
        size=12,
        weight="bold",
        color=INK,
    )
    bar = figure.colorbar(
        image,
        ax=past,
        location="bottom",
        aspect=60,
        pad=0.1 / len(rows.names),
        shrink=0.7,
        extend="min" if clipped else "neither",
    )
    _label_colours(
        bar, f"posterior weight of a segment, as a multiple of a uniform share of 1/{rows.weights[0].size} ({of})"
    )

    # Outside its panel, where the layout would push the colours further down.
    figure.legend(loc="lower center", bbox_to_anchor=(0.82, 0.0), frameon=False, fontsize=8, handletextpad=0.1)

    write_file(path, figure.to_bytes(kind))
    return path


def _rows(explanation: pd.DataFrame, names: list[str]) -> _Rows:
    layers = explanation["layer"].nunique()
    chosen = [explanation[explanation["channel"] == name] for name in names]
    weights = np.stack([one["weight"].to_numpy().reshape(layers, -1, 2).mean(0) for one in chosen])
    beta = np.array([one["hidden_temperature"].mean() for one in chosen])
    counts = [np.exp([np.log(one[name]).mean() for one in chosen]) for name in ("effective_segments", "prior_segments")]
    return _Rows(names, weights, beta, counts[0], counts[1])


def _draw_past(panel: Any, history: pd.DataFrame, explanation: pd.DataFrame, rows: _Rows) -> tuple[Any, int, bool]:
    """Draw the heat map under the series; return its colour mappable, the steps per segment, and whether some share
    saturates the colours."""
    from matplotlib.colors import LinearSegmentedColormap, Normalize
    from matplotlib.patheffects import withStroke

    x, starts = _steps(panel, history, explanation)
    width = x[-1] - x[-2] if len(x) > 1 else 1.0
    edges = np.append(starts, x[-1] + width)
    with np.errstate(divide="ignore"):
        share = np.log2(rows.weights * rows.weights[0].size)
    share[np.abs(share) <= np.log2(ALIKE)] = 0.0
    limit = max(share.max(), np.log2(FINEST))
    colours = {"cmap": LinearSegmentedColormap.from_list("share", [LESS, EVEN, MORE]), "norm": Normalize(-limit, limit)}
    clipped, share = bool((share < -limit).any()), np.maximum(share, -limit)
    halo = [withStroke(linewidth=2.2, foreground="white", alpha=0.8)]
    for row, name in enumerate(rows.names):
        for token, (top, bottom) in enumerate((CONTEXT, MAIN)):
            image = panel.pcolormesh(
                edges,
                [row + top, row + bottom],
                share[row, :, token][None],
                **colours,
                edgecolor="#d5dade",
                linewidth=0.5,
            )
        values = history[name].to_numpy(dtype=float)[-len(x) :]
        low, high = history[name].iloc[-len(x) :].min(), history[name].iloc[-len(x) :].max()  # of the available steps
        height = (values - low) / (high - low) if high > low else np.where(np.isnan(values), np.nan, 0.5)
        panel.plot(x, row + SERIES[1] - (SERIES[1] - SERIES[0]) * height, color=INK, linewidth=0.8, path_effects=halo)
        segment, token = divmod(int(np.argmax(rows.weights[row])), 2)
        panel.text(
            (edges[segment] + edges[segment + 1]) / 2,
            row + (MAIN[0] if token else CONTEXT[0]) + 0.1,
            _percent(rows.weights[row, segment, token]),
            ha="center", va="center", size=7, weight="bold", color=INK, path_effects=halo,
        )  # fmt: skip
        aside = {"ha": "right", "va": "center", "transform": panel.get_yaxis_transform(), "parse_math": False}
        panel.text(-0.01, row + 0.22, quote(name), size=9, weight="bold", color=INK, **aside)
        panel.text(-0.01, row + 0.5, _range(low, high), size=7, color=FAINT, **aside)
        panel.text(-0.01, row + sum(CONTEXT) / 2, "all channels", size=7, color=FAINT, **aside)
    panel.set_title(
        "the past of each channel, coloured by how much its forecast read it", size=8.5, color=INK, loc="left"
    )
    panel.set_yticks([])
    panel.set_xlim(edges[0], edges[-1])
    return image, int((x >= starts[-1]).sum()), clipped


def _range(low: float, high: float) -> str:
    if np.isnan(low):
        return "no value"
    return f"{low:.3g} to {high:.3g}" if high > low else f"always {low:.3g}"


def _percent(weight: float) -> str:
    return f"{100 * weight:.{0 if weight > 0.0995 else 1}f} %"


def _steps(panel: Any, history: pd.DataFrame, explanation: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Positions on the time axis of the look-back steps and of the starts of the segments."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
    from matplotlib.ticker import MaxNLocator

    from femts.data.stamps import read_dates

    starts = explanation["start"].drop_duplicates()
    if "date" not in history.columns:
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
        return np.arange(starts.iloc[0], explanation["end"].max() + 1, dtype=float), starts.to_numpy(dtype=float)
    stamps = read_dates(history["date"], freq="D")
    locator = AutoDateLocator(minticks=4, maxticks=9, tz=stamps.tz)
    panel.xaxis.set_major_locator(locator)
    panel.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=stamps.tz))
    panel.xaxis.get_offset_text().set(size=8, color=LABEL)
    return date2num(stamps[stamps >= starts.iloc[0]]), date2num(starts)


def _draw_sharpness(panel: Any, rows: _Rows) -> None:
    most = rows.weights.shape[1]
    for row, (before, after) in enumerate(zip(rows.prior_segments, rows.segments, strict=True)):
        y = row + sum(MAIN) / 2
        panel.plot([1, most], [y, y], color=GRID, linewidth=0.8, zorder=0)
        panel.plot([before, after], [y, y], color=FAINT, linewidth=1.6, zorder=1)
        panel.plot(before, y, "o", ms=6, mfc="white", mec=FAINT, mew=1.2, label="prior" if row == 0 else None)
        panel.plot(after, y, "o", ms=6, color=MORE, label="posterior" if row == 0 else None)
        panel.text(after, y + 0.18, f"{after:.1f}", ha="center", va="top", size=7.5, color=INK)
    panel.set_xlim(1 - 0.06 * most, most + 0.06 * most)
    panel.set_xticks(sorted({1, most}))
    panel.set_title("segments read\n(effective number)", size=8, color=INK, loc="left")


def _draw_temperature(panel: Any, rows: _Rows) -> None:
    y = np.arange(len(rows.names)) + sum(MAIN) / 2
    panel.hlines(y, 0, rows.beta, color=FAINT, linewidth=1.6)
    panel.plot(rows.beta, y, "o", ms=6, color=INK)
    for place, beta in zip(y, rows.beta, strict=True):
        panel.text(beta, place + 0.18, f"{beta:.2f}", ha="center", va="top", size=7.5, color=INK)
    panel.set_xlim(0, 1.25 * max(rows.beta.max(), 1e-9))
    panel.set_title("sharpness (hidden\ntemperature \u03b2*)", size=8, color=INK, loc="left")


def _label_colours(bar: Any, label: str) -> None:
    limit = bar.norm.vmax
    ticks = np.linspace(-limit, limit, 5)
    bar.set_ticks(ticks, labels=[f"{2**tick:.3g}\u00d7" for tick in ticks])
    bar.ax.tick_params(labelsize=8, colors=LABEL, length=2)
    bar.outline.set_visible(False)
    bar.set_label(label, size=8, color=INK)
