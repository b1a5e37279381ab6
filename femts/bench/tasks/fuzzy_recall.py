"""Fuzzy recall: keys and values are motifs of one to three tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator

from femts.bench.tasks.base import IGNORED, Pair, Part, register_task
from femts.bench.tasks.recall import SuiteTask
from femts.config.bounds import Count


@register_task(22)
@dataclass(frozen=True)
class FuzzyRecall(SuiteTask):
    """Motifs of different tokens, lengths drawn; in the test part every key has the longest length.

    Attributes:
        longest: tokens of the longest motif.
        motifs: different keys of a sequence.
    """

    NAME: ClassVar[str] = "fuzzy_recall"
    ASKS: ClassVar[str] = "recall, where keys and values are motifs of one to three tokens"

    length: Count = 96
    longest: Count = 3
    motifs: Count = 8

    def draw(self, part: Part, count: int, generator: Generator) -> Pair:
        samples = [self._sample(part, generator) for _ in range(count)]
        tokens, targets = (torch.tensor(each) for each in zip(*samples, strict=True))
        return tokens, targets

    def _sample(self, part: Part, generator: Generator) -> tuple[list[int], list[int]]:
        """Tokens and targets of one sequence: motif after motif from a few pairs, cut at the end."""
        pairs = self._pairs(part, generator)
        order = torch.randint(len(pairs), (self.length,), generator=generator).tolist()
        tokens, targets, seen = list[int](), list[int](), set[int]()
        for number in order:
            key, value = pairs[number]
            # The token before one of the value has it for its target.
            targets += [IGNORED] * (len(key) - 1) + (value if number in seen else [IGNORED] * len(value)) + [IGNORED]
            tokens += key + value
            seen.add(number)
            if len(tokens) >= self.length:
                break
        return tokens[: self.length], targets[: self.length]

    def _pairs(self, part: Part, generator: Generator) -> list[tuple[list[int], list[int]]]:
        half = self.vocabulary // 2
        shape = (self.motifs, 2, half)
        tokens = torch.rand(shape, generator=generator).argsort(-1).tolist()
        lengths = torch.randint(1, self.longest + 1, (self.motifs, 2), generator=generator).tolist()
        pairs = dict[tuple[int, ...], list[int]]()
        for (key, value), (key_length, value_length) in zip(tokens, lengths, strict=True):
            length = self.longest if part == "test" else key_length
            pairs.setdefault(tuple(key[:length]), [half + each for each in value[:value_length]])
        return [(list(key), value) for key, value in pairs.items()]
