"""Next byte of the standard library's sources, and scikit-learn's digits: data that are read, not generated."""

from __future__ import annotations

import hashlib
import math
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch
from torch import Generator, Tensor, nn

from scripts.bench.selection.networks import Encoder, Reader
from scripts.bench.selection.task import Choices, Pair, Part

EVERY = 10  # every tenth source file is for the test
SPLIT, TESTED, PATCH, CLASSES = 12345, 597, 2, 10  # a seed; images of 1,797; pixels of a side; digits


@cache
def sources() -> tuple[Tensor, Tensor, str]:
    """Bytes of the modules at the top of this Python's library: training part, test part, and their SHA-256."""
    contents = [path.read_bytes() for path in sorted(Path(os.__file__).parent.glob("*.py"))]
    parts = ([], []) = list[bytes](), list[bytes]()
    for number, content in enumerate(contents):
        parts[number % EVERY == 0].append(content)
    train, test = (torch.frombuffer(bytearray(b"".join(part)), dtype=torch.uint8) for part in parts)
    return train, test, hashlib.sha256(b"".join(contents)).hexdigest()


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


@dataclass(frozen=True)
class NextByte(Choices):
    """The next byte of files that were not trained on, by a causal stack as in GPT-2; cross-entropy in bits a byte."""

    name, measure = "next_byte", "bits"

    length: int = 128
    batch: int = 16
    scored: int = 512

    def host(self, mixer: str) -> nn.Module:
        return Reader(self.blocks(mixer), self.width, 256, positions=self.length)

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


@dataclass(frozen=True)
class Digits(Choices):
    """The digit of an image of 8 by 8 pixels, by an encoder as in DeiT; 1,200 images to learn from."""

    name = "digits"

    layers: int = 3
    length: int = 16
    steps: int = 500
    batch: int = 64
    rate: float = 2e-3
    scored: int = TESTED

    def host(self, mixer: str) -> nn.Module:
        return Encoder(self.blocks(mixer, causal=False), self.width, PATCH * PATCH, self.length, CLASSES)

    def draw(self, part: Part, count: int, generator: Generator) -> Pair:
        patches, digits, _ = images()
        if part == "test":
            return patches[-TESTED:][:count], digits[-TESTED:][:count]
        chosen = torch.randint(len(digits) - TESTED, (count,), generator=generator)
        return patches[chosen], digits[chosen]

    def data(self) -> str:
        return images()[2]
