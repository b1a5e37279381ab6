"""Next byte of the standard library's own sources, by a small causal stack as in GPT-2."""

from __future__ import annotations

import hashlib
import math
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar

import torch
from torch import Generator, Tensor, nn

from femts.bench.tasks.base import Choices, Pair, Part, register_task
from femts.bench.tasks.stack import Reader, StackPlan
from femts.config.bounds import Count

EVERY = 10  # one file of so many is for the test


@cache
def sources() -> tuple[Tensor, Tensor, str]:
    """Bytes of the modules at the top of this Python's library: training part, test part, and their SHA-256."""
    files = sorted(Path(os.__file__).parent.glob("*.py"))
    contents = [path.read_bytes() for path in files]
    parts = ([], []) = list[bytes](), list[bytes]()
    for number, content in enumerate(contents):
        parts[number % EVERY == 0].append(content)
    train, test = (torch.frombuffer(bytearray(b"".join(part)), dtype=torch.uint8) for part in parts)
    return train, test, hashlib.sha256(b"".join(contents)).hexdigest()


@register_task(30)
@dataclass(frozen=True)
class NextByte(Choices):
    """Windows of T bytes at random places; the score is the cross-entropy in bits a byte."""

    NAME: ClassVar[str] = "next_byte"
    ASKS: ClassVar[str] = "the next byte of the standard library's sources, from files that were not trained on"
    MEASURE: ClassVar[str] = "bits"

    length: Count = 128
    batch: Count = 16
    scored: Count = 512

    def host(self, mixer: str) -> nn.Module:
        return Reader(StackPlan(mixer, self.width, self.heads, self.layers), 256, positions=self.length)

    def draw(self, part: Part, count: int, generator: Generator) -> Pair:
        train, test, _ = sources()
        text = test if part == "test" else train
        first = torch.randint(len(text) - self.length, (count, 1), generator=generator)
        windows = text[first + torch.arange(self.length + 1)].long()
        return windows[:, :-1], windows[:, 1:]

    def score(self, answer: Tensor, target: Tensor) -> float:
        return self.loss(answer, target).item() / math.log(2)

    def data(self) -> str:
        return sources()[2]
