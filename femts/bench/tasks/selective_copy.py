"""Selective copying: give back, in order, the tokens that were scattered among blanks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator

from femts.bench.tasks.base import IGNORED, Pair, Part, register_task
from femts.bench.tasks.recall import SuiteTask
from femts.config.bounds import Count


@register_task(23)
@dataclass(frozen=True)
class SelectiveCopy(SuiteTask):
    """Scattered tokens and blanks, a sign to begin, then as many blanks as tokens to copy.

    Attributes:
        copied: tokens to copy.
    """

    NAME: ClassVar[str] = "selective_copy"
    ASKS: ClassVar[str] = "give back in order the tokens that were scattered among blanks"

    copied: Count = 8

    def draw(self, part: Part, count: int, generator: Generator) -> Pair:
        blank, begin, places = self.vocabulary - 2, self.vocabulary - 1, self.length - self.copied - 1
        chosen = torch.randint(self.vocabulary - 2, (count, self.copied), generator=generator)
        where = torch.rand(count, places, generator=generator).argsort(1)[:, : self.copied].sort(1).values
        tokens = torch.full((count, self.length), blank)
        tokens.scatter_(1, where, chosen)[:, places] = begin
        targets = torch.full_like(tokens, IGNORED)
        targets[:, -self.copied :] = chosen
        return tokens, targets
