"""Selection priors by name. Every module of this folder is imported when one is first asked for,
and registers itself."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, Protocol, TypeVar

from femts.errors import UsageError, suggest
from femts.plugins import load_plugins, note_module


class PriorClass(Protocol):
    """Class of a selection prior, as far as its name decides it; `femts.mixers.priors.base.Prior`
    says what its members are."""

    @property
    def NAME(self) -> str: ...
    @property
    def ORDER(self) -> int: ...
    @property
    def per_channel(self) -> bool: ...
    @property
    def operation(self) -> str | None: ...

    def __call__(self, config: Any, widths: Any) -> Any:
        """The module, for a `FreeEnergyMixerConfig` and the `Widths` that it leads to."""

    def weight_count(self, config: Any, fem_dim: int, qk_dim: int) -> int:
        """Weights of its linear maps at these widths."""


_PRIORS: dict[str, PriorClass] = {}
_Class = TypeVar("_Class", bound=PriorClass)


def register_prior(prior: _Class) -> _Class:
    """Class decorator: make a prior available under its `NAME`.

    Args:
        prior: the class.

    Returns:
        The same class.
    """
    _PRIORS[prior.NAME] = prior
    note_module(prior.NAME, prior.__module__)
    return prior


def prior_class(name: str) -> PriorClass:
    """The prior called `name`; UsageError with the nearest right name when there is none."""
    if name not in _PRIORS:  # asked in every forward pass, where no folder should be listed
        _load_all()
    if name not in _PRIORS:
        raise UsageError(f"Unknown prior '{name}'{suggest(name, _PRIORS)}")
    return _PRIORS[name]


def prior_names() -> tuple[str, ...]:
    """Every registered name, in the order of `Prior.ORDER`."""
    _load_all()
    return tuple(sorted(_PRIORS, key=lambda name: _PRIORS[name].ORDER))


def _load_all() -> None:
    load: Callable[[str], object] = import_module
    for module in iter_modules([str(Path(__file__).parent)]):
        load(f"{__package__}.{module.name}")
    load_plugins()
