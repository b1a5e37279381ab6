"""Parameters that an optimiser should not pull towards 0, asked from the modules that own them.

A flag on a parameter would be gone after `copy.deepcopy`, which processes and running averages make of a model.
"""

from __future__ import annotations

from torch import nn


def undecayed(model: nn.Module) -> set[str]:
    """Names of those parameters of `model`: what its modules list in `NO_WEIGHT_DECAY`, as seen from them.

    For an optimiser of your own, put them into a group with `weight_decay=0`.
    """
    names = {
        f"{place}.{name}".removeprefix(".")
        for place, module in model.named_modules()
        for name in getattr(module, "NO_WEIGHT_DECAY", ())
    }
    return names & {name for name, _ in model.named_parameters()}
