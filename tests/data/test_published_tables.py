"""Tables as central banks, statistics offices and weather services publish them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import femts
from femts.data.recent import read_recent
from femts.data.schema import Schema
from femts.data.sentinels import sentinels_by_column
from femts.errors import UsageError

MONTHS = pd.date_range("2015-01-01", periods=60, freq="MS")
RATES = [round(2 + np.sin(n), 2) for n in range(60)]
PRICES = [100.5 + n for n in range(60)]
BODY = "".join(f"{day:%d-%b-%Y},{a},{b}\n" for day, a, b in zip(MONTHS, RATES, PRICES, strict=True))

METADATA = {
    "a central bank": (
        "F1 RATES,,\nTitle,Cash rate,Price index\nDescription,Rate of a bank; see notes,Index\nFrequency,Monthly,Monthly\n"
        "Units,Per cent,Index\n,,\n,,\nSource,BANK,BANK\nPublication date,31-Oct-2025,31-Oct-2025\nSeries ID,RA,PI\n"
        + BODY,
        ("Cash rate", "Price index"),
        "6 rows of metadata below its header are left out ('Description', 'Frequency', 'Units', 'Source', ...)",
    ),
    "codes of transformations": (
        "date,a,b\nTransform:,5,2\n" + BODY,
        ("a", "b"),
        "a row of metadata is left out ('Transform:')",
    ),
    "a statistics office": (
        "Title,Rate,Index\nCDID,RA,PI\nPreUnit,,\nUnit,%,2015=100\nRelease date,26-06-2019,26-06-2019\n" + BODY,
        ("Rate", "Index"),
        "4 rows of metadata below its header are left out ('CDID', 'PreUnit', 'Unit', 'Release date')",
    ),
    "a workbook of series": (
        ",Rate,Index\nUnit,%,Points\nCollection Month,6,6\nSeries Start,01-Jan-2015,01-Jan-2015\nNo. Obs,60,60\n"
        + BODY,
        ("Rate", "Index"),
        "4 rows of metadata below its header are left out ('Unit', 'Collection Month', 'Series Start', 'No. Obs')",
    ),
    "names that repeat": (
        "Title,Rate,Rate\nSource,BANK,BANK\nPublication date,31-Oct-2025,31-Oct-2025\nSeries ID,RA,RB\nUnits,5,5\n"
        + BODY,
        ("RA", "RB"),
        "a row of metadata is left out ('Units')",
    ),
}


@pytest.mark.parametrize("name", METADATA)
@pytest.mark.parametrize("separator", [",", ";"])
def test_rows_that_describe_columns_are_left_out(name: str, separator: str, tmp_path: Path) -> None:
    text, columns, note = METADATA[name]
    (tmp_path / "mine.csv").write_text(text.replace(",", separator))
    data = femts.load_dataset(tmp_path / "mine.csv")
    assert data.columns == columns and data.freq == "MS" and data.stamps[0] == MONTHS[0]  # type: ignore[index]
    np.testing.assert_array_equal(data.values, np.column_stack([RATES, PRICES]))
    assert note in data.notes


def test_metadata_of_a_workbook(tmp_path: Path) -> None:
    frame = pd.DataFrame({"": MONTHS, "Rate": RATES, "Index": PRICES}).astype(object)
    frame = pd.concat([pd.DataFrame([["Unit", "%", "Points"], ["No. Obs", 60, 60]], columns=frame.columns), frame])
    frame.to_excel(tmp_path / "mine.xlsx", index=False)
    data = femts.load_dataset(tmp_path / "mine.xlsx")
    np.testing.assert_array_equal(data.values, np.column_stack([RATES, PRICES]))
    assert "2 rows of metadata below its header are left out ('Unit', 'No. Obs')" in data.notes


@pytest.mark.parametrize("first", ["unknown,2.5,3.5", "Title,2.5,3.5"])
def test_first_row_with_values_but_no_date_is_refused_or_named(first: str, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text(f"date,a,b\n{first}\n{BODY}")
    if first.startswith("unknown"):
        with pytest.raises(UsageError, match="has 'unknown' where data row 1 should have a date"):
            femts.load_dataset(tmp_path / "mine.csv")
    else:
        assert "a row of metadata is left out ('Title')" in femts.load_dataset(tmp_path / "mine.csv").notes


REMARKS = "# Data of a station\n# from 1990 on\n# \n"
HEADLESS = {
    "years and months under comments": (
        REMARKS
        + "# year month decimal average\n"
        + "".join(
            f"  {day.year}  {day.month:2}  {day.year + (day.month - 0.5) / 12:.4f}  {a}\n"
            for day, a in zip(MONTHS, RATES, strict=True)
        ),
        ("average",),
        "it has no header, so its columns are called 'Year', 'Month', 'decimal', 'average'",
    ),
    "years and months under other comments": (
        REMARKS
        + "".join(f" {day.year} {day.month} {a} {b}\n" for day, a, b in zip(MONTHS, RATES, PRICES, strict=True)),
        ("column 3", "column 4"),
        "it has no header, so its columns are called 'Year', 'Month', 'column 3', 'column 4'",
    ),
    "percent signs": (
        "% Data of a station\n%\n% Year, Month, Anomaly, Unc.\n \n"
        + "".join(f"  {day.year} {day.month:3} {a} {b}\n" for day, a, b in zip(MONTHS, RATES, PRICES, strict=True)),
        ("Anomaly", "Unc."),
        "it has no header, so its columns are called 'Year', 'Month', 'Anomaly', 'Unc.'",
    ),
    "months with a slash": (
        "".join(f"{day:%Y/%m}   {a}  {b}\n" for day, a, b in zip(MONTHS, RATES, PRICES, strict=True)),
        ("column 2", "column 3"),
        "it has no header, so its columns are called 'date', 'column 2', 'column 3'",
    ),
    "months in digits": (
        "".join(f"{day:%Y%m}, {a}, {b}\n" for day, a, b in zip(MONTHS, RATES, PRICES, strict=True)),
        ("column 2", "column 3"),
        "it has no header, so its columns are called 'date', 'column 2', 'column 3'",
    ),
    "days after semicolons": (
        "".join(
            f"{day:%Y;%m;%d}; {a};  {b}\n"
            for day, a, b in zip(pd.date_range("2024-02-01", periods=60), RATES, PRICES, strict=True)
        ),
        ("column 4", "column 5"),
        "it has no header, so its columns are called 'Year', 'Month', 'Day', 'column 4', ...",
    ),
}


@pytest.mark.parametrize("name", HEADLESS)
def test_dated_numbers_need_no_header(name: str, tmp_path: Path) -> None:
    text, columns, note = HEADLESS[name]
    (tmp_path / "mine.txt").write_text(text)
    data = femts.load_dataset(tmp_path / "mine.txt")
    assert data.columns == columns and data.freq == ("D" if "days" in name else "MS")
    np.testing.assert_array_equal(data.values, np.column_stack([RATES, PRICES])[:, : len(columns)])
    assert note in data.notes
    recent = read_recent(tmp_path / "mine.txt", 10, Schema(panel=False), columns, data.freq, cells=30)
    np.testing.assert_array_equal(recent[list(columns)].to_numpy(dtype=float), data.values[-10:])


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r\r\n"])
def test_words_and_marks_behind_numbers_of_a_station(end: str, tmp_path: Path) -> None:
    lines = [
        "Ulm",
        "Missing data is marked by  ---.",
        "   yyyy  mm   tmax    rain     sun",
        "             degC      mm   hours",
    ]
    for n, (day, a, b) in enumerate(zip(MONTHS, RATES, PRICES, strict=True)):
        marked = f"{a}*" if n % 7 == 3 else str(a)
        sun = "---" if n < 5 else f"{b}#"
        lines.append(f"   {day.year} {day.month:3}  {marked:>6}   {n}   {sun}" + "   Provisional" * (n > 55))
    (tmp_path / "mine.txt").write_bytes((end.join([*lines, "Site closed"]) + end).encode())
    data = femts.load_dataset(tmp_path / "mine.txt")
    assert data.columns == ("tmax", "rain", "sun") or data.columns == ("tmax", "sun")
    np.testing.assert_array_equal(data.values[:, 0], RATES)
    np.testing.assert_array_equal(data.values[:, -1], [*[np.nan] * 5, *PRICES[5:]])
    assert "its last row is left out as a footer ('Site')" in data.notes


def test_negative_numbers_in_the_same_rows_are_missing() -> None:
    counts, spread = np.arange(60.0) % 30, np.arange(60.0) / 7
    counts[:9], spread[:9] = -1, -0.99
    assert sentinels_by_column({"count": counts, "spread": spread}) == {"count": (-1.0,), "spread": (-0.99,)}
    assert sentinels_by_column({"count": counts, "copy": counts.copy()}) == {}
    other = np.arange(60.0) / 7
    other[30:39] = -0.99
    assert sentinels_by_column({"count": counts, "other": other}) == {}


def test_rows_of_separators_are_no_rows(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("date,a,b\n" + BODY.replace("\n", "\n,,\n") + ",,\n" * 70)
    data = femts.load_dataset(tmp_path / "mine.csv")
    np.testing.assert_array_equal(data.values, np.column_stack([RATES, PRICES]))
