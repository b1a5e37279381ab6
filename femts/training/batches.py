"""Which windows make up which batch: a function of (seed, epoch) alone, so that any batch can be found again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor


class Batch(NamedTuple):
    """One process's share of a batch.

    Attributes:
        windows: their numbers (B,), on the training device.
        weight: factor on the mean loss that makes the averaged gradient the mean over all windows of the step.
        real: how many of them count; 0 for a share that only keeps the processes in step.
    """

    windows: Tensor
    weight: float
    real: int


def derive_seed(*parts: int | str) -> int:
    """A 63-bit seed that depends on all `parts`, unrelated for neighbouring ones."""
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=8).digest(), "big") >> 1


class IndexBatches:
    """Batches of one epoch, shuffled by (seed, epoch), of which each process takes its share.

    A step is `accumulate` batches. The last batch, the last step and the shares may be short; the weights take that into
    account, so several processes or accumulated batches give the gradient of one process with one large batch.

    Args:
        windows: how many windows there are.
        batch_size: windows of one batch over all processes.
        accumulate: batches of one optimiser step.
        seed: decides the order together with the epoch.
        rank, world: number of this process and how many there are.
        device: where the indices lie, so that a batch needs no transfer.

    Attributes:
        epoch: epoch that the next iteration gives, from 0.
        first: batch of it to begin with, above 0 after a resumed epoch; back to 0 afterwards.
    """

    def __init__(
        self,
        windows: int,
        batch_size: int,
        accumulate: int,
        seed: int,
        rank: int = 0,
        world: int = 1,
        device: torch.device | str = "cpu",
    ) -> None:
        self.windows, self.batch_size, self.accumulate, self.seed = windows, batch_size, accumulate, seed
        self.rank, self.world, self.device = rank, world, device
        self.epoch = self.first = 0

    @property
    def count(self) -> int:
        """Batches of a whole epoch. (No `__len__`: Lightning would take the rest of a resumed epoch for the rule.)"""
        return -(-self.windows // self.batch_size)

    @property
    def steps(self) -> int:
        """Optimiser steps of a whole epoch."""
        return -(-self.count // self.accumulate)

    def order(self, epoch: int) -> Tensor:
        """The windows (n,) in the order of `epoch`; drawn on the CPU, so that every device sees the same one."""
        generator = torch.Generator().manual_seed(derive_seed("order", self.seed, epoch))
        return torch.randperm(self.windows, generator=generator)

    def __iter__(self) -> Iterator[Batch]:
        # Lightning also calls iter() only to see whether it can: nothing may change before the first batch is asked for.
        order = self.order(self.epoch).to(self.device)
        first, self.first = self.first, 0
        per_step = self.batch_size * self.accumulate
        for number in range(first, self.count):
            batch = order[number * self.batch_size : (number + 1) * self.batch_size]
            index = batch[self.rank :: self.world]
            step_start = number // self.accumulate * per_step
            in_step = min(self.windows - step_start, per_step)
            # Lightning divides by `accumulate` and DDP by `world`, whatever the sizes: undo both, divide by the windows.
            weight = len(index) * self.accumulate * self.world / in_step
            if len(index) == 0:  # a batch of fewer windows than processes: DDP still needs a backward pass from each
                yield Batch(batch[:1], 0.0, 0)
            else:
                yield Batch(index, weight, len(index))
