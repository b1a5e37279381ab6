"""One optimiser step on tensors of fixed addresses, taken operation by operation or replayed from a CUDA graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from femts.config.training import TrainingConfig
from femts.training.batches import Share
from femts.training.constants import CHECK_EVERY, WARM_UP
from femts.training.ema import RunningAverage
from femts.training.graph import CudaGraph
from femts.training.optimizer import set_rate

if TYPE_CHECKING:
    from lightning_fabric import Fabric

Sizes = tuple[tuple[int, float], ...]  # windows and weight of each batch of a step


class Step:
    """An optimiser step: loss, gradients, clipping, AdamW and the running average.

    What differs from step to step is written to tensors first: windows, channels, learning rate, weight of the average
    and the places of the losses. The step itself, `_take`, only reads these, and nothing from the device, so a CUDA
    graph of it is the same step. It is captured after `WARM_UP` steps, by which the optimiser has its state and every
    kernel is compiled; steps with fewer windows, at the end of an epoch, are never replayed.

    Args:
        fabric: Fabric with which `loss` and `optimizer` were set up.
        loss: module that computes the mean loss of windows (B,), given the channels and whether a batch is whole.
        optimizer: AdamW, made by `femts.training.optimizer.adamw`.
        average: running average of the weights of the model.
        config: the recipe.
        windows: this process's windows in a whole batch.
        graph: whole steps are captured and replayed by it; None takes all of them eagerly.
    """

    def __init__(
        self,
        fabric: Fabric,
        loss: nn.Module,
        optimizer: Any,
        average: RunningAverage[Any],
        config: TrainingConfig,
        windows: int,
        graph: CudaGraph | None = None,
    ) -> None:
        self._fabric, self._loss, self._optimizer, self._average = fabric, loss, optimizer, average
        self._clip, self._windows, self._graph = config.clip, windows, graph
        device, batches = fabric.device, config.accumulate
        self._whole: Sizes = ((windows, 1 / batches),) * batches
        # a process without windows computes a loss of one, which weighs nothing
        self._index = list(torch.zeros(batches, max(1, windows), dtype=torch.int64, device=device))
        self._channels: Tensor | None = None  # as many in each step
        # losses wait here, because reading one waits for the device and a replay overwrites the one before
        self._losses = torch.zeros(CHECK_EVERY * batches, device=device)
        self._numbers, self._places = (torch.arange(batches, device=device) for _ in range(2))
        self._kept, self._taken = 0, 0

    @property
    def full(self) -> bool:
        """Whether the losses have to be taken before the next step."""
        return self._kept + len(self._whole) > len(self._losses)

    def losses(self) -> Tensor:
        """Mean losses (n,) of the batches since the last call, in their order."""
        kept, self._kept = self._kept, 0
        return self._losses[:kept]

    def __call__(self, shares: Sequence[Share], rate: float, channels: Tensor | None) -> bool:
        """Take one step, and return whether it was replayed.

        Args:
            shares: the batches of the step.
            rate: learning rate.
            channels: (D,), channels to compute the loss on, as many in each step; None for all.

        Raises:
            RunFailure: The step cannot be captured.
        """
        for buffer, share in zip(self._index, shares, strict=False):  # the last step of an epoch may have fewer batches
            buffer[: len(share.windows)].copy_(share.windows)
        if channels is not None:
            if self._channels is None:
                self._channels = torch.empty_like(channels, device=self._losses.device)
            self._channels.copy_(channels)
        set_rate(self._optimizer, rate)
        self._average.advance()
        torch.add(self._numbers, self._kept, out=self._places)
        self._kept += len(shares)
        sizes = tuple((len(share.windows), share.weight) for share in shares)
        replayed = self._graph is not None and sizes == self._whole and self._taken >= WARM_UP
        if self._graph is None:
            self._take(sizes)
        elif replayed:
            if not self._graph.captured:
                self._graph.capture(lambda: self._take(sizes), self._average.current)
            self._graph.replay()
        else:
            with self._graph.beside():
                self._take(sizes)
        self._taken += sizes == self._whole
        self._optimizer.zero_grad()
        return replayed

    def _take(self, sizes: Sizes) -> None:
        """The step itself, on the windows, channels and numbers in the tensors.

        Only Python's own numbers, which are the same for all steps of these `sizes`, may decide what is computed.
        """
        losses = []
        for number, (windows, weight) in enumerate(sizes):
            with self._fabric.no_backward_sync(self._loss, enabled=number + 1 < len(sizes)):
                loss = self._loss(self._index[number][:windows], self._channels, windows == self._windows)
                self._fabric.backward(loss if weight == 1.0 else loss * weight)
            losses.append(loss.detach())
        self._losses.index_copy_(0, self._places[: len(sizes)], torch.stack(losses).float())
        torch.nn.utils.clip_grad_norm_(self._average.current, self._clip)
        self._optimizer.step()
        self._average.apply()
