"""Parameters without weight decay, as declared by the modules that own them.

A flag on the parameter itself would be lost in `copy.deepcopy`, which multiprocessing and running averages use.
"""

from __future__ import annotations

from torch import nn


def undecayed(model: nn.Module) -> set[str]:
    """Names of the parameters of `model` without weight decay: those listed in `NO_WEIGHT_DECAY` of its modules, as
    qualified names.

    In your own optimiser, put them into a group with `weight_decay=0`.
    """
    names = {
        f"{place}.{name}".removeprefix(".")
        for place, module in model.named_modules()
        for name in getattr(module, "NO_WEIGHT_DECAY", ())
    }
    return names & {name for name, _ in model.named_parameters()}
