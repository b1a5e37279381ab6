"""The engine of one machine: cells in processes of their own, with the cores shared out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO

from femts.experiments.job import Job
from femts.experiments.store import Store
from femts.experiments.worker import BUSY, INTERRUPTED, order
from femts.progress import progress_line

GRACE = 120.0  # seconds for a worker to keep what it has reached
POLL = 0.2


@dataclass(frozen=True)
class Resources:
    """Resources that cells may use.

    Attributes:
        jobs: cells at a time, on one machine or one GPU.
        threads: cores of each cell.
        device: `auto`, `cpu`, `cuda` or `mps`.
        data_root: where data of the catalogue is looked for.
        modules: outside femts, which bring models, priors or data sets of the cells.
    """

    jobs: int
    threads: int
    device: str
    data_root: str | None = None
    modules: tuple[str, ...] = ()


def run_local(
    cells: Sequence[Job], store: Store, resources: Resources, deadline: float | None, say: Callable[[str], None]
) -> None:
    """Run `cells` until all are finished or crashed, or until `deadline` (of `time.monotonic`),
    when those that run are stopped with what they have reached. One that crashes leaves its reason
    in the store, and the others go on."""
    waiting, running = list(cells), list[_Process]()
    try:
        with progress_line() as show:
            while waiting or running:
                late = deadline is not None and time.monotonic() >= deadline
                if late and not running:
                    return
                while waiting and len(running) < resources.jobs and not late:
                    running.append(_Process(waiting.pop(0), store, resources))
                for process in [process for process in running if process.ended()]:
                    running.remove(process)
                    say(process.outcome())
                if late:
                    _stop(running, say)
                    return
                done = len(cells) - len(waiting) - len(running)
                show(done / len(cells), f"{done} of {len(cells)} cells")
                time.sleep(POLL)
    except KeyboardInterrupt:
        _stop(running, say)
        raise


class _Process:
    """A worker and its cell."""

    def __init__(self, cell: Job, store: Store, resources: Resources) -> None:
        self.cell, self.store, self.stopped = cell, store, False
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (`outcome` closes it)
        threads = str(resources.threads)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "femts.experiments.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            env={**os.environ, "OMP_NUM_THREADS": threads, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,  # a Ctrl-C is the engine's to pass on
        )
        given = order(cell, store.folder, resources.device, resources.threads, resources.data_root, resources.modules)
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(given).encode() + b"\n")
        self.process.stdin.flush()  # and stays open: its end tells the worker that the engine is gone

    def ended(self) -> bool:
        return self.process.poll() is not None

    def outcome(self) -> str:
        """Take the end of the process into the store, and say it."""
        status = self.process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        self._errors.close()
        if self.process.stdin is not None:
            self.process.stdin.close()
        record = self.store.record(self.cell)
        if status == 0 and record is not None:
            return f"{self.cell.path}: {self.cell.summary(record)} after {record['seconds']:.0f} s"
        if status == INTERRUPTED or (self.stopped and status < 0):  # before it could listen
            return f"{self.cell.path}: stopped, goes on next time"
        if status == BUSY:
            return f"{self.cell.path}: another process is at it"
        reason = f"killed by signal {-status}" if status < 0 else lines[-1] if lines else f"ended with status {status}"
        self.store.fail(self.cell, reason)
        return f"{self.cell.path}: failed: {reason}"


def _stop(running: Sequence[_Process], say: Callable[[str], None]) -> None:
    for process in running:
        process.stopped = True
        process.process.terminate()
    for process in running:
        try:
            process.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            process.process.kill()
        say(process.outcome())
