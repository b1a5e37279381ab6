"""A model on a forecasting task: one run, determined by its fields, and its record."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pandas as pd

from femts.analysis.rolling import readable, rolling_forecasts, training_rows_at
from femts.analysis.rolling_scores import QUANTILES
from femts.config.model import AUTO
from femts.config.records import fingerprint
from femts.data.cutoffs import Cutoff, rolling_cutoffs
from femts.errors import UsageError
from femts.experiments.cell import check_settings, name_of_settings
from femts.experiments.results import AnyRecord, Count, Job, Loss, OpenPart, Part, Positive, Sha256
from femts.experiments.summary import NAIVE
from femts.experiments.tasks import Task, read_tasks, resolve_source, score_forecasts
from femts.forecaster.bounds import QuantileSpec

if TYPE_CHECKING:
    from femts.data.dataset import Dataset
    from femts.forecaster.forecaster import Forecaster

_DIGITS = 8  # of a hash in a path


class TaskScores(OpenPart):
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
        tables, forecasts, trainings = self.load(data_root), list[pd.DataFrame](), list[_Training]()
        bounds = QuantileSpec.of(None, QUANTILES)
        for number, table in enumerate(tables):
            data = without_covariates(table) if self.model == NAIVE else table
            trainings.append(_Training(self, data, None if work is None else work / str(number), device))
            forecasts.append(rolling_forecasts(data, trainings[-1].origins(), self.task.horizon, bounds))
        windows = score_forecasts(forecasts, tables, self.task).drop(columns="window")
        metrics = trainings[-1].metrics
        return {
            "format": self.record_format,
            "cell": self.to_dict(),
            "scores": _plain(windows.mean()),
            "windows": [_plain(row) for _, row in windows.iterrows()],
            "trained": [each.recipe for each in trainings],
            "seconds": time.monotonic() - started,
            "train_seconds": sum(each.seconds for each in trainings),
            "cpu_seconds": processor_seconds() - cpu,
            "parameters": metrics["parameters"],
            "kernels": metrics["kernels"],
            "place": run_environment(metrics["device"], metrics["precision"]),
            "commit": commit(),
        }


def without_covariates(data: Dataset) -> Dataset:
    """`data` as a naive forecast of published scores sees them, which does not even know the effects of covariates."""
    roles = replace(data.schema.roles, future=(), calendar=None, holidays=None)
    return replace(data, covariates=data.covariates[:, :0], schema=replace(data.schema, roles=roles))


@dataclass
class _Training:
    """The trainings of `cell` on one of its datasets.

    Attributes:
        cell: the cell.
        data: the dataset.
        work: folder for the runs; None writes nothing.
        device: device to train on.
        seconds: wall time of the trainings so far.
        recipe: description of the first training, for the record.
        metrics: metrics of the last forecaster.
    """

    cell: TaskCell
    data: Dataset
    work: Path | None
    device: str
    seconds: float = 0.0
    recipe: dict[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)

    def origins(self) -> Iterator[tuple[Forecaster, Cutoff]]:
        """The windows of the task, each with the forecaster trained before it, or before the first one."""
        data, task, made = self.data, self.cell.task, None
        every = (data.lengths, task.windows, task.horizon, task.horizon)
        for trained, forecast in zip(rolling_cutoffs(*every), rolling_cutoffs(*every, data.season), strict=True):
            if made is None or task.refit:
                begun, number = time.monotonic(), trained.window - 1
                before = training_rows_at(data, trained)
                schema = replace(before.schema, outliers="keep")  # as in published scores
                before = readable(replace(before, schema=schema), self.cell.model)
                folder = None if self.work is None else self.work.with_name(f"{self.work.name}-{number}")
                made = self._train(before, folder)
                self.seconds += time.monotonic() - begun
                self.recipe = self.recipe or _recipe(made, before)
                self.metrics = made.metrics
            if len(forecast.series):
                yield made, forecast

    def _train(self, data: Dataset, work: Path | None) -> Forecaster:
        """Train with the absolute error, as the metrics of tasks are, unless the settings or the model say otherwise."""
        from femts.models.registry import model_card
        from femts.training.request import FitRequest
        from femts.training.resolve import Lengths
        from femts.training.train import train_to_score

        cell, own, steps = self.cell, dict[str, Any](), self.cell.task.horizon
        limit = cell.task.time_limit
        if cell.model != AUTO:  # which chooses by the absolute error itself
            losses, limit = model_card(cell.model).model_class.losses, None
            own = {"training.loss": "mae"} if not losses or "mae" in losses else {}
        given = {"seed": cell.seed, "max_time": limit, "device": self.device}
        request = replace(
            FitRequest.of(cell.model, given, own | dict(cell.settings), time.monotonic()),
            lengths=Lengths(steps),
            out=work,
            resume=work is not None,
        )
        return train_to_score(request, data)


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
    from femts.training.request import FitRequest

    check_settings(settings)
    models = [*models, *[NAIVE] * (NAIVE not in models)]
    for model in models:
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


def _recipe(forecaster: Forecaster, data: Dataset) -> dict[str, Any]:
    choice = forecaster.metrics.get("auto")
    taken = {} if choice is None else {name: list(choice[name]) for name in ("taken", "weights")}
    return {"data": data.name, "rows": len(data.values), "config": forecaster.config.to_dict(), **taken}


def _plain(row: pd.Series) -> dict[str, float | None]:
    return {name: None if np.isnan(value) else float(value) for name, value in row.items()}
