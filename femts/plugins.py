"""What comes from outside femts: packages that add models, priors, data sets, commands, metrics, losses, scalers and
intervals, and the registries that they add them to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Generic, TypeVar

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
                f"Plugin '{point.name}' cannot be imported from {point.value} ({reason}); mend or uninstall it."
            ) from error


class Registry(Generic[T]):
    """Things of one kind by name, from femts and from plugins.

    Args:
        kind: a noun, for messages.
        reserved: further names, of what needs no registration.
    """

    def __init__(self, kind: str, reserved: Sequence[str] = ()) -> None:
        self.kind, self.reserved, self._things = kind, tuple(reserved), dict[str, T]()

    def register(self, name: str) -> Callable[[T], T]:
        """Decorator: make something available by `name`; ValueError for a name that is taken."""

        def add(thing: T) -> T:
            if name in self._things or name in self.reserved:
                raise ValueError(f"{self.kind} {name!r} is registered twice")
            self._things[name] = thing
            note_module(name, getattr(thing, "__module__", ""))
            return thing

        return add

    def names(self) -> tuple[str, ...]:
        """All names, sorted."""
        load_plugins()
        return tuple(sorted([*self.reserved, *self._things]))

    def __getitem__(self, name: str) -> T:
        """The one called `name`; UsageError with the nearest right name where there is none."""
        if name not in self._things and name not in self.names():
            raise UsageError(f"Unknown {self.kind} '{name}'{suggest(str(name), self.names())}")
        return self._things[name]


def note_module(name: str, module: str) -> None:
    """Note that `name` was registered by `module`, where that is none of femts."""
    if module.split(".")[0] != "femts":
        _MODULES[name] = module


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
            f"'{value}' is of the script or notebook itself, which the processes of a table cannot import; put it "
            "into a file of its own, and import that."
        )
    return set() if module is None else {module}
