#!/usr/bin/env python
"""Draw results/pictures/tasks: skill of models on the six tasks of fev-bench, with published scores, as bars.

python scripts/tasks_picture.py            # after new records of tasks
python scripts/tasks_picture.py --check    # write nothing; status 1 if the picture is out of date
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # this checkout, also where another one is installed

import pandas as pd  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

import femts  # noqa: E402
from scripts.picture_theme import Theme, figure_of, stale, write_both  # noqa: E402

PICTURE, TASKS = ROOT / "results" / "pictures" / "tasks", ROOT / "configs" / "tasks" / "fev.yaml"
MODELS = ("auto", "fem_sm_ridge", "ridge")
NAIVE = ("seasonal_naive", "Seasonal naive")
SCORES = {"mase": "MASE", "sql": "scaled quantile loss"}


def measured() -> pd.DataFrame:
    """The leaderboard of our models and of published ones, without the seasonal naive forecasts."""
    board = femts.leaderboard(femts.score_tasks(TASKS, MODELS, results=ROOT / "results", train=False, published=True))
    return board[~board["model"].isin(NAIVE)].reset_index(drop=True)


def draw(theme: Theme, board: pd.DataFrame) -> Figure:
    """Bars of the skill of each model, ours in another colour, with intervals of 95 %."""
    figure = figure_of(8, 1.0 + 0.24 * len(board))
    panels: Any = figure.subplots(1, 2, sharey=True)
    rows = board[::-1]  # the best on top
    colours = [theme.colours["orange" if name in MODELS else "sky"] for name in rows["model"]]
    for panel, (name, title) in zip(panels, SCORES.items(), strict=True):
        skill = 100 * rows[f"{name}_skill"]
        ends = [skill - 100 * rows[f"{name}_low"], 100 * rows[f"{name}_high"] - skill]
        panel.barh(rows["model"], skill, color=colours, height=0.7)
        panel.errorbar(skill, rows["model"], xerr=ends, fmt="none", ecolor=theme.faint, elinewidth=1)
        panel.set_title(f"Skill by {title}, %")
        panel.grid(axis="x", linewidth=0.7)
        panel.spines["left"].set_visible(False)
        panel.tick_params(length=0)
    return figure


def main() -> None:
    """Draw the picture, or check it."""
    board = measured()
    drawn = board[["model", *(f"{name}_{part}" for name in SCORES for part in ("skill", "low", "high"))]]
    plain = drawn.to_dict("list")
    if "--check" not in sys.argv[1:]:
        write_both(PICTURE, partial(draw, board=board), plain)
    elif old := stale(PICTURE, plain):
        sys.exit(f"{old[0]} is out of date; run scripts/tasks_picture.py.")


if __name__ == "__main__":
    main()
