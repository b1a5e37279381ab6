"""Context of training processes: silences Lightning, removes its temporary files, and reports a worker's failure in one
sentence."""

from __future__ import annotations

import logging
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.multiprocessing.spawn import ProcessExitedException, ProcessRaisedException

from femts.errors import RunFailure
from femts.training.stopping import Diverged

_LIGHTNING = "lightning_fabric"


@contextmanager
def launched(several: bool) -> Iterator[None]:
    """Context of a launch of `several` processes, or of this one alone.

    Raises:
        RunFailure: A process failed or died.
    """
    with _quiet(), _scratch(several):
        try:
            yield
        except ProcessRaisedException as error:
            raise _failure_of_worker(error) from error
        except ProcessExitedException as error:
            raise RunFailure(f"A training process ended early ({error}); see its message above.") from error


class InProcess:
    """A function to run in a launched process: silences Lightning from its unpickling on, and closes the process group
    when it returns."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, fabric: Any) -> Any:
        result = self._function(fabric)
        if fabric.world_size > 1:
            torch.distributed.destroy_process_group()  # otherwise gloo's threads sometimes abort Python's shutdown
        return result

    def __setstate__(self, state: dict[str, Any]) -> None:
        logging.getLogger(_LIGHTNING).setLevel(logging.ERROR)
        warnings.simplefilter("ignore")
        self.__dict__.update(state)


def _failure_of_worker(error: ProcessRaisedException) -> RunFailure:
    """Error of a worker, whose exception arrives as the text of its traceback with the message in the last line."""
    last = str(error).strip().splitlines()[-1]
    for kind in (RunFailure, Diverged):
        if last.startswith(name := f"{kind.__module__}.{kind.__name__}: "):
            return RunFailure(last.removeprefix(name))
    return RunFailure(f"A training process failed with {last}.")


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress messages of Lightning and torch."""
    logger = logging.getLogger(_LIGHTNING)
    before = logger.level
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"lightning_fabric\b.*")
        # RMSNorm keeps float32 weights inside bf16 on purpose.
        warnings.filterwarnings("ignore", message="Mismatch dtype between input and weight")
        logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            logger.setLevel(before)


@contextmanager
def _scratch(several: bool) -> Iterator[None]:
    """Clean up after several processes: Lightning leaves a temporary folder behind and its port in the environment."""
    if not several:
        yield
        return
    names = ("TMPDIR", "MASTER_ADDR", "MASTER_PORT")
    before = {name: os.environ.get(name) for name in names}
    with tempfile.TemporaryDirectory(prefix="femts-") as folder:
        os.environ["TMPDIR"] = folder  # for the workers; this process has already cached it
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value
