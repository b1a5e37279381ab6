"""Files that unpack to more than memory holds, and cells, lines and sheets that no table has: a sentence each."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pages import ROOT
from small_tables import small_table

from femts.data.loading import load_dataset
from femts.data.read import read_table
from femts.data.recent import read_recent
from femts.environment import available_memory
from femts.errors import UsageError

MIB = 2**20
ROWS = small_table(columns=("a", "b")).to_csv(index=False).encode()

BAD: dict[str, tuple[Callable[[], bytes], str]] = {
    "a header of commas": (lambda: b"date" + b"," * 40 * MIB, "a line of more than 16384 KiB"),
    "a long line": (lambda: ROWS + b"1," * 20 * MIB, "a line of more than 16384 KiB"),
    "a long cell": (lambda: ROWS + b"1" * MIB, "a cell of more than 256 KiB"),
    "a quoted long cell": (lambda: ROWS + b'"' + b"1" * MIB + b'"', "a cell of more than 256 KiB"),
    "very many columns": (lambda: b"date" + b",a" * (MIB + 1) + b"\n", "has 1048578 columns; bring 1048576 at most"),
    "zeros": (lambda: ROWS + bytes(MIB), "is binary"),
    "blank lines alone": (lambda: b"\n" * 40 * MIB, "is empty"),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", BAD)
def test_what_no_table_has_is_refused(name: str, packed: bool, tmp_path: Path) -> None:
    content, words = BAD[name]
    path = tmp_path / "mine.csv"
    path.write_bytes(gzip.compress(content(), 1) if packed else content())
    for read in (read_table, lambda path: read_recent(path, 24, "D")):
        with pytest.raises(UsageError, match=words) as caught:
            read(path)
        assert str(path) in str(caught.value)


def test_a_quote_that_is_never_closed_does_not_keep_the_file_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv.gz"
    path.write_bytes(gzip.compress(ROWS + b'2024-01-01,"') + gzip.compress(b"2024-01-01,1,1\n" * 2 * MIB, 1) * 10)
    with pytest.raises(UsageError, match=r"has 25\d MiB where a few rows should be; close its quotes"):
        read_recent(path, 24, "D", cells=1000)


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
def test_what_memory_does_not_hold_is_refused_before_it_is_held(tmp_path: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pytest.importorskip("openpyxl")
    names = ["rows.csv.gz", "blank.csv.gz", "runs.parquet", "words.parquet", "sheet.xlsx"]
    begin = gzip.compress(b"date,a,b\n")
    (tmp_path / names[0]).write_bytes(begin + gzip.compress(b"1,1,1\n" * MIB, 1) * 100)
    (tmp_path / names[1]).write_bytes(gzip.compress(ROWS) + gzip.compress(b"\n" * 8 * MIB, 1) * 100)
    runs = pyarrow.table({"date": np.zeros(MIB, dtype="M8[ns]"), "a": np.ones(MIB), "b": np.ones(MIB)})
    with parquet.ParquetWriter(tmp_path / names[2], runs.schema) as writer:
        for _ in range(16):
            writer.write_table(runs)
    codes = pyarrow.array(np.zeros(20_000, dtype=np.int32))
    long_word = pyarrow.DictionaryArray.from_arrays(codes, pyarrow.array(["x" * 100_000]))
    parquet.write_table(pyarrow.table({"date": long_word}), tmp_path / names[3], store_schema=False)
    small_table().to_excel(tmp_path / names[4], index=False)
    _swell(tmp_path / names[4], 400 * MIB)
    paths = [str(tmp_path / name) for name in names]
    done = subprocess.run([sys.executable, "-c", LIMITED, *paths], capture_output=True, text=True, check=True, cwd=ROOT)
    *said, peak = done.stdout.splitlines()
    assert [line.partition(" takes more memory than there is")[0] for line in said] == [
        f"File {path}" for path in paths
    ]
    assert int(peak) < 400


def _swell(path: Path, size: int) -> None:
    """Let the sheet of a workbook unpack to `size` bytes, which are empty rows."""
    import zipfile

    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    before, _, after = parts["xl/worksheets/sheet1.xml"].partition(b"</sheetData>")
    parts["xl/worksheets/sheet1.xml"] = before + b"<row></row>" * (size // 11) + b"</sheetData>" + after
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def test_memory_of_a_sheet_goes_by_its_cells(tmp_path: Path) -> None:
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
    with pytest.raises(UsageError, match=r"has no name for column 16384, in which is the cell XFD1048576; name it or"):
        load_dataset(far)
    named = read_table(with_cell("named.xlsx", {"XFD1": "far", "XFD9": 1}))
    assert list(named) == [*read_table(tmp_path / "plain.xlsx"), "far"] and named["far"].count() == 1
    below = with_cell("below.xlsx", {"A1048576": pd.Timestamp("2020-01-01")})
    assert len(read_table(below)) == plain.rows + 1
    many = with_cell("many.xlsx", {f"XFD{row}": 1 for row in range(2000, 6000)})
    with pytest.raises(UsageError, match="a sheet that is nearly empty; clear the cells far from its table"):
        load_dataset(many)


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_the_limit_of_a_container_counts(version: str, tmp_path: Path) -> None:
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
