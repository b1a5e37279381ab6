"""Options shared by several commands, and parsing of the numbers and names in them."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Annotated, Any

import typer

from femts.config.values import check_count, whole_number
from femts.errors import UsageError
from femts.text import quote


def option(text: str, metavar: str, *names: str, default: str | bool = False) -> Any:
    """Option without a value unless given; the help shows `default` as text, or no default."""
    return typer.Option(*names, help=text, metavar=metavar, show_default=default)


DataRoot = Annotated[Path | None, option("Folder with the data files.", "DIR")]
Settings = Annotated[list[str] | None, option("Setting for all models.", "KEY=VALUE", "--set")]
EngineName = Annotated[
    str, typer.Option("--engine", metavar="local|ray", help="Execution engine: this machine, or a Ray cluster.")
]
TimeLimit = Annotated[str | None, option("Stop after this time; the next call continues.", "SPAN")]
TrainingDevice = Annotated[str, typer.Option(metavar="auto|cpu|cuda|mps", help="Device to train on.")]


def names(text: str) -> tuple[str, ...]:
    """Split `a,b` into its distinct parts."""
    return tuple(dict.fromkeys(part.strip() for part in parts(text)))


def parts(text: str) -> list[str]:
    """Split `a,b` into its parts; quotes protect commas, as in `"a, b",c`."""
    try:
        (row,) = csv.reader([text], skipinitialspace='"' in text, strict=True)
    except (csv.Error, ValueError):  # unclosed quotes and line breaks are part of a name
        return text.split(",")
    return row or [""]


def count(option: str, text: str) -> int:
    """Parse the number given to `option`; UsageError if it is not a number or below 1."""
    return check_count(text, option)


def parse_seeds(text: str) -> tuple[int, ...]:
    """Parse `42,1` as distinct numbers (`1` and `01` are the same seed); UsageError if one is not a number."""
    return tuple(dict.fromkeys(map(_seed, names(text))))


def _seed(text: str) -> int:
    number = whole_number(text, "Option '--seeds'")
    if number is None or number < 0:
        raise UsageError(f"Option '--seeds' takes whole numbers of at least 0, not '{quote(text)}'.")
    return number
