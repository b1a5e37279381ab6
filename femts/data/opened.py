"""A user's table in memory, with what is said about it: from a file, from standard input, or from a frame."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from femts.data.download import file_sha256
from femts.data.form import Form
from femts.data.interchange import is_table, to_frame
from femts.data.naming import settle
from femts.data.opening import STDIN, name_of, place, raw
from femts.data.reading import read_table
from femts.data.year_parts import joined_notes
from femts.errors import UsageError


@dataclass(frozen=True, eq=False)
class Opened:
    """A table as it was opened, its cells not yet checked.

    Attributes:
        frame: the table.
        form: names of its columns, as far as they can be told.
        name: the file's name without its ending, or `frame`.
        where: what it is, to begin a message with.
        notes: what a user should be told once.
        sha256: of the file; empty where there is none.
        source: the path of its file; None for a table in memory.
    """

    frame: pd.DataFrame
    form: Form
    name: str
    where: str
    notes: tuple[str, ...] = ()
    sha256: str = ""
    source: str | None = None

    def is_long(self, target: Sequence[str]) -> bool:
        """Tell whether it has one row for each series and stamp, and perhaps further columns; `target` are those to
        forecast, where a user named them."""
        return {self.form.series, self.form.time or "ds", *(target or [self.form.value])} <= set(self.frame.columns)


def open_table(source: Any, form: Form, guess: bool = True) -> Opened:
    """The table that `source` is, or is the path of.

    Args:
        source: a table of pandas, polars or pyarrow, a file, or `-` for standard input.
        form: what the user says on the names of its columns.
        guess: whether columns that hold series and values may be told by what is in them.

    Raises:
        UsageError: it cannot be read; the text says why.
    """
    if is_table(source):
        frame = to_frame(source, "The frame", form)
        form, notes = settle(frame, form, "The frame", long=guess)
        return Opened(frame, form, "frame", "The frame", (*joined_notes(frame), *notes))
    if not isinstance(source, str | Path):
        raise UsageError(f"The data are a {type(source).__name__}; give a name, the path of a file, or a DataFrame.")
    path = Path(source).expanduser()
    table, where = read_table(path, form), place(path)
    sha256 = hashlib.sha256(raw(path).read()).hexdigest() if path == STDIN else file_sha256(path)
    frame = to_frame(table, where, form)
    form, notes = settle(frame, form, where, long=guess)
    notes = (*table.attrs.get("notes", ()), *joined_notes(frame), *notes)
    return Opened(frame, form, name_of(path), where, notes, sha256, None if path == STDIN else str(path.resolve()))
