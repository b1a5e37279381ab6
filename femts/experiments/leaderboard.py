"""Scores of models on forecasting tasks, compared over all tasks: skill and win rate, as fev aggregates them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.analysis.rolling_scores import win_rates
from femts.config.arguments import check_kind
from femts.errors import UsageError
from femts.experiments.results import Store
from femts.experiments.summary import NAIVE, task_publications
from femts.experiments.task_cell import TaskCell
from femts.experiments.tasks import METRICS
from femts.models.registry import has_seen

Array = NDArray[np.float64]

PUBLISHED_NAIVE = "Seasonal naive"
RESAMPLES, SEED = 1000, 0
LEAST, MOST = 0.01, 100.0  # relative errors are clipped to these, as in fev
LEVELS = (0.025, 0.975)
SKILLS = ("mase", "sql")
COLUMNS = ("task", "model", "metric", *METRICS, "train_seconds", "cpu_seconds", "failed", "seen")


def task_scores(cells: Sequence[TaskCell], store: Store) -> pd.DataFrame:
    """Scores of `cells` in the store: one row for each task and model, means over the seeds.

    Returns:
        `task`, `model`, its `metric`, finished `seeds`, `mase`, `sql`, `wape`, `wql` and registered metrics, the wall time of trainings
        (`train_seconds`) and processor time (`cpu_seconds`), why the last cell `failed`, and whether a pretrained model
        has `seen` the data.
    """
    rows = []
    for name, model in dict.fromkeys((cell.task.name, cell.model) for cell in cells):
        own = [cell for cell in cells if cell.task.name == name and cell.model == model]
        task = own[0].task
        records = [record for cell in own if (record := store.readable(cell))]
        failed = [why for cell in own if (why := store.failure(cell))]
        scores = pd.DataFrame([record["scores"] for record in records], dtype=np.float64)
        means = scores.reindex(columns=[*METRICS, *(name for name in scores if name not in METRICS)]).mean()
        times = pd.DataFrame(records, columns=["train_seconds", "cpu_seconds"], dtype=np.float64).mean()
        seen = any(
            has_seen(each["config"]["model"], known)
            for record in records
            for each in record["trained"]
            for known in (each["data"], name)
        )
        what = {"task": task.name, "model": model, "metric": task.metric, "seeds": len(records)}
        rows.append({**what, **means, **times, "failed": failed[-1] if failed else None, "seen": seen})
    return pd.DataFrame(rows)


def with_published(scores: pd.DataFrame) -> pd.DataFrame:
    """The `scores` on tasks for which others have published theirs, followed by these; UsageError if there are none."""
    theirs = task_publications()
    theirs = theirs[theirs["task"].isin(scores["task"])]
    if theirs.empty:
        raise UsageError("No scores are published for any of these tasks; leave published scores out.")
    metrics = scores.groupby("task")["metric"].first()
    theirs = theirs.assign(metric=theirs["task"].map(metrics), seeds=1, failed=None, seen=False)
    ours = scores[scores["task"].isin(theirs["task"])]
    return pd.concat([ours, theirs[[name for name in ours.columns if name in theirs]]], ignore_index=True)


def leaderboard(scores: pd.DataFrame) -> pd.DataFrame:
    """Models compared over all tasks, the best first.

    Args:
        scores: as given by `task_scores`, or by `with_published`; tasks without a score of `seasonal_naive` are left
            out.

    Returns:
        One row for each model: the number of scored `tasks`; for MASE and SQL the skill (`mase_skill`, 1 minus the
        geometric mean of the error divided by that of the seasonal naive forecast, as published if there is one), with
        the bounds `mase_low` and `mase_high` of a 95 % interval by a bootstrap over tasks; `win_rate` over all other
        models by the metric of each task, with such bounds; medians of `train_seconds` and `cpu_seconds`; how many
        tasks `failed`, which then count as the seasonal naive forecast; and how many were `seen` in pretraining. Skill is
        NaN for a model without any score.

    Raises:
        UsageError: The table is not one of scores, or no task has a score of `seasonal_naive`.
    """
    check_kind(scores, pd.DataFrame, "The scores", "give the table that femts.score_tasks returned")
    missing = next((name for name in COLUMNS if name not in scores.columns), None)
    if missing is not None:
        raise UsageError(f"The scores have no column '{missing}'; give the table that femts.score_tasks returned.")
    models = list(scores["model"].unique())
    by = {name: scores.pivot(index="task", columns="model", values=name)[models] for name in METRICS}
    compared = _baseline(by["mase"]).notna()
    tasks = [name for name in scores["task"].unique() if compared[name]]
    if not tasks:
        raise UsageError(f"No task has a score of {NAIVE} yet, with which models are compared; run the tasks first.")
    by = {name: each.loc[tasks] for name, each in by.items()}
    rng = np.random.default_rng(SEED)
    drawn = rng.integers(0, len(tasks), (RESAMPLES, len(tasks)))
    table = pd.DataFrame({"model": models, "tasks": by["mase"].notna().sum().to_numpy()})
    for name in SKILLS:
        made = _summary(f"{name}_skill", name, _relative(by[name]), drawn, _skill)
        scored = by[name].notna().any().to_numpy()
        table = table.assign(**{key: np.where(scored, value, np.nan) for key, value in made.items()})
    metrics = scores.groupby("task")["metric"].first()
    decided = pd.DataFrame({task: _relative(by[metrics[task]]).loc[task] for task in tasks}).T
    table = table.assign(**_summary("win_rate", "win", decided, drawn, win_rates))
    for name in ("train_seconds", "cpu_seconds"):
        table[name] = scores.groupby("model")[name].median().loc[models].to_numpy()
    table["failed"] = scores.groupby("model")["failed"].count().loc[models].to_numpy()
    table["seen"] = scores.groupby("model")["seen"].sum().loc[models].to_numpy()
    return table.sort_values("mase_skill", ascending=False, kind="stable").reset_index(drop=True)


def _baseline(errors: pd.DataFrame) -> pd.Series:
    """Errors (tasks,) of the seasonal naive forecast: the published one, or the measured one where there is none."""
    own = errors.get(NAIVE, pd.Series(np.nan, errors.index))
    return errors[PUBLISHED_NAIVE].fillna(own) if PUBLISHED_NAIVE in errors else own


def _relative(errors: pd.DataFrame) -> pd.DataFrame:
    """Errors (tasks, models) divided by those of the seasonal naive forecast, 1 where they are missing."""
    return errors.div(_baseline(errors), axis=0).clip(LEAST, MOST).fillna(1.0)


def _summary(
    value: str, name: str, relative: pd.DataFrame, drawn: NDArray[np.int64], statistic: Callable[[Array], Array]
) -> dict[str, Array]:
    """A statistic of each model with the bounds of its 95 % interval, over the resampled tasks `drawn`."""
    errors = relative.to_numpy()
    low, high = np.quantile(np.stack([statistic(errors[rows]) for rows in drawn]), LEVELS, axis=0)
    return {value: statistic(errors), f"{name}_low": low, f"{name}_high": high}


def _skill(relative: Array) -> Array:
    return np.asarray(1 - np.exp(np.log(relative).mean(0)))
