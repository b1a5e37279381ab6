"""File formats, compression, damaged files and memory limits."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from data_cases import wide
from pages import ROOT
from small_tables import small_table

import femts
from femts.cli import main
from femts.data.loading import load_dataset
from femts.data.read import read_headless, read_table, table_pieces, write_table
from femts.data.recent import read_recent
from femts.data.schema import PLAIN
from femts.environment import available_memory
from femts.errors import RunFailure, UsageError

MIB = 2**20
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
    return pytest.importorskip("pyarrow").compress(content, codec="zstd", asbytes=True)


FILES: dict[str, Callable[[], bytes]] = {
    "gz": lambda: gzip.compress(text()),
    "bz2": lambda: bz2.compress(text()),
    "zst": lambda: zstd(text()),
    "zst in two frames": lambda: zstd(text()[:200]) + zstd(text()[200:]),
    "zip": lambda: zipped("folder/mine.csv", "__MACOSX/mine.csv"),
    "semicolons and decimal commas": lambda: text(sep=";", decimal=","),
    "tabs": lambda: text(sep="\t"),
    "bars": lambda: text(sep="|"),
    "German": lambda: gzip.compress(text(sep=";", decimal=",", date_format="%d.%m.%Y")),
    "bytes that mark the order": lambda: b"\xef\xbb\xbf" + text(sep=";"),
}


@pytest.mark.parametrize("name", FILES)
def test_every_file_format_reads_the_same_table(name: str, tmp_path: Path) -> None:
    (tmp_path / "plain.csv").write_bytes(text())
    (tmp_path / "mine.csv").write_bytes(FILES[name]())
    plain, mine = load_dataset(tmp_path / "plain.csv"), load_dataset(tmp_path / "mine.csv")
    assert mine.columns == plain.columns and mine.freq == "D"
    np.testing.assert_array_equal(mine.values, plain.values)
    pieces = pd.concat(table_pieces(tmp_path / "mine.csv", cells=20))
    pd.testing.assert_frame_equal(pieces, read_table(tmp_path / "mine.csv").astype({"date": str}))


@pytest.mark.parametrize("title", ["", "Daily report\n"])
def test_names_that_occur_again_are_numbered(title: str, tmp_path: Path) -> None:
    rows = "".join(f"2024-01-{day:02d},{day % 7}.5,{day % 6}.5,{day % 5}.5,{day % 4}.5\n" for day in range(1, 29))
    (tmp_path / "mine.csv").write_text(f"{title}date,a,a,a (2),a\n{rows}")
    data = load_dataset(tmp_path / "mine.csv")
    assert data.columns == ("a", "a (3)", "a (2)", "a (4)")
    np.testing.assert_array_equal(data.values[8], [2.5, 3.5, 4.5, 1.5])
    assert "names of columns that occur again are numbered: a (3), a (4)" in data.notes
    assert list(next(table_pieces(tmp_path / "mine.csv", cells=20)).columns) == ["date", *data.columns]


@pytest.mark.parametrize("name", ["gz", "semicolons and decimal commas"])
def test_table_is_read_from_stdin(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plain.csv").write_bytes(text())
    content = FILES[name]()  # once: a gzip file holds the second that it was made in
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    mine = load_dataset("-")
    (tmp_path / "same.csv").write_bytes(content)
    assert (mine.name, mine.source, mine.sha256) == ("stdin", None, load_dataset(tmp_path / "same.csv").sha256)
    np.testing.assert_array_equal(mine.values, load_dataset(tmp_path / "plain.csv").values)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    with pytest.raises(UsageError, match=r"The standard input is empty; provide a table"):
        load_dataset("-")
    sys.stdin.close()
    for closed in (sys.stdin, None):  # None where the process began without one
        monkeypatch.setattr(sys, "stdin", closed)
        with pytest.raises(UsageError, match=r"The standard input is closed; redirect a table to it"):
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
def test_invalid_pandas_metadata_in_parquet_is_ignored(metadata: bytes, tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    import pyarrow as pa

    dates = pd.date_range("2024-01-01", periods=50)
    table = pa.table({"date": dates, "x": np.arange(50.0)}).replace_schema_metadata({b"pandas": metadata})
    pq.write_table(table, tmp_path / "mine.parquet")
    data = load_dataset(tmp_path / "mine.parquet")
    assert (
        data.stamps is not None and list(data.stamps) == list(dates) and data.values[:, 0].tolist() == list(range(50))
    )
    pieces = pd.concat(table_pieces(tmp_path / "mine.parquet", cells=20))
    assert pieces["x"].tolist() == list(range(50))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_named_pipe_is_refused_without_reading(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(
        UsageError, match=r"pipe is a pipe, which can be read only once; send it to standard input and use -"
    ):
        load_dataset(tmp_path / "pipe")


def test_excel_workbook_is_read(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    (tmp_path / "plain.csv").write_bytes(text())
    plain = load_dataset(tmp_path / "plain.csv")
    with pd.ExcelWriter(tmp_path / "mine.xlsx") as book:
        table().to_excel(book, sheet_name="Load", index=False, startrow=3, startcol=2)
        table().to_excel(book, sheet_name="Other", index=False)
    data = load_dataset(tmp_path / "mine.xlsx")
    np.testing.assert_allclose(data.values, plain.values, rtol=1e-14)  # a workbook keeps fifteen digits
    assert data.notes[0] == "the first of its 2 sheets, 'Load', was read; choose another with sheet=NAME"
    pd.DataFrame().to_excel(tmp_path / "empty.xlsx")
    table().rename(columns={"c": None}).to_excel(tmp_path / "nameless.xlsx", index=False)
    (tmp_path / "no.xlsx").write_bytes(b"PK\x03\x04")
    (tmp_path / "book.csv").write_bytes((tmp_path / "mine.xlsx").read_bytes())
    for name, words in (
        ("empty.xlsx", "is empty"),
        ("nameless.xlsx", "no name for column 4"),
        ("no.xlsx", "cannot be read as an Excel workbook"),
        ("book.csv", r"is an Excel workbook; rename it to end in \.xlsx"),
    ):
        with pytest.raises(UsageError, match=words):
            load_dataset(tmp_path / name)


def test_missing_optional_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("openpyxl", "xlrd", "pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, module, None)
    for name, content, words in (
        ("mine.xlsx", zipped("xl/workbook.xml"), "needs openpyxl, which is not installed; run pip install openpyxl"),
        ("mine.xls", b"\xd0\xcf\x11\xe0", "needs xlrd, which is not installed; run pip install xlrd"),
        ("mine.parquet", b"PAR1", "needs pyarrow, which is not installed; run pip install pyarrow"),
        (
            "mine.csv.zst",
            b"\x28\xb5\x2f\xfd and more",
            "is compressed with zstd; run pip install pyarrow, or decompress it",
        ),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UsageError, match=f"{name} {words}"):
            read_table(tmp_path / name)


def password_protected_zip() -> bytes:
    content = bytearray(zipped("mine.csv"))
    content[content.index(b"PK\x01\x02") + 8] |= 1
    return bytes(content)


BAD: dict[str, tuple[Callable[[], bytes], str]] = {
    "gz cut": (lambda: gzip.compress(text())[:300], "is damaged .*download it again"),
    "zst cut": (lambda: zstd(text())[:300], "is damaged"),
    "zip cut": (lambda: zipped("a.csv")[:300], "is damaged"),
    "zip of two": (lambda: zipped("a.csv", "b.csv"), "holds 2 files; compress only one table"),
    "zip with a password": (password_protected_zip, "is password-protected"),
    "packed twice": (lambda: gzip.compress(gzip.compress(text())), "is compressed twice"),
    "thousands, or decimals": (
        lambda: b"date\ta\n2024-01-01\t1,234\n",
        "a decimal or a thousands separator; remove thousands",
    ),
    "both marks": (
        lambda: b"date;a;b\n2024-01-01;1,5;1.234\n2024-01-02;1,5;1.234\n2024-01-03;1,5;1.234\n",
        r"has '1\.234' in column 'b' at data row 1, but other numbers",
    ),
    "commas between decimal commas": (lambda: b"date,a\n2024-01-01,1,5\n", "is not a table"),
    "no name, and no dates": (lambda: b",a\n0,1\n1,2\n", "no name for column 1"),
    "no header": (
        lambda: b"2024-01-01,north\n2024-01-02,north\n2024-01-03,south\n2024-01-04,south\n",
        "add a header row",
    ),
    "blanks": (lambda: b" \n\n", "is empty"),
    "a page": (lambda: b"\xef\xbb\xbf\n<!DOCTYPE html>\n<html><table>", "is a web page or XML, not a table"),
    "a program": (lambda: b"\x7fELF\x00\x00", "is binary"),
    "neither UTF-8 nor Windows-1252": (lambda: b"date,\x81\xb0C\n", "not UTF-8 text"),
    "a long row": (
        lambda: text() + b"2020-03-01,7,8,9,10\n",
        r"not a table \(Expected 4 fields in line 50, saw 5\)",
    ),
    "comments alone": (lambda: b"# nothing\n# at all\n", "mine.csv"),
    "a header of commas": (lambda: b"date" + b"," * 40 * MIB, "a line of more than 16384 KiB"),
    "a long cell": (lambda: text() + b"1" * MIB, "a cell of more than 256 KiB"),
    "very many columns": (lambda: b"date" + b",a" * (MIB + 1) + b"\n", "has 1048578 columns, but at most 1048576"),
    "zeros": (lambda: text() + bytes(MIB), "is binary"),
    "blank lines alone": (lambda: b"\n" * 40 * MIB, "is empty"),
}


CHECKED = (
    "thousands, or decimals",
    "both marks",
    "no header",
)  # after it is read


@pytest.mark.parametrize("name", BAD)
def test_unreadable_file_is_refused(name: str, tmp_path: Path) -> None:
    content, words = BAD[name]
    path, packed = tmp_path / "mine.csv", tmp_path / "mine.csv.gz"
    path.write_bytes(content())
    for file in (path, packed):
        for read in (load_dataset, lambda file: read_recent(file, 24, PLAIN, ("a",), "D"))[: 1 + (name not in CHECKED)]:
            with pytest.raises(UsageError, match=words) as caught:
                read(file)
            assert str(file) in str(caught.value) and "\n" not in str(caught.value)
        packed.write_bytes(gzip.compress(path.read_bytes(), 1))
        if name.split()[0] in ("gz", "bz2", "xz", "zst", "zip", "packed", "nothing", "zeros", "no"):
            return  # packed twice


def test_missing_file_and_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nothing\.csv does not exist"):
        read_table(tmp_path / "nothing.csv")
    with pytest.raises(UsageError, match="is a folder"):
        read_table(tmp_path)


GOOD = "date,a,b\n2024-01-01 00:00,1,2\n2024-01-01 01:00,3,4\n2024-01-01 02:00,5,6\n"


def test_bom_crlf_and_blank_lines_are_accepted(tmp_path: Path) -> None:
    for content in [GOOD, "\ufeff" + GOOD, GOOD.replace("\n", "\r\n"), GOOD + "\n\n", "\n" + GOOD]:
        (tmp_path / "mine.csv").write_bytes(content.encode())
        data = load_dataset(tmp_path / "mine.csv")
        assert data.columns == ("a", "b") and data.values[:, 1].tolist() == [2.0, 4.0, 6.0]


def test_leading_comments_are_skipped(tmp_path: Path) -> None:
    rows = "".join(f"2020-01-{day:02d};{day**2 % 11},5;{day**2 % 7}\n" for day in range(1, 32))
    text = f"# from somewhere\n# a, b; c\ndate;x;y\n{rows}"
    (tmp_path / "a.csv").write_text(text)
    data = load_dataset(tmp_path / "a.csv")
    assert data.columns == ("x", "y") and data.values[0].tolist() == [1.5, 1]
    (tmp_path / "b.csv").write_text(text.replace("# from somewhere\n# a, b; c\ndate", "#date"))
    assert load_dataset(tmp_path / "b.csv", columns={"time": "#date"}).columns == ("x", "y")


def test_other_separators_in_a_csv_header_are_kept(tmp_path: Path) -> None:
    for header in ["date,a;b", "date,a|b,c", 'date,"a;b"', "date [a;b],c"]:
        commas = header.replace('"a;b"', "x").count(",")
        rows = "".join(f"2024-01-{day:02d}{f',{day}' * commas}\n" for day in range(1, 9))
        (tmp_path / "mine.csv").write_text(f"{header}\n{rows}")
        names = [cell.strip('"') for cell in header.split(",")]
        assert list(read_table(tmp_path / "mine.csv").columns) == names


def test_truncated_gzip_is_refused(tmp_path: Path) -> None:
    many = b"".join(b"%d,%d\n" % (number, number**2 % 997) for number in range(60_000))
    (tmp_path / "mine.csv.gz").write_bytes(gzip.compress(b"date,a\n" + many)[:-2000])
    with pytest.raises(UsageError, match="is damaged"):
        read_table(tmp_path / "mine.csv.gz")


@pytest.mark.parametrize("kind", ["plain", "index of dates", "names with points", "row numbers from 5"])
def test_parquet_is_read_column_by_column_as_at_once(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow.parquet")
    table = pd.DataFrame(
        {
            "a": np.arange(30.0),
            "a.b" if kind == "names with points" else "b": np.arange(30),
            "dates": pd.date_range("2024-01-01", periods=30),
            "words": [*"xyz", None] * 7 + ["w", "x"],
            "flags": [True, False, True] * 10,
        }
    )
    table = table.set_index("dates") if kind == "index of dates" else table
    table.index = pd.RangeIndex(5, 35) if kind == "row numbers from 5" else table.index
    table.to_parquet(tmp_path / "mine.parquet", row_group_size=7)
    whole = read_table(tmp_path / "mine.parquet")
    monkeypatch.setattr("femts.data.pieces.CELLS", 1)
    pd.testing.assert_frame_equal(read_table(tmp_path / "mine.parquet"), whole)
    pd.testing.assert_frame_equal(whole.astype({"words": object}), table.astype({"words": object}), check_freq=False)


def test_parquet_roundtrip(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    table = wide(60).melt("date", var_name="shop", value_name="sales")
    path, out, run = write_table(table, tmp_path / "mine.parquet"), tmp_path / "out.parquet", str(tmp_path / "run")
    pd.testing.assert_frame_equal(read_table(path), table.astype({"shop": "category"}))
    options = "--model naive --seq-len 6 --horizon 3 --multivariate --columns time=date,series=shop,value=sales".split()
    assert main(["train", "--dataset", str(path), "--out", run, *options]) == 0
    assert main(["predict", run, str(path), "-o", str(out), "--plot", str(tmp_path / "out.png")]) == 0
    pd.testing.assert_frame_equal(pd.read_parquet(out), femts.load(run).predict(table))
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 is not enough")
    with pytest.raises(UsageError, match=r"broken\.parquet cannot be read as Parquet"):
        read_table(tmp_path / "broken.parquet")


def test_headerless_matrix_is_read(tmp_path: Path) -> None:
    matrix = np.random.default_rng(0).uniform(size=(50, 7)).round(2)
    for name in ("s.txt", "s.txt.gz"):
        pd.DataFrame(matrix).to_csv(tmp_path / name, header=False, index=False)
        frame = read_headless(tmp_path / name)
        assert list(frame.columns) == list("0123456") and np.array_equal(frame.to_numpy(), matrix)


def test_invalid_headerless_matrix_is_refused(tmp_path: Path) -> None:
    for name, content, words in [
        ("s.txt", b"1,2\n3,x\n", "the text 'x' in column '1' at data row 2"),
        ("s.txt", b"1,2\n3,4,5\n", "cannot be read as a matrix"),
        ("s.txt.gz", b"\x1f\x8b\x08\x00", "is damaged"),
        ("s.txt.gz", gzip.compress(b"1,2\n", mtime=0)[:10] + b"\xff" * 20, "is damaged"),
    ]:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UsageError, match=words):
            read_headless(tmp_path / name)


def test_failed_table_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out.csv"
    path.write_text("old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(RunFailure, match=r"Could not write .*out\.csv: No space left on device; free some disk space"):
        write_table(wide(3), path)
    assert path.read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["out.csv"]


def test_unwritable_table_path_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a folder; name a file"):
        write_table(wide(3), tmp_path)
    with pytest.raises(UsageError, match="does not exist; create it, or write"):
        write_table(wide(3), tmp_path / "no" / "out.csv")


def test_text_read_in_pieces_is_categorical(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, words = tmp_path / "mine.csv", ["x", "y", "", "z", "x", "w"]
    path.write_text("date,y,kind\n" + "".join(f"2024-01-0{day},{day},{word}\n" for day, word in enumerate(words, 1)))
    monkeypatch.setattr("femts.data.formats.text.PIECE", 6)  # cells: two rows
    kinds = read_table(path)["kind"]
    assert isinstance(kinds.dtype, pd.CategoricalDtype) and sorted(kinds.cat.categories) == ["w", "x", "y", "z"]
    assert [word if isinstance(word, str) else "" for word in kinds] == words


def test_unclosed_quote_does_not_read_the_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv.gz"
    path.write_bytes(gzip.compress(text() + b'2024-01-01,"') + gzip.compress(b"2024-01-01,1,1\n" * 2 * MIB, 1) * 10)
    with pytest.raises(UsageError, match=r"has 25\d MiB where a few rows are expected; close its quotes"):
        read_recent(path, 24, PLAIN, ("a",), "D", cells=1000)


LIMITED = r"""
import re, resource, sys
import openpyxl, pyarrow.parquet
from femts.data.loading import load_dataset
from femts.errors import UsageError
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resident = int(re.search(r"VmRSS:\s*(\d+)", open("/proc/self/status").read())[1])
resource.setrlimit(resource.RLIMIT_AS, (used + 400 * 2**20,) * 2)
for path in sys.argv[1:]:
    try:
        load_dataset(path)
    except UsageError as error:
        print(error)
