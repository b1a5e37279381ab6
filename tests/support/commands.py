"""Every command by name, those of groups among them."""

from __future__ import annotations

import typer

from femts.cli import app


def _names(command: object, path: str) -> list[str]:
    inner = getattr(command, "commands", {})
    return [path, *(name for key, each in inner.items() for name in _names(each, f"{path} {key}".strip()))]


COMMANDS = tuple(_names(typer.main.get_command(app), "")[1:])
