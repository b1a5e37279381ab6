"""Handwritten digits of scikit-learn by a small encoder as in DeiT, with a class token."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import torch
from torch import Generator, Tensor, nn

from femts.bench.tasks.base import Choices, Pair, Part, register_task
from femts.bench.tasks.stack import StackPlan
from femts.config.bounds import Count, Positive

SPLIT, TESTED, PATCH, CLASSES = 12345, 597, 2, 10  # a seed; images of 1,797; pixels of a side; digits


@cache
def images() -> tuple[Tensor, Tensor, str]:
    """Patches (N, 16, 4) in [0, 1], digits (N,), and their SHA-256; the last `TESTED` are the test part."""
    from sklearn.datasets import load_digits

    pixels, digits = load_digits(return_X_y=True)
    order = torch.randperm(len(digits), generator=Generator().manual_seed(SPLIT))
    squares = torch.tensor(pixels, dtype=torch.float32)[order].view(-1, 8, 8) / 16
    patches = squares.unfold(1, PATCH, PATCH).unfold(2, PATCH, PATCH).flatten(3).flatten(1, 2)
    digest = hashlib.sha256(pixels.tobytes() + digits.astype("int64").tobytes()).hexdigest()
    return patches, torch.tensor(digits)[order], digest


class Encoder(nn.Module):
    """Patches and a class token with learned places: (B, T, n_in) -> (B, classes)."""

    def __init__(self, plan: StackPlan, n_in: int, length: int) -> None:
        super().__init__()
        self.embed, self.blocks = nn.Linear(n_in, plan.width), plan.build()
        self.token = nn.Parameter(0.02 * torch.randn(1, 1, plan.width))
        self.position = nn.Parameter(0.02 * torch.randn(length + 1, plan.width))
        self.out = nn.Linear(plan.width, CLASSES)

    def forward(self, patches: Tensor) -> Tensor:
        x = torch.cat([self.token.expand(len(patches), -1, -1), self.embed(patches)], dim=1)
        y: Tensor = self.out(self.blocks(x + self.position)[:, 0])
        return y


@register_task(31)
@dataclass(frozen=True)
class Digits(Choices):
    """1,200 images of 8 by 8 pixels to learn from, 597 for the score."""

    NAME: ClassVar[str] = "digits"
    ASKS: ClassVar[str] = "the digit of an image of 8 by 8 pixels, in patches of 2 by 2"

    layers: Count = 3
    length: Count = 16
    steps: Count = 500
    batch: Count = 64
    rate: Positive = 2e-3
    scored: Count = TESTED

    def host(self, mixer: str) -> nn.Module:
        plan = StackPlan(mixer, self.width, self.heads, self.layers, causal=False)
        return Encoder(plan, PATCH * PATCH, self.length)

    def draw(self, part: Part, count: int, generator: Generator) -> Pair:
        patches, digits, _ = images()
        if part == "test":
            return patches[-TESTED:][:count], digits[-TESTED:][:count]
        chosen = torch.randint(len(digits) - TESTED, (count,), generator=generator)
        return patches[chosen], digits[chosen]

    def data(self) -> str:
        return images()[2]
