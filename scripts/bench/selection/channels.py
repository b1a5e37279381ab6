"""Fetch and maximum: every channel selects its own moment, with one layer and no MLP."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from scripts.bench.selection.networks import OneLayer, mixer_layer
from scripts.bench.selection.task import Pair, Part, Task

HEIGHT, NOISE = 4.0, 0.2  # of a key at its moment, and its deviation everywhere


@dataclass(frozen=True)
class ChannelTask(Task):
    """Regression of C numbers, one for each of the `channels`; the error is over the variance of the target."""

    measure = "error"

    width: int = 128
    layers: int = 1
    length: int = 32
    steps: int = 1500
    rate: float = 5e-3
    scored: int = 2048
    channels: int = 16

    def loss(self, answer: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(answer, target)

    def score(self, answer: Tensor, target: Tensor) -> float:
        error = F.mse_loss(answer.double(), target.double()) / target.double().var()
        return error.item()


@dataclass(frozen=True)
class Fetch(ChannelTask):
    """Each channel fetches the payload of the moment at which its own key is high."""

    name = "fetch"

    def host(self, mixer: str) -> nn.Module:
        return OneLayer(mixer_layer(mixer, self.width, self.heads), 2 * self.channels, self.channels)

    def draw(self, part: Part, count: int, generator: Generator) -> Pair:
        shape = (count, self.length, self.channels)
        moment = torch.randint(self.length, (count, 1, self.channels), generator=generator)
        keys = NOISE * torch.randn(shape, generator=generator)
        keys = keys.scatter_add(1, moment, torch.full(moment.shape, HEIGHT))
        payload = torch.randn(shape, generator=generator)
        return torch.cat([keys, payload], dim=-1), payload.gather(1, moment)[:, 0]


@dataclass(frozen=True)
class Maximum(ChannelTask):
    """Each channel gives its largest value so far; values are standard normal, so that the largest of T varies."""

    name = "maximum"

    def host(self, mixer: str) -> nn.Module:
        return OneLayer(mixer_layer(mixer, self.width, self.heads), self.channels, self.channels)

    def draw(self, part: Part, count: int, generator: Generator) -> Pair:
        values = torch.randn(count, self.length, self.channels, generator=generator)
        return values, values.amax(1)
