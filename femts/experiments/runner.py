"""Runs each cell of a table in a process of its own, on this machine or on a Ray cluster.

One process per cell instead of a pool, since a killed pool worker would take the pool's other work with it.
"""

from __future__ import annotations

import logging
import os
import pickle
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from femts.cluster import check_engine, connected
from femts.config.arguments import check_text
from femts.data.describe import count
from femts.environment import cores, unlaunched
from femts.errors import FemtsError, UsageError
from femts.experiments.results import Job, Store
from femts.files import Busy
from femts.logging import PROGRESS
from femts.plugins import modules_of
from femts.progress import progress_line
from femts.text import Message, marked

INTERRUPTED, BUSY = 130, 75  # exit statuses of a process
logger = logging.getLogger("femts.experiments.runner")  # in the process of a cell, `__name__` is `__main__`

GRACE = 120.0  # seconds that a process has to save its progress
ORPHANED = 20.0  # the same if its parent is gone
POLL = 0.2


@dataclass(frozen=True)
class Engine:
    """Engine that runs the cells.

    Attributes:
        name: `local` for this machine, or `ray` for a cluster.
        jobs: number of cells run at once on one machine or one GPU; None takes one per core, or four on a GPU.
        time_limit: time limit, such as `30m`; None is no limit.
        device: `auto`, `cpu`, `cuda` or `mps`.
        data_root: folder with the files of the catalogue.
    """

    name: str = "local"
    jobs: int | None = None
    time_limit: str | None = None
    device: str = "auto"
    data_root: Path | None = None

    def __post_init__(self) -> None:
        check_engine(check_text(self.name, "engine"))


@dataclass(frozen=True)
class Work:
    """A cell and the resources of its process.

    Attributes:
        threads: number of cores.
        deadline: `time.time()`, comparable across machines, at which it is stopped with its progress saved.
        modules: modules outside femts that define models, priors or datasets of the cell.
    """

    cell: Job
    store: Store
    threads: int
    device: str
    data_root: str | None
    deadline: float
    modules: tuple[str, ...]


