"""Messages of the library in the words of the command line."""

from __future__ import annotations

import ast
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

import typer

from femts.cli.command import app
from femts.text import arguments, reworded

_WORDS: ContextVar[Sequence[str]] = ContextVar("words", default=())  # of the command line that is running


@contextmanager
def running(words: Sequence[str]) -> Iterator[None]:
    """Context in which the command of the `words` after the program name writes messages."""
    token = _WORDS.set(words)
    try:
        yield
    finally:
        _WORDS.reset(token)


def as_options(message: object) -> str:
    """An error, warning or note with its arguments as options: `seq_len=512` as `--seq-len 512`, `panel=False` as
    `--multivariate`, and a plain `seq_len` as `--seq-len`. Options that the command lacks, because the run has kept them
    from its training, are those of `femts train`."""
    return reworded(message.args[0] if isinstance(message, Warning) and message.args else message, _options_of)


def command_line(words: Sequence[str], changes: Mapping[str, Any]) -> str:
    """The command of the `words` after the program name, with its options changed to arguments of Python; those that are
    None are left out."""
    names = {spelling: name for name, spellings in _options().items() for spelling in spellings}
    kept, is_value = ["femts"], False
    for word in words:
        flag, _, value = word.partition("=")
        changed = not is_value and names.get(flag) in changes
        if not is_value and not changed:
            kept.append(word)
        is_value = changed and not value
    given = {name: value for name, value in changes.items() if value is not None}
    return f"{shlex.join(kept)} {as_options(arguments(given))}".strip()


@cache
def _spellings() -> dict[str, frozenset[str]]:
    """Spellings of the options of each command; a group of commands has none."""
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    return {
        name: frozenset(spelling for option in each.params for spelling in (*option.opts, *option.secondary_opts))
        for name, each in commands.items()
    }


def _of_training(written: str) -> str:
    """Options as `written`, with the name of the command that has them if the running one does not."""
    command = next((word for word in _WORDS.get() if word in _spellings()), "train")
    own, of_training = _spellings()[command], _spellings()["train"]
    flags = {word for word in shlex.split(written) if word.startswith("--")}
    return written if not own or flags <= own or not flags <= of_training else f"{written} of femts train"


@cache
def _options() -> dict[str, list[str]]:
    """Spellings of all options by the name of the argument; for some flags, the last one means False."""
    options = {"settings": ["--set"]}
    for command in typer.main.get_command(app).commands.values():  # type: ignore[attr-defined]
        for option in command.params:
            if option.param_type_name == "option":
                spellings = [option.opts[0], *option.secondary_opts]
                options[option.name] = max(options.get(option.name, []), spellings, key=len)
    return options


def _options_of(python: str) -> str:
    """Arguments of Python as options; unchanged if one has none, or was shortened."""
    try:
        match ast.parse(f"_({python})", mode="eval").body:
            case ast.Call(args=names, keywords=given):
                plain = [_options()[_plain(name)][0] for name in names]
                options = [*plain, *(_option(_options()[str(each.arg)], each.value) for each in given)]
                return _of_training(" ".join(options))
    except (SyntaxError, ValueError, KeyError):
        pass
    return python


def _option(spellings: Sequence[str], value: ast.expr) -> str:
    if isinstance(value, ast.Constant) and isinstance(value.value, bool):
        return spellings[0] if value.value else spellings[-1]
    return f"{spellings[0]} {shlex.quote(_plain(value))}"


def _plain(value: ast.expr) -> str:
    """A value as an option takes it: lists with commas, and mappings as `key=value`."""
    match value:
        case ast.Constant():
            return {"True": "true", "False": "false", "Ellipsis": "..."}.get(str(value.value), str(value.value))
        case ast.Name() | ast.UnaryOp():  # a placeholder such as FILE, and a negative number
            return ast.unparse(value)
        case ast.List():
            names = map(_plain, value.elts)
            return ",".join(f'"{name}"' if "," in name else name for name in names)
        case ast.Dict():
            pairs = zip(value.keys, value.values, strict=True)
            return ",".join(f"{_plain(key)}={_plain(each)}" for key, each in pairs if key is not None)
    raise ValueError
