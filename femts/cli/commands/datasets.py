"""`femts datasets`: the catalogue of datasets, and descriptions of files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from femts.cli.command import command_group
from femts.cli.option_groups import grouped
from femts.cli.options import DataRoot
from femts.cli.output import say_notes
from femts.cli.reading_options import ReadingOptions
from femts.cli.streams import say
from femts.text import table

DatasetName = Annotated[str, typer.Argument(metavar="NAME", help="A name from `femts datasets list`.")]

datasets = command_group("datasets", "List, describe, download and verify datasets.", 140)


@datasets.command("list")
def list_datasets(data_root: DataRoot = None) -> None:
    """List the datasets with their sizes, and whether each file is available locally."""
    from femts.data.listing import COLUMNS, rows

    say(table(COLUMNS, rows(data_root)))


@datasets.command()
@grouped
def info(
    name: Annotated[str, typer.Argument(metavar="NAME|FILE", help="A name from `femts datasets list`, or a file.")],
    *,
    data_root: DataRoot = None,
    reading: ReadingOptions,
) -> None:
    """Describe a dataset of the catalogue, or a file as `femts train` reads it."""
    from femts.data.loading import is_path, load_dataset

    given = reading.reading()
    if given or is_path(name):
        data = load_dataset(name, data_root, **given)
        say(data)
        say_notes(data.notes)
    else:
        _describe(name, data_root)


def _describe(name: str, data_root: Path | None) -> None:
    """Print the card of a dataset of the catalogue, which need not be here."""
    from femts.data.catalog import card
    from femts.data.download import data_root as resolve_root
    from femts.data.download import locate
    from femts.data.splits import PARTS

    entry = card(name)
    facts: list[tuple[str, object]] = [
        ("name", entry.name),
        ("what", entry.description),
        ("rows", entry.rows),
        ("channels", entry.channels),
        ("step", entry.freq),
        *((part, "rows {} to {}".format(*entry.split.part(part)[0])) for part in PARTS),
    ]
    if not entry.built_in:
        file = locate(entry, data_root)
        facts += [
            ("file", file or f"missing; it belongs at {resolve_root(data_root) / entry.filename}"),
            ("source", entry.url or "none"),
            ("sha256", entry.sha256 or f"not known; git blob {entry.git_blob}"),
        ]
    for label, value in facts:
        say(f"{label + ':':<10}{value}")


@datasets.command()
def fetch(name: DatasetName, data_root: DataRoot = None) -> None:
    """Download a dataset if it is missing, verify it, and print its path."""
    from femts.data.download import fetch as fetch_file

    say(fetch_file(name, data_root))


@datasets.command()
def verify(name: DatasetName, data_root: DataRoot = None) -> None:
    """Verify the file of a dataset against its pinned hash, and print its path."""
    from femts.data.download import verify as verify_file

    say(f"{verify_file(name, data_root)} is the published file")
