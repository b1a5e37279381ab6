"""The optimiser: AdamW, without weight decay for parameters that opt out, and its learning rate as a tensor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.optim import AdamW, Optimizer

from femts.config.training import TrainingConfig
from femts.mixers.weight_decay import undecayed
from femts.models.base import ForecastModel


def adamw(model: ForecastModel, config: TrainingConfig, device: torch.device) -> AdamW:
    """AdamW with the recipe `config`, fused if `device` supports it.

    The learning rate of a fused optimiser is a tensor, so that a CUDA graph of its step reads the current one; that of
    another one is a number. On a CPU, it is of float64, which rounds no step differently than the number would.
    """
    decayed: list[Tensor] = []
    plain: list[Tensor] = []
    without_decay = undecayed(model)
    for name, parameter in model.named_parameters():
        (plain if name in without_decay else decayed).append(parameter)
    groups: list[dict[str, Any]] = [{"params": decayed}, {"params": plain, "weight_decay": 0.0}]
    fused, rate = device.type in ("cpu", "cuda"), config.lr
    dtype = torch.float64 if device.type == "cpu" else torch.float32
    return AdamW(
        [group for group in groups if group["params"]],
        lr=torch.tensor(rate, dtype=dtype, device=device) if fused else rate,
        betas=config.betas,
        weight_decay=config.weight_decay,
        fused=fused,
        capturable=device.type == "cuda",
    )


def set_rate(optimizer: Optimizer, rate: float) -> None:
    """Set the learning rate of all groups of an `optimizer` made by `adamw`, in place if it is a tensor."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def load_state(optimizer: Optimizer, state: Mapping[str, Any]) -> None:
    """Continue from the `state` of an optimiser on any device, with the own kind of learning rate."""
    own = [{name: group[name] for name in ("lr", "fused", "capturable")} for group in optimizer.param_groups]
    groups = [{**group, **kept} for group, kept in zip(state["param_groups"], own, strict=True)]
    optimizer.load_state_dict({**state, "param_groups": groups})
    for group, kept in zip(optimizer.param_groups, own, strict=True):
        group.update(kept)  # the tensor itself, not the copy that was loaded


def state_of(optimizer: Optimizer) -> dict[str, Any]:
    """State of an `optimizer` to be saved, with its learning rate as a number."""
    state = optimizer.state_dict()
    return {**state, "param_groups": [{**group, "lr": float(group["lr"])} for group in state["param_groups"]]}
