"""The program `femts`, to which the modules in `femts/cli/commands` add their commands."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperGroup

from femts._version import __version__
from femts.cli.streams import say

LAST = 1000
_ORDER: dict[str, int] = {}
_Function = TypeVar("_Function", bound=Callable[..., Any])


class _Program(TyperGroup):
    """Lists commands by their `order` instead of in the order of import."""

    def list_commands(self, ctx: object) -> list[str]:
        return sorted(self.commands, key=lambda name: (_ORDER[name], name))


app = typer.Typer(
    cls=_Program,
    help="Forecast your own tables: train, compare, score and serve models.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        say(f"femts {__version__}")
        raise typer.Exit


@app.callback()
def _program(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options before the command; the help text is that of `app`."""


def command(order: int = LAST) -> Callable[[_Function], _Function]:
    """Decorator that registers a function as a command of the same name, with its docstring as help text.

    `order` is the position in `femts --help`; commands with the same position are listed by name.
    """

    def add(function: _Function) -> _Function:
        name = function.__name__.replace("_", "-")
        _take(name, order)
        return app.command(name)(function)

    return add


def command_group(name: str, summary: str, order: int = LAST) -> typer.Typer:
    """Create a command `name` with subcommands, added by `@GROUP.command()`."""
    _take(name, order)
    group = typer.Typer(help=summary, no_args_is_help=True)
    app.add_typer(group, name=name)
    return group


def load_commands() -> None:
    """Import all modules of `femts/cli/commands`, which register their commands."""
    package = import_module("femts.cli.commands")
    for module in iter_modules(package.__path__):
        import_module(f"{package.__name__}.{module.name}")


def _take(name: str, order: int) -> None:
    if name in _ORDER:
        raise ValueError(f"command name {name!r} is registered twice")
    _ORDER[name] = order
