"""Registry of the formats of table files, by the suffix of a path or the first bytes of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from femts.data.column_names import USUAL, ColumnNames
from femts.data.unpack import COMPRESSED, STDIN, check_file
from femts.errors import UsageError
from femts.plugins import Registry, import_all
from femts.text import quote

TEXT = "text"  # what is neither named nor begins like another format


@dataclass(frozen=True)
class ReadOptions:
    """How a file is read.

    Attributes:
        names: column names given by the user.
        cells: approximate number of cells of a piece; None reads the whole file as one piece.
    """

    names: ColumnNames = USUAL
    cells: int | None = None


@dataclass(frozen=True)
class Format:
    """A format of table files.

    Attributes:
        suffixes: how paths end, in lower case with the dot; before that of a compression, too.
        read: iterates over a file in pieces of one table, at least one; a format that is not read in pieces gives the
            whole. It raises UsageError for a file that cannot be read, also if it would not fit in memory
            (`femts.data.unpack.check_room`).
        sniff: whether standard input, or a file without a known suffix, begins like this format.
        library: package that must be installed.
        in_pieces: whether `read` gives pieces, and the first without reading the rest.
        layout: which fields of `femts.data.column_names.Layout` say where a table is in such a file.
    """

    suffixes: tuple[str, ...]
    read: Callable[[Path, ReadOptions], Iterator[pd.DataFrame]]
    sniff: Callable[[bytes], bool] | None = None
    library: str | None = None
    in_pieces: bool = False
    layout: tuple[str, ...] = ()


FORMATS: Registry[Format] = Registry("table format", load=lambda: import_all("femts.data.formats"))


def register_format(name: str, table_format: Format) -> None:
    """Add a format under a name; ValueError if the name is taken."""
    FORMATS.add(name, table_format, table_format.read.__module__)


def format_of(path: Path) -> Format:
    """The format of a file to read, by its suffix or else its first bytes; text if neither is known.

    Raises:
        UsageError: There is no such file, or it is empty.
    """
    named = named_format(path)
    if named is not None:
        return named
    head = check_file(path)
    sniffed = (each for each in FORMATS.values() if each.sniff is not None and each.sniff(head))
    return next(sniffed, FORMATS[TEXT])


def named_format(path: Path) -> Format | None:
    """The format that the suffix of a path names; None if it names none."""
    kinds = [suffix.lower() for suffix in path.suffixes[-2:]] if path != STDIN else []
    suffix = kinds[0] if kinds[1:] and kinds[1] in COMPRESSED else "".join(kinds[-1:])
    return next((FORMATS[name] for name in FORMATS.names() if suffix in FORMATS[name].suffixes), None)


def damaged(path: Path, kind: str, error: Exception, again: str = "write") -> UsageError:
    """Error for a file that a library cannot read as `kind`."""
    reason = quote(str(error).strip().partition("\n")[0])
    return UsageError(f"File {path} cannot be read as {kind} ({reason}); {again} it again, or as CSV.")
