"""The optimiser: AdamW, without weight decay for parameters that opt out."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.optim import AdamW

from femts.config.training import TrainingConfig
from femts.mixers.weight_decay import undecayed
from femts.models.base import ForecastModel


def adamw(model: ForecastModel, config: TrainingConfig, device: torch.device) -> AdamW:
    """AdamW with the recipe `config`, fused if `device` supports it."""
    decayed: list[Tensor] = []
    plain: list[Tensor] = []
    without_decay = undecayed(model)
    for name, parameter in model.named_parameters():
        (plain if name in without_decay else decayed).append(parameter)
    groups: list[dict[str, Any]] = [{"params": decayed}, {"params": plain, "weight_decay": 0.0}]
    return AdamW(
        [group for group in groups if group["params"]],
        lr=config.lr,
        betas=config.betas,
        weight_decay=config.weight_decay,
        fused=device.type in ("cpu", "cuda"),
    )
