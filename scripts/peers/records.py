"""Records of other tools, and the tables that compare them with those of femts."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from femts.data.dataset import Dataset
from femts.errors import UsageError
from femts.experiments.leaderboard import leaderboard, task_scores
from femts.experiments.results import Store
from femts.experiments.tables import Lowest, Shown, as_markdown, leaderboard_tables
from femts.experiments.task_cell import TaskCell
from femts.experiments.tasks import Task

ROOT = Path(__file__).resolve().parents[2]
LISTS = [ROOT / "configs" / "tasks" / name for name in ("outside.yaml", "packages.yaml", "r_packages.yaml")]
TOOLS = ("statsforecast", "mlforecast", "autogluon", "neuralforecast", "prophet", "darts", "skforecast")
NAMES = {
    **{"statsforecast": "statsforecast (median of 4)", "mlforecast": "mlforecast (AutoLightGBM)"},
    **{"neuralforecast": "neuralforecast (N-HiTS)", "autogluon": "AutoGluon", "prophet": "Prophet"},
    **{"darts": "darts (LightGBM)", "skforecast": "skforecast (LightGBM)"},
}
OURS = ("auto", "fem_zero", "stat_ensemble", "nhits", "boost", "seasonal_naive")
STEPS = {"MS": "monthly", "QS": "quarterly", "YS": "yearly", "W": "weekly", "D": "daily", "B": "daily"}


def kind_of(data: Sequence[Dataset], task: Task) -> dict[str, Any]:
    """What decides which tools suit a task: its step, season, and numbers of series, columns, covariates and rows."""
    first = data[0]
    return {
        **{"freq": first.freq, "season": task.season or first.season, "series": sum(len(each) for each in data)},
        **{"columns": first.n_targets, "covariates": first.covariates.shape[1], "rows": max(e.rows for e in data)},
    }


def record_path(out: Path, task: Task, tool: str) -> Path:
    """Path of the record of a tool on a task."""
    return out / task.name / f"{tool}.json"


def read(path: Path, task: Task) -> dict[str, Any] | None:
    """A record; None if there is none of this task."""
    record = json.loads(path.read_bytes()) if path.is_file() else None
    return record if record and record["task"] == task.to_dict() else None


def _step(kind: dict[str, Any]) -> str:
    freq = kind["freq"] or ""
    return STEPS.get(freq.split("-")[0], "hourly or finer" if freq.endswith(("h", "min")) else "undated")


def _shape(kind: dict[str, Any]) -> str:
    if kind["covariates"]:
        return "known covariates"
    return "panel" if kind["series"] > 1 else "several columns" if kind["columns"] > 1 else "one series"


GROUPS = {"step": _step, "shape": _shape}


def scores_of(tasks: Sequence[Task], out: Path, results: Path) -> pd.DataFrame:
    """Scores of models of femts and of other tools in the form of `leaderboard`, with `memory_mib`, and `step` and
    `shape` of the task. Tasks without a record of a tool are left out.
    """
    rows, kinds = list[dict[str, Any]](), dict[str, dict[str, Any]]()
    for task in tasks:
        for path in sorted((out / task.name).glob("*.json")):
            if record := read(path, task):
                tool = path.stem
                kinds[task.name] = {name: name_of(record["kind"]) for name, name_of in GROUPS.items()}
                what = {"task": task.name, "metric": task.metric, "seen": False, "tool": tool}
                scores = record.get("scores") or {tool: {}}
                for model, own in scores.items():
                    spent = {name: record[name] for name in ("cpu_seconds", "memory_mib")} if model == tool else {}
                    rows.append(
                        {**what, "model": NAMES.get(model, model), **own, **spent, "failed": record.get("error")}
                    )
    if not rows:
        raise UsageError(f"No tool has a record of these tasks in {out}; run one.")
    known = [task for task in tasks if task.name in kinds]
    cells = [TaskCell(task, model) for task in known for model in OURS]
    ours = task_scores(cells, Store(results)).assign(tool="femts")
    run = ours.groupby("model")["mase"].transform("count") > 0
    ours = ours[run | (ours["model"] == "auto")]  # others have no record of any task
    every = pd.concat([ours, pd.DataFrame(rows)], ignore_index=True)
    return every.join(pd.DataFrame.from_dict(kinds, orient="index"), on="task")


def tables(tasks: Sequence[Task], out: Path, results: Path, part: str) -> str:
    """One of the tables `PARTS` in Markdown."""
    scores = scores_of(tasks, out, results)
    return "\n\n".join(as_markdown(*each) for each in PARTS[part](scores))


def _board(scores: pd.DataFrame) -> list[Shown]:
    """Skill, win rate and costs over all tasks, as far as a model has been run."""
    board, mase = leaderboard(scores), scores.pivot(index="task", columns="model", values="mase")
    memory = scores.groupby("model")["memory_mib"].median()
    head = ["model", "MASE skill", "SQL skill", "win rate", "below auto", "tasks", "cpu s", "MiB", "failed"]
    rows = [
        [
            *(row.model, *(f"{100 * each:.1f}%" for each in (row.mase_skill, row.sql_skill, row.win_rate))),
            *("-" if row.model == "auto" else str(int((mase[row.model] < mase["auto"]).sum())), str(row.tasks)),
            *("-" if np.isnan(each) else f"{each:.0f}" for each in (row.cpu_seconds, memory[row.model])),
            str(row.failed or "-"),
        ]
        for row in board.itertuples()
    ]
    return [Shown(head, rows)]


def _beaten(scores: pd.DataFrame) -> list[Shown]:
    """Tasks on which another tool has a lower MASE than `auto`, those with the largest lead first."""
    rows = list[tuple[float, list[str]]]()
    for task, own in scores.groupby("task"):
        (auto,) = own[own["model"] == "auto"].itertuples()
        theirs = own[(own["tool"] != "femts") & (own["mase"] < auto.mase)].sort_values("mase")
        if len(theirs):
            best = next(theirs.itertuples())
            errors = [f"{each.mase:.3f} / {each.sql:.3f}" for each in (best, auto)]
            row = [str(task), f"{auto.step}, {auto.shape}", best.model, *errors, f"{1 - best.mase / auto.mase:.0%}"]
            rows.append((best.mase / auto.mase, row))
    head = ["task", "kind", "best of the others", "MASE / SQL", "of auto", "lower MASE by"]
    return [Shown(head, [row for _, row in sorted(rows)])]


def _kinds(scores: pd.DataFrame) -> list[Shown]:
    """MASE skill of whole tools by kind of task."""
    shown = {"auto", "fem_zero", *NAMES.values()}
    whole, rows = [each for each in leaderboard(scores)["model"] if each in shown], list[list[str]]()
    for by in GROUPS:
        for kind, own in sorted(scores.groupby(by), key=lambda each: -each[1]["task"].nunique()):
            skill = leaderboard(own).set_index("model")["mase_skill"].reindex(whole)
            cells = ["-" if np.isnan(each) else f"{100 * each + 0.0:.0f}%" for each in skill]
            best = [Lowest(cell) if each == skill.max() else cell for cell, each in zip(cells, skill, strict=True)]
            rows.append([str(kind), str(own["task"].nunique()), *best])
    return [Shown(["kind", "tasks", *whole], rows)]


def _tasks(scores: pd.DataFrame) -> list[Shown]:
    """MASE and SQL by task."""
    return leaderboard_tables(leaderboard(scores), scores)[1:]


def _failed(scores: pd.DataFrame) -> list[Shown]:
    """Why tools failed."""
    failed = scores[scores["failed"].notna()]
    return [Shown(["task", "tool", "error"], [[e.task, e.model, str(e.failed)] for e in failed.itertuples()])]


PARTS: dict[str, Callable[[pd.DataFrame], list[Shown]]] = {
    **{"board": _board, "beaten": _beaten, "kinds": _kinds, "tasks": _tasks, "failed": _failed}
}
