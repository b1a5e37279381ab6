"""A forecaster as Lightning wants it: batches of window numbers, gathered on the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR, LRScheduler, OneCycleLR

from femts.data.windows import Windows
from femts.models.base import ForecastModel
from femts.training.batches import Batch, IndexBatches, derive_seed
from femts.training.config import TrainingConfig


class ForecastModule(pl.LightningModule):
    """Trains `model` on `windows` by the recipe `training`.

    Attributes:
        losses: mean loss of each batch since they were last taken, still on the device: reading one would wait for it.
        counts: windows of each of them.
        batches: this process's batches, from the moment training starts.
        next_batch: number of the batch within its epoch that comes next.
    """

    def __init__(self, model: ForecastModel, windows: Windows, training: TrainingConfig, epoch: int, batch: int) -> None:
        super().__init__()
        self.model, self.windows, self.training_config = model, windows, training
        self.start_epoch, self.next_batch = epoch, batch
        self.losses: list[Tensor] = []
        self.counts: list[int] = []
        self._compiled_loss: Callable[..., Tensor] | None = None
        self.batches = self._index_batches(0, 1, "cpu")

    def _index_batches(self, rank: int, world: int, device: torch.device | str) -> IndexBatches:
        config = self.training_config
        return IndexBatches(len(self.windows), config.batch_size, config.accumulate, config.seed, rank, world, device)

    @property
    def epoch(self) -> int:
        """Epoch in hand, from 0, counted over all sittings."""
        return self.start_epoch + self.current_epoch

    def on_fit_start(self) -> None:
        """Move the data beside the model, once, and have the loss compiled where that is wanted."""
        self.windows = self.windows.to(self.device)
        if self.training_config.compile:
            self._compiled_loss = torch.compile(self.model.loss, dynamic=False)

    def train_dataloader(self) -> IndexBatches:
        """The index batches of this process; Lightning starts the first epoch's before it tells the callbacks."""
        self.batches = self._index_batches(self.trainer.global_rank, self.trainer.world_size, self.device)
        self.batches.epoch, self.batches.first = self.start_epoch, self.next_batch
        return self.batches

    def on_train_epoch_start(self) -> None:
        """Set the epoch whose order the next iteration takes."""
        self.batches.epoch = self.epoch

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """Loss of one batch, weighted so that the step's gradient is the mean over its windows.

        The random state follows from (seed, epoch, batch, process), so a resumed run drops out what it would have.
        """
        index, weight, count = batch
        seed = derive_seed("step", self.training_config.seed, self.epoch, self.next_batch, self.global_rank)
        seed_device(self.device, seed)
        seen = self.windows.seen(index)
        loss = self._loss(len(index))(*self.windows.gather(index), *([] if seen is None else [seen]))
        self.losses.append(loss.detach())
        self.counts.append(count)
        self.next_batch += 1
        return loss if weight == 1.0 else loss * weight

    def _loss(self, size: int) -> Callable[..., Tensor]:
        """The loss for a batch of `size`: compiled for whole batches only, because each further size is compiled anew."""
        whole = len(range(self.global_rank, self.training_config.batch_size, self.trainer.world_size))
        return self.model.loss if self._compiled_loss is None or size != whole else self._compiled_loss

    def configure_gradient_clipping(self, optimizer: Any, *args: Any, **kwargs: Any) -> None:
        """Clip the whole gradient's norm. Lightning would refuse to beside a fused optimiser, but bf16 has no scaler."""
        torch.nn.utils.clip_grad_norm_(self.parameters(), self.training_config.clip)

    def configure_optimizers(self) -> Any:
        """AdamW and its schedule."""
        config = self.training_config
        decayed: list[Tensor] = []
        plain: list[Tensor] = []
        for parameter in self.model.parameters():
            (plain if getattr(parameter, "no_weight_decay", False) else decayed).append(parameter)
        groups: list[dict[str, Any]] = [{"params": decayed}, {"params": plain, "weight_decay": 0.0}]
        optimizer = AdamW(
            [group for group in groups if group["params"]],
            lr=config.lr,
            betas=config.betas,
            weight_decay=config.weight_decay,
            fused=self.device.type in ("cpu", "cuda"),
        )
        schedule = _schedule(optimizer, config, self.batches.steps)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def _schedule(optimizer: AdamW, config: TrainingConfig, steps: int) -> LRScheduler:
    """The learning rate, moved after every optimiser step; `steps` of them are an epoch."""
    if config.schedule == "exponential":
        return LambdaLR(optimizer, lambda step: config.epoch_decay ** max(0, step // steps + 1 - config.hold_epochs))
    return OneCycleLR(
        optimizer,
        max_lr=config.lr,
        total_steps=config.schedule_epochs * steps,
        pct_start=config.pct_start,
        div_factor=config.div_factor,
        anneal_strategy="linear",
        cycle_momentum=False,  # it would move Adam's betas
    )


def seed_device(device: torch.device, seed: int) -> None:
    """Seed the generators that a step on `device` draws from.

    `torch.manual_seed` would do so for every backend that could be there, at a millisecond a call, and keep a record of
    each call for those that are not.
    """
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.default_generators[device.index or 0].manual_seed(seed)
    elif device.type == "mps":
        torch.mps.manual_seed(seed)
