"""Settings by name: text from the command line or YAML becomes typed fields of frozen dataclasses."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from femts.config.model import SHAPE
from femts.config.training import TrainingConfig
from femts.config.values import check_plain, is_single, whole_number
from femts.errors import UsageError, blamed, nearest, suggest
from femts.text import argument, marked, quote

_Config = TypeVar("_Config")
_types = cache(get_type_hints)  # evaluates all annotations of a class, which takes a millisecond


def apply_settings(config: _Config, settings: Mapping[str, Any], where: str) -> _Config:
    """Return a copy of the dataclass `config` with `settings` applied.

    Args:
        config: a frozen dataclass.
        settings: field name -> value; text is parsed by the type of the field (YAML 1.1 reads `6e-4` as text, too).
        where: prefix of field names for messages (`model`, `training`).

    Raises:
        UsageError: A name is unknown, or its value is invalid.
    """
    current = {f.name: getattr(config, f.name) for f in fields(config)}  # type: ignore[arg-type]
    return make_config(type(config), current, settings, where)


def make_config(kind: type[_Config], given: Mapping[str, Any], settings: Mapping[str, Any], where: str) -> _Config:
    """Create a dataclass of type `kind` from typed fields, `given`, overridden by `settings` as in `apply_settings`.

    Raises:
        UsageError: As in `apply_settings`.
    """
    changes = {name: read_setting(kind, name, value, where) for name, value in settings.items()}
    try:
        return kind(**{**given, **changes})
    except UsageError:
        raise
    except ValueError as error:
        raise UsageError(
            f"Setting {', '.join(f'{where}.{k}={quote(v)}' for k, v in settings.items())} cannot be used: {marked(error)}"
        ) from error


def read_setting(kind: type, name: str, value: Any, where: str) -> Any:
    """Parse the `value` of the field `name` of a dataclass of type `kind`, without checking its bounds.

    Raises:
        UsageError: As in `apply_settings`.
    """
    names, key = [f.name for f in fields(kind) if f.name not in SHAPE], f"{where}.{name}"
    if name in SHAPE:
        lengths = f"{argument('seq_len')} and {argument('pred_len')}"
        raise UsageError(
            f"Setting '{where}.{name}' is determined by the data, {lengths}; remove it.", argument=key, value=value
        )
    if name not in names:
        near = nearest(name, names)
        meant = None if near is None else f"{where}.{near}"
        if where == "model" and name in {f.name for f in fields(TrainingConfig)}:
            meant = f"training.{name}"
        choices = suggest(name, names) if meant is None else f"; did you mean '{meant}'?"
        raise UsageError(f"Unknown setting '{where}.{quote(name)}'{choices}", argument=key, value=value)
    with blamed(key, value):
        check_plain(value, f"Setting '{key}'")
        return _read(value, _types(kind)[name], key)


def _read(value: Any, kind: Any, key: str) -> Any:
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        if type(None) in args and (value is None or (isinstance(value, str) and value.lower() in ("none", "null"))):
            return None
        return _read(value, next(a for a in args if a is not type(None)), key)
    if origin is Literal:
        text = quote(value)
        if "on" in args:  # which YAML reads as true
            text = {"true": "on", "false": "off"}.get(text.lower(), text)
        if text not in map(str, args):
            raise UsageError(f"Setting '{key}' cannot be '{quote(value)}'{suggest(text, [str(a) for a in args])}")
        return next(a for a in args if str(a) == text)
    if origin is tuple:
        parts = (
            value.strip("()[] ").split(",") if isinstance(value, str) else [value] if is_single(value) else list(value)
        )
        if len(parts) != len(args) and Ellipsis not in args:
            raise UsageError(f"Setting '{key}' takes {len(args)} values, not '{quote(value)}'; write them as a,b.")
        return tuple(_read(p, args[0], key) for p in parts)
    if hasattr(kind, "from_record"):
        return kind.from_record(value)
    if kind is bool:
        text = quote(value).strip().lower()
        if text not in ("true", "false", "1", "0", "yes", "no", "on", "off"):
            raise UsageError(f"Setting '{key}' takes true or false, not '{quote(value)}'.")
        return text in ("true", "1", "yes", "on")
    if kind is int:
        number = whole_number(value, f"Setting '{key}'")
        if number is None:
            raise UsageError(f"Setting '{key}' takes a whole number, not '{quote(value)}'.")
        return number
    try:
        if not is_single(value):
            raise ValueError
        read = kind(value.strip() if isinstance(value, str) else value)
        if kind is float and read != read:
            raise ValueError
        return read
    except (TypeError, ValueError, OverflowError) as error:
        article = {float: "a number", str: "text"}.get(kind, f"a {kind.__name__}")
        raise UsageError(f"Setting '{key}' takes {article}, not '{quote(value)}'.") from error
