"""One cell in a process of its own: `python -m femts.experiments.worker`, told what to do by JSON
on its standard input."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys
import sysconfig
import threading
import traceback
from collections.abc import Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

from femts.errors import FemtsError
from femts.experiments.job import Job
from femts.experiments.store import Store

INTERRUPTED, BUSY = 130, 75


def run_cell(cell: Job, results: Path, device: str, threads: int, data_root: str | None) -> None:
    """Run `cell`, or go on with what it has reached, and keep its record."""
    import torch

    torch.set_num_threads(threads)
    store = Store(results)
    store.finish(cell, cell.run(store.work(cell), device, data_root))


def order(
    cell: Job, results: Path, device: str, threads: int, data_root: str | None, modules: Sequence[str] = ()
) -> dict[str, Any]:
    """Arguments of `run_cell` as JSON, which the process reads, with the class of `cell` as MODULE:NAME, and the
    `modules` outside femts that it imports first."""
    return {
        "modules": list(modules),
        "kind": f"{type(cell).__module__}:{type(cell).__qualname__}",
        "cell": asdict(cell),  # type: ignore[call-overload]  # every job is a dataclass
        **{"results": str(results), "device": device, "threads": threads, "data_root": data_root},
    }


def _ordered(kind: str, fields: dict[str, Any]) -> Job:
    """The cell that `order` was given."""
    module, _, name = kind.partition(":")
    cell: Job = getattr(import_module(module), name)(**fields)
    return cell


def main() -> int:
    """Exit status 0 when the cell is finished, 130 when it was interrupted and can go on, 75 when
    another process is at it, and 1 with a sentence on stderr."""
    from femts.training.stopping import Interrupted

    # Training takes the signal over, to keep what it has reached. Before and after it there is nothing to keep, and an
    # exception in the middle of an import may be swallowed.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(INTERRUPTED))
    given = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_the_engine, daemon=True).start()
    cell, results = _ordered(given.pop("kind"), given.pop("cell")), Path(given.pop("results"))
    modules = given.pop("modules")
    lock = Store(results).work(cell).with_suffix(".lock")
    lock.parent.mkdir(parents=True, exist_ok=True)
    try:
        with open(lock, "w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return BUSY
            try:
                if not Store(results).finished(cell):
                    for module in modules:
                        import_module(module)
                    run_cell(cell, results, **given)
            finally:
                lock.unlink(missing_ok=True)
    except (Interrupted, KeyboardInterrupt):
        return INTERRUPTED
    except FemtsError as error:
        print(error, file=sys.stderr)
        return 1
    except Exception as error:  # its reason is recorded, and the other cells go on
        print(f"{type(error).__name__}: {error}{_where(error)}", file=sys.stderr)
        return 1
    return 0


def _where(error: Exception) -> str:
    """The last line of code that is no library's, which for an error in a model of one's own is a line of that."""
    libraries = (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), "<")
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(libraries)]
    return f" (line {own[-1].lineno} of {own[-1].filename})" if own else ""


def _end_with_the_engine() -> None:
    """The engine holds the other end of the standard input for as long as it lives."""
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