def run_cells(cells: Sequence[Job], store: Store, engine: Engine) -> None:
    """Run the unfinished cells among `cells`, and log notes on their data and how each ends.

    Cells that crash or are killed store the reason, and the others continue.

    Raises:
        UsageError: A record is invalid (running its cell again would replace a file that may be repaired), data cannot
            be loaded, or Ray is not installed.
    """
    from femts.config.training import parse_span
    from femts.training.accelerator import named_accelerator

    started = time.time()
    refuse_damaged(cells, store)
    deadline = started + (parse_span(engine.time_limit) if engine.time_limit is not None else float("inf"))
    device, free = named_accelerator(engine.device).device, cores()
    jobs = (4 if device == "cuda" else free) if engine.jobs is None else engine.jobs
    threads, root = max(1, free // jobs), None if engine.data_root is None else str(engine.data_root.resolve())
    store.tidy(cells)
    store, left = Store(store.folder.resolve()), [cell for cell in cells if not store.finished(cell)]
    modules = tuple(sorted(modules_of([asdict(cell) for cell in left])))  # type: ignore[call-overload]
    # loaded once, so that errors are raised before anything runs
    for source, cell in {cell.source: cell for cell in left}.items():
        for note in cell.notes(engine.data_root):
            logger.info(Message(f"{source}: {marked(note)}"))
    with (_ray if engine.name == "ray" else _local)(jobs, threads, device) as (submit, stop), progress_line() as show:
        futures = {submit(Work(cell, store, threads, device, root, deadline, modules)): cell for cell in left}
        told = set[Future[str]]()

        def tell(future: Future[str]) -> None:
            told.add(future)
            try:
                line = future.result()
            except Exception as error:  # the machine of the cluster is gone
                line = _failed(futures[future], store, f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")
            if line:
                PROGRESS.info(line)
            show(len(told) / len(left), f"{len(told)} of {count(len(left), 'cell')}")

        try:
            for future in as_completed(futures):
                tell(future)
        except BaseException:
            stop()
            for future in wait(futures).done - told:
                if not future.cancelled() and future.exception() is None:
                    tell(future)
            raise


def refuse_damaged(cells: Sequence[Job], store: Store) -> None:
    """Raise UsageError for an invalid record of `cells`."""
    damaged = next(filter(None, map(store.damage, cells)), None)
    if damaged is not None:
        raise UsageError(damaged)


Submit = Callable[[Work], "Future[str]"]


@contextmanager
def _local(jobs: int, threads: int, device: str) -> Iterator[tuple[Submit, Callable[[], object]]]:
    stopped = threading.Event()
    with ThreadPoolExecutor(jobs) as pool:
        yield lambda work: pool.submit(run_process, work, stopped), stopped.set


@contextmanager
def _ray(jobs: int, threads: int, device: str) -> Iterator[tuple[Submit, Callable[[], object]]]:
    """The cluster at `RAY_ADDRESS`, or this machine as one; a cell uses `threads` cores and, on CUDA, 1 / `jobs` of a
    GPU. The folders of results and data must be shared by all of its machines."""
    tasks: list[Any] = []
    with connected() as ray:
        remote = ray.remote(num_cpus=threads, num_gpus=1 / jobs if device == "cuda" else 0, max_retries=0)(run_process)

        def submit(work: Work) -> Future[str]:
            tasks.append(remote.remote(work))
            future: Future[str] = tasks[-1].future()
            return future

        yield submit, lambda: [ray.cancel(task) for task in tasks]  # interrupts them


def run_process(work: Work, stopped: threading.Event | None = None) -> str:
    """Run a cell in a process of its own until it ends, its deadline passes or `stopped` is set; return how it ended,
    or an empty string if it did not start."""
    stopped, cell = stopped or threading.Event(), work.cell
    if stopped.is_set() or time.time() >= work.deadline:
        return ""
    path = os.pathsep.join(filter(None, sys.path))
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env={**unlaunched(), "OMP_NUM_THREADS": str(work.threads), "PYTHONPATH": path},
            start_new_session=True,  # Ctrl-C is forwarded by this process
        )
        assert process.stdin is not None
        interrupted = False
        try:
            process.stdin.write(pickle.dumps(work))
            process.stdin.flush()  # and keep it open: its end tells the process that its parent is gone
            while process.poll() is None and time.time() < work.deadline and not stopped.wait(POLL):
                pass
        finally:
            if process.poll() is None:
                interrupted = True
                process.terminate()
                try:
                    process.wait(GRACE)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)  # with its own child processes
            status = process.wait()
            process.stdin.close()
        errors.seek(0)
        lines = errors.read().decode(errors="replace").strip().splitlines()
    record = work.store.record(cell)
    if status == 0 and record is not None:
        return f"{cell.path}: {cell.summary(record)} after {record['seconds']:.0f} s"
    if status == INTERRUPTED or (interrupted and status < 0):  # before it installed its signal handler
        return f"{cell.path}: stopped, continues next time"
    if status == BUSY:
        return f"{cell.path}: already running in another process"
    reason = f"killed by signal {-status}" if status < 0 else lines[-1] if lines else f"ended with status {status}"
    return _failed(cell, work.store, reason)


def _failed(cell: Job, store: Store, reason: str) -> str:
    store.fail(cell, reason)
    return f"{cell.path}: failed: {reason}"


def main() -> int:
    """Main function of the process of a cell, which is read from standard input.

    Returns:
        Exit status 0 if the cell is finished, 130 if it was interrupted and can be continued, 75 if another process is
        running it, and 1 with a sentence on stderr.
    """
    from femts.training.stopping import Interrupted

    # Training handles the signal itself, to save its progress. Before and after it there is nothing to save, and an
    # exception in the middle of an import might be swallowed.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(INTERRUPTED))
    work: Work = pickle.load(sys.stdin.buffer)
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    try:
        return _run(work)
    except (Interrupted, KeyboardInterrupt):
        return INTERRUPTED
    except FemtsError as error:
        print(error, file=sys.stderr)
    except Exception as error:  # the reason is recorded, and the other cells continue
        print(f"{type(error).__name__}: {error}{_where(error)}", file=sys.stderr)
    return 1


def _run(work: Work) -> int:
    import torch

    store, cell = work.store, work.cell
    try:
        with store.held(cell):
            if not store.finished(cell):
                for module in work.modules:
                    import_module(module)
                torch.set_num_threads(work.threads)
                store.finish(cell, cell.run(store.work(cell), work.device, work.data_root))
    except Busy:
        return BUSY
    return 0


def _where(error: Exception) -> str:
    """The last line of the traceback outside libraries; for an error in a user-defined model, a line of that model."""
    libraries = (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), "<")
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(libraries)]
    return f" (line {own[-1].lineno} of {own[-1].filename})" if own else ""


def _end_with_the_parent() -> None:
    """Terminate, with all child processes, when the parent, which holds the other end of standard input, is gone."""
    os.read(sys.stdin.fileno(), 1)  # not `sys.stdin`, whose lock would be held when the interpreter shuts down
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(ORPHANED)  # a library that computes for long does not return to Python, which handles the signal
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
