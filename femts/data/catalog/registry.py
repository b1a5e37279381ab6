"""Registry of dataset cards. Importing it imports all modules of this package, which register their cards."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from femts.errors import UsageError, nearest, suggest
from femts.plugins import Registry, load_plugins

if TYPE_CHECKING:
    import pandas as pd

    from femts.data.splits import Split


def dated_table(path: Path) -> pd.DataFrame:
    """Read a CSV file with a header and a `date` column from `path`."""
    from femts.data.read import read_table

    return read_table(path)


def plain_matrix(path: Path) -> pd.DataFrame:
    """Read a comma-separated matrix without header and dates, gzipped or not, from `path`."""
    from femts.data.read import read_headless

    return read_headless(path)


@dataclass(frozen=True, kw_only=True)
class DatasetCard:
    """What is known about a dataset before its file is opened.

    Attributes:
        name: name of the dataset, case-insensitive.
        rows: number of time steps.
        channels: number of value columns.
        freq: nominal step, a pandas frequency.
        season: number of steps in a day.
        description: one-line description.
        split_rule: function from the number of rows to the splits; 70/10/20 by default.
        filename: name of the file in the data root; empty for built-in data.
        read: function that reads the table (rows, channels) from a file, with a `date` column if it has dates.
        make: function that generates the table, for built-in data.
        url: public source of the file; None if it cannot be downloaded.
        sha256: hash of the file; None if no hash is published.
        git_blob: git blob hash, to verify a file without a published sha256.
        most_bytes: maximum size of a download of the file.
    """

    name: str
    rows: int
    channels: int
    freq: str
    season: int
    description: str
    split_rule: Callable[[int], Split] | None = None
    filename: str = ""
    read: Callable[[Path], pd.DataFrame] = dated_table
    make: Callable[[], pd.DataFrame] | None = None
    url: str | None = None
    sha256: str | None = None
    git_blob: str | None = None
    most_bytes: int = 2**26

    def __post_init__(self) -> None:
        if (self.make is None) != bool(self.filename):
            raise ValueError(f"dataset {self.name!r} is either a file or made: give `filename` or `make`")

    @property
    def built_in(self) -> bool:
        """Whether the data are generated instead of read from a file."""
        return self.make is not None

    @property
    def split(self) -> Split:
        """Splits of the data."""
        from femts.data.splits import ratio_split  # importing numpy is slow

        return (self.split_rule or ratio_split)(self.rows)


CATALOG: Registry[DatasetCard] = Registry("dataset")
"""Cards by their name as published; `register_dataset` adds to them."""


def register_dataset(card: DatasetCard) -> DatasetCard:
    """Register the dataset of `card` under its name; ValueError if the name is taken, ignoring case."""
    CATALOG.add(card.name, card, sys._getframe(1).f_globals.get("__name__", ""))  # a card does not know its module
    return card


def card(name: str | DatasetCard) -> DatasetCard:
    """Return the card of `name`, ignoring case; cards are returned unchanged.

    Raises:
        UsageError: The name is not in the catalogue; the message gives the closest one.
    """
    if isinstance(name, DatasetCard):
        return name
    if name.lower() not in map(str.lower, CATALOG):
        load_plugins()
    by_lower = {key.lower(): entry for key, entry in CATALOG.items()}
    if name.lower() not in by_lower:
        text = f"Unknown dataset '{name}', neither in the catalogue nor a file{suggest(name, CATALOG)}"
        raise UsageError(text, argument="source", value=name, remedy={"source": nearest(name, CATALOG)})
    return by_lower[name.lower()]
