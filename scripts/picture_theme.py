"""Light and dark theme of pictures on pages: colours, fonts, and a digest of the data in each file."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image
from PIL.PngImagePlugin import PngInfo

DPI = 200  # pages show pictures at 100 dots per inch, so that 9 points are 12.5 pixels
SMALL, NORMAL, LARGE = 9, 10, 11  # points
COLOURS = 128  # colours of a file
DRAWN_OF = "Description"  # PNG text field with the digest


@dataclass(frozen=True)
class Theme:
    """Colours of one theme.

    Attributes:
        name: suffix of its files.
        paper, ink, faint, grid: background, text, secondary text, grid lines.
        colours: Okabe and Ito's palette for colour-blind readers, with lightness adapted to the background.
        style: matplotlib settings.
    """

    name: str
    paper: str
    ink: str
    faint: str
    grid: str
    colours: Mapping[str, str]

    @property
    def style(self) -> Any:
        return {
            "figure.facecolor": self.paper,
            "axes.facecolor": self.paper,
            "savefig.facecolor": self.paper,
            "axes.edgecolor": self.grid,
            "axes.labelcolor": self.ink,
            "axes.titlecolor": self.ink,
            "text.color": self.ink,
            "xtick.color": self.grid,
            "ytick.color": self.grid,
            "xtick.labelcolor": self.ink,
            "ytick.labelcolor": self.ink,
            "grid.color": self.grid,
            "font.size": NORMAL,
            "axes.titlesize": NORMAL,
            "axes.labelsize": NORMAL,
            "xtick.labelsize": SMALL,
            "ytick.labelsize": SMALL,
            "legend.fontsize": SMALL,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.axisbelow": True,
            "axes.titlelocation": "left",
            "axes.titleweight": "bold",
            "legend.frameon": False,
        }


LIGHT = Theme(
    "light",
    paper="#ffffff",
    ink="#22272b",
    faint="#5f6b76",
    grid="#d5dade",
    colours={
        "orange": "#d55e00",
        "blue": "#0072b2",
        "green": "#009e73",
        "pink": "#b8608f",
        "sky": "#56b4e9",
        "amber": "#c98a00",
        "ink": "#22272b",
    },
)
DARK = Theme(
    "dark",
    paper="#0d1117",
    ink="#e6edf3",
    faint="#a3adb7",
    grid="#3a424b",
    colours={
        "orange": "#ff8a3d",
        "blue": "#4c9be8",
        "green": "#2bc79a",
        "pink": "#e79cc6",
        "sky": "#8fd3ff",
        "amber": "#f2c14e",
        "ink": "#e6edf3",
    },
)


def figure_of(width: float, height: float) -> Figure:
    """An empty figure with a size in inches."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def write_both(path: Path, draw: Callable[[Theme], Figure], drawn: Any) -> None:
    """Write `NAME-light.png` and `NAME-dark.png` for the `path` NAME, each with the digest of the data `drawn`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for theme in (LIGHT, DARK):
        with matplotlib.rc_context(theme.style):
            content = io.BytesIO()
            draw(theme).savefig(content, dpi=DPI)
        said = PngInfo()
        said.add_text(DRAWN_OF, digest(drawn))
        with Image.open(content) as image:
            few = image.convert("RGB").quantize(
                COLOURS, dither=Image.Dither.NONE
            )  # a third of the size without visible loss
            few.save(path.with_name(f"{path.name}-{theme.name}.png"), pnginfo=said, optimize=True)


def stale(path: Path, drawn: Any) -> list[str]:
    """Files of `write_both` that are missing or were drawn from other data."""
    files = [path.with_name(f"{path.name}-{theme.name}.png") for theme in (LIGHT, DARK)]
    return [file.name for file in files if not file.is_file() or drawn_of(file) != digest(drawn)]


def drawn_of(file: Path) -> str | None:
    """Digest of the data that a picture was drawn from."""
    with Image.open(file) as image:
        said: str | None = image.info.get(DRAWN_OF)
    return said


def digest(drawn: Any) -> str:
    """Digest of plain data that is unaffected by rounding in the last bits of numbers."""
    return hashlib.sha256(json.dumps(_rounded(drawn), sort_keys=True).encode()).hexdigest()[:16]


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return f"{round(value, 6) + 0.0:.6g}"  # avoids -0 for sums that are 0 up to rounding
    if isinstance(value, Mapping):
        return {str(key): _rounded(each) for key, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list | tuple) else value
