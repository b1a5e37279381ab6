"""What comes from outside femts: packages that add models, priors, data sets, commands, metrics, losses, scalers and
intervals, and the registries that they add them to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules
from typing import TypeVar

from femts.errors import UsageError, suggest

GROUP = "femts.plugins"
_SCRIPT = "__main__"
_MODULES: dict[str, str] = {}
_loaded = False

T = TypeVar("T")


def load_plugins() -> None:
    """Import every module that an installed package names as an entry point of the group `femts.plugins`, once; each
    registers what it brings.

    Raises:
        UsageError: a module cannot be imported; the text names it and the reason.
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
    """Things of one kind by name, from femts and from plugins. What is not there raises a UsageError with the nearest
    right name.

    Args:
        kind: a noun, for messages.
        reserved: further names, of what needs no registration.
        load: imports the modules of femts that register something of this kind.
    """

    def __init__(self, kind: str, reserved: Sequence[str] = (), load: Callable[[], object] | None = None) -> None:
        super().__init__()
        self.kind, self.reserved, self._load = kind, tuple(reserved), load

    def add(self, name: str, thing: T, module: str) -> None:
        """Make `thing` available by `name`, as `module` asks; ValueError for a name that is taken, in whatever case."""
        if name.lower() in map(str.lower, [*self, *self.reserved]):
            raise ValueError(f"{self.kind} {name!r} is registered twice")
        self[name] = thing
        if module.split(".")[0] != "femts":
            _MODULES[name] = module

    def register(self, name: str) -> Callable[[T], T]:
        """Decorator: make something available by `name`; ValueError for a name that is taken."""

        def add(thing: T) -> T:
            self.add(name, thing, getattr(thing, "__module__", ""))
            return thing

        return add

    def names(self) -> tuple[str, ...]:
        """All names, sorted."""
        if self._load is not None:
            self._load()
        load_plugins()
        return tuple(sorted([*self.reserved, *self]))

    def __missing__(self, name: str) -> T:
        known = self.names()
        if name not in self:
            raise UsageError(f"Unknown {self.kind} '{name}'{suggest(str(name), known)}")
        return self[name]


def import_all(package: str) -> None:
    """Import every module of `package`."""
    for module in iter_modules(import_module(package).__path__):
        import_module(f"{package}.{module.name}")


def modules_of(value: object) -> set[str]:
    """The modules whose names occur in `value`, plain values within each other.

    Raises:
        UsageError: one is the script itself, which another process would run instead of importing it.
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
