"""One model and its optimiser with nothing around the step, and the same through the trainer."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from femts.bench.measure import timed
from femts.config.training import TrainingConfig
from femts.data.windows import Windows
from femts.evaluation.evaluator import windows_at_a_time
from femts.mixers.ops.precision import low_precision_products
from femts.models.base import ForecastModel
from femts.models.registry import build_model
from femts.training.device import Place
from femts.training.schedule import Budget
from femts.training.state import TrainState

BATCHES = 40  # steps of an epoch of the trainer; with few, what an epoch costs by itself would seem to be the step's


def _product_flops(_: Sequence[int], left: Sequence[int], right: Sequence[int], **kwargs: Any) -> int:
    return 2 * math.prod(left) * right[-1]


def _attention_flops(query: Sequence[int], key: Sequence[int], value: Sequence[int], *args: Any, **kwargs: Any) -> int:
    return 2 * math.prod(query[:-1]) * key[-2] * (query[-1] + value[-1])


def _attention_gradient_flops(
    _: Sequence[int], query: Sequence[int], key: Sequence[int], value: Sequence[int], *args: Any, **kwargs: Any
) -> int:
    return 2 * math.prod(query[:-1]) * key[-2] * (3 * query[-1] + 2 * value[-1])  # scores once more, then four products


# What torch's counter misses: it knows these by the names of other devices, and counts the causal
# half in full there, too.
_FLOPS_TOO = {
    torch.ops.aten.baddbmm_: _product_flops,
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: _attention_flops,
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward: _attention_gradient_flops,
}


class BareSteps:
    """Random data of the model's shape, and steps over them.

    Args:
        name: registered name of the model.
        config: its configuration, which decides look-back, horizon and channels.
        training: batch size, gradient norm and whether to compile; one epoch.
        place: where, and in which precision.

    Attributes:
        model: the forecaster.
        windows: `BATCHES` batches.
        scored: as many windows as the evaluator takes at a time.
    """

    def __init__(self, name: str, config: Any, training: TrainingConfig, place: Place) -> None:
        self.model: ForecastModel = build_model(name, config, training.learned_quantiles).to(place.device)
        self.model.absolute = training.loss == "mae"
        self.training, self.place = training, place
        self._compiled_loss = torch.compile(self.model.loss, dynamic=False) if training.compile else None
        span, channels = config.seq_len + config.pred_len - 1, config.n_channels
        stepped = BATCHES * training.batch_size
        series = torch.randn(span + max(stepped, training.eval_batch_size), channels, device=place.device)
        scored = windows_at_a_time(series, training.eval_batch_size)
        self.windows, self.scored, self._one = (
            Windows(series, config.seq_len, config.pred_len, 0, span + count) for count in (stepped, scored, 1)
        )
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=training.lr, fused=True)
        self._batches = cycle(torch.randperm(stepped, device=place.device).split(training.batch_size))

    def _loss(self, index: Tensor) -> Tensor:
        low = self.place.precision == "bf16"
        autocast = torch.autocast(self.place.device, torch.bfloat16, enabled=low and self.place.device != "cpu")
        with autocast, low_precision_products(low):
            return (self._compiled_loss or self.model.loss)(*self.windows.gather(index))

    def step(self) -> None:
        """Gather, loss, gradients, clipping, AdamW; no gradient is left behind."""
        self._loss(next(self._batches)).backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.training.clip)
        self.optimizer.step()
        self.optimizer.zero_grad()

    def run(self, steps: int) -> float:
        """Seconds of `steps` steps."""

        def several() -> None:
            for _ in range(steps):
                self.step()

        return timed(several, self.place.device)

    def flops(self) -> int:
        """Operations of the matrix products in loss and gradients of one batch, attention included."""
        with (
            FlopCounterMode(display=False, custom_mapping=_FLOPS_TOO) as counted,
            torch.compiler.set_stance("force_eager"),
        ):
            self._loss(next(self._batches)).backward()
        self.optimizer.zero_grad()
        return counted.get_total_flops()

    def through_trainer(self) -> float:
        """Seconds of `BATCHES` steps of the trainer over the same windows, and a validation of one window."""
        from femts.training.loop import Job, run_steps  # Lightning takes seconds to import

        budget = Budget(BATCHES, None, 0.0, 0)
        with tempfile.TemporaryDirectory(prefix="femts-") as folder:
            job = Job(
                self.model, self.windows, self._one, self.training, self.place, TrainState(), Path(folder), budget
            )
            end = run_steps(job)
        self.model.train()
        self.optimizer.zero_grad()
        return float(end.validations[-1]["seconds"])
