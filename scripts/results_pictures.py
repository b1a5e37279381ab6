#!/usr/bin/env python
"""Draw results/pictures/ from the records: mean errors with their seeds, errors by horizon, and time against error.

python scripts/results_pictures.py            # after new records
python scripts/results_pictures.py --check    # write nothing; status 1 if a picture is out of date

Of recursive models, only trainings at horizon 96 are shown, also at longer horizons, so that each has one training per
seed, as in the tables of results/README.md. All look-backs are 1024 steps, so that only the models differ. A model
without a record for some horizon has no mean and is omitted from plots of means.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # this checkout, also where another one is installed

import pandas as pd  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.ticker import LogLocator  # noqa: E402

from femts.data.protocols import HORIZONS  # noqa: E402
from femts.experiments.cell import Cell  # noqa: E402
from femts.experiments.results import Store  # noqa: E402
from femts.experiments.summary import ALL, make_scores, publications  # noqa: E402
from femts.models.registry import model_card  # noqa: E402
from scripts.picture_theme import SMALL, Theme, figure_of, stale, write_both  # noqa: E402

FOLDER = ROOT / "results" / "pictures"
RECORDS = ROOT / "results"
PROTOCOL, NAIVE = "paper", "seasonal_naive"
DATASETS = tuple(publications()["dataset"].unique())
# Colour and marker of each model in all pictures. A mixer has the marker of its prior without a mixer, which is hollow.
LOOKS = {
    "fem_sm_ridge": ("orange", "D"),
    "ridge": ("ink", "s"),
    "fem_sm": ("blue", "o"),
    "fem_gla": ("green", "^"),
    "fem_mamba": ("pink", "v"),
    "fem_aft": ("amber", "P"),
    "sm": ("blue", "o"),
    "gla": ("green", "^"),
    "aft": ("amber", "P"),
    "mamba": ("pink", "v"),
    "lintrans": ("sky", "<"),
    "itransformer": ("sky", ">"),
    "patchtst": ("sky", "X"),
    "dlinear": ("sky", "*"),
}
HOLLOW = ("sm", "gla", "aft", "mamba")
LOOK_BACK = 1024


@dataclass(frozen=True)
class Measured:
    """A model on a dataset: test MSE and seconds of training, by seed.

    Attributes:
        mses: by horizon and seed.
        seconds: by seed.
    """

    dataset: str
    model: str
    mses: Mapping[int, Mapping[int, float]]
    seconds: Mapping[int, float]

    @property
    def means(self) -> dict[int, float]:
        """Means over the horizons by seed, for seeds with all horizons."""
        seeds = [seed for seed in self.mses[HORIZONS[0]] if all(seed in self.mses[steps] for steps in HORIZONS)]
        return {seed: statistics.fmean(self.mses[steps][seed] for steps in HORIZONS) for seed in seeds}


def measured(folder: Path = RECORDS) -> list[Measured]:
    """Records in `folder` of the models shown and the naive forecast, by dataset."""
    store, rows = Store(folder), []
    for dataset in DATASETS:
        for model in (*LOOKS, NAIVE):
            cells = _cells(store, dataset, model)
            scores: Any = make_scores(cells, store, HORIZONS).dropna(subset="mse") if cells else ()
            if len(scores):
                by_horizon = {steps: scores[scores["pred_len"] == steps] for steps in HORIZONS}
                mses = {steps: dict(zip(own["seed"], own["mse"], strict=True)) for steps, own in by_horizon.items()}
                rows.append(Measured(dataset, model, mses, _seconds(scores)))
    return rows


def _cells(store: Store, dataset: str, model: str) -> list[Cell]:
    """Cells of the default recipe with a record and a look-back of 1024 steps; for recursive models, only those of 96
    steps."""
    counted, cells = HORIZONS[:1] if model_card(model).model_class.supports.recursive else HORIZONS, []
    for path in sorted((store.folder / PROTOCOL / dataset).glob(f"{model}-*-seed*.json")):
        steps, _, seed = path.stem.removeprefix(f"{model}-").partition("-seed")
        if steps in map(str, counted) and seed.isdigit():  # skips crash reports
            cell = Cell(dataset, model, int(steps), int(seed), PROTOCOL)
            record = store.readable(cell)
            if record and (model == NAIVE or record["config"]["seq_len"] == LOOK_BACK):
                cells.append(cell)
    return cells


def _seconds(scores: pd.DataFrame) -> dict[int, float]:
    """Total time by seed of all trainings behind the scores at the horizons."""
    trained = scores["record"].map(lambda record: record["cell"]["pred_len"])
    trainings = scores.assign(trained=trained).drop_duplicates(["seed", "trained"])
    return dict(trainings.groupby("seed", sort=False)["seconds"].sum())


def plain(rows: list[Measured]) -> list[Any]:
    """All numbers shown, in plain types."""
    published = [
        [model, own["scored"].iloc[0], dict(zip(own["dataset"], own["mse"], strict=True))]
        for model, own in publications().groupby("model", sort=False)
    ]
    return [[[row.dataset, row.model, row.mses, row.seconds] for row in rows], published]


def draw_means(theme: Theme, rows: list[Measured]) -> Figure:
    """Plot means over the horizons, one dot per model with small dots for seeds; a line is the lowest published mean
    over all windows."""
    shown = [row for row in rows if row.means and row.model != NAIVE]
    datasets = [name for name in DATASETS if any(row.dataset == name for row in shown)]
    counts = [sum(row.dataset == name for row in shown) for name in datasets]
    figure = figure_of(8, 0.7 + sum(0.7 + 0.24 * count for count in counts))
    figure.get_layout_engine().set(h_pad=0.08)  # type: ignore[union-attr, call-arg]
    means = publications()
    panels: Any = figure.subplots(len(datasets), 1, squeeze=False, height_ratios=[1.2 + count for count in counts])
    for name, panel in zip(datasets, panels[:, 0], strict=True):
        own = sorted((row for row in shown if row.dataset == name), key=_mean, reverse=True)
        for place, row in enumerate(own):
            _mean_and_seeds(panel, theme, place, row)
        lowest = means.loc[(means["dataset"] == name) & (means["scored"] == ALL), "mse"].min()
        if lowest == lowest:  # not NaN
            panel.axvline(lowest, color=theme.faint, linewidth=1.2, linestyle=(0, (4, 3)), zorder=1)
        panel.set_yticks(range(len(own)), labels=[row.model for row in own])
        panel.set_ylim(-0.7, len(own) - 0.3)
        naive = [row for row in rows if row.dataset == name and row.model == NAIVE and row.means]
        beside = f"seasonal naive {_mean(naive[0]):.3f}" if naive else ""
        said = f"lowest published of all windows {lowest:.3f} (dashed)" if lowest == lowest else ""
        panel.set_title(name, loc="left")
        panel.set_title(", ".join(filter(None, (said, beside))), loc="right", fontsize=SMALL, fontweight="normal")
        _finish(panel)
        panel.grid(axis="x", linewidth=0.7)
        panel.margins(x=0.1)
    panels[-1, 0].set_xlabel("test MSE, mean over 96, 192, 336 and 720 steps; small dots are seeds")
    return figure


def _mean_and_seeds(panel: Any, theme: Theme, place: int, row: Measured) -> None:
    seeds = list(row.means.values())
    look = _look(theme, row.model)
    small = {"s": 16, "color": theme.faint, "edgecolors": theme.paper, "linewidths": 0.6}
    panel.scatter(seeds, [place] * len(seeds), zorder=3, gid=f"seeds {row.model}", **small)
    panel.scatter([_mean(row)], [place], s=55, zorder=2, gid=f"mean {row.model}", **look)
    beside = {"textcoords": "offset points", "va": "center", "fontsize": SMALL, "zorder": 4}
    paper = {"facecolor": theme.paper, "edgecolor": "none", "pad": 1}  # so that no line runs through a number
    panel.annotate(f"{_mean(row):.3f}", (max(seeds), place), (9, 0), bbox=paper, **beside)


def draw_horizons(theme: Theme, rows: list[Measured]) -> Figure:
    """Plot errors by horizon relative to the seasonal naive forecast: one line per model, averaged over seeds."""
    lines = parts_of_naive(rows)
    figure, panels = _grid_of(lines, theme)
    for (name, model), parts in lines.items():
        colour, dash = theme.colours[LOOKS[model][0]], (0, (3, 1.5)) if model in HOLLOW else "solid"
        at = [HORIZONS.index(steps) for steps in parts]
        panels[name].plot(at, [*parts.values()], color=colour, linewidth=1.5, linestyle=dash, zorder=2)
        panels[name].scatter(at, [*parts.values()], s=30, zorder=3, gid=f"horizons {model}", **_look(theme, model))
    for panel in panels.values():
        panel.set_xticks(range(len(HORIZONS)), labels=[str(steps) for steps in HORIZONS])
        panel.set_xlabel("steps ahead")
        panel.set_ylabel("MSE, part of the naive one")
        panel.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
    return figure


def parts_of_naive(rows: list[Measured]) -> dict[tuple[str, str], dict[int, float]]:
    """Mean errors by horizon relative to the seasonal naive forecast, by dataset and model, for at least two
    horizons."""
    naive = {row.dataset: row.mses for row in rows if row.model == NAIVE}
    parts = {}
    for row in rows:
        beside = naive.get(row.dataset, {})
        own = {
            steps: statistics.fmean(by_seed.values()) / statistics.fmean(beside[steps].values())
            for steps, by_seed in row.mses.items()
            if by_seed and beside.get(steps)
        }
        if row.model != NAIVE and len(own) > 1:
            parts[row.dataset, row.model] = own
    return parts


def draw_times(theme: Theme, rows: list[Measured]) -> Figure:
    """Plot training time against mean error, one dot per seed."""
    dots = {(row.dataset, row.model): row for row in rows if row.model != NAIVE and row.means}
    figure, panels = _grid_of(dots, theme)
    minutes = [seconds / 60 for row in dots.values() for seconds in row.seconds.values()]
    for (name, model), row in dots.items():
        times = [row.seconds[seed] / 60 for seed in row.means]
        errors = list(row.means.values())
        panels[name].scatter(times, errors, s=40, zorder=3, gid=f"times {model}", **_look(theme, model))
    for panel in panels.values():
        panel.set_xscale("log")
        panel.set_xlim(0.7 * min(minutes), 1.4 * max(minutes))
        panel.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        panel.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        panel.minorticks_off()
        panel.set_xlabel("minutes of training")
        panel.set_ylabel("test MSE, mean")
    return figure


def _grid_of(drawn: Iterable[tuple[str, str]], theme: Theme) -> tuple[Figure, dict[str, Any]]:
    """A figure with a panel for each dataset in `drawn`, and one legend of the models."""
    pairs = list(drawn)
    datasets = [name for name in DATASETS if any(name == dataset for dataset, _ in pairs)]
    models = [name for name in LOOKS if any(name == model for _, model in pairs)]
    down = (len(datasets) + 1) // 2
    figure = figure_of(8, 0.8 + 2.6 * down)
    grid: Any = figure.subplots(down, 2, squeeze=False)
    for panel in grid.flat[len(datasets) :]:
        panel.remove()
    panels = dict(zip(datasets, grid.flat, strict=False))
    for name, panel in panels.items():
        panel.set_title(name, loc="left")
        panel.grid(axis="y", linewidth=0.7)
        _finish(panel)
    handles = [grid.flat[0].scatter([], [], s=40, **_look(theme, model)) for model in models]
    figure.legend(handles, models, loc="outside upper left", ncols=min(6, len(models)), handletextpad=0.2)
    return figure, panels


def _look(theme: Theme, model: str) -> dict[str, Any]:
    name, marker = LOOKS[model]
    colour = theme.colours[name]
    inside = theme.paper if model in HOLLOW else colour
    return {"marker": marker, "facecolors": inside, "edgecolors": colour, "linewidths": 1.4}


def _mean(row: Measured) -> float:
    return statistics.fmean(row.means.values())


def _finish(panel: Any) -> None:
    panel.spines["left"].set_visible(False)
    panel.tick_params(length=0)


PICTURES = {"means": draw_means, "horizons": draw_horizons, "times": draw_times}


if __name__ == "__main__":
    everything = measured()
    if not parts_of_naive(everything):
        sys.exit(f"Folder {RECORDS} has no records to draw; run 'femts table' first, {NAIVE} among its models.")
    for title, draw in PICTURES.items():
        if "--check" not in sys.argv[1:]:
            write_both(FOLDER / title, partial(draw, rows=everything), plain(everything))
        elif old := stale(FOLDER / title, plain(everything)):
            sys.exit(f"{old[0]} is out of date; run scripts/results_pictures.py.")
