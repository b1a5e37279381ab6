"""Channel-wise fetch: every channel reads the payload of the moment at which its own key is high."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from femts.bench.tasks.base import Pair, Part, Task, register_task
from femts.bench.tasks.layer import OneLayer, mixer_layer
from femts.config.bounds import Count, Positive

HEIGHT, NOISE = 4.0, 0.2  # of a key at its moment, and its deviation everywhere


@dataclass(frozen=True)
class ChannelTask(Task):
    """Regression of C numbers, one a channel, by one layer without MLP; the error is over the variance of the target.

    Attributes:
        channels: C.
    """

    MEASURE = "error"

    width: Count = 128
    layers: Count = 1
    length: Count = 32
    steps: Count = 1500
    rate: Positive = 5e-3
    scored: Count = 2048
    channels: Count = 16

    def loss(self, answer: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(answer, target)

    def score(self, answer: Tensor, target: Tensor) -> float:
        error = F.mse_loss(answer.double(), target.double()) / target.double().var()
        return error.item()

    def winners(self, count: int, generator: Generator) -> tuple[Tensor, Tensor]:
        """Keys (B, T, C), high at one moment of each channel and about 0 elsewhere; those moments (B, 1, C)."""
        shape = (count, self.length, self.channels)
        moment = torch.randint(self.length, (count, 1, self.channels), generator=generator)
        keys = NOISE * torch.randn(shape, generator=generator)
        return keys.scatter_add(1, moment, torch.full(moment.shape, HEIGHT)), moment


@register_task(10)
@dataclass(frozen=True)
class Fetch(ChannelTask):
    """See the module."""

    NAME: ClassVar[str] = "fetch"
    ASKS: ClassVar[str] = "each channel fetches the payload of the moment at which its own key is high"

    def host(self, mixer: str) -> nn.Module:
        return OneLayer(mixer_layer(mixer, self.width, self.heads), 2 * self.channels, self.channels)

    def draw(self, part: Part, count: int, generator: Generator) -> Pair:
        keys, moment = self.winners(count, generator)
        payload = torch.randn(keys.shape, generator=generator)
        return torch.cat([keys, payload], dim=-1), payload.gather(1, moment)[:, 0]
