"""Tables written to files are what the names of the files say."""

from __future__ import annotations

import gzip
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from bad_files import state_of

import femts
from femts.cli import main
from femts.data.write import write_table
from femts.errors import UsageError

pytest.importorskip("pyarrow")
openpyxl = pytest.importorskip("openpyxl")

SUFFIXES = (
    ".csv .tsv .json .jsonl .ndjson .parquet .pq .feather .arrow .xlsx .csv.gz .json.zst .tsv.zst .JSONL.GZ".split()
)


def table(dates: object = None) -> pd.DataFrame:
    """24 rows with accents, a gap, and floats that need all their digits."""
    dates = pd.date_range("2024-03-30", periods=24, freq="h") if dates is None else dates
    made = pd.DataFrame({"date": dates, "été": np.arange(24) / 7, "=load": np.sin(np.arange(24.0)) * 1e5})
    made.loc[5, "été"] = np.nan
    return made


def stamps(source: Path | pd.DataFrame) -> pd.Index:
    """Time stamps of a table, as femts reads them."""
    made = femts.load_dataset(source).stamps
    assert made is not None
    return made


def unpacked(path: Path) -> bytes:
    """Content of a file, decompressed by its name."""
    import pyarrow

    content, name = path.read_bytes(), path.name.lower()
    if name.endswith(".zst"):
        return bytes(pyarrow.CompressedInputStream(pyarrow.BufferReader(content), "zstd").read())
    return gzip.decompress(content) if name.endswith(".gz") else content


READERS: dict[str, Callable[[bytes], pd.DataFrame]] = {
    "csv": lambda content: pd.read_csv(io.BytesIO(content)),
    "tsv": lambda content: pd.read_csv(io.BytesIO(content), sep="\t"),
    "json": lambda content: pd.DataFrame(json.loads(content)),
    "jsonl": lambda content: pd.DataFrame(map(json.loads, content.decode().splitlines())),
    "ndjson": lambda content: pd.DataFrame(map(json.loads, content.decode().splitlines())),
    "parquet": lambda content: pd.read_parquet(io.BytesIO(content)),
    "pq": lambda content: pd.read_parquet(io.BytesIO(content)),
    "feather": lambda content: pd.read_feather(io.BytesIO(content)),
    "arrow": lambda content: pd.read_feather(io.BytesIO(content)),
    "xlsx": lambda content: pd.read_excel(io.BytesIO(content)),
}


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_file_is_what_its_name_says(suffix: str, tmp_path: Path) -> None:
    path = write_table(table(), tmp_path / f"my.table{suffix}")
    made = READERS[suffix.lower().split(".")[1]](unpacked(path))
    made = made.assign(date=pd.to_datetime(made["date"]).astype(table()["date"].dtype))
    pd.testing.assert_frame_equal(made, table(), rtol=1e-15, atol=0)
    data = femts.load_dataset(path)
    np.testing.assert_allclose(data.values, table().drop(columns="date").to_numpy(), rtol=1e-15)
    assert (data.columns, data.freq, stamps(path)[0]) == (("été", "=load"), "h", pd.Timestamp("2024-03-30"))


DATES = {
    "days": pd.date_range("2024-01-01", periods=24),
    "months": pd.date_range("2024-01-31", periods=24, freq="ME"),
    "seconds": pd.date_range("2024-01-01 00:00:07", periods=24, freq="s"),
    "milliseconds": pd.date_range("2024-01-01", periods=24, freq="250ms"),
    "microseconds": pd.date_range("2024-01-01 00:00:00.000001", periods=24, freq="10us"),
    "before spreadsheets": pd.date_range("1850-01-01", periods=24, freq="YS"),
    "hours of Berlin": pd.date_range("2024-07-01", periods=24, freq="h", tz="Europe/Berlin"),
    "days of Berlin in spring": pd.date_range("2024-03-20", periods=24, freq="D", tz="Europe/Berlin"),
    "a fixed offset": pd.date_range("2024-03-31", periods=24, freq="h", tz="Etc/GMT-2"),
    "steps": range(100, 124),
}


