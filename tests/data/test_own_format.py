"""A table format in a file of its own, which registers itself."""

from __future__ import annotations

import importlib
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from small_tables import small_table

import femts
from femts import plugins
from femts.data.formats.registry import FORMATS
from femts.data.read import write_table

_MODULE = '''
"""ORC files."""

from femts.data.formats.registry import Format, damaged, register_format
from femts.data.unpack import CELL_ROOM, check_file, check_room


def read(path, options):
    from pyarrow import orc

    check_file(path)
    try:
        file = orc.ORCFile(path)
        check_room(CELL_ROOM * file.nrows * len(file.schema), path)
        yield file.read().to_pandas()
    except (OSError, ValueError) as error:
        raise damaged(path, "ORC", error) from error


register_format("orc", Format((".orc",), read, library="pyarrow"))
'''
_FIXED = '''
"""Columns of eight characters after a line that begins with WIDE."""

from io import StringIO

import pandas as pd

from femts.data.formats.registry import Format, register_format
from femts.data.unpack import open_text


def read(path, options):
    with open_text(path) as file:
        yield pd.read_fwf(StringIO(file.read()), widths=[20, 8, 8], skiprows=1)


register_format("fixed width", Format((".fwf",), read, sniff=lambda head: head.startswith(b"WIDE")))
'''


@pytest.fixture(autouse=True)
def own_formats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    FORMATS.names()
    for name, text in (("own_orc_for_test", _MODULE), ("own_fixed_for_test", _FIXED)):
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    with patch.dict(FORMATS), patch.dict(plugins._MODULES):
        for name in ("own_orc_for_test", "own_fixed_for_test"):
            importlib.import_module(name)
            yield from () if name == "own_orc_for_test" else (None,)
    for name in ("own_orc_for_test", "own_fixed_for_test"):
        del sys.modules[name]


def test_own_format_is_read(tmp_path: Path) -> None:
    pyarrow, orc = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.orc")
    table = small_table(60)
    orc.write_table(pyarrow.Table.from_pandas(table, preserve_index=False), tmp_path / "mine.orc")
    data = femts.load_dataset(tmp_path / "mine.orc")
    np.testing.assert_array_equal(data.values, femts.load_dataset(table).values)
    assert (data.columns, data.name) == (tuple(table.columns[1:]), "mine")
    (tmp_path / "broken.ORC").write_bytes(b"ORC is not enough")
    with pytest.raises(femts.UsageError, match=r"broken\.ORC cannot be read as ORC"):
        femts.load_dataset(tmp_path / "broken.ORC")


def test_own_format_is_known_by_its_suffix_and_its_beginning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        f"{day:%Y-%m-%d %H:%M:%S} {n**2 % 11:8.2f}{n**2 % 7:8.1f}"
        for n, day in enumerate(pd.date_range("2024", periods=40))
    ]
    text = "\n".join(["WIDE", f"{'date':20}{'a':8}{'b':8}", *lines])
    for name in ("mine.fwf", "mine.fwf.gz", "mine.unknown"):
        (tmp_path / name).write_text(text)
        assert femts.load_dataset(tmp_path / name).values[-1].tolist() == [39**2 % 11, 39**2 % 7]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert femts.load_dataset("-").columns == ("a", "b")
    with pytest.raises(femts.UsageError, match=r"cannot be written as '.*out\.fwf'; name it \.csv, "):
        write_table(small_table(10), tmp_path / "out.fwf")


def test_name_of_a_format_is_taken_once() -> None:
    with pytest.raises(ValueError, match="table format 'ORC' is registered twice"):
        FORMATS.add("ORC", FORMATS["json"], __name__)
