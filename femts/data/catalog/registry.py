"""Cards of data sets by name. Every module of this folder is imported with it, and registers its own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from femts.errors import UsageError, suggest
from femts.plugins import Registry, load_plugins

if TYPE_CHECKING:
    import pandas as pd

    from femts.data.splits import Split


def dated_table(path: Path) -> pd.DataFrame:
    """Read the CSV file `path`, which has a header and a `date` column."""
    from femts.data.read import read_table

    return read_table(path)


def plain_matrix(path: Path) -> pd.DataFrame:
    """Read the comma-separated matrix `path`, without header and dates, gzipped or not."""
    from femts.data.read import read_headless

    return read_headless(path)


@dataclass(frozen=True, kw_only=True)
class DatasetCard:
    """Card of a data set: what is known before its file is opened.

    Attributes:
        name: the name users type (in any case).
        rows: time steps.
        channels: value columns.
        freq: the nominal step, a pandas frequency.
        season: steps in a day.
        description: one line for people.
        split_rule: row ranges of the three parts for a number of rows; the last .2 are the test unless given.
        filename: the file's name in the data root; empty for built-in data.
        read: gives the table (rows, channels) of a file, and a `date` column with it where there are dates.
        make: gives the same without a file, for built-in data.
        url: public source of the file, or None when there is none to download.
        sha256: hash of the file, or None where no published hash is known.
        git_blob: git's own hash of the file; pins a file whose sha256 nobody published.
        most_bytes: largest size that a download of the file may have.
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
            raise ValueError(f"data set {self.name!r} is either a file or made: give `filename` or `make`")

    @property
    def built_in(self) -> bool:
        """Tell whether the data are made, not read from a file."""
        return self.make is not None

    @property
    def split(self) -> Split:
        """Row ranges of the three parts."""
        from femts.data.splits import ratio_split  # numpy takes long to import

        return (self.split_rule or ratio_split)(self.rows)


CATALOG: Registry[DatasetCard] = Registry("dataset")
"""Cards by their name as published; `register_dataset` adds to them."""


def register_dataset(card: DatasetCard) -> DatasetCard:
    """Make the data set of `card` available under its name; ValueError where that is taken, in whatever case."""
    CATALOG.add(card.name, card, sys._getframe(1).f_globals.get("__name__", ""))  # a card is of no module
    return card


def card(name: str | DatasetCard) -> DatasetCard:
    """The card of `name`, in whatever case it is written; a card is returned as it is.

    Raises:
        UsageError: the catalogue has no such name; the text gives the nearest one.
    """
    if isinstance(name, DatasetCard):
        return name
    if name.lower() not in map(str.lower, CATALOG):
        load_plugins()
    by_lower = {key.lower(): entry for key, entry in CATALOG.items()}
    if name.lower() not in by_lower:
        raise UsageError(f"Unknown dataset '{name}', neither in the catalogue nor a file{suggest(name, CATALOG)}")
    return by_lower[name.lower()]
