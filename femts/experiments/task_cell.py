"""A model on a forecasting task: one run, determined by its fields, and its record."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pandas as pd

from femts.config.model import AUTO
from femts.config.records import fingerprint
from femts.errors import UsageError
from femts.experiments.cell import check_settings, name_of_settings
from femts.experiments.compare import NAIVE
from femts.experiments.results import AnyRecord, Count, Job, Loss, OpenPart, Part, Positive, Sha256
from femts.experiments.tasks import METRICS, QUANTILES, Task, read_tasks, resolve_source, score_forecasts
from femts.logging import quiet_training

if TYPE_CHECKING:
    from femts.data.dataset import Dataset
    from femts.forecaster.forecaster import Forecaster

_DIGITS = 8  # of a hash in a path


class TaskScores(Part):
    mase: Loss | None
    sql: Loss | None
    wape: Loss | None
    wql: Loss | None


class TaskCellFields(Part):
    task: dict[str, Any]
    model: str
    seed: Count
    settings: dict[str, str]
    sha256: list[Sha256]


class Trained(OpenPart):
    """A forecaster of the run: its data, number of training rows, and recipe."""

    data: str
    rows: Positive
    config: dict[str, Any]


class TaskRecord(AnyRecord):
    """The record of a model on a task.

    Attributes:
        scores: means over the windows.
        windows: the same by window.
        train_seconds: wall time of all trainings.
        cpu_seconds: processor time of training and forecasts, of all threads and processes.
    """

    format: str
    cell: TaskCellFields
    scores: TaskScores
    windows: list[TaskScores]
    train_seconds: Loss
    cpu_seconds: Loss
    trained: list[Trained]


@dataclass(frozen=True)
class TaskCell(Job):
    """One model on one task, as requested.

    Attributes:
        task: the task.
        model: registered name.
        seed: seed of weights, order and dropout.
        settings: `model.*` and `training.*` settings.
        sha256: hashes of the datasets, in the order of `task.data`; empty if they are unknown, to show records.
        sources: their catalogue names or paths.
    """

    record_format: ClassVar = "task-1"
    record_model: ClassVar = TaskRecord
    command: ClassVar = "femts table --tasks"

    task: Task
    model: str
    seed: int = 42
    settings: Mapping[str, Any] = field(default_factory=dict)
    sha256: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """Path of its record, with a hash of the task, so that another task of this name has records of its own."""
        changes = {key: str(value) for key, value in self.settings.items()}
        recipe = f"{self.model}-{name_of_settings(changes)}" if changes else self.model
        task = f"{self.task.name}-{fingerprint(self.task.to_dict())[:_DIGITS]}"
        return f"tasks/{task}/{recipe}-seed{self.seed}"

    def to_dict(self) -> dict[str, Any]:
        """The `cell` of a record."""
        settings = {key: str(value) for key, value in self.settings.items()}
        return {
            **{"task": self.task.to_dict(), "model": self.model, "seed": self.seed},
            **{"settings": settings, "sha256": list(self.sha256)},
        }

    @classmethod
    def of(cls, record: Mapping[str, Any], data_root: str | None) -> Self:
        """The cell of a record; raise UsageError if its data are not in the data folder."""
        cell = record["cell"]
        task = Task.model_validate(cell["task"])
        sources = tuple(resolve_source(each, Path(), data_root) for each in task.data)
        return cls(task, cell["model"], cell["seed"], cell["settings"], tuple(cell["sha256"]), sources)

    def check_is_of(self, record: Mapping[str, Any]) -> None:
        for name, expected in self.to_dict().items():
            stored = record["cell"][name]
            if stored != expected and (name != "sha256" or self.sha256):
                raise ValueError(f"cell.{name} is {stored!r}, not {expected!r}")

    def check_data(self, record: Mapping[str, Any], data_root: str | None) -> None:
        if self.model == AUTO and self.task.time_limit is not None:
            raise UsageError(
                f"The record of '{AUTO}' on task '{self.task.name}' depends on its time limit of "
                f"{self.task.time_limit}, so a repeated run may differ; verify records of single models."
            )
        self.load(data_root)

    def main_score(self, record: Mapping[str, Any]) -> tuple[str, float]:
        name = self.task.metric
        value = record["scores"][name]
        return name.upper(), float("nan") if value is None else value

    def summary(self, record: Mapping[str, Any]) -> str:
        return " ".join(f"{name.upper()} {value:.4f}" for name, value in record["scores"].items() if value is not None)

    def load(self, data_root: str | Path | None) -> list[Dataset]:
        """The datasets of the task; raise UsageError if one has changed since the cell was created."""
        tables = [self.task.load(source, data_root) for source in self.sources]
        for table, known in zip(tables, self.sha256, strict=True):
            if table.fingerprint() != known:
                raise UsageError(f"Dataset '{table.name}' of task '{self.task.name}' has changed; run it again.")
        return tables

    def run(self, work: Path | None, device: str, data_root: str | None) -> dict[str, Any]:
        from femts.environment import commit, processor_seconds, run_environment

        started, cpu = time.monotonic(), processor_seconds()
        tables, forecasts, trained = self.load(data_root), list[pd.DataFrame](), list[dict[str, Any]]()
        training, forecaster = 0.0, None
        count = 1 if self.task.refit else self.task.windows  # windows forecast by one training
        for number, data in enumerate(tables):
            parts = list[pd.DataFrame]()
            for first in range(0, self.task.windows, count):
                begun, name = time.monotonic(), f"{number}-{first}"
                before = _readable(_rows_before(data, self.task, first), self.model)
                forecaster = self._train(before, None if work is None else work / name, device)
                training += time.monotonic() - begun
                if not first:
                    trained.append(_recipe(forecaster, before))
                parts.append(_forecasts(forecaster, data, self.task, first, count))
            forecasts.append(pd.concat(parts, ignore_index=True))
        windows = score_forecasts(forecasts, tables, self.task)
        assert forecaster is not None
        metrics = forecaster.metrics
        return {
            "format": self.record_format,
            "cell": self.to_dict(),
            "scores": _plain(windows[list(METRICS)].mean()),
            "windows": [_plain(row) for _, row in windows[list(METRICS)].iterrows()],
            "trained": trained,
            "seconds": time.monotonic() - started,
            "train_seconds": training,
            "cpu_seconds": processor_seconds() - cpu,
            "parameters": metrics["parameters"],
            "kernels": metrics["kernels"],
            "place": run_environment(metrics["device"], metrics["precision"]),
            "commit": commit(),
        }

    def _train(self, data: Dataset, work: Path | None, device: str) -> Forecaster:
        """Train with the absolute error, as the metrics of tasks are, unless the settings or the model say otherwise."""
        from femts.models.registry import model_card
        from femts.training.train import train

        own, limit = dict[str, Any](), self.task.time_limit
        if self.model != AUTO:  # which chooses by the absolute error itself
            losses, limit = model_card(self.model).model_class.losses, None
            own = {"training.loss": "mae"} if not losses or "mae" in losses else {}
        with quiet_training():
            return train(
                data,
                self.model,
                self.task.horizon,
                out=work,
                seed=self.seed,
                device=device,
                resume=work is not None,
                refit=True,
                time_limit=limit,
                settings=own | dict(self.settings),
            )


def make_task_cells(
    lists: Sequence[Path],
    models: Sequence[str],
    seeds: Sequence[int],
    settings: Mapping[str, Any],
    data_root: str | Path | None = None,
    to_show: bool = False,
) -> list[TaskCell]:
    """All models, and the seasonal naive forecast that they are compared with, on all tasks, by task.

    Args:
        lists: YAML files, see `read_tasks`.
        models: registered names, or `auto`.
        seeds: one run each.
        settings: settings of all models.
        data_root: folder with the files of the catalogue.
        to_show: whether the cells are not to be run, so that their data need not exist.

    Raises:
        UsageError: A model or setting is unknown, a list is invalid, two tasks have the same name, or data cannot be
            read.
    """
    from femts.models.registry import check_library, check_trained, model_card
    from femts.training.request import FitRequest

    check_settings(settings)
    models = [*models, *[NAIVE] * (NAIVE not in models)]
    for model in models:
        if model != AUTO:
            check_trained(model_card(model).name)
            if not to_show:
                check_library(model)
        FitRequest.of(model, {}, {} if model == NAIVE else settings, 0.0)
    cells = list[TaskCell]()
    for task, path in read_tasks(lists):
        sources = () if to_show else tuple(resolve_source(each, path.parent, data_root) for each in task.data)
        hashes = tuple(task.load(source, data_root).fingerprint() for source in sources)
        cells += [
            TaskCell(task, model, seed, {} if model == NAIVE else settings, hashes, sources)
            for seed, model in product(seeds, models)
        ]
    return cells


def _rows_before(data: Dataset, task: Task, first: int) -> Dataset:
    """The series of `data` up to the window number `first`, as data of their own without a file."""
    stops = data.lengths - (task.windows - first) * task.horizon
    some = np.flatnonzero(stops > 0)
    before = data.take(some, stops[some])
    split = data.schema.split.split(before.stamps, before.spans, f"'{data.name}'")
    schema = replace(before.schema, outliers="keep")  # as in published scores
    before = replace(before, split=split, source=None, sha256="", schema=schema)
    return replace(before, sha256=before.fingerprint())


def _readable(data: Dataset, model: str) -> Dataset:
    """`data` without past and static covariates if `model` cannot read one of them; `auto` decides by itself."""
    from femts.models.registry import model_card

    if model == AUTO:
        return data
    roles, supports = data.schema.roles, model_card(model).model_class.supports
    readable = not (roles.past and supports.channels == 1) and not (roles.static and not supports.static)
    return data if readable else data.targets_alone()


def _forecasts(forecaster: Forecaster, data: Dataset, task: Task, first: int, count: int) -> pd.DataFrame:
    """Forecasts of `count` windows from number `first` on, with their numbers from 1 on as `window`."""
    from femts.analysis.backtest import backtest

    rows = data.lengths - (task.windows - first - count) * task.horizon
    some = np.flatnonzero(rows > 0)
    ends = data.take(some, rows[some])
    ends = ends if ends.columns == forecaster.columns else ends.targets_alone()
    frame = backtest(forecaster, ends, n_windows=count, step_size=task.horizon, quantiles=QUANTILES)
    number = frame["window"] if "window" in frame else pd.factorize(frame["cutoff"])[0] + 1
    return frame.assign(window=number + first)


def _recipe(forecaster: Forecaster, data: Dataset) -> dict[str, Any]:
    choice = forecaster.metrics.get("auto")
    taken = {} if choice is None else {name: list(choice[name]) for name in ("taken", "weights")}
    return {"data": data.name, "rows": len(data.values), "config": forecaster.config.to_dict(), **taken}


def _plain(row: pd.Series) -> dict[str, float | None]:
    return {name: None if np.isnan(value) else float(value) for name, value in row.items()}
