"""The engine of a Ray cluster: each cell is a task that runs the local engine for it alone, where Ray finds room."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from femts.errors import UsageError
from femts.experiments.job import Job
from femts.experiments.local import Resources, run_local
from femts.experiments.store import Store


def run_ray(
    cells: Sequence[Job], store: Store, resources: Resources, deadline: float | None, say: Callable[[str], None]
) -> None:
    """As `run_local`, on the cluster that `RAY_ADDRESS` names, or on this machine as one.

    A cell takes `resources.threads` cores and, on CUDA, 1 / `jobs` of a GPU. The folders of results
    and data must be the same on all machines of the cluster.

    Raises:
        UsageError: Ray is not installed.
    """
    try:
        import ray
    except ImportError as error:
        raise UsageError(
            "Engine 'ray' needs Ray, which is not installed; run pip install ray, or take --engine local."
        ) from error
    ends = None if deadline is None else time.time() + deadline - time.monotonic()  # of a clock that machines share
    ours = not ray.is_initialized()
    if ours:
        ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    gpus = 1 / resources.jobs if resources.device == "cuda" else 0
    task = ray.remote(num_cpus=resources.threads, num_gpus=gpus, max_retries=0)(_run_one)
    waiting = {task.remote(cell, str(store.folder.resolve()), resources, ends): cell for cell in cells}
    try:
        while waiting:
            (done,), _ = ray.wait(list(waiting), num_returns=1)
            cell = waiting.pop(done)
            try:
                for line in ray.get(done):
                    say(line)
            except ray.exceptions.RayError as error:  # the machine or Ray's own process is gone
                reason = f"{type(error).__name__}: {str(error).splitlines()[0]}"
                store.fail(cell, reason)
                say(f"{cell.path}: failed: {reason}")
    except KeyboardInterrupt:
        for reference in waiting:
            ray.cancel(reference)  # interrupts the task, which keeps what its cell has reached
        ray.wait(list(waiting), num_returns=len(waiting))
        raise
    finally:
        if ours:
            ray.shutdown()


def _run_one(cell: Job, results: str, resources: Resources, ends: float | None) -> list[str]:
    """Lines that the engine says of one cell."""
    said: list[str] = []
    deadline = None if ends is None else time.monotonic() + ends - time.time()
    if deadline is None or deadline > time.monotonic():
        run_local([cell], Store(Path(results)), resources, deadline, said.append)
    return said
