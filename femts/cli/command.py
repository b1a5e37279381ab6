"""The program `femts`, to which every file of `femts/cli/commands` adds its command."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperGroup

from femts._version import __version__

LAST = 1000
_ORDER: dict[str, int] = {}
_Function = TypeVar("_Function", bound=Callable[..., Any])


class _Program(TyperGroup):
    """The commands in the order in which the help lists them, which is not that of their files."""

    def list_commands(self, ctx: object) -> list[str]:
        return sorted(self.commands, key=lambda name: (_ORDER[name], name))


app = typer.Typer(
    cls=_Program,
    help="Time-series forecasting with the Free Energy Mixer.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"femts {__version__}")
        raise typer.Exit


@app.callback()
def _program(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """What stands before a command; its help is that of `app`."""


def command(order: int = LAST) -> Callable[[_Function], _Function]:
    """Function decorator: make a command of the function's name, whose help is its docstring.

    `order` says where `femts --help` lists it: by rising numbers, and those that have the same by name.
    """

    def add(function: _Function) -> _Function:
        name = function.__name__.replace("_", "-")
        _take(name, order)
        return app.command(name)(function)

    return add


def command_group(name: str, summary: str, order: int = LAST) -> typer.Typer:
    """A command `name` that has commands of its own, each added by `@GROUP.command()`."""
    _take(name, order)
    group = typer.Typer(help=summary, no_args_is_help=True)
    app.add_typer(group, name=name)
    return group


def load_commands() -> None:
    """Import every module of `femts/cli/commands`; each registers its command."""
    package = import_module("femts.cli.commands")
    for module in iter_modules(package.__path__):
        import_module(f"{package.__name__}.{module.name}")


def _take(name: str, order: int) -> None:
    if name in _ORDER:
        raise ValueError(f"command name {name!r} is registered twice")
    _ORDER[name] = order
