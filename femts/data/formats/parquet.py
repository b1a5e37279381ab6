"""Parquet files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from femts.data.arrow import to_pandas
from femts.data.formats.registry import Format, ReadOptions, damaged, register_format
from femts.data.unpack import CELL_ROOM, check_columns, check_file, check_room
from femts.errors import UsageError

BATCH, COLUMN = 2**16, 2**13  # rows of a file per batch, and bytes of overhead per column


def _read(path: Path, options: ReadOptions) -> Iterator[pd.DataFrame]:
    cells = options.cells
    check_file(path)
    try:
        from pyarrow import Table, compute, default_memory_pool, types
        from pyarrow.parquet import ParquetFile

        with ParquetFile(path) as file:
            facts, schema = file.metadata, file.schema_arrow
        check_columns(facts.num_columns, path)
        check_room(COLUMN * facts.num_columns, path)
        if cells is None:
            unpacked = sum(facts.row_group(number).total_byte_size for number in range(facts.num_row_groups))
            check_room(max(unpacked, CELL_ROOM * facts.num_rows * facts.num_columns), path)
        kinds = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
        words = [field.name for field in schema if any(is_kind(field.type) for is_kind in kinds)]
        rows, taken, batches = BATCH if cells is None else max(1, cells // max(1, len(schema.names))), 0, []
        # Text columns are read as dictionaries, because a long string may be repeated in millions of rows.
        with ParquetFile(path, read_dictionary=words) as file:
            if cells is not None:
                yield to_pandas(schema.empty_table())
            for batch in file.iter_batches(rows):
                columns = (batch.column(name) for name in words)
                lengths = (compute.binary_length(each.dictionary).take(each.indices) for each in columns)
                taken = taken * (cells is None) + sum(compute.sum(each).as_py() or 0 for each in lengths)
                check_room(taken, path)
                if cells is None:
                    batches.append(batch)
                else:
                    yield to_pandas(batch.cast(schema))
        if cells is None:
            table = to_pandas(Table.from_batches(batches) if batches else schema.empty_table())
            table.attrs = {}  # Parquet stores the attrs of the original frame
            # pyarrow keeps what it frees for later tables, which would be more than this one takes
            batches.clear()
            default_memory_pool().release_unused()
            table = table.copy()
            default_memory_pool().release_unused()
            yield table
    except UsageError:
        raise
    except (OSError, ValueError) as error:  # pyarrow's own errors are of these kinds
        raise damaged(path, "Parquet", error) from error


register_format("parquet", Format((".parquet", ".pq"), _read, library="pyarrow", in_pieces=True))
