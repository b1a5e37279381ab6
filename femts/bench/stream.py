"""Cost of one more token of a stream, after few and after many."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map_only

from femts.bench.measure import Measured, take_turns
from femts.bench.mixer import layer_config
from femts.mixers import FreeEnergyMixer
from femts.mixers.config import COMPONENTS
from femts.mixers.layer import MixerState
from femts.training.device import Place

STEPS = 20  # tokens of one turn


@dataclass(frozen=True)
class StreamBench:
    """Settings of the benchmark: one layer with all components and one stream.

    Attributes:
        priors: names of selection priors.
        seen: tokens before those that are timed; the first is what the others are compared with.
        d_model: width of a token.
        n_heads: heads of the prior.
        repeats: turns, at least 1.

    Raises:
        UsageError: an unknown prior, or sizes that no layer can have.
    """

    priors: tuple[str, ...]
    seen: tuple[int, ...]
    d_model: int
    n_heads: int
    repeats: int

    def __post_init__(self) -> None:
        for prior in self.priors:
            layer_config(prior, COMPONENTS, self.d_model, self.n_heads)


@dataclass(frozen=True)
class StreamRow:
    """One prior after `seen` tokens.

    Attributes:
        prior, seen: what was measured.
        step: seconds of one token, against the same prior after the fewest tokens.
        state_bytes: what the layer carries from token to token.
    """

    prior: str
    seen: int
    step: Measured
    state_bytes: int


def bench_stream(bench: StreamBench, place: Place) -> Iterator[StreamRow]:
    """The rows of `bench`, prior by prior; every token before those that are timed is really stepped through."""
    for prior in bench.priors:
        yield from _bench_prior(bench, place, prior)


@torch.no_grad()
def _bench_prior(bench: StreamBench, place: Place, prior: str) -> list[StreamRow]:
    layer = FreeEnergyMixer(layer_config(prior, COMPONENTS, bench.d_model, bench.n_heads)).to(place.device).eval()
    tokens = torch.randn(STEPS, 1, bench.d_model, device=place.device)
    states, state, seen = {}, layer.init_state(1), 0
    for count in sorted(bench.seen):
        while seen < count:
            _, state = layer.step(tokens[seen % STEPS], state)
            seen += 1
        states[count] = tree_map_only(Tensor, torch.clone, state)
    turns = take_turns(
        {str(count): partial(_run, layer, tokens, states[count]) for count in bench.seen}, bench.repeats, place.device
    )
    a_token = {count: [turn / STEPS for turn in turns[str(count)]] for count in bench.seen}
    return [
        StreamRow(prior, count, Measured.of(a_token[count], a_token[bench.seen[0]]), _bytes(states[count]))
        for count in bench.seen
    ]


def _run(layer: FreeEnergyMixer, tokens: Tensor, state: MixerState) -> None:
    for token in tokens:
        _, state = layer.step(token, state)


def _bytes(state: MixerState) -> int:
    return sum(leaf.numel() * leaf.element_size() for leaf in tree_leaves(state) if isinstance(leaf, Tensor))
