"""Feather files, the Arrow format on disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from femts.data.arrow import to_pandas
from femts.data.formats.registry import Format, ReadOptions, damaged, register_format
from femts.data.unpack import CELL_ROOM, check_columns, check_file, check_room

COLUMN = 2**13  # bytes of overhead per column


def _read(path: Path, options: ReadOptions) -> Iterator[pd.DataFrame]:
    old = check_file(path).startswith(b"FEA1")  # of the first version, which is not compressed
    from pyarrow import ArrowException, dataset, feather

    try:
        # Compressed numbers may take a few bytes for any number of rows, which the metadata tell.
        facts = None if old else dataset.dataset(path, format="feather")
        if facts is not None:
            columns = len(facts.schema)
            check_columns(columns, path)
            check_room(columns * max(COLUMN, CELL_ROOM * facts.count_rows()), path)
        yield to_pandas(feather.read_table(path))
    except (ArrowException, OSError) as error:
        raise damaged(path, "Feather", error) from error


register_format("feather", Format((".feather", ".arrow"), _read, library="pyarrow"))
