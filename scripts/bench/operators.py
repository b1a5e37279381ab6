"""Operators of a training step: what a GPU launches, and what a CPU spends most of its time on at short sequences."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from femts.mixers import FreeEnergyMixer
from scripts.bench.mixer import layer_config

# Reserve memory or return an input, without computing anything.
FREE = {
    "empty",
    "empty_like",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
    "_unsafe_view",
    "_reshape_alias",
    "detach",
}


class Operators(TorchDispatchMode):
    """Counts the operators that compute something: those that return only views or new memory are left out.

    Attributes:
        counts: by name, such as `aten.mm`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.counts = Counter[str]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not func.is_view and func.overloadpacket.__name__ not in FREE:
            self.counts[str(func.overloadpacket)] += 1
        return func(*args, **(kwargs or {}))


def operators(call: Callable[[], Any]) -> Counter[str]:
    """Count the operators of a second `call`, since the first one may fill caches."""
    call()
    with Operators() as seen:
        call()
    return seen.counts


def bench_operators(options: Namespace) -> Iterator[dict[str, Any]]:
    """Operators of the forward pass and of a training step of a layer, beside those of its prior alone."""
    for prior, length in product(options.priors, options.lengths):
        alone: dict[str, int] = {}
        for name in dict.fromkeys(("alone", *options.components)):
            layer = FreeEnergyMixer(layer_config(prior, name, options.d_model, options.n_heads)).to(options.device)
            x = torch.randn(2, length, options.d_model, device=options.device, requires_grad=True)
            counts = {"forward": operators(partial(layer, x)), "step": operators(_step(layer, x))}
            totals = {kind: each.total() for kind, each in counts.items()}
            alone = alone or totals
            row = {"prior": prior, "length": length, "components": name, **totals}
            row |= {f"{kind}_ratio": total / alone[kind] for kind, total in totals.items()}
            most = (
                f"{number} {kind.removeprefix('aten.')}" for kind, number in counts["step"].most_common(options.most)
            )
            yield row | {"most": ", ".join(most)}


def _step(layer: FreeEnergyMixer, x: Tensor) -> Callable[[], None]:
    def step() -> None:
        layer.zero_grad()
        x.grad = None
        layer(x).sum().backward()

    return step
