"""One table in every file that it may come in: the same values to the bit, or a sentence."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from femts.data.loading import load_dataset
from femts.data.read import read_table, table_pieces
from femts.data.unpack import name_of
from femts.errors import UsageError

ROWS = 48


def table() -> pd.DataFrame:
    waves = np.sin(np.arange(2 * ROWS)).reshape(ROWS, 2) * 1000 / 3
    made = pd.DataFrame(waves, columns=["a", "b, kW"]).assign(c=np.arange(ROWS))
    made.insert(0, "date", pd.date_range("2020-01-01", periods=ROWS, freq="D"))
    made.loc[5, "a"] = np.nan
    return made


def text(**how: str) -> bytes:
    return table().to_csv(index=False, **how).encode()


def zipped(*names: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, text())
    return file.getvalue()


def zstd(content: bytes) -> bytes:
    return pytest.importorskip("zstandard").ZstdCompressor().compress(content)


FILES: dict[str, Callable[[], bytes]] = {
    "gz": lambda: gzip.compress(text()),
    "bz2": lambda: bz2.compress(text()),
    "xz": lambda: lzma.compress(text()),
    "zst": lambda: zstd(text()),
    "zst in two frames": lambda: zstd(text()[:200]) + zstd(text()[200:]),
    "zip": lambda: zipped("folder/mine.csv", "__MACOSX/mine.csv"),
    "semicolons": lambda: text(sep=";"),
    "semicolons and decimal commas": lambda: text(sep=";", decimal=","),
    "tabs": lambda: text(sep="\t"),
    "tabs and decimal commas": lambda: text(sep="\t", decimal=","),
    "bars": lambda: text(sep="|"),
    "German": lambda: gzip.compress(text(sep=";", decimal=",", date_format="%d.%m.%Y")),
    "bytes that mark the order": lambda: b"\xef\xbb\xbf" + text(sep=";"),
}


@pytest.mark.parametrize("name", FILES)
def test_the_same_table_from_every_kind_of_file(name: str, tmp_path: Path) -> None:
    (tmp_path / "plain.csv").write_bytes(text())
    (tmp_path / "mine.csv").write_bytes(FILES[name]())
    plain, mine = load_dataset(tmp_path / "plain.csv"), load_dataset(tmp_path / "mine.csv")
    assert mine.columns == plain.columns and mine.freq == "D"
    np.testing.assert_array_equal(mine.values, plain.values)
    pieces = pd.concat(table_pieces(tmp_path / "mine.csv", cells=20))
    pd.testing.assert_frame_equal(pieces, read_table(tmp_path / "mine.csv"))


@pytest.mark.parametrize("name", ["gz", "semicolons and decimal commas"])
def test_a_table_comes_by_standard_input(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plain.csv").write_bytes(text())
    content = FILES[name]()  # once: a gzip file holds the second that it was made in
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    mine = load_dataset("-")
    (tmp_path / "same.csv").write_bytes(content)
    assert (mine.name, mine.source, mine.sha256) == ("stdin", None, load_dataset(tmp_path / "same.csv").sha256)
    np.testing.assert_array_equal(mine.values, load_dataset(tmp_path / "plain.csv").values)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    with pytest.raises(UsageError, match=r"The standard input is empty; give a table"):
        load_dataset("-")
    sys.stdin.close()
    for closed in (sys.stdin, None):  # None where the process began without one
        monkeypatch.setattr(sys, "stdin", closed)
        with pytest.raises(UsageError, match=r"The standard input is closed; send a table to it"):
            load_dataset("-")


@pytest.mark.parametrize(
    "metadata",
    [
        b'{"index_columns": [{"kind": "range", "name": null, "start": 0, "stop": 1e99, "step": 1}], "columns": []}',
        b'{"index_columns": ["date"], "column_indexes": [], "columns": [{"name": "x", "field_name": "x", '
        b'"pandas_type": "object", "numpy_type": "object", "metadata": null}]}',
        b'{"index_columns": ["gone"], "columns": 5}',
        b"{}",
        b"null",
        b"\xff no JSON",
    ],
)
def test_parquet_is_read_without_pandas_metadata_that_do_not_fit(metadata: bytes, tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    import pyarrow as pa

    dates = pd.date_range("2024-01-01", periods=50)
    table = pa.table({"date": dates, "x": np.arange(50.0)}).replace_schema_metadata({b"pandas": metadata})
    pq.write_table(table, tmp_path / "mine.parquet")
    data = load_dataset(tmp_path / "mine.parquet")
    assert data.dates is not None and list(data.dates) == list(dates) and data.values[:, 0].tolist() == list(range(50))
    pieces = pd.concat(table_pieces(tmp_path / "mine.parquet", cells=20))
    assert pieces["x"].tolist() == list(range(50))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_refused_before_it_is_read(tmp_path: Path) -> None:
    """Reading goes over a file more than once; one that waits for a writer would stand still."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(
        UsageError, match=r"pipe is a pipe, which is read only once; send it to standard input, named -"
    ):
        load_dataset(tmp_path / "pipe")


