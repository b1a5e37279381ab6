"""Selection priors by name. All modules of this folder are imported at the first lookup and register themselves."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from femts.plugins import Registry, import_all


class PriorClass(Protocol):
    """Class of a selection prior as seen by its users; see `femts.mixers.priors.base.Prior` for its members."""

    @property
    def NAME(self) -> str: ...
    @property
    def ORDER(self) -> int: ...
    @property
    def per_channel(self) -> bool: ...
    @property
    def operation(self) -> str | None: ...

    def __call__(self, config: Any, widths: Any) -> Any:
        """Build the module for a `FreeEnergyMixerConfig` and its resolved `Widths`."""

    def weight_count(self, config: Any, fem_dim: int, qk_dim: int) -> int:
        """Weights of its linear maps at these widths."""


PRIORS: Registry[PriorClass] = Registry("prior", load=lambda: import_all("femts.mixers.priors"))
_Class = TypeVar("_Class", bound=PriorClass)


def register_prior(prior: _Class) -> _Class:
    """Class decorator that registers a prior under its `NAME`.

    Args:
        prior: the class.

    Returns:
        The same class.
    """
    PRIORS.add(prior.NAME, prior, prior.__module__)
    return prior


def prior_class(name: str) -> PriorClass:
    """The prior called `name`; raise UsageError with the nearest known name if there is none."""
    return PRIORS[name]


def prior_names() -> tuple[str, ...]:
    """All registered names, in the order of `Prior.ORDER`."""
    return tuple(sorted(PRIORS.names(), key=lambda name: PRIORS[name].ORDER))
