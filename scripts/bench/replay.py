"""Training steps replayed from a CUDA graph, beside the same steps launched operation by operation."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Iterator
from typing import Any

import torch

from femts.config.training import TrainingConfig
from femts.data.windows import Windows
from femts.environment import without_traces
from femts.models.registry import build_config, build_model
from femts.training.accelerator import Accelerator
from femts.training.checkpoint import TrainState
from femts.training.loop import Loop, Trainer
from femts.training.schedule import Budget
from scripts.bench.measure import compare, take_turns

STEPS = 40  # per turn, of which the first captures the graph


def bench_replay(options: Namespace) -> Iterator[dict[str, Any]]:
    """Training steps of whole models, replayed from a CUDA graph and eager.

    `difference` is that of the weights after the first turn, relative to the largest of their tensor: sums in another
    order make it small, other dropout masks would not. On a CPU, where nothing is replayed, both are eager.
    """
    for channels in options.channels:
        for name in options.models:
            trainers = {
                way: _trainer(name, channels, options, replayed=way == "replayed") for way in ("eager", "replayed")
            }
            for trainer in trainers.values():
                _steps(trainer)
            eager, replayed = (list(trainer.model.parameters()) for trainer in trainers.values())
            difference = max(
                ((one - other).abs().max() / one.abs().max().clamp(min=1e-6)).item()
                for one, other in zip(eager, replayed, strict=True)
            )
            before = trainers["replayed"].state.replayed
            calls = {way: lambda trainer=trainer: _steps(trainer) for way, trainer in trainers.items()}
            turns = take_turns(calls, options.repeats, options.device)
            measured = compare(turns["replayed"], turns["eager"])
            yield {
                **{"model": name, "channels": channels, "seq_len": options.seq_len, "pred_len": options.pred_len},
                "step": {**measured, "seconds": measured["seconds"] / STEPS},
                "replayed": (trainers["replayed"].state.replayed - before) / (STEPS * (options.repeats + 1)),
                "difference": difference,
            }


def _trainer(name: str, channels: int, options: Namespace, replayed: bool) -> Trainer:
    """A training of the model `name` on random data, the same for the same arguments."""
    torch.manual_seed(0)
    shape = {"seq_len": options.seq_len, "pred_len": options.pred_len, "n_channels": channels}
    model, device = build_model(name, build_config(name, **shape, settings={})), options.device
    rows = options.seq_len + options.pred_len - 1 + STEPS * options.batch_size  # an epoch of whole batches
    windows = Windows(torch.randn(rows, channels), options.seq_len, options.pred_len)
    steps = STEPS * (options.repeats + 2)
    config = TrainingConfig(batch_size=options.batch_size, max_steps=steps, val_every=steps)
    accelerator = Accelerator(device, options.precision, 1, graph=replayed and device == "cuda")
    low = options.precision == "bf16" and device != "cpu"
    with without_traces():  # imported here, because it takes seconds
        from lightning_fabric import Fabric

    fabric = Fabric(accelerator=device, devices=1, precision="bf16-mixed" if low else "32-true")
    budget = Budget(steps, None, time.monotonic(), 0)
    return Trainer(fabric, Loop(model, windows, None, config, accelerator, TrainState(), None, budget))


def _steps(trainer: Trainer) -> None:
    for _ in range(STEPS):
        trainer.step()
        trainer.spend()
