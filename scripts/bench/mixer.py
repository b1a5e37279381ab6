"""Cost of one mixing layer: by prior, components and length, and token by token in a stream."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map_only

from femts.mixers import FreeEnergyMixer, FreeEnergyMixerConfig, MixerState, component_flags
from femts.mixers.reference import plain_forward
from scripts.bench.measure import compare, peak_bytes, take_turns

LARGEST_NAIVE = 2**30  # bytes of one (B, T, T, E) tensor; the naive form holds several of them
TOKENS = 20  # of a stream in one turn


def layer_config(prior: str, components: str, d_model: int, n_heads: int) -> FreeEnergyMixerConfig:
    """The layer as the forecasters have it; `components` is a set such as `LTG`, `alone` for none or `naive` for all.

    Raises:
        UsageError: an unknown prior or component set, or sizes that no layer can have.
    """
    flags = component_flags({"alone": "", "naive": "CLTG"}.get(components, components))
    return FreeEnergyMixerConfig(d_model, n_heads, prior, dropout=0.1, use_rope=False, ssm_rank=8, **flags)


def bench_mixer(options: Namespace) -> Iterator[dict[str, Any]]:
    """Forward pass, training step and peak memory of a layer, beside those of its prior alone.

    `naive` computes all components through a dense p; its numbers are null where that would not fit.
    """
    sets, device = dict.fromkeys(("alone", *options.components)), options.device
    configs = {
        prior: {name: layer_config(prior, name, options.d_model, options.n_heads) for name in sets}
        for prior in options.priors
    }
    for prior, length in product(options.priors, options.lengths):
        batch = max(1, options.tokens // length)
        x = torch.randn(batch, length, options.d_model, device=device, requires_grad=True)
        layers = {name: FreeEnergyMixer(config).to(device) for name, config in configs[prior].items()}
        fitting = {name: layer for name, layer in layers.items() if name != "naive" or _naive_fits(layer, x)}
        calls = {name: _calls(layer, x, name == "naive", options.precision) for name, layer in fitting.items()}
        forward = take_turns({name: forward for name, (forward, _) in calls.items()}, options.repeats, device)
        step = take_turns({name: step for name, (_, step) in calls.items()}, options.repeats, device)
        peak = {name: peak_bytes(step, device) for name, (_, step) in calls.items()}
        for name in layers:
            measured = name in fitting
            yield {
                **{"prior": prior, "length": length, "batch": batch, "components": name},
                "forward": compare(forward[name], forward["alone"]) if measured else None,
                "step": compare(step[name], step["alone"]) if measured else None,
                "peak_bytes": peak.get(name),
                "peak_ratio": peak[name] / peak["alone"] if measured else None,
            }


def _calls(
    layer: FreeEnergyMixer, x: Tensor, naive: bool, precision: str
) -> tuple[Callable[[], None], Callable[[], None]]:
    """A forward pass without gradients, and one with those of input and weights."""
    gradient = torch.randn_like(x)

    def run() -> Tensor:
        with torch.autocast(x.device.type, torch.bfloat16, enabled=precision == "bf16"):
            return plain_forward(layer, x) if naive else layer(x)

    @torch.no_grad()
    def forward() -> None:
        layer.eval()
        run()

    def step() -> None:
        layer.train()
        y = run()
        torch.autograd.grad(y, [x, *layer.parameters()], gradient.to(y.dtype))

    return forward, step


def _naive_fits(layer: FreeEnergyMixer, x: Tensor) -> bool:
    # The dense weights of `mamba` come out of a scan that keeps the states of every key.
    states = layer.config.ssm_rank if layer.config.prior_type == "mamba" else 1
    return 4 * x.shape[0] * x.shape[1] ** 2 * layer.widths.fem_dim * states <= LARGEST_NAIVE


@torch.no_grad()
def bench_stream(options: Namespace) -> Iterator[dict[str, Any]]:
    """One more token of a stream through a layer with all components, after few and after many, and its state's size.

    Every token before those that are timed is really stepped through; ratios are to the first number of them.
    """
    device, seen = options.device, options.seen
    configs = {prior: layer_config(prior, "CLTG", options.d_model, options.n_heads) for prior in options.priors}
    for prior, config in configs.items():
        layer = FreeEnergyMixer(config).to(device).eval()
        tokens = torch.randn(TOKENS, 1, options.d_model, device=device)
        states, state, count = {}, layer.init_state(1), 0
        for stop in sorted(seen):
            for number in range(count, stop):
                _, state = layer.step(tokens[number % TOKENS], state)
            states[stop], count = tree_map_only(Tensor, torch.clone, state), stop
        cases = {str(stop): partial(_stream, layer, tokens, state) for stop, state in states.items()}
        seconds = {
            name: [turn / TOKENS for turn in turns]
            for name, turns in take_turns(cases, options.repeats, device).items()
        }
        for stop in seen:
            size = sum(leaf.nbytes for leaf in tree_leaves(states[stop]) if isinstance(leaf, Tensor))
            step = compare(seconds[str(stop)], seconds[str(seen[0])])
            yield {"prior": prior, "seen": stop, "step": step, "state_bytes": size}


def _stream(layer: FreeEnergyMixer, tokens: Tensor, state: MixerState) -> None:
    for token in tokens:
        _, state = layer.step(token, state)
