"""Compression: the last token, with a place, must give back the token of that place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator, Tensor, nn

from femts.bench.tasks.base import IGNORED, Pair, Part, register_task
from femts.bench.tasks.recall import SuiteTask
from femts.bench.tasks.stack import StackPlan, gelu_mlp
from femts.config.bounds import Count


class Compressor(nn.Module):
    """A stack whose last token, with the vector of each place, goes through an MLP: (B, T) -> (B, T, classes)."""

    def __init__(self, plan: StackPlan, vocabulary: int, length: int) -> None:
        super().__init__()
        self.embed, self.blocks = nn.Embedding(vocabulary, plan.width), plan.build()
        self.place = nn.Parameter(torch.randn(length, plan.width))
        self.decoder = nn.Sequential(gelu_mlp(plan.width), nn.Linear(plan.width, vocabulary))

    def forward(self, tokens: Tensor) -> Tensor:
        last = self.blocks(self.embed(tokens))[:, -1:]
        y: Tensor = self.decoder(last + self.place)
        return y


@register_task(24)
@dataclass(frozen=True)
class Compression(SuiteTask):
    """Random tokens and a sign at the end, which is not scored."""

    NAME: ClassVar[str] = "compression"
    ASKS: ClassVar[str] = "the last token, with a place, gives back the token of that place"

    length: Count = 16
    steps: Count = 1500

    def host(self, mixer: str) -> nn.Module:
        return Compressor(self.plan(mixer), self.vocabulary, self.length)

    def draw(self, part: Part, count: int, generator: Generator) -> Pair:
        tokens = torch.randint(self.vocabulary - 1, (count, self.length), generator=generator)
        tokens[:, -1] = self.vocabulary - 1
        return tokens, tokens.masked_fill(tokens == self.vocabulary - 1, IGNORED)
