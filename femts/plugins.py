"""Plugins: installed packages that add models, priors, datasets, commands, metrics, losses, scalers or interval
methods, and the registries they add them to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules
from typing import TypeVar

from femts.errors import UsageError, unknown

GROUP = "femts.plugins"
_SCRIPT = "__main__"
_MODULES: dict[str, str] = {}
_loaded = False

T = TypeVar("T")


def load_plugins() -> None:
    """Import all modules that installed packages declare as entry points of the group `femts.plugins`, once; they
    register their components on import.

    Raises:
        UsageError: A module cannot be imported; the message gives its name and the reason.
    """
    global _loaded
    if _loaded:
        return
    _loaded = True
    for point in entry_points(group=GROUP):
        try:
            point.load()
        except Exception as error:
            _loaded = False
            reason = str(error).strip().partition("\n")[0] or type(error).__name__
            raise UsageError(
                f"Plugin '{point.name}' cannot be imported from {point.value} ({reason}); fix or uninstall it."
            ) from error


class Registry(dict[str, T]):
    """Components of one kind by name, from femts and from plugins. Looking up an unknown name raises UsageError with
    the closest valid name.

    Args:
        kind: a noun, for messages.
        reserved: names that are valid without registration.
        load: imports the modules of femts that register components of this kind.
    """

    def __init__(self, kind: str, reserved: Sequence[str] = (), load: Callable[[], object] | None = None) -> None:
        super().__init__()
        self.kind, self.reserved, self._load = kind, tuple(reserved), load

    def add(self, name: str, thing: T, module: str) -> None:
        """Register `thing` under `name` on behalf of `module`; ValueError if the name is taken, ignoring case."""
        if name.lower() in map(str.lower, [*self, *self.reserved]):
            raise ValueError(f"{self.kind} {name!r} is registered twice")
        self[name] = thing
        if module.split(".")[0] != "femts":
            _MODULES[name] = module

    def register(self, name: str) -> Callable[[T], T]:
        """Decorator that registers its object under `name`; ValueError if the name is taken."""

        def add(thing: T) -> T:
            self.add(name, thing, getattr(thing, "__module__", ""))
            return thing

        return add

    def names(self) -> tuple[str, ...]:
        """All names in alphabetical order."""
        if self._load is not None:
            self._load()
        load_plugins()
        return tuple(sorted([*self.reserved, *self]))

    def __missing__(self, name: str) -> T:
        known = self.names()
        if name not in self:
            raise unknown(self.kind, name, known, "model" if self.kind == "model" else None)
        return self[name]


def import_all(package: str) -> None:
    """Import all modules of `package`."""
    for module in iter_modules(import_module(package).__path__):
        import_module(f"{package}.{module.name}")


def modules_of(value: object) -> set[str]:
    """Modules whose names occur in `value`, which may be nested.

    Raises:
        UsageError: One is the running script, which worker processes would execute instead of importing it.
    """
    if isinstance(value, Mapping):
        return modules_of(list(value.values()))
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return set[str]().union(*map(modules_of, value))
    module = _MODULES.get(value) if isinstance(value, str) else None
    if module == _SCRIPT:
        raise UsageError(
            f"'{value}' is defined in the script or notebook itself, which worker processes cannot import; move it to "
            "its own module, and import that."
        )
    return set() if module is None else {module}
