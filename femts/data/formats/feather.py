"""Feather files, the Arrow format on disk."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from femts.data.arrow import to_pandas
from femts.data.formats.registry import Format, ReadOptions, damaged, register_format
from femts.data.unpack import check_file


def _read(path: Path, options: ReadOptions) -> Iterator[pd.DataFrame]:
    check_file(path)
    from pyarrow import ArrowException, feather

    try:
        yield to_pandas(feather.read_table(path))
    except (ArrowException, OSError, ValueError) as error:
        raise damaged(path, "Feather", error) from error


def _write(frame: pd.DataFrame) -> bytes:
    file = io.BytesIO()
    frame.reset_index(drop=True).to_feather(file)
    return file.getvalue()


register_format("feather", Format((".feather", ".arrow"), _read, _write, library="pyarrow"))
