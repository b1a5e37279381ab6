"""Layers and inputs that the mixer tests share."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from femts.mixers import FreeEnergyMixer, FreeEnergyMixerConfig, component_flags
from femts.mixers.priors.registry import prior_names

PRIORS = prior_names()
SCAN_PRIORS = PRIORS[1:]
COMPONENTS = ("", "L", "LT", "G", "C", "CL", "CLTG")

over_priors = pytest.mark.parametrize("prior", PRIORS)
over_directions = pytest.mark.parametrize("causal", [True, False], ids=["causal", "full"])

# Every prior with all components, and every other set of components with one prior; AFT alone has a gate of its own.
over_layers = pytest.mark.parametrize(
    ("prior", "components"),
    [
        *((prior, "CLTG") for prior in PRIORS),
        *zip(("rnn_softmax", "softmax", "linear", "gla", "rnn_decay", "mamba"), COMPONENTS, strict=False),
    ],
    ids=lambda value: value or "prior-alone",
)


def make_layer(
    prior: str, components: str = "CLTG", seed: int = 0, dtype: torch.dtype = torch.float64, **settings: Any
) -> FreeEnergyMixer:
    """A small layer with all parameters perturbed."""
    torch.manual_seed(seed)
    config = FreeEnergyMixerConfig(
        **{"n_embd": 16, "n_head": 2, "prior_type": prior, "ssm_rank": 3, **component_flags(components), **settings}
    )
    layer = FreeEnergyMixer(config).to(dtype)
    with torch.no_grad():
        for name, parameter in layer.named_parameters():
            spread = 0.5 if name.startswith(("in_proj", "conditioner.in_proj")) else 0.3
            parameter.add_(spread * torch.randn_like(parameter))
    return layer


def make_as_made(
    prior: str, components: str = "CLTG", dtype: torch.dtype = torch.float32, **settings: Any
) -> FreeEnergyMixer:
    """A layer with its initial weights and a nonzero conditioner."""
    torch.manual_seed(0)
    flags = component_flags(components)
    config = FreeEnergyMixerConfig(
        **{"n_embd": 64, "n_head": 4, "prior_type": prior, "ssm_rank": 8, **flags, **settings}
    )
    layer = FreeEnergyMixer(config)
    if layer.conditioner is not None:
        torch.nn.init.normal_(layer.conditioner.out_proj.weight, std=0.02)
    return layer.to(dtype)


def make_input(
    batch: int = 2, length: int = 9, width: int = 16, seed: int = 1, dtype: torch.dtype = torch.float64
) -> Tensor:
    return torch.randn(batch, length, width, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def gradient_of(tensor: Tensor) -> Tensor:
    """The gradient after `backward`."""
    assert tensor.grad is not None
    return tensor.grad


def dense(layer: FreeEnergyMixer, x: Tensor, mask: Tensor | None = None) -> Tensor:
    """The layer's `weights` as (B, T query, T key, H, d_v or 1)."""
    p = layer.weights(x, mask)
    return p.unsqueeze(3) if layer.config.heads != layer.config.n_head else p.permute(0, 2, 3, 1).unsqueeze(-1)


def values(layer: FreeEnergyMixer, x: Tensor, mask: Tensor | None = None) -> Tensor:
    """The values that the layer reads, (B, T, H, d_v)."""
    return layer._values(layer._project(x, mask))
