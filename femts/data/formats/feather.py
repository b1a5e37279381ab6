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
    from pyarrow import ArrowException, Table, dataset, feather, ipc, memory_map

    try:
        # Compressed numbers may take a few bytes for any number of rows, which the metadata tell.
        facts = None if old else dataset.dataset(path, format="feather")
        if facts is not None:
            columns = len(facts.schema)
            check_columns(columns, path)
            rows = facts.count_rows()
        if facts is None or options.cells is None:
            if facts is not None:
                check_room(columns * max(COLUMN, CELL_ROOM * rows), path)
            yield to_pandas(feather.read_table(path))
            return
        with memory_map(str(path)) as source:
            reader, most = ipc.open_file(source), max(1, options.cells // max(1, columns))
            count = reader.num_record_batches
            # Batches are unpacked one by one; all but the last have the same size, as libraries write them.
            check_room(columns * max(COLUMN, CELL_ROOM * (rows if count < 2 else -(-rows // (count - 1)))), path)
            if not count:
                yield to_pandas(facts.schema.empty_table())
            for number in range(count):
                batch = reader.get_batch(number)
                for begin in range(0, max(1, batch.num_rows), most):
                    yield to_pandas(Table.from_batches([batch.slice(begin, most)]))
    except (ArrowException, OSError) as error:
        raise damaged(path, "Feather", error) from error


register_format("feather", Format((".feather", ".arrow"), _read, library="pyarrow", in_pieces=True))