peak = int(re.search(r"VmHWM:\s*(\d+)", open("/proc/self/status").read())[1])
print((peak - resident) >> 10)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_AS limits memory on Linux")
def test_data_larger_than_memory_is_refused(tmp_path: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pytest.importorskip("openpyxl")
    names = ["rows.csv.gz", "blank.csv.gz", "runs.parquet", "words.parquet", "sheet.xlsx"]
    begin = gzip.compress(b"date,a,b\n")
    (tmp_path / names[0]).write_bytes(begin + gzip.compress(b"1,1,1\n" * MIB, 1) * 100)
    (tmp_path / names[1]).write_bytes(gzip.compress(text()) + gzip.compress(b"\n" * 8 * MIB, 1) * 100)
    runs = pyarrow.table({"date": np.zeros(MIB, dtype="M8[ns]"), "a": np.ones(MIB), "b": np.ones(MIB)})
    with parquet.ParquetWriter(tmp_path / names[2], runs.schema) as writer:
        for _ in range(16):
            writer.write_table(runs)
    codes = pyarrow.array(np.zeros(20_000, dtype=np.int32))
    long_word = pyarrow.DictionaryArray.from_arrays(codes, pyarrow.array(["x" * 100_000]))
    parquet.write_table(pyarrow.table({"date": long_word}), tmp_path / names[3], store_schema=False)
    small_table().to_excel(tmp_path / names[4], index=False)
    inflate_sheet(tmp_path / names[4], 400 * MIB)
    paths = [str(tmp_path / name) for name in names]
    done = subprocess.run([sys.executable, "-c", LIMITED, *paths], capture_output=True, text=True, check=True, cwd=ROOT)
    *said, peak = done.stdout.splitlines()
    assert [line.partition(" does not fit into memory")[0] for line in said] == [f"File {path}" for path in paths]
    assert int(peak) < 400


def inflate_sheet(path: Path, size: int) -> None:
    """Pad a worksheet with empty rows to `size` bytes."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    before, _, after = parts["xl/worksheets/sheet1.xml"].partition(b"</sheetData>")
    parts["xl/worksheets/sheet1.xml"] = before + b"<row></row>" * (size // 11) + b"</sheetData>" + after
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def test_sparse_worksheets_are_read_or_refused(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    small_table().to_excel(tmp_path / "plain.xlsx", index=False)
    plain = load_dataset(tmp_path / "plain.xlsx")

    def with_cell(name: str, cells: dict[str, object]) -> Path:
        book = openpyxl.load_workbook(tmp_path / "plain.xlsx")
        for place, value in cells.items():
            book.worksheets[0][place] = value
        book.save(tmp_path / name)
        return tmp_path / name

    far = with_cell("far.xlsx", {"XFD1048576": 1})
    with pytest.raises(
        UsageError, match=r"has no name for column 16384, which contains the cell XFD1048576; name the column or"
    ):
        load_dataset(far)
    named = read_table(with_cell("named.xlsx", {"XFD1": "far", "XFD9": 1}))
    assert list(named) == [*read_table(tmp_path / "plain.xlsx"), "far"] and named["far"].count() == 1
    below = with_cell("below.xlsx", {"A1048576": pd.Timestamp("2020-01-01")})
    assert len(read_table(below)) == plain.rows + 1
    many = with_cell("many.xlsx", {f"XFD{row}": 1 for row in range(2000, 6000)})
    with pytest.raises(UsageError, match="a sheet that is nearly empty; clear the cells far from its table"):
        load_dataset(many)


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_cgroup_memory_limit_is_respected(version: str, tmp_path: Path) -> None:
    line, folder, most, used = {
        "v1": ("4:memory:/box\n", "memory", "limit_in_bytes", "usage_in_bytes"),
        "v2": ("0::/box\n", "", "max", "current"),
    }[version]
    group = tmp_path / "sys/fs/cgroup" / folder / "box"
    group.mkdir(parents=True)
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(line)
    (tmp_path / "proc/meminfo").write_text("MemTotal: 900 kB\nMemAvailable: 600 kB\n")
    assert available_memory(tmp_path) == 600 * 1024
    (group / f"memory.{most}").write_text(f"{500 * 1024}\n")
    (group / f"memory.{used}").write_text(f"{300 * 1024}\n")
    assert available_memory(tmp_path) == 200 * 1024
    (group / "memory.stat").write_text(f"anon 5\ninactive_file {50 * 1024}\n")
    assert available_memory(tmp_path) == 250 * 1024
    (group.parent / f"memory.{most}").write_text(f"{400 * 1024}\n")
    (group.parent / f"memory.{used}").write_text(f"{390 * 1024}\n")
    assert available_memory(tmp_path) == 10 * 1024


@pytest.mark.parametrize(
    "cells",
    [
        ["1", "2", "3", "4.5", "", "6"],
        ["1", "2", "3", "x", "5", "6"],
        ["", "", "3", "4", "x", "6"],
        ["007", "08", "09", "n/a", "x1", "12"],
        ["True", "False", "True", "", "False", "True"],
        ["1", "2", "36028797018963969", "4.5", "5", "6"],
        ["1", "18446744073709551615", "-1", "4", "5", "6"],
    ],
    ids=["fractions", "text", "gaps and text", "zeros in front", "truth", "beyond 2**53", "beyond 2**63"],
)
def test_chunked_read_equals_full_read(cells: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mine.csv"
    rows = [f"{'ab'[k // 3]},2024-01-0{k % 3 + 1},{cell}" for k, cell in enumerate(cells)]
    path.write_text("\n".join(["unique_id,ds,y", *rows, ""]))
    whole = read_table(path)
    monkeypatch.setattr("femts.data.formats.text.PIECE", 6)  # cells: two rows
    pd.testing.assert_frame_equal(read_table(path), whole, check_categorical=False)
    assert whole["y"].tolist() == pd.read_csv(path)["y"].tolist() or whole["y"].isna().any()