def test_a_workbook_is_read(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    (tmp_path / "plain.csv").write_bytes(text())
    plain = load_dataset(tmp_path / "plain.csv")
    with pd.ExcelWriter(tmp_path / "mine.xlsx") as book:
        table().to_excel(book, sheet_name="Load", index=False, startrow=3, startcol=2)
        table().to_excel(book, sheet_name="Other", index=False)
    data = load_dataset(tmp_path / "mine.xlsx")
    np.testing.assert_allclose(data.values, plain.values, rtol=1e-14)  # a workbook keeps fifteen digits
    assert data.notes[0] == "of its 2 sheets the first, 'Load', is read"
    pd.DataFrame().to_excel(tmp_path / "empty.xlsx")
    table().rename(columns={"c": None}).to_excel(tmp_path / "nameless.xlsx", index=False)
    (tmp_path / "no.xlsx").write_bytes(b"PK\x03\x04")
    (tmp_path / "book.csv").write_bytes((tmp_path / "mine.xlsx").read_bytes())
    for name, words in (
        ("empty.xlsx", "is empty"),
        ("nameless.xlsx", "no name for column 4"),
        ("no.xlsx", "cannot be read as an Excel workbook"),
        ("book.csv", r"is an Excel workbook; give it a name that ends in \.xlsx"),
    ):
        with pytest.raises(UsageError, match=words):
            load_dataset(tmp_path / name)


def test_years_in_the_header_of_a_workbook_are_those_of_a_text_file(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    mine = pd.DataFrame({"date": pd.date_range("2024-01-01", periods=40), 2019: 0.5, 2020: 1, 2.5: 2.0})
    mine.loc[3, 2019] = np.nan
    mine.to_excel(tmp_path / "mine.xlsx", index=False)
    mine.to_csv(tmp_path / "mine.csv", index=False)
    assert list(read_table(tmp_path / "mine.xlsx")) == list(read_table(tmp_path / "mine.csv"))
    assert load_dataset(tmp_path / "mine.xlsx", target="2019").columns == ("2019",)


def test_libraries_that_are_missing_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("openpyxl", "pyarrow"):
        monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / "mine.xlsx").write_bytes(zipped("xl/workbook.xml"))
    with pytest.raises(
        UsageError, match=r"mine\.xlsx needs openpyxl, which is not installed; run pip install openpyxl"
    ):
        read_table(tmp_path / "mine.xlsx")
    (tmp_path / "mine.csv.zst").write_bytes(b"\x28\xb5\x2f\xfd and more")
    with pytest.raises(UsageError, match=r"mine\.csv\.zst is packed by zstd; run pip install pyarrow, or unpack it"):
        read_table(tmp_path / "mine.csv.zst")


def locked() -> bytes:
    content = bytearray(zipped("mine.csv"))
    content[content.index(b"PK\x01\x02") + 8] |= 1
    return bytes(content)


BAD: dict[str, tuple[Callable[[], bytes], str]] = {
    "gz cut": (lambda: gzip.compress(text())[:300], "is damaged .*get it anew"),
    "bz2 cut": (lambda: bz2.compress(text())[:300], "is damaged"),
    "xz cut": (lambda: lzma.compress(text())[:300], "is damaged"),
    "zst cut": (lambda: zstd(text())[:300], "is damaged"),
    "zip cut": (lambda: zipped("a.csv")[:300], "is damaged"),
    "zip of two": (lambda: zipped("a.csv", "b.csv"), "holds 2 files; pack one table alone"),
    "zip of none": (lambda: zipped("__MACOSX/a.csv"), "holds 0 files"),
    "zip with a password": (locked, "is locked by a password"),
    "packed twice": (lambda: gzip.compress(gzip.compress(text())), "is packed twice"),
    "nothing packed": (lambda: gzip.compress(b" \n"), "is empty"),
    "zeros packed": (lambda: gzip.compress(bytes(99)), "is binary"),
    "thousands, English": (
        lambda: b"date;a\n2024-01-01;1,234.5\n",
        r"has the text '1,234\.5' in column 'a' at data row 1; leave out marks",
    ),
    "thousands, German": (
        lambda: b"date;a\n2024-01-01;1,5\n2024-01-02;1.234,5\n",
        r"has '1\.234,5' .* row 2, .*leave out marks",
    ),
    "thousands, Swiss": (
        lambda: b"date\ta\n2024-01-01\t1'234.5\n",
        r"has the text '1\\?'234\.5' .* row 1; leave out marks",
    ),
    "thousands, or decimals": (
        lambda: b"date\ta\n2024-01-01\t1,234\n",
        "decimals or between thousands; leave out marks",
    ),
    "both marks": (
        lambda: b"date;a;b\n2024-01-01;1,5;1.234\n",
        r"has '1\.234' in column 'b' at data row 1, but other numbers",
    ),
    "commas between decimal commas": (lambda: b"date,a\n2024-01-01,1,5\n", "is not a table"),
    "rows of other lengths": (lambda: b"date;a\n2024-01-01;1;2\n2024-01-02;1\n", "is not a table"),
    "no name": (lambda: b"date;a;\n2024-01-01;1;2\n", "no name for column 3"),
    "no name, and no dates": (lambda: b",a\n0,1\n1,2\n", "no name for column 1"),
    "no header": (
        lambda: b"2024-01-01,1\n2024-01-02,2\n2024-01-03,3\n2024-01-04,3\n",
        "put a row of names above the cells",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_read_is_said(name: str, tmp_path: Path) -> None:
    content, words = BAD[name]
    path = tmp_path / "mine.csv"
    path.write_bytes(content())
    with pytest.raises(UsageError, match=words) as caught:
        load_dataset(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("header", ["date,a;b", "date,a|b,c", 'date,"a;b"', "date [a;b],c"])
def test_a_table_between_commas_stays_one(header: str, tmp_path: Path) -> None:
    commas = header.replace('"a;b"', "x").count(",")
    rows = "".join(f"2024-01-{day:02d}{f',{day}' * commas}\n" for day in range(1, 9))
    (tmp_path / "mine.csv").write_text(f"{header}\n{rows}")
    names = [cell.strip('"') for cell in header.split(",")]
    assert list(read_table(tmp_path / "mine.csv").columns) == names


def test_a_file_that_breaks_off_while_it_is_read_is_damaged(tmp_path: Path) -> None:
    many = b"".join(b"%d,%d\n" % (number, number**2 % 997) for number in range(60_000))
    (tmp_path / "mine.csv.gz").write_bytes(gzip.compress(b"date,a\n" + many)[:-2000])
    with pytest.raises(UsageError, match="is damaged"):
        read_table(tmp_path / "mine.csv.gz")


def test_a_name_is_that_of_the_table() -> None:
    names = {"a.csv": "a", "b/a.csv.gz": "a", "a.zip": "a", "a": "a", "-": "stdin", "a.b.csv": "a.b"}
    assert {path: name_of(Path(path)) for path in names} == names
