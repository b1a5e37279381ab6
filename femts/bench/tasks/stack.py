"""Stacks of blocks around the mixer, as in GPT-2 and DeiT or with SwiGLU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from femts.bench.tasks.layer import mixer_layer
from femts.mixers import FreeEnergyMixer


class SwiGLU(nn.Module):
    """MLP of the synthetic suite, with as many weights as the one of a width four times as large."""

    def __init__(self, width: int) -> None:
        super().__init__()
        hidden = 8 * width // 3
        self.gate, self.up, self.down = nn.Linear(width, hidden), nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.down(F.silu(self.gate(x)) * self.up(x))
        return y


def gelu_mlp(width: int) -> nn.Module:
    """MLP of GPT-2 and DeiT."""
    return nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))


class Block(nn.Module):
    """Pre-norm block, as in GPT-2 and DeiT: mixer, then MLP, each with its residual."""

    def __init__(self, mixer: FreeEnergyMixer, mlp: nn.Module) -> None:
        super().__init__()
        width = mixer.config.n_embd
        self.mixer_norm, self.mixer, self.mlp_norm, self.mlp = nn.LayerNorm(width), mixer, nn.LayerNorm(width), mlp

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.mixer(self.mixer_norm(x))
        y: Tensor = x + self.mlp(self.mlp_norm(x))
        return y


@dataclass(frozen=True)
class StackPlan:
    """Plan of a stack.

    Attributes:
        mixer: a name of `mixer_names`.
        width: D.
        heads: of the prior.
        layers: blocks.
        causal: tokens see no later ones.
        rope: rotary positions in the prior.
        mlp: makes the MLP of a block from its width.
    """

    mixer: str
    width: int
    heads: int
    layers: int
    causal: bool = True
    rope: bool = False
    mlp: Callable[[int], nn.Module] = gelu_mlp

    def build(self) -> nn.Sequential:
        """The blocks and the norm after them, (B, T, D) -> (B, T, D)."""
        layers = (
            mixer_layer(self.mixer, self.width, self.heads, causal=self.causal, rope=self.rope)
            for _ in range(self.layers)
        )
        return nn.Sequential(*(Block(layer, self.mlp(self.width)) for layer in layers), nn.LayerNorm(self.width))


class Reader(nn.Module):
    """Tokens to classes at every place: (B, T) -> (B, T, `classes`); with `positions`, each place has a learned one."""

    def __init__(self, plan: StackPlan, vocabulary: int, positions: int = 0) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, plan.width)
        self.position = nn.Parameter(0.02 * torch.randn(positions, plan.width)) if positions else None
        self.blocks, self.out = plan.build(), nn.Linear(plan.width, vocabulary)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens)
        x = x if self.position is None else x + self.position[: x.shape[1]]
        y: Tensor = self.out(self.blocks(x))
        return y
