"""Option groups: a frozen dataclass whose fields are command-line options and which a command receives as one
argument."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints


def grouped(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a command so that each parameter annotated with a dataclass becomes options for its fields.

    Fields have typer annotations and defaults, and may themselves be groups. In the help, options appear at the
    position of the parameter, in the order of the fields.

    Raises:
        ValueError: Two options have the same name.
    """
    hints = get_type_hints(command, include_extras=True)
    parameters = signature(command).parameters
    options = [option for name, each in parameters.items() for option in _options(name, hints[name], each.default)]

    @wraps(command)
    def expanded(**values: Any) -> Any:
        return command(**{name: _collect(name, hints[name], values) for name in parameters})

    expanded.__signature__ = Signature(options)  # type: ignore[attr-defined]  # read by typer
    expanded.__annotations__ = {option.name: option.annotation for option in options}
    return expanded


def given(group: Any) -> dict[str, Any]:
    """Values of a group and its nested groups that were given: not None, and not False for flags that default to it."""
    values: dict[str, Any] = {}
    for field in dataclasses.fields(group):
        value = getattr(group, field.name)
        if dataclasses.is_dataclass(value):
            values |= given(value)
        elif value is not None and not (value is False and field.default is False):
            values[field.name] = value
    return values


def _options(name: str, hint: Any, default: Any) -> Iterator[Parameter]:
    """The parameter itself, or parameters for the fields of a group."""
    if not dataclasses.is_dataclass(hint):
        default = Parameter.empty if default is dataclasses.MISSING else default
        yield Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)
        return
    hints = get_type_hints(hint, include_extras=True)
    for field in dataclasses.fields(hint):
        yield from _options(field.name, hints[field.name], field.default)


def _collect(name: str, hint: Any, values: Mapping[str, Any]) -> Any:
    """The value `name`, or the group built from the values of its fields."""
    if not dataclasses.is_dataclass(hint):
        return values[name]
    hints = get_type_hints(hint, include_extras=True)
    return hint(**{field.name: _collect(field.name, hints[field.name], values) for field in dataclasses.fields(hint)})  # type: ignore[operator]