@pytest.mark.parametrize("suffix", [".csv", ".json", ".parquet", ".feather", ".xlsx"])
@pytest.mark.parametrize("dates", DATES.values(), ids=DATES.keys())
def test_stamps_are_read_again(dates: pd.Index, suffix: str, tmp_path: Path) -> None:
    made = stamps(write_table(table(dates), tmp_path / f"table{suffix}"))
    expected: list[Any] = [stamps(table(dates))]
    if getattr(dates, "tz", None) is not None:  # text has offsets, and spreadsheets neither these nor zones
        expected = [expected[0].tz_localize(None)] + [expected[0], expected[0].tz_convert("UTC")] * (suffix != ".xlsx")
    assert list(made) in [list(each) for each in expected]


@pytest.mark.parametrize("suffix", [".csv", ".json", ".jsonl.zst", ".parquet", ".feather"])
def test_hours_around_changes_of_clocks_are_read_again(suffix: str, tmp_path: Path) -> None:
    for day in ("2024-03-31", "2024-10-27"):
        dates = pd.date_range(day, periods=24, freq="h", tz="Europe/Berlin")
        made = stamps(write_table(table(dates), tmp_path / f"table{suffix}"))
        assert list(made) == list(dates)


def test_dates_of_json_are_iso(tmp_path: Path) -> None:
    firsts = {
        "days": "2024-01-01",
        "milliseconds": "2024-01-01T00:00:00",
        "before spreadsheets": "1850-01-01",
        "hours of Berlin": "2024-07-01T00:00:00+02:00",
        "steps": 100,
    }
    for name, first in firsts.items():
        path = write_table(table(DATES[name]), tmp_path / "table.json")
        assert json.loads(path.read_text())[0]["date"] == first
    assert json.loads(path.read_text())[5]["été"] is None
    assert '"été"' in path.read_text(encoding="utf-8")


def cells(path: Path) -> list[tuple[Any, ...]]:
    return list(openpyxl.load_workbook(path).active.iter_rows(values_only=True))


TEXTS = ["=1+1", "#N/A", "00417", "2024-01-01", "TRUE", " a ", "@x", "-"]


def test_text_of_a_workbook_stays_text(tmp_path: Path) -> None:
    path = write_table(pd.DataFrame({"=name": TEXTS, "y": 1.5}), tmp_path / "table.xlsx")
    assert cells(path) == [("=name", "y"), *((text, 1.5) for text in TEXTS)]
    sheet = openpyxl.load_workbook(path).active
    assert {cell.data_type for cell in sheet["A"]} == {"s"}


def test_workbook_does_not_change_numbers(tmp_path: Path) -> None:
    numbers = {"ticks": [638_000_000_000_000_001, 638_000_000_000_000_002], "y": [np.inf, 0.1], "n": [1, -(10**14)]}
    path = write_table(pd.DataFrame(numbers), tmp_path / "table.xlsx")
    assert cells(path)[1:] == [("638000000000000001", "inf", 1), ("638000000000000002", 0.1, -(10**14))]


def test_workbook_has_local_time_and_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "femts")
    for begin, says in [
        ("2024-07-01", "column 'date' of table.xlsx has the local time of Europe/Berlin"),
        ("2024-10-27", "of Europe/Berlin, in which an hour is repeated where clocks go back"),
    ]:
        dates = pd.date_range(begin, periods=24, freq="h", tz="Europe/Berlin")
        path = write_table(table(dates), tmp_path / "table.xlsx")
        assert [row[0] for row in cells(path)[1:]] == list(dates.tz_localize(None).to_pydatetime())
        assert caplog.messages[-1].replace(f"{tmp_path}/", "").endswith(says)


UNFIT = {
    "a control character": (
        pd.DataFrame({"a": ["x\x1b[2J"]}),
        r"Excel cannot hold the control characters in 'x\\x1b\[2J'; write",
    ),
    "one in a name": (pd.DataFrame({"a\x07": [1]}), r"control characters in 'a\\x07'"),
    "a long text": (pd.DataFrame({"a": ["x" * 40_000]}), r"at most 32767 characters, but 'x+\.\.\.x+' has 40000;"),
    "many columns": (pd.DataFrame(np.zeros((1, 20_000))), r"at most 1048575 rows and 16384 columns, .* 1 and 20000;"),
    "many rows": (pd.DataFrame({"a": np.zeros(2**20)}), r"would have 1048576 and 1; write \.csv or \.parquet\.$"),
}


