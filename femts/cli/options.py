"""Options on the data that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def option(text: str, metavar: str, *names: str) -> Any:
    """An option that is not given unless somebody gives it; the help shows no default."""
    return typer.Option(*names, help=text, metavar=metavar, show_default=False)


DataRoot = Annotated[Path | None, option("Folder of the data files.", "DIR")]
Na = Annotated[str | None, option("Numbers that stand for a missing value, such as -9999.", "X[,X...]")]
Columns = Annotated[
    str | None,
    option("What your columns are called, where not date, or unique_id, ds, y.", "time=NAME,series=NAME,value=NAME"),
]
Target = Annotated[str | None, option("Columns to forecast; all but the next two unless given.", "NAME[,NAME...]")]
Past = Annotated[str | None, option("Columns known up to now, read and not scored.", "NAME[,NAME...]")]
Future = Annotated[str | None, option("Columns known for the steps to come as well.", "NAME[,NAME...]")]
Calendar = Annotated[bool, typer.Option("--calendar", help="Let hour of the week and season of the year act.")]
