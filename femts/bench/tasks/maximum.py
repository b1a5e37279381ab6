"""Channel-wise maximum: every channel reads its largest value, at a moment of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator, nn

from femts.bench.tasks.base import Pair, Part, register_task
from femts.bench.tasks.fetch import ChannelTask
from femts.bench.tasks.layer import OneLayer, mixer_layer


@register_task(11)
@dataclass(frozen=True)
class Maximum(ChannelTask):
    """Largest value so far, by channel; values are standard normal, so that the largest of T varies."""

    NAME: ClassVar[str] = "maximum"
    ASKS: ClassVar[str] = "each channel gives its largest value so far"

    def host(self, mixer: str) -> nn.Module:
        return OneLayer(mixer_layer(mixer, self.width, self.heads), self.channels, self.channels)

    def draw(self, part: Part, count: int, generator: Generator) -> Pair:
        values = torch.randn(count, self.length, self.channels, generator=generator)
        return values, values.amax(1)
