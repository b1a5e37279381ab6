"""`femts demo`: a first run on built-in data."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated

import typer

from femts.cli.command import app, command
from femts.cli.streams import say
from femts.cli.wording import running
from femts.errors import UsageError
from femts.files import check_folder, write_file
from femts.text import printable

ROWS = 2000
MODEL = "fem_sm_ridge"
SMALL = "--horizon 24 --seq-len 168 --set model.n_layers=1 --max-steps 100"  # 13 seconds on one core


@command(5)
def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="New or empty output folder.")] = Path("demo"),
) -> None:
    """Train a small model on built-in data, and report on it.

    Prints the commands that it runs. Takes about half a minute. The data are synthetic: six channels, 2,000 hours.
    """
    _make_folder(out)
    from femts.data.synthetic import synthetic_frame

    table, run, picture, page = out / "history.csv", out / "run", out / "forecast.png", out / "report.html"
    write_file(table, synthetic_frame(ROWS).to_csv(index=False).encode())
    _show("train", "--dataset", table, "--model", MODEL, *SMALL.split(), "--out", run)
    _show("predict", run, table, "--level", "80", "-o", out / "forecast.csv", "--plot", picture)
    _show("report", run, "-o", page)
    say(f"\nLook at {printable(picture)} and {printable(page)}. To use your own table, replace {printable(table)}.")


def _make_folder(folder: Path) -> None:
    """Create `folder` and its parents; UsageError if it is a file, is not empty, or looks like an option."""
    if str(folder).startswith("-"):  # `femts predict -x/run` would be read as an option
        raise UsageError(f"Folder {folder} looks like an option; choose another one with --out.")
    check_folder(folder)
    if os.path.isdir(folder) and any(folder.iterdir()):
        raise UsageError(f"Folder {folder} is not empty; name a new or empty one with --out.")
    folder.mkdir(parents=True, exist_ok=True)


def _show(*args: str | Path) -> None:
    """Print a femts command line and run it as if it had been typed, raising its errors."""
    words = [str(arg) for arg in args]
    say(f"$ {printable(shlex.join(['femts', *words]))}")
    with running(words):
        typer.main.get_command(app).main(words, prog_name="femts", standalone_mode=False)
