"""Windows and channels of each batch: a function of (seed, step) alone, so that any batch can be found again."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import torch
from torch import Tensor


class Share(NamedTuple):
    """One process's share of a batch.

    Attributes:
        windows: their numbers (B,), on the training device.
        weight: factor on the mean loss; averaged over the processes and summed over the batches of
            a step, the gradients then are those of the mean over all windows of the step.
        real: how many of them count; 0 for a share that only keeps the processes in step.
    """

    windows: Tensor
    weight: float
    real: int


def derive_seed(*parts: int | str) -> int:
    """A 63-bit seed that depends on all `parts`, unrelated for neighbouring ones."""
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=8).digest(), "big") >> 1


class StepBatches:
    """The batches of any optimiser step: epoch after epoch every window once, shuffled by (seed, epoch).

    A step is `accumulate` batches of `batch_size` windows over all processes; the last step of an
    epoch and the shares may be short, and the weights take that into account.

    Args:
        windows: how many windows there are.
        batch_size: windows of one batch over all processes.
        accumulate: batches of one optimiser step.
        seed: decides the order together with the epoch.
        process: number of this one, and how many there are.
        device: where the indices lie, so that a batch needs no transfer.
    """

    def __init__(
        self,
        windows: int,
        batch_size: int,
        accumulate: int,
        seed: int,
        process: tuple[int, int] = (0, 1),
        device: torch.device | str = "cpu",
    ) -> None:
        self.windows, self.batch_size, self.accumulate, self.seed = windows, batch_size, accumulate, seed
        (self.rank, self.world), self.device = process, device
        self._epoch, self._order = -1, torch.empty(0)

    @property
    def epoch(self) -> int:
        """Optimiser steps of a whole epoch."""
        return -(-self.windows // (self.batch_size * self.accumulate))

    def order(self, epoch: int) -> Tensor:
        """The windows (n,) in the order of `epoch`; drawn on the CPU, so that every device sees the same one."""
        generator = torch.Generator().manual_seed(derive_seed("order", self.seed, epoch))
        return torch.randperm(self.windows, generator=generator)

    def of(self, step: int) -> list[Share]:
        """This process's share of each batch of the optimiser step number `step`, from 0."""
        epoch, number = divmod(step, self.epoch)
        if epoch != self._epoch:
            self._epoch, self._order = epoch, self.order(epoch).to(self.device)
        size = self.batch_size * self.accumulate
        whole = self._order[number * size : (number + 1) * size]
        return [self._share(batch, len(whole)) for batch in whole.split(self.batch_size)]

    def _share(self, batch: Tensor, in_step: int) -> Share:
        index = batch[self.rank :: self.world]
        if len(index) == 0:  # a batch of fewer windows than processes: DDP still needs a backward pass from each
            return Share(batch[:1], 0.0, 0)
        return Share(index, len(index) * self.world / in_step, len(index))


def drawn_channels(count: int, channels: int, seed: int, step: int) -> Tensor:
    """Numbers of the `count` of `channels` channels that `step` forms its loss of, rising; the same
    in every process."""
    generator = torch.Generator().manual_seed(derive_seed("channels", seed, step))
    return torch.randperm(channels, generator=generator)[:count].sort().values
