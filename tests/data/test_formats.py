"""Formats of files: JSON, Feather, encodings of text, and marks of missing values."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from small_tables import small_table

import femts
from femts.cli import main
from femts.errors import UsageError


def table() -> pd.DataFrame:
    """A table with a gap."""
    made = small_table(60)
    made.loc[7, "load"] = np.nan
    return made


def dated(made: pd.DataFrame) -> pd.DataFrame:
    return made.assign(date=made["date"].dt.strftime("%Y-%m-%dT%H:%M:%SZ"))


JSON: dict[str, Callable[[pd.DataFrame], str]] = {
    "records": lambda made: made.to_json(orient="records", double_precision=15),
    "lines": lambda made: made.to_json(orient="records", lines=True, double_precision=15),
    "columns": lambda made: made.to_json(double_precision=15),
    "an index of dates": lambda made: made.set_index("date").to_json(double_precision=15),
    "lists": lambda made: json.dumps(made.astype(object).where(made.notna(), None).to_dict("list")),
    "text": lambda made: made.astype(str).to_json(orient="records", indent=1),
}


@pytest.mark.parametrize("form", JSON)
def test_json_gives_the_same_data_as_csv(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = JSON[form](dated(table()))
    dated(table()).to_csv(tmp_path / "table.csv", index=False)
    (tmp_path / "table.json").write_text(text)
    expected, data = (femts.load_dataset(tmp_path / f"table.{kind}") for kind in ("csv", "json"))
    np.testing.assert_allclose(data.values, expected.values, rtol=1e-12)
    assert (data.columns, data.freq) == (expected.columns, expected.freq)
    pd.testing.assert_index_equal(pd.Index(data.stamps), pd.Index(expected.stamps), exact="equiv")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    np.testing.assert_array_equal(femts.load_dataset("-").values, data.values)


def test_nested_json_objects_become_columns(tmp_path: Path) -> None:
    rows = [
        {"date": f"2024-01-{day:02}", "cpu": {"user": day**2 % 5 + 0.5, "system": {"irq": -(day % 7)}}}
        for day in range(1, 31)
    ]
    (tmp_path / "nested.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert femts.load_dataset(tmp_path / "nested.jsonl").columns == ("cpu.user", "cpu.system.irq")


def test_json_may_be_one_long_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("femts.data.unpack.MOST_LINE", 1000)
    text = JSON["records"](dated(table()))
    for name in ("table.json", "table.csv"):
        (tmp_path / name).write_text(text)
    assert femts.load_dataset(tmp_path / "table.json").rows == 60
    with pytest.raises(UsageError, match="has a line of more than"):
        femts.load_dataset(tmp_path / "table.csv")


def test_range_query_of_prometheus(tmp_path: Path) -> None:
    path, values = tmp_path / "query.json", np.random.default_rng(0).normal(size=(2, 50)).round(3)

    def query(*labels: dict[str, str]) -> femts.Dataset:
        result = [
            {"metric": each, "values": [[1_700_000_000 + 60 * n, str(cell)] for n, cell in enumerate(row) if n != 7]}
            for each, row in zip(labels, values, strict=False)
        ]
        path.write_text(json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}))
        return femts.load_dataset(path)

    single = query({"__name__": "load", "instance": "a:90", "job": "x"})
    assert single.columns == ("load",) and single.freq == "min" and str(single.stamps[0]) == "2023-11-14 22:13:20"  # type: ignore[index]
    np.testing.assert_array_equal(np.delete(single.values[:, 0], 7), np.delete(values[0], 7))
    assert np.isnan(single.values[7, 0])
    panel = query(
        {"__name__": "load", "instance": "a:90", "job": "x"}, {"__name__": "load", "instance": "b:90", "job": "x"}
    )
    assert panel.series == ("instance=a:90", "instance=b:90")
    np.testing.assert_array_equal(np.delete(panel.values[50:, 0], 7), np.delete(values[1], 7))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[{"date": 1}, 2]', "is not a table; give an array of objects"),
        ('{"status": "ok", "n": 3}', "is not a table"),
        ('{"a": [1, 2], "b": [1]}', "is not a table"),
        ("[]", "is not a table"),
        ('{"status": "success", "data": {"resultType": "matrix", "result": []}}', "is not a table"),
        (
            '{"status": "success", "data": {"resultType": "matrix", "result": [{"metric": {}, "values": [3]}]}}',
            "is not a table",
        ),
        ("[" * 100_000, "is not JSON"),
        ('[{"date": 1},', r"is not JSON \(Expecting .*\); write it again, or as CSV"),
        ('{"a": 1}\n{"a": ', "is not JSON"),
        (b"\x81\xff[]", "is not UTF-8 text"),
    ],
)
def test_json_that_is_no_table_is_refused(text: str | bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UsageError, match=rf"^File .*odd\.json {says}"):
        femts.load_dataset(path)


def test_feather(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    table().to_feather(tmp_path / "table.feather")
    np.testing.assert_array_equal(
        femts.load_dataset(tmp_path / "table.feather").values, femts.load_dataset(table()).values
    )
    (tmp_path / "odd.feather").write_bytes((tmp_path / "table.feather").read_bytes()[:300])
    with pytest.raises(UsageError, match="cannot be read as Feather"):
        femts.load_dataset(tmp_path / "odd.feather")


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-16-le", "utf-8-sig"])
@pytest.mark.parametrize("separator", [",", ";"])
def test_other_encodings(encoding: str, separator: str, tmp_path: Path) -> None:
    named = dated(table()).rename(columns={"load": "Außentemperatur °C"})
    text, path = named.to_csv(index=False, sep=separator), tmp_path / "table.csv"
    path.write_bytes(("\ufeff" * (encoding == "utf-16-le") + text).encode(encoding))
    data = femts.load_dataset(path)
    assert data.columns == tuple(named.columns[1:])
    np.testing.assert_array_equal(data.values, femts.load_dataset(table()).values)
    assert ("it is not UTF-8 and is read as Windows-1252" in data.notes) == (encoding == "cp1252")


def test_long_text_in_another_encoding(tmp_path: Path) -> None:
    """Its conversion is longer than the bytes that are read at a time, and ends within characters."""
    text = "date,ß\n" + "".join(f"{day:%Y-%m-%d},{day.day}\n" for day in pd.date_range("1700-01-01", periods=50_000))
    for encoding in ("utf-16", "utf-8"):
        (tmp_path / encoding).with_suffix(".csv").write_text(text, encoding=encoding)
    wide, plain = (femts.load_dataset(tmp_path / f"{encoding}.csv") for encoding in ("utf-16", "utf-8"))
    np.testing.assert_array_equal(wide.values, plain.values)


@pytest.mark.parametrize("mark", ["-", "n/e", r"\N", "(null)", "NULL", "?", " - "])
@pytest.mark.parametrize("decimal", [".", ","])
def test_marks_of_missing_values(mark: str, decimal: str, tmp_path: Path) -> None:
    made = table()
    made.to_csv(tmp_path / "table.csv", index=False, sep=";", decimal=decimal, na_rep=mark)
    data = femts.load_dataset(tmp_path / "table.csv")
    np.testing.assert_array_equal(data.values, femts.load_dataset(made).values)
    words = made.assign(load=made["load"].astype(object).where(made["load"].notna(), mark))
    np.testing.assert_array_equal(femts.load_dataset(words).values, data.values)


def test_units_are_refused() -> None:
    for unit in (" Mb/s", " pcs"):
        for words in (
            table().assign(load=[f"{n}.5{unit}" for n in range(60)]),
            table().assign(load=["2", *["1234.5" + unit] * 59]),
        ):
            with pytest.raises(UsageError, match=r"has the text '.*' in column 'load' .*; write numbers without units"):
                femts.load_dataset(words, target="load")
    with pytest.raises(UsageError, match="enter a number, or leave the cell empty"):
        femts.load_dataset(table().assign(load=["2", *["off"] * 59]), target="load")


def test_files_are_described(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table().to_csv(tmp_path / "mine.csv", index=False)
    assert main(["datasets", "info", str(tmp_path / "mine.csv"), "--target", "load", "--freq", "2h"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[:3] == [
        "Dataset 'mine': 30 rows of 1 column",
        "  columns: load",
        "  step: 2h, from 2024-01-01 to 2024-01-03 10:00:00, season 12 steps",
    ]
    assert "note: its 60 rows do not keep the step '2h' and are averaged over such steps\n" in err
    assert main(["datasets", "info", str(tmp_path / "mine.csv"), "--target", "nothing"]) == 2
    assert "has no column 'nothing'" in capsys.readouterr().err
    assert main(["datasets", "info", "synthetic"]) == 0 and "name:     synthetic" in capsys.readouterr().out


@pytest.mark.parametrize("cells", ["dates", "numbers"])
@pytest.mark.parametrize("first", ["1899-12-30", "1904-01-01"])
@pytest.mark.parametrize("name", ["date", "Datum", "time"])
def test_days_of_workbooks_are_read(cells: str, name: str, first: str, tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    days, book = pd.date_range("2024-01-01", periods=60), openpyxl.Workbook()
    book.epoch = pd.Timestamp(first).to_pydatetime()
    book.active.append([name, "y"])
    for row, day in enumerate(days):
        cell = day.to_pydatetime() if cells == "dates" else (day - pd.Timestamp(first)).days
        book.active.append([cell, 44000 + row % 7])
    book.save(tmp_path / "mac.xlsx")
    data = femts.load_dataset(tmp_path / "mac.xlsx")
    assert list(data.stamps) == list(days) and data.values[0, 0] == 44000  # type: ignore[arg-type]


def old_workbook(path: Path, sheets: dict[str, pd.DataFrame], since_1904: bool = False) -> Path:
    xlwt = pytest.importorskip("xlwt")
    pytest.importorskip("xlrd")
    book, as_date = xlwt.Workbook(), xlwt.easyxf(num_format_str="yyyy-mm-dd hh:mm")
    book.dates_1904 = since_1904
    for title, made in sheets.items():
        sheet = book.add_sheet(title)
        for row, cells in enumerate([list(made), *made.astype(object).where(made.notna(), None).to_numpy().tolist()]):
            for column, cell in enumerate(cells):
                if isinstance(cell, pd.Timestamp):
                    sheet.write(row, column, cell.to_pydatetime(), as_date)
                elif cell is not None:
                    sheet.write(row, column, cell)
    book.save(str(path))
    return path


@pytest.mark.parametrize("since_1904", [False, True])
def test_workbooks_before_2007_are_read_as_later_ones(since_1904: bool, tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    sheets = {
        "Notes": pd.DataFrame({"Source": ["A meter."]}),
        "Data": table().assign(on=lambda made: made.index % 3 > 0),
    }
    if since_1904:
        sheets["Data"]["date"] = pd.date_range("2024-01-01", periods=60)
    with pd.ExcelWriter(tmp_path / "new.xlsx") as book:
        for title, sheet in sheets.items():
            sheet.to_excel(book, sheet_name=title, index=False)
    expected = femts.load_dataset(tmp_path / "new.xlsx")
    data = femts.load_dataset(old_workbook(tmp_path / "old.xls", sheets, since_1904))
    assert np.isnan(data.values).sum() == 1
    np.testing.assert_allclose(data.values, expected.values, rtol=1e-15)
    assert (data.columns, data.freq) == (expected.columns, expected.freq)
    assert list(data.stamps) == list(expected.stamps)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"Sheet 'data' of file .* does not exist; did you mean 'Data'"):
        femts.load_dataset(tmp_path / "old.xls", sheet="data")


def test_a_table_of_text_named_like_a_workbook_is_read_as_text(tmp_path: Path) -> None:
    dated(table()).to_csv(tmp_path / "export.xls", index=False, sep="\t")
    assert femts.load_dataset(tmp_path / "export.xls").rows == 60


def test_workbooks_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    whole = old_workbook(tmp_path / "old.xls", {"Data": table()}).read_bytes()
    (tmp_path / "part.xls").write_bytes(whole[:4000])
    with pytest.raises(UsageError, match="cannot be read as an Excel workbook"):
        femts.load_dataset(tmp_path / "part.xls")
    (tmp_path / "locked.xlsx").write_bytes(whole[:4000] + "EncryptedPackage".encode("utf-16-le"))
    with pytest.raises(UsageError, match="is password-protected; save it without a password"):
        femts.load_dataset(tmp_path / "locked.xlsx")


STAMPED = pd.DataFrame(
    {
        "stamp": pd.date_range("2024-01-01", periods=60, freq="h").strftime("%Y-%m-%d %H:%M:%S"),
        "load": np.arange(60.0) % 7,
    }
)


@pytest.mark.parametrize("orient", ["records", "split", "index", "columns", "values", "table"])
@pytest.mark.parametrize("kept", [slice(None), slice(5, None), slice(None, None, 2), [*range(40, 60), *range(10)]])
def test_every_orient_of_pandas(orient: str, kept: object, tmp_path: Path) -> None:
    """Row numbers of a filtered frame are no time stamps."""
    some = STAMPED.iloc[kept]  # type: ignore[call-overload]
    (tmp_path / "mine.json").write_text(some.to_json(orient=orient))  # type: ignore[call-overload]
    data = femts.load_dataset(tmp_path / "mine.json")
    stamps = pd.DatetimeIndex(pd.to_datetime(some["stamp"].sort_values()))
    expected = some.set_index(pd.to_datetime(some["stamp"]))["load"].sort_index()
    assert data.stamps is not None and data.freq == ("2h" if isinstance(kept, slice) and kept.step else "h")
    assert data.stamps[0] == stamps[0] and data.stamps[-1] == stamps[-1]
    np.testing.assert_array_equal(pd.Series(data.values[:, -1], data.stamps)[stamps], expected)


@pytest.mark.parametrize("orient", ["split", "index", "columns", "table"])
def test_index_of_dates_in_every_orient(orient: str, tmp_path: Path) -> None:
    dated = STAMPED.set_index(pd.DatetimeIndex(STAMPED["stamp"]).rename(None))[["load"]]
    (tmp_path / "mine.json").write_text(dated.to_json(orient=orient, date_format="iso"))  # type: ignore[call-overload]
    data = femts.load_dataset(tmp_path / "mine.json")
    assert data.columns == ("load",) and data.freq == "h" and data.rows == 60
    assert str(data.stamps[0])[:19] == "2024-01-01 00:00:00"  # type: ignore[index]


HOURS = [f"2024-01-{1 + n // 24:02}T{n % 24:02}:00" for n in range(60)]
NUMBERS = [float(n % 7) for n in range(60)]
RECORDS = [{"time": hour, "load": number} for hour, number in zip(HOURS, NUMBERS, strict=True)]
SERVICES: dict[str, tuple[object, str | None]] = {
    "Open-Meteo": (
        {
            "latitude": 52.5,
            "hourly_units": {"time": "iso8601", "load": "°C"},
            "hourly": {"time": HOURS, "load": NUMBERS},
        },
        "its units are load in °C",
    ),
    "Open-Meteo by day and hour": (
        {"daily": {"time": HOURS[::24], "x": NUMBERS[:3]}, "hourly": {"time": HOURS, "load": NUMBERS}},
        "the table 'hourly' in it is read, the largest of 2",
    ),
    "records in an object": ({"count": 60, "results": RECORDS}, "the table 'results' in it is read"),
    "records alone in an object": ({"readings": RECORDS}, "the table 'readings' in it is read"),
    "a page of the World Bank": ([{"page": 1, "pages": 1}, RECORDS], None),
    "arrays below names": ([["time", "load"], *map(list, zip(HOURS, NUMBERS, strict=True))], None),
    "an object of arrays in an object": (
        {"status": "ok", "data": {"time": HOURS, "load": NUMBERS}},
        "the table 'data' in it is read",
    ),
}


@pytest.mark.parametrize("name", SERVICES)
def test_responses_of_web_services(name: str, tmp_path: Path) -> None:
    content, note = SERVICES[name]
    (tmp_path / "mine.json").write_text(json.dumps(content))
    data = femts.load_dataset(tmp_path / "mine.json")
    assert data.columns == ("load",) and data.freq == "h" and data.values[:, 0].tolist() == NUMBERS
    assert note is None or note in data.notes


def test_history_of_home_assistant(tmp_path: Path) -> None:
    def states(entity: str, cells: list[str]) -> list[dict[str, str]]:
        """As in a minimal response, in which only the first state names its entity."""
        each = [{"state": cell, "last_changed": f"{hour}:00+00:00"} for hour, cell in zip(HOURS, cells, strict=True)]
        return [{"entity_id": entity, "attributes": "x"} | each[0], *each[1:]]

    numbers = [*map(str, NUMBERS[:-1]), "unavailable"]
    content = [states("sensor.load", numbers), states("switch.pump", ["on", "off"] * 30), states("sun", ["up"] * 60)]
    (tmp_path / "mine.json").write_text(json.dumps(content))
    data = femts.load_dataset(tmp_path / "mine.json")
    assert (
        data.series == ("sensor.load", "switch.pump")
        and "sun: left out, since the states are not numbers" in data.notes
    )
    assert (
        data.values[58, 0] == NUMBERS[58] and np.isnan(data.values[59, 0]) and data.values[60:62, 0].tolist() == [1, 0]
    )
    (tmp_path / "mine.json").write_text(json.dumps(content[:1]))
    assert femts.load_dataset(tmp_path / "mine.json").columns == ("sensor.load",)


def test_export_of_victoria_metrics(tmp_path: Path) -> None:
    stamps = [1_700_000_000_000 + 60_000 * n for n in range(60)]
    rows = [
        {"metric": {"__name__": "load", "host": host}, "values": NUMBERS, "timestamps": stamps} for host in ("a", "b")
    ]
    (tmp_path / "mine.jsonl").write_text("\n".join(map(json.dumps, rows)))
    data = femts.load_dataset(tmp_path / "mine.jsonl")
    assert data.series == ("host=a", "host=b") and data.freq == "min" and data.values[60:, 0].tolist() == NUMBERS
    (tmp_path / "mine.json").write_text(json.dumps(rows[0]) + "\n")
    assert femts.load_dataset(tmp_path / "mine.json").columns == ("load",)


def query_of(*series: tuple[dict[str, str], list[str]]) -> str:
    result = [
        {"metric": labels, "values": [[1_700_000_000 + 60 * n, cell] for n, cell in enumerate(cells)]}
        for labels, cells in series
    ]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ([{"__name__": "rps", "job": "x"}, {"__name__": "rps", "job": "x", "host": "b"}], ("rps", "host=b")),
        ([{}, {"host": "b"}], ("value", "host=b")),
        ([{"job": "x"}, {"job": "x", "host": "b"}, {"job": "x", "host": "c"}], ("value", "host=b", "host=c")),
        ([{"__name__": "up"}, {"__name__": "down"}], ("__name__=up", "__name__=down")),
        ([{"a": "1"}, {"b": "1"}], ("a=1", "b=1")),
    ],
)
def test_series_of_prometheus_have_names(labels: list[dict[str, str]], names: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text(query_of(*((each, list(map(str, NUMBERS))) for each in labels)))
    assert femts.load_dataset(tmp_path / "mine.json").series == names


@pytest.mark.parametrize("cell", ["+Inf", "-Inf", "Inf", "NaN", "inf"])
def test_infinite_values_of_prometheus_are_missing(cell: str, tmp_path: Path) -> None:
    cells = [*map(str, NUMBERS[:-5]), cell, *map(str, NUMBERS[-4:])]
    (tmp_path / "mine.json").write_text(query_of(({"job": "x"}, cells)))
    data = femts.load_dataset(tmp_path / "mine.json")
    assert np.flatnonzero(np.isnan(data.values[:, 0])).tolist() == [55]
    assert ("1 value is infinite and counts as missing" in data.notes) == (cell != "NaN")


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85", "\x0b", "\x1c"])
def test_other_ends_of_lines_within_strings(mark: str, tmp_path: Path) -> None:
    rows = [row | {"note": f"a{mark}b" if n == 9 else "c"} for n, row in enumerate(RECORDS)]
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    (tmp_path / "mine.jsonl").write_text("\n".join(lines), encoding="utf-8")
    assert femts.load_dataset(tmp_path / "mine.jsonl", target="load").rows == 60


@pytest.mark.parametrize("kind", ["records", "lines", "columns", "index", "nested"])
def test_objects_with_keys_of_their_own_are_refused(kind: str, tmp_path: Path) -> None:
    rows = [{"date": f"d{n}", f"k{n}": n} for n in range(6000)]
    content: object = rows
    if kind in ("columns", "index"):
        content = {f"k{n}": {f"r{n}": n} for n in range(6000)}
    elif kind == "nested":
        content = [{"a": {"b": {f"k{n}": n}}} for n in range(6000)]
    text = "\n".join(map(json.dumps, rows)) if kind == "lines" else json.dumps(content)
    (tmp_path / "mine.json").write_text(text)
    with pytest.raises(
        UsageError, match=r"has 6000 rows and 600[01] columns, but only \d+ values; give all rows the same"
    ):
        femts.load_dataset(tmp_path / "mine.json")


def test_feather_of_very_many_rows_is_refused_without_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pyarrow, feather = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.feather")
    made = pyarrow.table({"date": pyarrow.array(np.zeros(20_000_000, dtype=np.int8))})
    feather.write_feather(made, tmp_path / "mine.feather", compression="zstd", chunksize=20_000_000)
    assert (tmp_path / "mine.feather").stat().st_size < 10_000
    monkeypatch.setattr("femts.data.unpack.available_memory", lambda: 2**28)
    before = pyarrow.total_allocated_bytes()
    with pytest.raises(UsageError, match=r"does not fit into memory \(256 MiB\)"):
        femts.load_dataset(tmp_path / "mine.feather")
    assert pyarrow.total_allocated_bytes() - before < 2**20
