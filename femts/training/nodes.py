"""Training by processes that torchrun or srun started, on one or several nodes.

The process of rank 0 runs the program: it reads, trains, scores and writes. Each other process waits for its trainings,
takes part in them and ends with it, so that only the machine of rank 0 needs the data.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import torch
from torch import distributed

from femts.environment import Nodes, launched_nodes
from femts.errors import RunFailure, UsageError
from femts.text import argument
from femts.training.stopping import Diverged

WAIT = timedelta(days=30)  # for the next training, while rank 0 reads, selects and scores
LOST = f"A process of this training ended early or cannot be reached; start it again with {argument('resume=True')}."


class _Group:
    """Connection of the processes; `lost` once they may no longer agree on what comes next."""

    def __init__(self, nodes: Nodes) -> None:
        if nodes.slurm and "SLURM_NTASKS_PER_NODE" not in os.environ:  # which Fabric asks for
            raise UsageError(
                f"srun started {nodes.processes} tasks without --ntasks-per-node, which trainings need; add "
                f"--ntasks-per-node={nodes.per_node}."
            )
        environment, self.nodes, self.lost = nodes.environment, nodes, False
        os.environ |= {"MASTER_ADDR": environment.main_address, "MASTER_PORT": str(environment.main_port)}
        try:
            distributed.init_process_group(rank=nodes.rank, world_size=nodes.processes)
            # Collectives of a training fail after torch's usual timeout; this one also waits between trainings.
            self._group = distributed.new_group(timeout=WAIT, backend="gloo")
        except (RuntimeError, ValueError) as error:
            where = f"{environment.main_address}:{environment.main_port}"
            reason = str(error).splitlines()[0].rstrip(".")
            raise RunFailure(
                f"The {nodes.processes} processes of this training could not connect to {where} ({reason}); check that "
                "all nodes can reach it and run the same versions."
            ) from error

    def broadcast(self, work: Any) -> Any:
        """Return the `work` of rank 0."""
        box = [work]
        distributed.broadcast_object_list(box, src=0, group=self._group, device=torch.device("cpu"))
        return box[0]

    def close(self) -> None:
        """End the other processes, at the end of rank 0."""
        with suppress(RuntimeError, ValueError):
            if not self.lost:
                self.broadcast(None)
            distributed.destroy_process_group()  # otherwise gloo's threads sometimes abort Python's shutdown


_JOINED: list[_Group] = []  # at most one, for the life of this process


def joined_nodes() -> Nodes | None:
    """The processes that this one trains with, after `take_part`; None if it trains alone, or not at all."""
    return _JOINED[0].nodes if _JOINED else None


def take_part(run: Callable[[Any], None]) -> None:
    """Connect to the other processes of the launcher, if there are any.

    In the process of rank 0, this returns. In the others, it takes part in the trainings of rank 0, by calling `run` on
    what is given to `together` there, and exits when the process of rank 0 does.

    Raises:
        UsageError: srun was not given what the processes need to find each other.
        RunFailure: The processes cannot connect.
        SystemExit: The process of rank 0 has ended.
    """
    nodes = launched_nodes()
    if nodes is None or _JOINED:
        return
    _JOINED.append(group := _Group(nodes))
    if nodes.rank == 0:
        atexit.register(group.close)
        return
    try:
        while (work := group.broadcast(None)) is not None:
            with suppress(Diverged):
                run(work)
    except RuntimeError as error:
        if _of_connection(error):
            raise RunFailure(LOST) from error
        raise
    distributed.destroy_process_group()
    raise SystemExit(0)


@contextmanager
def together(work: Any) -> Iterator[None]:
    """Context of a training by this process, of rank 0, in which the others take part with a copy of `work`; without
    others, it does nothing.

    Raises:
        RunFailure: Another process ended or cannot be reached.
    """
    if not _JOINED:
        yield
        return
    (group,) = _JOINED
    if group.lost:
        raise RunFailure(LOST)
    try:
        group.broadcast(work)
        yield
    except Diverged:  # in all processes
        raise
    except BaseException as error:
        group.lost = True
        if _of_connection(error):
            raise RunFailure(LOST) from error
        raise


def _of_connection(error: BaseException) -> bool:
    """Return whether another process is lost; torch raises no type of its own for that with gloo."""
    lost = isinstance(error, RuntimeError) and "gloo" in str(error).lower()
    return lost or isinstance(error, distributed.DistError)
