"""Cost of training: a step of each model, its distance from the arithmetic alone, and what `femts.train` adds to it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

import femts
from femts.data.windows import Windows
from femts.mixers.ops.precision import low_precision_products
from femts.models.registry import build_config, build_model
from scripts.bench.measure import compare, gemm_rate, peak_bytes, take_turns, timed

STEPS, TRAININGS = 40, 3  # of a training, after which what it costs once is small; its turns at most
SCORED = {"cpu": 512, "cuda": 4096}  # series that are forecast at a time


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
FLOPS = {
    torch.ops.aten.baddbmm_: _product_flops,
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: _attention_flops,
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward: _attention_gradient_flops,
}


class Step:
    """A training step of a model on random windows, with nothing around it.

    Args:
        name: registered name of the model.
        shape: `seq_len`, `pred_len` and `n_channels`.
        settings: fields of its configuration.
        batch_size: windows of a step.
        device: `cpu` or `cuda`.
        precision: `32` or `bf16`.
        compiled: take the loss through `torch.compile`.

    Raises:
        UsageError: no such model, a setting that does not fit, or a model without weights.
    """

    def __init__(
        self,
        name: str,
        shape: Mapping[str, int],
        settings: Mapping[str, Any],
        batch_size: int,
        device: str,
        precision: str,
        compiled: bool = False,
    ) -> None:
        self.model = build_model(name, build_config(name, **shape, settings=settings)).to(device)
        if not list(self.model.parameters()):
            raise femts.UsageError(f"Model '{name}' has no weights, so there is no step to measure; leave it out.")
        seq_len, pred_len, channels = shape["seq_len"], shape["pred_len"], shape["n_channels"]
        series = torch.randn(seq_len + pred_len - 1 + STEPS * batch_size, channels, device=device)
        self._windows = Windows(series, seq_len, pred_len, 0, len(series))
        self._batches = cycle(torch.randperm(STEPS * batch_size, device=device).split(batch_size))
        self._look_backs = torch.randn(max(1, SCORED[device] // channels), seq_len, channels, device=device)
        self._loss = torch.compile(self.model.loss, dynamic=False) if compiled else self.model.loss
        self._optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, fused=True)
        self._device, self._low = device, precision == "bf16"

    def _backward(self) -> None:
        autocast = torch.autocast(self._device, torch.bfloat16, enabled=self._low and self._device != "cpu")
        with autocast, low_precision_products(self._low):
            self._loss(*self._windows.gather(next(self._batches))).backward()

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
        forecast: Tensor = self.model(self._look_backs)
        self.model.train()
        return forecast

    @property
    def forecasts(self) -> int:
        """Windows of a `forecast`."""
        return len(self._look_backs)

    def flops(self) -> int:
        """Operations of the matrix products in loss and gradients of one batch, attention included."""
        counter = FlopCounterMode(display=False, custom_mapping=FLOPS)
        with counter, torch.compiler.set_stance("force_eager"):
            self._backward()
        self._optimizer.zero_grad()
        return counter.get_total_flops()


def bench_train(
    *,
    channels: Sequence[int],
    models: Sequence[str],
    seq_len: int,
    pred_len: int,
    batch_size: int,
    settings: Mapping[str, Any],
    compiled: bool,
    repeats: int,
    device: str,
    precision: str,
) -> Iterator[dict[str, Any]]:
    """Training steps of whole models on random data, beside those of the first model.

    Also the seconds that the matrix products of a step would take at the rate of a large one (`floor_seconds`),
    windows a second in training and in forecasting, the peak memory of a step, and the part of a training by
    `femts.train` that is spent outside the steps (`outside`; below 0 where noise hides it).

    Args:
        channels: channels of the data, one measurement each.
        models: registered names.
        seq_len, pred_len: look-back and horizon, steps.
        batch_size: windows of a step.
        settings: `model.NAME` and its value, of every model.
        compiled: steps through `torch.compile`.
        repeats: turns.
        device: `cpu` or `cuda`.
        precision: `32` or `bf16`.
    """
    fields = {key.removeprefix("model."): value for key, value in settings.items()}
    rate = gemm_rate(device, torch.bfloat16 if precision == "bf16" else torch.float32)
    for count in channels:
        shape = {"seq_len": seq_len, "pred_len": pred_len, "n_channels": count}
        steps = {name: Step(name, shape, fields, batch_size, device, precision, compiled) for name in models}
        turns = take_turns(steps, repeats, device)
        forecasts = take_turns({name: step.forecast for name, step in steps.items()}, repeats, device)
        for name, step in steps.items():
            recipe = {**settings, "training.batch_size": batch_size, "training.compile": compiled}
            if step.model.draws_channels:
                recipe["training.channels"] = count  # all, as here, where the recipe would draw some of many
            trained = partial(_training_seconds, name, shape, recipe, device, precision)
            outside = _outside(step, trained, min(repeats, TRAININGS), device)
            measured, flops = compare(turns[name], turns[models[0]]), step.flops()
            yield {
                **{"channels": count, "seq_len": seq_len, "pred_len": pred_len, "model": name, "step": measured},
                "windows_per_s": batch_size / measured["seconds"],
                "flops": flops,
                "floor_seconds": flops / rate,
                "forecasts_per_s": step.forecasts / statistics.median(forecasts[name]),
                "peak_bytes": peak_bytes(step, device),
                "outside": statistics.median(outside),
                "outside_range": max(outside) - min(outside),
            }


def _outside(step: Step, trained: Callable[[], float], repeats: int, device: str) -> list[float]:
    """Part of `STEPS` steps of a training that is spent outside them, in each turn."""

    def half() -> None:
        for _ in range(STEPS // 2):
            step()

    trained()  # imports and first use
    # Half of the bare steps before the training and half after it, against drift.
    turns = [(timed(half, device), trained(), timed(half, device)) for _ in range(repeats)]
    return [1 - (before + after) / whole for before, whole, after in turns]


def _training_seconds(
    name: str, shape: Mapping[str, int], settings: Mapping[str, Any], device: str, precision: str
) -> float:
    """Seconds of `STEPS` steps of `femts.train` and a validation of one window."""
    rows = 2 * (shape["seq_len"] + shape["pred_len"])  # of which the training part holds some hundreds of windows
    forecaster = femts.train(
        pd.DataFrame(np.random.default_rng(0).standard_normal((rows, shape["n_channels"]))).add_prefix("c"),
        name,
        shape["pred_len"],
        seq_len=shape["seq_len"],
        max_steps=STEPS,
        device=device,
        precision=precision,
        settings={**settings, "training.val_every": STEPS, "training.val_windows": 1},
    )
    return float(forecaster.validations[-1]["seconds"])
