#!/usr/bin/env python
"""Draw docs/explanation/free-energy-light.png and -dark.png: how three channels read the same past with one prior.

python scripts/free_energy_picture.py

Top: values of three channels, the weights of the prior, shared by all of them, and the posterior of each channel at
three inverse temperatures. Bottom: the resulting free energy, which goes from the mean to the maximum as the inverse
temperature increases. Everything is computed by the read function of femts; the values come from a formula.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # this checkout, also where another one is installed

from matplotlib.figure import Figure  # noqa: E402

from femts.mixers.priors.softmax import BoundSoftmax  # noqa: E402
from femts.mixers.read import free_energy_read  # noqa: E402
from femts.mixers.temperature import hidden_selection  # noqa: E402
from scripts.picture_theme import SMALL, Theme, figure_of, write_both  # noqa: E402

PICTURE = ROOT / "docs" / "explanation" / "free-energy"
STEPS = 48
BETAS = (0.5, 2.0, 8.0)  # inverse temperatures of the posteriors
CURVE = (0.03, 100.0, 121)  # first, last and number of the inverse temperatures in the lower panel
MEAN, MOST = (0, (4, 3)), (0, (1, 1.5))  # dash patterns
CHANNELS, COLOURS = ("channel A", "channel B", "channel C"), ("orange", "blue", "green")
CAP = 200.0  # bound on the exponent; float64 allows more than the layer's float32


@dataclass(frozen=True)
class Reading:
    """Numbers shown in the picture, for T steps and 3 channels; float64.

    Attributes:
        values: (T, 3).
        prior: (T,), shared by all channels.
        posteriors: by inverse temperature, (T, 3) each.
        betas: inverse temperatures (N,) of the curve.
        reads: free energies (N, 3) at these.
        marked: free energies at the temperatures of the posteriors, (3,) each.
    """

    values: Tensor
    prior: Tensor
    posteriors: dict[float, Tensor]
    betas: Tensor
    reads: Tensor
    marked: dict[float, Tensor]


def computed() -> Reading:
    """Compute the numbers at the last step."""
    when = torch.arange(STEPS, dtype=torch.float64)
    bump = lambda centre, width: torch.exp(-(((when - centre) / width) ** 2))  # noqa: E731
    values = torch.stack(
        [
            1.6 * bump(9, 2.5) + 0.9 * bump(34, 4) + 0.15 * torch.sin(when),
            1.2 * torch.sin(2 * torch.pi * (when - 3) / 12) * (0.6 + 0.4 * when / STEPS),
            0.3 * torch.cos(when / 3) + 1.4 * bump(38, 1.2) - 0.3,
        ],
        dim=-1,
    )
    query = torch.ones(1, 1, 1, 2, dtype=torch.float64)
    keys = torch.stack([2.0 * when / STEPS, 0.8 * torch.cos(2 * torch.pi * when / 24)], dim=-1)[None, :, None]
    prior = BoundSoftmax(query, keys, mask=None, causal=False, backend="auto")
    p, v, gate = prior.weights().flatten(), values[None, :, None], torch.ones(1, 1, 1, 3, dtype=torch.float64)

    def posterior(beta: float) -> Tensor:
        dense = p.view(1, 1, STEPS, 1, 1)
        return hidden_selection(dense, v, torch.full((1, 3), beta, dtype=torch.float64), gate, CAP)[0].view(STEPS, 3)

    def read(beta: float) -> Tensor:
        largest = torch.full((1, 3), beta, dtype=torch.float64)
        f_max = free_energy_read(prior.mix, v, largest, None, None, CAP, None).f_max
        assert f_max is not None
        return f_max.flatten()

    betas = torch.logspace(math.log10(CURVE[0]), math.log10(CURVE[1]), CURVE[2], dtype=torch.float64)
    curve = torch.stack([read(beta) for beta in betas.tolist()])
    posteriors, marked = ({beta: of(beta) for beta in BETAS} for of in (posterior, read))
    return Reading(values, p, posteriors, betas, curve, marked)


def drawing(theme: Theme, reading: Reading) -> Figure:
    """The figure with both parts."""
    figure = figure_of(9, 9)
    figure.get_layout_engine().set(h_pad=0.05, w_pad=0.06)  # type: ignore[union-attr, call-arg]
    rows: Any = figure.add_gridspec(6, 3, height_ratios=[1.5, 0.9, 0.9, 0.9, 0.9, 3])
    first = None
    for channel, (name, colour) in enumerate(zip(CHANNELS, COLOURS, strict=True)):
        tone = theme.colours[colour]
        top = figure.add_subplot(rows[0, channel], sharey=first)
        first = first or top
        _values(top, reading, channel, theme, tone)
        top.set_title(name, color=tone)
        top.tick_params(labelleft=channel == 0)
        weights = [("prior p\n(one for all)", reading.prior, theme.faint)]
        weights += [(f"posterior q\n\u03b2 = {beta:g}", reading.posteriors[beta][:, channel], tone) for beta in BETAS]
        for row, (label, each, shade) in enumerate(weights, start=1):
            panel = figure.add_subplot(rows[row, channel])
            _weights(panel, each, shade)
            panel.tick_params(labelbottom=row == len(weights))
            if channel == 0:
                panel.set_ylabel(label, rotation="horizontal", ha="right", va="center", fontsize=SMALL)
        panel.set_xlabel("steps of the past")
        top.tick_params(labelbottom=False)
    _curve(figure.add_subplot(rows[5, :]), reading, theme)
    return figure


def _values(panel: Any, reading: Reading, channel: int, theme: Theme, tone: str) -> None:
    values = reading.values[:, channel]
    panel.plot(values, color=tone, linewidth=1.8)
    panel.axhline(float(reading.prior @ values), color=theme.faint, linewidth=1, linestyle=MEAN)
    panel.plot(int(values.argmax()), float(values.max()), "o", color=tone, markersize=5)
    panel.set_xlim(-0.5, STEPS - 0.5)
    panel.tick_params(length=0)
    if channel == 0:
        panel.set_ylabel("value v", rotation="horizontal", ha="right", va="center", fontsize=SMALL)


def _weights(panel: Any, weights: Tensor, tone: str) -> None:
    """Bars that fill the height of their row, with the largest value as a label."""
    panel.bar(range(STEPS), weights, width=1.0, color=tone)
    most, top = int(weights.argmax()), float(weights.max())
    panel.text(min(most, STEPS - 3), 1.06 * top, f"{100 * top:.0f} %", ha="center", va="bottom", fontsize=SMALL)
    panel.set_ylim(0, 1.5 * top)
    panel.set_xlim(-0.5, STEPS - 0.5)
    panel.set_yticks([])
    panel.spines["left"].set_visible(False)
    panel.tick_params(length=0)


def _curve(panel: Any, reading: Reading, theme: Theme) -> None:
    first, last, _ = CURVE
    for channel, (name, colour) in enumerate(zip(CHANNELS, COLOURS, strict=True)):
        tone, values = theme.colours[colour], reading.values[:, channel]
        panel.plot(reading.betas, reading.reads[:, channel], color=tone, linewidth=2.2)
        panel.hlines(float(values.max()), 12, last, color=tone, linewidth=1.2, linestyle=MOST)
        panel.hlines(float(reading.prior @ values), first, 0.25, color=tone, linewidth=1.2, linestyle=MEAN)
        panel.plot(BETAS, [reading.marked[beta][channel] for beta in BETAS], "o", color=tone, markersize=5)
        panel.text(1.06 * last, float(reading.reads[-1, channel]), name, color=tone, va="center", fontsize=SMALL)
    panel.plot([], [], color=theme.faint, linewidth=1.2, linestyle=MEAN, label="mean under the prior")
    panel.plot([], [], color=theme.faint, linewidth=1.2, linestyle=MOST, label="maximum")
    panel.plot([], [], "o", color=theme.faint, markersize=5, label="\u03b2 of the posteriors above")
    panel.legend(loc="upper left", frameon=True, facecolor=theme.paper, edgecolor="none", framealpha=1)
    panel.set_xscale("log")
    panel.set_xlim(first, last)
    ticks = (0.05, 0.1, 0.5, 1, 2, 8, 20, 100)
    panel.set_xticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    panel.minorticks_off()
    panel.grid(axis="x", linewidth=0.7)
    panel.set_xlabel("inverse temperature \u03b2")
    panel.set_ylabel("value that is read, F(\u03b2)")


def plain(reading: Reading) -> dict[str, Any]:
    """All numbers shown, in plain types."""
    posteriors = {beta: posterior.tolist() for beta, posterior in reading.posteriors.items()}
    return {"values": reading.values.tolist(), "posteriors": posteriors, "reads": reading.reads.tolist()}


if __name__ == "__main__":
    made = computed()
    write_both(PICTURE, lambda theme: drawing(theme, made), plain(made))
