"""Parquet files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.data.arrow import to_pandas
from femts.data.formats.registry import Format, ReadOptions, damaged, register_format
from femts.data.pieces import columns_at_once
from femts.data.unpack import CELL_ROOM, check_columns, check_file, check_room
from femts.errors import UsageError

COLUMN = 2**13  # bytes of overhead per column


def _read(path: Path, options: ReadOptions) -> Iterator[pd.DataFrame]:
    cells = options.cells
    check_file(path)
    try:
        from pyarrow import default_memory_pool, types
        from pyarrow.parquet import ParquetFile

        with ParquetFile(path) as file:
            facts, schema = file.metadata, file.schema_arrow
        check_columns(facts.num_columns, path)
        check_room(COLUMN * facts.num_columns, path)
        kinds = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
        words = [field.name for field in schema if any(is_kind(field.type) for is_kind in kinds)]
        # Text columns are read as dictionaries, because a long string may be repeated in millions of rows.
        if cells is None:
            unpacked = sum(facts.row_group(number).total_byte_size for number in range(facts.num_row_groups))
            check_room(max(unpacked, CELL_ROOM * facts.num_rows * facts.num_columns), path)
            whole = _whole(path, words)
            default_memory_pool().release_unused()  # what the file held
            yield whole
            return
        with ParquetFile(path, read_dictionary=words) as file:
            yield to_pandas(schema.empty_table())
            for batch in file.iter_batches(max(1, cells // max(1, len(schema.names)))):
                check_room(_letters(batch, words), path)
                yield to_pandas(batch.cast(schema))
    except UsageError:
        raise
    except (OSError, ValueError) as error:  # pyarrow's own errors are of these kinds
        raise damaged(path, "Parquet", error) from error


def _whole(path: Path, words: list[str]) -> pd.DataFrame:
    """The table of a file, of which few columns are held twice at a time; `words` are those of text."""
    from pyarrow import default_memory_pool
    from pyarrow.parquet import ParquetFile

    pool, parts, taken = default_memory_pool(), list[pd.DataFrame](), 0
    with ParquetFile(path, read_dictionary=words) as file:
        schema = file.schema_arrow
        for names in _groups(to_pandas(schema.empty_table()), schema.names, file.metadata.num_rows):
            if parts and names is not None and len(names) == 1 and names[0] not in words:
                column = _numbers(file, names[0])
                if column is not None:  # the first column has the index of the table
                    parts.append(pd.DataFrame({names[0]: column}, parts[0].index, copy=False))
                    continue
            table = file.read(names)
            taken += _letters(table, [name for name in words if names is None or name in names])
            check_room(taken, path)
            parts.append(to_pandas(table).copy())
            del table
            pool.release_unused()  # pyarrow keeps what it frees, which would be more than the table takes
    whole = parts[0] if len(parts) == 1 else pd.concat(parts, axis=1)
    whole.attrs = {}  # Parquet stores the attrs of the original frame
    return whole


def _numbers(file: Any, name: str) -> NDArray[Any] | None:
    """A column of numbers or dates, read one row group at a time; None if these differ in their types."""
    made, rows = None, 0
    for number in range(file.num_row_groups):
        piece = to_pandas(file.read_row_group(number, [name]))[name]
        if not isinstance(piece.dtype, np.dtype) or piece.dtype.kind not in "biufM":
            return None
        made = np.empty(file.metadata.num_rows, piece.dtype) if made is None else made
        if piece.dtype != made.dtype:
            return None
        made[rows : rows + len(piece)] = piece.to_numpy()
        rows += len(piece)
    return made


def _groups(empty: pd.DataFrame, names: list[str], rows: int) -> list[list[str] | None]:
    """Columns to read together; None stands for all of them, for tables whose parts would not fit together: those that
    are `empty` frames with an index of columns, and those with names that could be parts of nested columns, or repeat."""
    each = columns_at_once(rows)
    if (
        len(names) <= each
        or not isinstance(empty.index, pd.RangeIndex)
        or len(set(names)) < len(names)
        or any("." in name for name in names)
    ):
        return [None]
    return [names[first : first + each] for first in range(0, len(names), each)]


def _letters(table: Any, words: list[str]) -> int:
    """Length of the text in the columns `words` of a table or batch of dictionaries, in bytes."""
    from pyarrow import compute

    total = 0
    for name in words:
        column = table.column(name)
        for chunk in getattr(column, "chunks", [column]):
            total += compute.sum(compute.binary_length(chunk.dictionary).take(chunk.indices)).as_py() or 0
    return total


register_format("parquet", Format((".parquet", ".pq"), _read, library="pyarrow", in_pieces=True))
