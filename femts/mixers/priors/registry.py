"""Selection priors by name. Every module of this folder is imported when one is first asked for, and registers
itself."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from femts.plugins import Registry, import_all


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


PRIORS: Registry[PriorClass] = Registry("prior", load=lambda: import_all("femts.mixers.priors"))
_Class = TypeVar("_Class", bound=PriorClass)


def register_prior(prior: _Class) -> _Class:
    """Class decorator: make a prior available under its `NAME`.

    Args:
        prior: the class.

    Returns:
        The same class.
    """
    PRIORS.add(prior.NAME, prior, prior.__module__)
    return prior


def prior_class(name: str) -> PriorClass:
    """The prior called `name`; UsageError with the nearest right name when there is none."""
    return PRIORS[name]


def prior_names() -> tuple[str, ...]:
    """Every registered name, in the order of `Prior.ORDER`."""
    return tuple(sorted(PRIORS.names(), key=lambda name: PRIORS[name].ORDER))