@pytest.mark.parametrize(("frame", "says"), UNFIT.values(), ids=UNFIT.keys())
def test_what_a_workbook_cannot_hold_is_refused(frame: pd.DataFrame, says: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=says):
        write_table(frame, tmp_path / "table.xlsx")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", [".csv", ".json", ".parquet", ".xlsx"])
def test_half_of_a_character_is_refused(suffix: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot hold '\\ud83d', which is half of a character"):
        write_table(pd.DataFrame({"a": pd.Series(["\ud83d"], dtype=object)}), tmp_path / f"table{suffix}")


@pytest.mark.parametrize("suffix", [".csv", ".json", ".jsonl", ".parquet", ".csv.gz"])
def test_control_characters_stay_in_files(suffix: str, tmp_path: Path) -> None:
    name = "a\x1b[2J\x9b\u202e"
    path = write_table(table().rename(columns={"=load": name}), tmp_path / f"table{suffix}")
    assert femts.load_dataset(path).columns == ("été", name)


NAMES = "f f.xls f.xlsm f.txt f.gz f.csv.bz2 f.csv.zip f.parquet.gz f.xlsx.zst f.csv. f.2024 csv f.json.gz.gz f.csv.zst.gz .csv .gz".split()
SAYS = (
    "femts: A table cannot be written as '{}'; name it .csv, .tsv, .json, .jsonl, one of these with .gz or .zst after "
    "it, .parquet, .feather or .xlsx.\n"
)


@pytest.mark.parametrize("name", NAMES)
def test_other_names_are_refused_before_the_forecast(
    own: Path, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    before = state_of(tmp_path)
    for command in ("predict no.run past.csv", "backtest no.run past.csv", "explain no.run"):
        assert main([*command.split(), "-o", name]) == 2
        assert capsys.readouterr() == ("", SAYS.format(name))
    assert state_of(tmp_path) == before


@pytest.mark.parametrize(
    ("name", "package"),
    [("f.xlsx", "openpyxl"), ("f.parquet", "pyarrow"), ("f.feather", "pyarrow"), ("f.csv.zst", "pyarrow")],
)
def test_missing_package_is_named_before_the_forecast(
    name: str, package: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    assert main(["predict", "no.run", "past.csv", "-o", name]) == 2
    says = f"femts: {name} needs {package}, which is not installed; run pip install {package}, or use CSV.\n"
    assert capsys.readouterr() == ("", says)


@pytest.mark.parametrize("suffix", [".json", ".jsonl.gz", ".csv.zst", ".tsv", ".parquet", ".feather", ".xlsx"])
def test_forecast_is_read_again(
    own: Path, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    predict = ["predict", str(own / "run"), str(own / "past.csv"), "--horizon", "24", "-o"]
    for name in (f"f{suffix}", "plain.csv"):
        assert main([*predict, name]) == 0
    assert capsys.readouterr().out.startswith(f"f{suffix}: 24 steps of 2 columns")
    assert main(["datasets", "info", f"f{suffix}"]) == 0
    assert "Dataset 'f': 24 rows of 2 columns" in capsys.readouterr().out
    expected = pd.read_csv("plain.csv").drop(columns="date").to_numpy()
    np.testing.assert_allclose(femts.load_dataset(f"f{suffix}").values, expected, rtol=1e-15)


def test_other_commands_write_it_too(own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["backtest", str(own / "run"), str(own / "past.csv"), "--n-windows", "2", "-o", "b.json"]) == 0
    rows = json.loads(Path("b.json").read_text())
    assert len(rows) == 2 * 12 * 2 and rows[0]["cutoff"] == str(pd.Timestamp(rows[0]["cutoff"]).isoformat())
    assert main(["explain", str(own / "run"), "-o", "e.xlsx"]) == 0
    assert cells(Path("e.xlsx"))[0][:2] == ("kind", "input")


def test_bounds_in_a_long_forecast_are_left_out(tmp_path: Path) -> None:
    long = pd.concat([table().assign(unique_id=name) for name in "ab"]).rename(columns={"date": "ds", "=load": "y"})
    long = long[["unique_id", "ds", "y"]].assign(**{"y-lo-80": 1.0, "y-hi-97.5": 2.0, "y-q-10": 0.0})
    data = femts.load_dataset(write_table(long, tmp_path / "f.json"))
    assert (data.columns, len(data)) == (("y",), 2)
    assert "y-lo-80, y-hi-97.5, y-q-10 are bounds of forecasts and are left out" in data.notes
