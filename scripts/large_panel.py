#!/usr/bin/env python
"""Write daily sales of many items with covariates, of the size of the M5 competition, to measure large panels with.

python scripts/large_panel.py sales.parquet --ahead ahead.parquet    # 30,490 series of 1,941 days, and 28 days ahead
python scripts/large_panel.py sales.csv --series 2000

Columns: `unique_id`, `ds`, `y`; `price` and `event`, known in advance; `store`, `dept` and `size`, constant within a
series. AHEAD has the known columns of the days after the last. Series do not depend on the format, and those of a
smaller panel are the first of a larger one.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow.csv import CSVWriter
from pyarrow.parquet import ParquetWriter

DAYS, AHEAD = 1941, 28
BLOCK = 1000  # series written at a time
KNOWN = ["unique_id", "ds", "price", "event"]


def drawn(series: int) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Yield the days of `BLOCK` series at a time, and their known columns for the days ahead."""
    rng, rows = np.random.default_rng(0), DAYS + AHEAD
    days = pd.date_range("2011-01-29", periods=rows).to_numpy(dtype="M8[us]")
    event = (rng.random(rows) < 0.05).astype(np.float32)
    lift = (1 + 0.3 * np.sin(2 * np.pi * np.arange(rows) / 7)) * (1 + event)
    for first in range(0, series, BLOCK):
        level = rng.lognormal(0.5, 1, BLOCK)
        usual = np.round(rng.lognormal(1, 0.5, BLOCK), 2)[:, None]
        reduced = rng.random((BLOCK, -(-rows // 100))).repeat(100, axis=1)[:, :rows] < 0.2
        price = (usual * np.where(reduced, 0.8, 1)).astype(np.float32)
        sold = rng.poisson(level[:, None] * lift * (usual / price) ** 1.5).astype(np.float32)
        some = np.arange(first, min(first + BLOCK, series))
        count = len(some)
        table = pa.table(
            {
                "unique_id": np.repeat([f"item{number:05d}" for number in some], rows),
                "ds": np.tile(days, count),
                "y": sold[:count].ravel(),
                "price": price[:count].ravel(),
                "event": np.tile(event, count),
                "store": np.repeat([f"s{number % 10}" for number in some], rows),
                "dept": np.repeat([f"d{number % 7}" for number in some], rows),
                "size": np.repeat(np.round(level[:count], 2), rows),
            }
        )
        past = np.tile(np.arange(rows) < DAYS, count)
        yield table.filter(past), table.filter(~past).select(KNOWN)


def write(series: int, out: Path, ahead: Path | None) -> None:
    """Write both tables block by block, as CSV or Parquet by the end of their names."""
    writers = list[CSVWriter | ParquetWriter]()
    for tables in drawn(series):
        for place, (path, table) in enumerate(zip((out, ahead), tables, strict=True)):
            if path is None:
                continue
            if place == len(writers):
                writers.append((ParquetWriter if path.suffix == ".parquet" else CSVWriter)(path, table.schema))
            writers[place].write_table(table)
    for writer in writers:
        writer.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--series", type=int, default=30_490)
    parser.add_argument("--ahead", type=Path)
    asked = parser.parse_args()
    write(asked.series, asked.file, asked.ahead)
