"""Memorisation: a map of keys to values that is the same in all sequences is learned in the weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator

from femts.bench.tasks.base import IGNORED, Pair, Part, register_task
from femts.bench.tasks.recall import SuiteTask
from femts.config.bounds import Count

MAP = 12345  # seed of the map


@register_task(25)
@dataclass(frozen=True)
class Memorisation(SuiteTask):
    """Keys, each followed by a sign at which its value is asked for."""

    NAME: ClassVar[str] = "memorisation"
    ASKS: ClassVar[str] = "a fixed map of keys to values is learned in the weights"

    vocabulary: Count = 256
    length: Count = 32
    steps: Count = 200

    def draw(self, part: Part, count: int, generator: Generator) -> Pair:
        keys, sign = self.vocabulary // 2, self.vocabulary - 1
        values = keys + torch.randint(sign - keys, (keys,), generator=Generator().manual_seed(MAP))
        key = torch.randint(keys, (count, self.length // 2), generator=generator)
        tokens = torch.stack([key, torch.full_like(key, sign)], dim=-1).flatten(1)
        return tokens, torch.stack([torch.full_like(key, IGNORED), values[key]], dim=-1).flatten(1)
