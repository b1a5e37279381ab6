"""Cost of training: a step of each model, relative to its matrix products alone, and the overhead of `femts.train`."""

from __future__ import annotations

import statistics
from argparse import Namespace
from collections.abc import Iterator
from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode, flop_registry

import femts
from femts.data.batch import Batch
from femts.data.windows import Windows
from femts.mixers.ops.precision import low_precision_products
from femts.models.registry import build_config, build_model
from scripts.bench.measure import compare, gemm_rate, peak_bytes, take_turns, timed

STEPS, TRAININGS = 40, 3  # of a training, after which what it costs once is small; its turns at most
SCORED = {"cpu": 512, "cuda": 4096}  # series that are forecast at a time
# What torch's counter of operations knows by the names of other devices alone.
for here, elsewhere in {
    torch.ops.aten.baddbmm_: torch.ops.aten.baddbmm,
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: torch.ops.aten._scaled_dot_product_flash_attention,
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward: (
        torch.ops.aten._scaled_dot_product_flash_attention_backward
    ),
}.items():
    flop_registry[here] = flop_registry[elsewhere]


class Step:
    """A training step of the model `name` on random windows, with nothing around it.

    Raises:
        UsageError: no such model, a setting that does not fit, or a model without weights.
    """

    def __init__(self, name: str, channels: int, options: Namespace) -> None:
        self.name, self.channels, self.options, device = name, channels, options, options.device
        shape = {"seq_len": options.seq_len, "pred_len": options.pred_len, "n_channels": channels}
        settings = {key.removeprefix("model."): value for key, value in options.settings.items()}
        self.model = build_model(name, build_config(name, **shape, settings=settings)).to(device)
        if not list(self.model.parameters()):
            raise femts.UsageError(f"Model '{name}' has no weights, so there is no step to measure; leave it out.")
        windows = STEPS * options.batch_size
        series = torch.randn(options.seq_len + options.pred_len - 1 + windows, channels, device=device)
        self.windows = Windows(series, options.seq_len, options.pred_len)
        self.look_backs = torch.randn(max(1, SCORED[device] // channels), options.seq_len, channels, device=device)
        self._batches = cycle(torch.randperm(windows, device=device).split(options.batch_size))
        self._loss = torch.compile(self.model.loss, dynamic=False) if options.compiled else self.model.loss
        self._optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, fused=True)

    def _backward(self) -> None:
        device, low = self.options.device, self.options.precision == "bf16"
        with torch.autocast(device, torch.bfloat16, enabled=low and device != "cpu"), low_precision_products(low):
            self._loss(self.windows.batch(next(self._batches))).backward()

    def __call__(self) -> None:
        """Gather, loss, gradients, clipping, AdamW; no gradient is left behind."""
        self._backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self._optimizer.step()
        self._optimizer.zero_grad()

    @torch.no_grad()
    def forecast(self) -> Tensor:
        """Forecasts of as many windows as are scored at a time."""
        self.model.eval()
        forecast = self.model(Batch(self.look_backs))
        self.model.train()
        return forecast

    def flops(self) -> int:
        """Operations of the matrix products in loss and gradients of one batch, attention included."""
        with FlopCounterMode(display=False) as counter, torch.compiler.set_stance("force_eager"):
            self._backward()
        self._optimizer.zero_grad()
        return counter.get_total_flops()

    def outside(self) -> float:
        """Part of `STEPS` steps of a training that is spent outside them; below 0 where noise hides it."""
        device = self.options.device  # half of the bare steps before the training and half after it, against drift
        before, whole, after = timed(self._half, device), self.train(), timed(self._half, device)
        return 1 - (before + after) / whole

    def _half(self) -> None:
        for _ in range(STEPS // 2):
            self()

    def train(self) -> float:
        """Seconds of `STEPS` steps of `femts.train` and a validation of one window."""
        options = self.options
        rows = 2 * (options.seq_len + options.pred_len)  # so that training has some hundreds of windows
        table = pd.DataFrame(np.random.default_rng(0).standard_normal((rows, self.channels))).add_prefix("c")
        recipe = {"batch_size": options.batch_size, "compile": options.compiled, "val_every": STEPS, "val_windows": 1}
        if self.model.supports.subsampling:
            recipe["channels"] = self.channels  # all, as here, where the recipe would draw some of many
        forecaster = femts.train(
            table.assign(date=range(rows)),
            self.name,
            options.pred_len,
            seq_len=options.seq_len,
            max_steps=STEPS,
            device=options.device,
            precision=options.precision,
            refit=False,
            settings={**options.settings, **{f"training.{name}": value for name, value in recipe.items()}},
        )
        return float(forecaster.validations[-1]["seconds"])


def bench_train(options: Namespace) -> Iterator[dict[str, Any]]:
    """Training steps of whole models on random data, beside those of the first model.

    `floor_seconds` is what the matrix products of a step would take at the rate of a large one, `outside` the part of
    a training by `femts.train` that is spent outside the steps.
    """
    device, repeats = options.device, options.repeats
    rate = gemm_rate(device, torch.bfloat16 if options.precision == "bf16" else torch.float32)
    for channels in options.channels:
        steps = {name: Step(name, channels, options) for name in options.models}
        turns = take_turns(steps, repeats, device)
        forecasts = take_turns({name: step.forecast for name, step in steps.items()}, repeats, device)
        for name, step in steps.items():
            measured, flops = compare(turns[name], turns[options.models[0]]), step.flops()
            step.train()  # imports and first use
            outside = [step.outside() for _ in range(min(repeats, TRAININGS))]
            yield {
                **{"channels": channels, "seq_len": options.seq_len, "pred_len": options.pred_len, "model": name},
                "step": measured,
                "windows_per_s": options.batch_size / measured["seconds"],
                "flops": flops,
                "floor_seconds": flops / rate,
                "forecasts_per_s": len(step.look_backs) / statistics.median(forecasts[name]),
                "peak_bytes": peak_bytes(step, device),
                "outside": statistics.median(outside),
                "outside_range": max(outside) - min(outside),
            }
