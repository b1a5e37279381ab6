"""Cells of the task suite, for the engine of the tables, and their records."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

from femts.bench.tasks.base import Task, task_class
from femts.bench.tasks.fit import RECIPE, fit
from femts.bench.tasks.layer import check_mixer, mixer_layer
from femts.bench.tasks.record_rules import FORMAT, TaskRecord
from femts.bench.tasks.sizes import check_sizes
from femts.config.rules import Misfit, fingerprint
from femts.config.settings import apply_settings
from femts.environment import commit, place
from femts.experiments.results import Job
from femts.mixers.kernels import recorded


@dataclass(frozen=True)
class TaskCell(Job):
    """One training of a mixer on a task.

    Attributes:
        task: a name of `femts.bench.tasks.base.task_names`.
        mixer: a name of `femts.bench.tasks.layer.mixer_names`.
        seed: of weights and samples.
        settings: fields of the task that differ from its own.
    """

    record_format: ClassVar = FORMAT
    record_model: ClassVar = TaskRecord
    command: ClassVar = "femts bench tasks"

    task: str
    mixer: str
    seed: int
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> str:
        variant = f"-{fingerprint(self.settings)[:8]}" if self.settings else ""
        return f"{self.task}{variant}/{self.mixer}-seed{self.seed}"

    def sizes(self) -> Task:
        """The task with its settings."""
        return apply_settings(task_class(self.task)(), self.settings, "task")

    def check_is_of(self, record: Mapping[str, Any]) -> None:
        for name, value in {"cell": asdict(self), "task": asdict(self.sizes())}.items():
            if record[name] != value:
                raise Misfit(name, record[name], f"{value!r} as its place among the results says")

    def run(self, work: Path | None, device: str, data_root: str | None) -> dict[str, Any]:
        """Train from the start, in minutes at most, on one core: the score does not depend on how many there are."""
        import torch

        torch.set_num_threads(1)
        task = self.sizes()
        with recorded() as kernels:
            outcome = fit(task, self.mixer, self.seed, device)
        return {
            "format": FORMAT,
            "cell": asdict(self),
            "task": asdict(task),
            "recipe": RECIPE,
            "measure": task.MEASURE,
            **asdict(outcome),
            "data": task.data(),
            "code": code(self.task),
            "kernels": dict(kernels),
            "place": place(device, "32"),
            "commit": commit(),
        }

    def summary(self, record: Mapping[str, Any]) -> str:
        return f"{record['measure']} {record['score']:.4f}"


@cache
def code(task: str) -> str:
    """SHA-256 of the sources that decide a score on `task`: of the task, its network and training, and the mixers."""
    package = Path(__file__).resolve().parents[2]
    task_kind = task_class(task)
    kinds: list[Any] = [*task_kind.__mro__, *map(type, task_kind().host("sm").modules()), mixer_layer, fit]
    own = {Path(inspect.getfile(kind)) for kind in kinds if kind.__module__.startswith(__package__)}
    files = sorted(own | {*(package / "mixers").rglob("*.py")})
    return fingerprint({str(path.relative_to(package)): sha256(path.read_bytes()).hexdigest() for path in files})


def make_cells(
    tasks: Sequence[str], mixers: Sequence[str], seeds: Sequence[int], settings: Mapping[str, Any]
) -> list[TaskCell]:
    """All combinations, task by task, a seed that is given twice once.

    Args:
        tasks, mixers, seeds: see `TaskCell`.
        settings: sizes of all tasks, by name; a task that lacks one is run without it.

    Raises:
        UsageError: an unknown name, a setting that no task has, or sizes that no layer or task can have.
    """
    for mixer in mixers:
        check_mixer(mixer)
    classes = {name: task_class(name) for name in tasks}
    shared = {key for key in settings if any(_has(kind, key) for kind in classes.values())}
    cells = list[TaskCell]()
    for name, kind in classes.items():
        own = {key: value for key, value in settings.items() if _has(kind, key) or key not in shared}
        plain, task = kind(), apply_settings(kind(), own, "task")
        changes = {key: getattr(task, key) for key in own if getattr(task, key) != getattr(plain, key)}
        if changes:  # a task's own sizes can be
            check_sizes(task)
        for mixer in mixers:
            task.host(mixer)  # refuses widths that do not fit
        cells += [TaskCell(name, mixer, seed, changes) for mixer, seed in product(mixers, dict.fromkeys(seeds))]
    return cells


def _has(kind: type[Task], name: str) -> bool:
    return name in {each.name for each in fields(kind)}
