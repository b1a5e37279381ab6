"""Messages of the library in the words of the command line."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import typer

from femts.cli.command import app
from femts.data.describe import arguments

_BEFORE = r"(?<![\w.'/,-])"  # no part of a longer name, of a name in quotes, or of a folder such as paper-seq_len=512
_VALUE = r"'[^']*'|\"[^\"]*\"|\[[^]]*\]|\{[^}]*\}|\w(?:[\w.%+-]*\w)?"


def as_options(text: str) -> str:
    """`text` with arguments of Python written as options: `seq_len=512` as `--seq-len 512`, `panel=False` as
    `--multivariate`, and a plain `seq_len` as `--seq-len`. Names without an underscore need a value, because they may
    also be words."""
    options = _options()
    given = rf"({'|'.join(options)})=({_VALUE})"
    text = re.sub(rf"{_BEFORE}{given}(, (?={given}))?", lambda found: _option(options, found), text)
    plain = "|".join(name for name in options if "_" in name)
    return re.sub(rf"{_BEFORE}({plain})\b(?![=/-]|\.\w)", lambda found: options[found[1]][0], text)


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
def _options() -> dict[str, list[str]]:
    """Spellings of all options by the name of the argument; for some flags, the last one means False."""
    options = {"settings": ["--set"]}
    for command in typer.main.get_command(app).commands.values():  # type: ignore[attr-defined]
        for option in command.params:
            if option.param_type_name == "option":
                spellings = [option.opts[0], *option.secondary_opts]
                options[option.name] = max(options.get(option.name, []), spellings, key=len)
    return options


def _option(options: dict[str, list[str]], found: re.Match[str]) -> str:
    spellings, text, after = options[found[1]], found[2], " " if found[3] else ""
    if text in ("True", "False"):
        return (spellings[0] if text == "True" else spellings[-1]) + after
    try:
        value = _plain(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError):
        return found[0]
    return f"{spellings[0]} {shlex.quote(value)}{after}"


def _plain(value: ast.expr) -> str:
    """A value as an option takes it: lists with commas, and mappings as `key=value`."""
    match value:
        case ast.Constant():
            return {"True": "true", "False": "false", "Ellipsis": "..."}.get(str(value.value), str(value.value))
        case ast.Name():  # a placeholder such as FILE
            return value.id
        case ast.List():
            names = map(_plain, value.elts)
            return ",".join(f'"{name}"' if "," in name else name for name in names)
        case ast.Dict():
            pairs = zip(value.keys, value.values, strict=True)
            return ",".join(f"{_plain(key)}={_plain(each)}" for key, each in pairs if key is not None)
    raise ValueError
