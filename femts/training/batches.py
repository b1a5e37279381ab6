"""Windows and channels of each batch as a function of (seed, step) alone, so that any batch can be reproduced."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import torch
from torch import Tensor


class Share(NamedTuple):
    """One process's share of a batch.

    Attributes:
        windows: indices (B,) of the windows, on the training device.
        weight: factor of the mean loss, such that gradients averaged over processes and summed over the batches of a
            step are those of the mean over all windows of the step.
        real: number of windows that count; 0 for a share that only keeps the processes synchronised.
    """

    windows: Tensor
    weight: float
    real: int


def derive_seed(*parts: int | str) -> int:
    """A 63-bit seed derived from all `parts`, unrelated for neighbouring values."""
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=8).digest(), "big") >> 1


class StepBatches:
    """The batches of any optimiser step: in every epoch each window once, shuffled by (seed, epoch).

    A step consists of `accumulate` batches of `batch_size` windows over all processes; the last step of an epoch and
    the shares may be smaller, which the weights account for.

    Args:
        windows: number of windows.
        batch_size: windows per batch over all processes.
        accumulate: batches per optimiser step.
        seed: seed of the order.
        process: index of this process, and their number.
        device: device of the indices, so that batches need no transfer.
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
        """Optimiser steps per epoch."""
        return -(-self.windows // (self.batch_size * self.accumulate))

    def order(self, epoch: int) -> Tensor:
        """Order (n,) of the windows in `epoch`; drawn on the CPU, so that it is the same for every device."""
        generator = torch.Generator().manual_seed(derive_seed("order", self.seed, epoch))
        return torch.randperm(self.windows, generator=generator)

    def of(self, step: int) -> list[Share]:
        """This process's share of each batch of the optimiser step with index `step`."""
        epoch, number = divmod(step, self.epoch)
        if epoch != self._epoch:
            self._epoch, self._order = epoch, self.order(epoch).to(self.device)
        size = self.batch_size * self.accumulate
        whole = self._order[number * size : (number + 1) * size]
        return [self._share(batch, len(whole)) for batch in whole.split(self.batch_size)]

    def _share(self, batch: Tensor, in_step: int) -> Share:
        index = batch[self.rank :: self.world]
        if len(index) == 0:  # a batch with fewer windows than processes: DDP still needs a backward pass from each
            return Share(batch[:1], 0.0, 0)
        return Share(index, len(index) * self.world / in_step, len(index))


def drawn_channels(count: int, channels: int, seed: int, step: int) -> Tensor:
    """Increasing indices of the `count` of `channels` channels on which `step` computes its loss; equal in all
    processes."""
    generator = torch.Generator().manual_seed(derive_seed("channels", seed, step))
    return torch.randperm(channels, generator=generator)[:count].sort().values
