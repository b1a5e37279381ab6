"""A training of a few epochs of small networks, which takes half a second, by steps of `Trainer`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from femts.config.training import TrainingConfig
from femts.data.resident import ScaledSeries
from femts.data.windows import Windows
from femts.environment import without_traces
from femts.models.base import ForecastModel
from femts.models.registry import build_config, build_model
from femts.training.accelerator import Accelerator
from femts.training.checkpoint import TrainState
from femts.training.loop import Loop, Trainer
from femts.training.schedule import Budget

STEPS, RESUMED = 36, 19
_SMALL: dict[str, Any] = {"d_model": 16, "n_layers": 2, "n_heads": 2, "dropout": 0.2}
MODELS: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("fem_sm", "fem_gla", "fem_aft", "fem_mamba", "itransformer"), _SMALL),
    "dlinear": {},
}
# 147 windows: nine whole batches and one of three in an epoch
CONFIG = TrainingConfig(batch_size=16, max_steps=STEPS, val_every=STEPS, lr=1e-2)


class Trained(NamedTuple):
    """What equal trainings have to share to the bit."""

    weights: list[Tensor]
    average: list[Tensor]
    losses: list[float]


def network(name: str) -> ForecastModel:
    """A small network, always with the same weights."""
    torch.manual_seed(1)
    return build_model(name, build_config(name, seq_len=24, pred_len=12, n_channels=3, settings=MODELS[name]))


def windows() -> Windows:
    """147 windows with missing values, of a series with a trend."""
    drawn = torch.Generator().manual_seed(2)
    values = torch.randn(182, 3, generator=drawn) + torch.linspace(-1, 1, 182)[:, None]
    observed = torch.rand(182, 3, generator=drawn) > 0.05
    return Windows(ScaledSeries(values.where(observed, 0.0), observed), 24, 12)


def trainer(
    name: str,
    config: TrainingConfig,
    state: TrainState | None = None,
    graph: bool = False,
    device: str = "cpu",
    precision: str = "32",
) -> Trainer:
    """A trainer of `name` at the beginning, or at a `state`."""
    with without_traces():  # imported here, because it takes seconds
        from lightning_fabric import Fabric

    budget, accelerator = Budget(STEPS, None, time.monotonic(), 0), Accelerator(device, precision, 1, graph)
    loop = Loop(network(name), windows(), None, config, accelerator, state or TrainState(), None, budget)
    mixed = "bf16-mixed" if precision == "bf16" and device != "cpu" else "32-true"
    return Trainer(Fabric(accelerator=device, devices=1, precision=mixed), loop)


def trained(name: str, config: TrainingConfig, folder: Path, **where: Any) -> tuple[Trained, int]:
    """A training by `Trainer`, saved and loaded in the middle, and the number of replayed steps; `where` as in
    `trainer`."""
    first = trainer(name, config, **where)
    for _ in range(RESUMED):
        first.step()
        first.spend()
    first.save()
    first.state.save(folder / "last.ckpt")
    last = trainer(name, config, TrainState.load(folder / "last.ckpt"), **where)
    while not last.state.complete:
        last.step()
        last.spend()
    last.save()
    state = last.state
    assert state.step == STEPS
    return Trained(list(state.model.values()), list(state.average.values()), state.losses), state.replayed
