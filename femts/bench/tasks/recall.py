"""In-context and noisy recall: a key that comes again asks for the value that followed it before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator, nn

from femts.bench.tasks.base import IGNORED, Choices, Pair, Part, register_task
from femts.bench.tasks.stack import Reader, StackPlan, SwiGLU
from femts.config.bounds import Count, Positive, Share


@dataclass(frozen=True)
class SuiteTask(Choices):
    """Task of the synthetic suite of Table 1, reduced: two blocks of mixer and SwiGLU over tokens.

    Attributes:
        vocabulary: tokens that there are.
    """

    rate: Positive = 6e-3
    vocabulary: Count = 16

    def plan(self, mixer: str) -> StackPlan:
        """The stack of all tasks of the suite."""
        return StackPlan(mixer, self.width, self.heads, self.layers, rope=True, mlp=SwiGLU)

    def host(self, mixer: str) -> nn.Module:
        return Reader(self.plan(mixer), self.vocabulary)


@register_task(20)
@dataclass(frozen=True)
class Recall(SuiteTask):
    """Pairs of a key and a value, one map a sequence; scored where a key comes again."""

    NAME: ClassVar[str] = "recall"
    ASKS: ClassVar[str] = "a key that comes again asks for the value that followed it before"

    noise: Share = 0.0

    def draw(self, part: Part, count: int, generator: Generator) -> Pair:
        keys_values, pairs = self.vocabulary // (4 if self.noise else 2), self.length // 2
        key = torch.randint(keys_values, (count, pairs), generator=generator)
        values = torch.randint(keys_values, 2 * keys_values, (count, keys_values), generator=generator)
        is_noise = torch.rand(count, pairs, generator=generator) < self.noise
        earlier = (key.unsqueeze(2) == key.unsqueeze(1)) & ~is_noise.unsqueeze(1)
        again = earlier.tril(-1).any(2) & ~is_noise
        tokens = torch.stack([key, values.gather(1, key)], dim=-1)
        target = tokens[..., 1].masked_fill(~again, IGNORED)
        if self.noise:
            noise = torch.randint(2 * keys_values, self.vocabulary, tokens.shape, generator=generator)
            tokens = torch.where(is_noise.unsqueeze(-1), noise, tokens)
        return tokens.flatten(1), torch.stack([target, torch.full_like(target, IGNORED)], dim=-1).flatten(1)


@register_task(21)
@dataclass(frozen=True)
class NoisyRecall(Recall):
    """The same with a fifth of the pairs replaced by noise, from tokens of its own."""

    NAME: ClassVar[str] = "noisy_recall"
    ASKS: ClassVar[str] = "recall, where a fifth of the pairs are noise"

    vocabulary: Count = 32
    noise: Share = 0.2
