"""Engines of a table: what runs its cells, on this machine or on a cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from femts.config.arguments import check_text
from femts.environment import cores
from femts.errors import UsageError, suggest
from femts.experiments.job import Job
from femts.experiments.store import Store
from femts.plugins import modules_of
from femts.text import shown

ENGINES = ("local", "ray")


@dataclass(frozen=True)
class Engine:
    """Engine of the cells.

    Attributes:
        name: `local`, this machine, or `ray`, a cluster.
        jobs: cells at a time; None takes one a core, or four on a GPU.
        max_time: the longest time, such as `30m`; None takes all that it needs.
        device: `auto`, `cpu`, `cuda` or `mps`.
        data_root: where data of the catalogue is looked for.
    """

    name: str = "local"
    jobs: int | None = None
    max_time: str | None = None
    device: str = "auto"
    data_root: Path | None = None

    def __post_init__(self) -> None:
        if check_text(self.name, "engine") not in ENGINES:
            raise UsageError(f"Unknown engine '{shown(self.name)}'{suggest(self.name, ENGINES)}")


def refuse_damaged(cells: Sequence[Job], store: Store) -> None:
    """UsageError for a record that cannot be used: to run its cell again would replace what may be mended."""
    damaged = next(filter(None, map(store.damage, cells)), None)
    if damaged is not None:
        raise UsageError(damaged)


def run_cells(cells: Sequence[Job], store: Store, engine: Engine, say: Callable[[str], None]) -> None:
    """Run what is not finished of `cells`, and say how each ends, and before it what is odd about its data."""
    from femts.config.training import parse_span
    from femts.experiments.local import Resources, run_local
    from femts.experiments.ray_engine import run_ray
    from femts.training.accelerator import named_accelerator

    started = time.monotonic()
    deadline = None if engine.max_time is None else started + parse_span(engine.max_time)
    place = named_accelerator(engine.device).device
    free = cores()
    jobs = (4 if place == "cuda" else free) if engine.jobs is None else engine.jobs
    root = None if engine.data_root is None else str(engine.data_root.resolve())
    left = [cell for cell in cells if not store.finished(cell)]
    modules = tuple(sorted(modules_of([asdict(cell) for cell in left])))  # type: ignore[call-overload]
    for source, cell in {cell.source: cell for cell in left}.items():  # fetched once, and refused before anything runs
        for note in cell.notes(engine.data_root):
            say(f"note: {source}: {note}")
    run = {"local": run_local, "ray": run_ray}[engine.name]
    run(left, store, Resources(jobs, max(1, free // jobs), place, root, modules), deadline, say)
