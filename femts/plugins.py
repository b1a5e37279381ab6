"""Models, priors and data sets from outside femts: which module brings each, for other processes to import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from femts.errors import UsageError

_SCRIPT = "__main__"
_MODULES: dict[str, str] = {}


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
