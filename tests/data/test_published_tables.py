"""Tables as central banks, statistics offices and weather services publish them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import femts
from femts.data.normalise import normalise
from femts.data.read import read_table, table_pieces
from femts.data.recent import read_recent
from femts.data.schema import Schema
from femts.data.sentinels import sentinels_by_column
from femts.errors import UsageError

MONTHS = pd.date_range("2015-01-01", periods=60, freq="MS")
DAYS = pd.date_range("2024-02-01", periods=60)
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
    "full dates": (
        "".join(f"{day:%d.%m.%Y};{a}\n" for day, a in zip(DAYS, RATES, strict=True)),
        ("column 2",),
        "it has no header, so its columns are called 'date', 'column 2'",
    ),
    "full dates with hyphens": (
        "".join(f"{day:%d-%m-%Y %H:%M};{a}\n" for day, a in zip(DAYS, RATES, strict=True)),
        ("column 2",),
        "it has no header, so its columns are called 'date', 'column 2'",
    ),
    "full dates with a clock": (
        "".join(f"{day:%Y-%m-%d %H:%M:%S},{a},{b}\n" for day, a, b in zip(DAYS, RATES, PRICES, strict=True)),
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


def test_row_below_a_header_with_one_name(tmp_path: Path) -> None:
    cells = "".join(f"{name}{year:02d},{RATES[n]}\n" for n, (year, name) in enumerate(SHORT))
    (tmp_path / "mine.csv").write_text('"","PN1"\n"","Index of prices"\n' + cells)
    data = femts.load_dataset(tmp_path / "mine.csv")
    assert data.columns == ("PN1",) and data.freq == "MS" and str(data.stamps[0]) == "1999-01-01 00:00:00"  # type: ignore[index]
    assert "the row below its header is left out ('Index of prices')" in data.notes


SHORT = [((99 + n // 12) % 100, "Ene Feb Mar Abr May Jun Jul Ago Sep Oct Nov Dic".split()[n % 12]) for n in range(60)]


@pytest.mark.parametrize("name", HEADLESS)
def test_dated_numbers_need_no_header(name: str, tmp_path: Path) -> None:
    text, columns, note = HEADLESS[name]
    (tmp_path / "mine.txt").write_text(text)
    data = femts.load_dataset(tmp_path / "mine.txt")
    assert data.columns == columns and data.freq == ("D" if "days" in name or "full dates" in name else "MS")
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


def with_word(word: str, rows: list[int], unit: str = "") -> pd.DataFrame:
    values = [f"{value}{unit}" for value in RATES]
    for row in rows:
        values[row] = word
    return pd.DataFrame({"date": MONTHS, "rate": values, "price": PRICES})


@pytest.mark.parametrize("word", ["mq", "n.d.", "Ausfall", "#N/V", "..", ":", "err", "unavailable"])
@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
def test_well_known_words_are_missing(word: str, suffix: str, tmp_path: Path) -> None:
    gaps = [0, 5, 6, *range(30, 50)]
    table = with_word(word, gaps)
    if suffix == ".csv":
        table.to_csv(tmp_path / "mine.csv", index=False)
    else:
        table.to_excel(tmp_path / "mine.xlsx", index=False)
    data = femts.load_dataset(tmp_path / f"mine{suffix}")
    expected = np.array(RATES)
    expected[gaps] = np.nan
    np.testing.assert_array_equal(data.values, np.column_stack([expected, PRICES]))
    assert word in ("..", ":") or f"'{word}' in rate is read as missing" in data.notes


def test_marks_found_in_training_are_missing_later(tmp_path: Path) -> None:
    with_word("mq", [3, 4]).to_csv(tmp_path / "mine.csv", index=False)
    with_word("mq", list(range(60))).to_csv(tmp_path / "later.csv", index=False)
    data = femts.load_dataset(tmp_path / "mine.csv")
    assert data.schema.form.missing == ("mq",) and data.schema.to_dict()["na"] == ["mq"]
    assert Schema.from_dict(data.schema.to_dict()).form.missing == ("mq",)
    recent = read_recent(tmp_path / "later.csv", 10, data.schema, data.columns, "MS", cells=30)
    assert pd.to_numeric(recent["rate"]).isna().all()


def test_other_words_are_missing_if_told(tmp_path: Path) -> None:
    with_word("calm", [3, 4]).to_csv(tmp_path / "mine.csv", index=False)
    with pytest.raises(
        UsageError,
        match=r"has the text 'calm' in column 'rate' at data row 4; if such text means a missing value, give "
        r"na=\['calm'\]; otherwise enter a number",
    ):
        femts.load_dataset(tmp_path / "mine.csv")
    data = femts.load_dataset(tmp_path / "mine.csv", na=["calm"])
    assert np.isnan(data.values[[3, 4], 0]).all() and np.isfinite(np.delete(data.values[:, 0], [3, 4])).all()
    both = with_word("Calm ", [3, 4]).assign(price=[-999.0] * 4 + PRICES[4:])
    assert int(np.isnan(femts.load_dataset(both, na=["calm"]).values).sum()) == 6  # sentinels are found as before
    assert int(np.isnan(femts.load_dataset(both, na=[-999, "calm"]).values).sum()) == 6


def test_column_of_many_words_is_left_out_with_the_remedy(tmp_path: Path) -> None:
    with_word("calm", list(range(20, 45))).to_csv(tmp_path / "mine.csv", index=False)
    data = femts.load_dataset(tmp_path / "mine.csv")
    assert data.columns == ("price",)
    assert any("'rate' (contains numbers and 'calm'; na=['calm'] reads such text as missing)" in n for n in data.notes)
    assert femts.load_dataset(tmp_path / "mine.csv", na="calm").columns == ("rate", "price")


@pytest.mark.parametrize("na", [[{"a": 1}], [None], [""]])
def test_what_is_neither_number_nor_word_is_refused(na: object) -> None:
    with pytest.raises(UsageError, match="na"):
        femts.load_dataset(with_word("calm", [3]), na=na)  # type: ignore[arg-type]


@pytest.mark.parametrize("unit", ["°C", " kWh", " %", "m/s", " µg/m³", "€", "hPa"])
@pytest.mark.parametrize("mark", [".", ","])
def test_units_within_cells_are_left_out(unit: str, mark: str, tmp_path: Path) -> None:
    table = with_word("err" + unit, [7], unit).assign(price=[str(each).replace(".", mark) for each in PRICES])
    table["rate"] = table["rate"].str.replace(".", mark)
    table.to_csv(tmp_path / "mine.csv", index=False, sep=";")
    data = femts.load_dataset(tmp_path / "mine.csv")
    expected = np.array(RATES)
    expected[7] = np.nan
    np.testing.assert_array_equal(data.values, np.column_stack([expected, PRICES]))
    assert f"units within cells are left out: '{unit.strip()}' in rate" in data.notes
    table.assign(rate="err" + unit).to_csv(tmp_path / "later.csv", index=False, sep=";")
    recent = read_recent(tmp_path / "later.csv", 10, data.schema, data.columns, "MS", cells=30)
    assert pd.to_numeric(recent["rate"]).isna().all()


def test_units_that_differ_are_refused() -> None:
    for column in ([*["5 kWh"] * 59, "3 MWh"], [*["5 kWh"] * 59, "3"], ["1,234 kWh"] * 60):
        table = pd.DataFrame({"date": MONTHS, "load": column})
        with pytest.raises(UsageError, match="load"):
            femts.load_dataset(table, target="load")
    data = femts.load_dataset(with_word("0°C", [0], "°C"))
    assert data.schema.form.units == (("rate", "°C"),) and Schema.from_dict(data.schema.to_dict()) == data.schema
    with pytest.raises(UsageError, match=r"has '2.0°F' in column 'rate', but the training data are in '°C'; convert"):
        normalise(with_word("0°F", [5], "°F"), data.schema, columns=data.columns, freq="MS")


def test_codes_are_no_measures() -> None:
    table = pd.DataFrame(
        {"date": MONTHS, "seat": [f"{n}D" for n in range(60)], "clock": [f"{n % 11 + 1} PM" for n in range(60)]}
    )
    assert femts.load_dataset(table.assign(price=PRICES)).columns == ("price",)


def test_hour_with_a_word_for_the_season_of_clocks_is_read() -> None:
    hours = pd.date_range("2024-11-01", periods=120, freq="h").strftime("%m/%d/%Y %H:%M").tolist()
    hours.insert(51, f"{hours[50]} DST")
    table = pd.DataFrame({"when": hours, "load": np.arange(121.0)})
    data = femts.load_dataset(table)
    assert data.rows == 120 and data.values[50, 0] == 50.5
    assert any("as in '11/03/2024 02:00 DST', is read without it" in note for note in data.notes)


def workbook(path: Path, sheets: dict[str, pd.DataFrame]) -> Path:
    with pd.ExcelWriter(path) as book:
        for title, sheet in sheets.items():
            sheet.to_excel(book, sheet_name=title, index=False)
    return path


def test_sheets_that_continue_each_other_are_joined(tmp_path: Path) -> None:
    whole = pd.DataFrame({"date": MONTHS, "rate": RATES, "price": PRICES})
    years = {str(year): whole[whole["date"].dt.year == year] for year in (2016, 2015, 2018, 2017, 2019)}
    data = femts.load_dataset(workbook(tmp_path / "mine.xlsx", {"Notes": pd.DataFrame({"a": ["b"]}), **years}))
    np.testing.assert_array_equal(data.values, np.column_stack([RATES, PRICES]))
    joined = "its 5 sheets '2016', '2015', '2018', '2017' and '2019' have the same columns and are joined; choose one"
    assert any(joined in note for note in data.notes)
    assert femts.load_dataset(tmp_path / "mine.xlsx", sheet="2018").rows == 12
    gap = {name: sheet for name, sheet in years.items() if name != "2017"}
    assert femts.load_dataset(workbook(tmp_path / "gap.xlsx", gap)).rows == 60


@pytest.mark.parametrize("case", ["copies", "stations", "other columns", "a forecast", "no dates"])
def test_other_sheets_are_not_joined(case: str, tmp_path: Path) -> None:
    whole = pd.DataFrame({"date": MONTHS, "rate": RATES, "price": PRICES})
    later = whole.assign(date=whole["date"] + pd.DateOffset(years=5))
    second = {
        "copies": whole,
        "stations": whole.assign(rate=whole["rate"] + 1),
        "other columns": later.rename(columns={"price": "cost"}),
        "a forecast": later,
        "no dates": whole,
    }[case]
    sheets = {"One": whole, "Forecast" if case == "a forecast" else "Two": second}
    if case == "no dates":
        sheets = {title: sheet.drop(columns="date") for title, sheet in sheets.items()}
    data = femts.load_dataset(workbook(tmp_path / "mine.xlsx", sheets))
    assert data.rows == 60
    assert any("the first of its 2 sheets, 'One', was read" in note for note in data.notes)


def test_values_in_every_second_row_alone() -> None:
    quarters = pd.date_range("2024-01-01", periods=400, freq="15min")
    load = np.where(np.arange(400) % 2, np.nan, np.arange(400.0))
    data = femts.load_dataset(pd.DataFrame({"date": quarters, "load": load}))
    assert data.freq == "30min" and data.values[:, 0].tolist() == np.arange(0.0, 400, 2).tolist()
    assert any("only its rows at steps of '30min' have values" in note for note in data.notes)
    some = np.where(np.arange(400) % 7 == 3, np.nan, load)
    assert femts.load_dataset(pd.DataFrame({"date": quarters, "load": some})).freq == "15min"


def test_feather_is_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pa, feather = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.feather")
    table = pd.DataFrame({"date": pd.date_range("2020-01-01", periods=5000, freq="h"), "a": np.arange(5000.0)})
    feather.write_feather(pa.table(table), tmp_path / "mine.feather", chunksize=1000)
    pieces = list(table_pieces(tmp_path / "mine.feather", cells=600))
    assert len(pieces) == 20 and max(map(len, pieces)) == 300
    pd.testing.assert_frame_equal(pd.concat(pieces, ignore_index=True), read_table(tmp_path / "mine.feather"))
    recent = read_recent(tmp_path / "mine.feather", 10, Schema(panel=False), ("a",), "h", cells=600)
    assert recent["a"].tolist() == list(np.arange(4990.0, 5000))
    zeros = pa.table({"date": np.zeros(2**21), "a": np.zeros(2**21)})
    for rows, name in ((2**16, "pieces"), (2**21, "one")):
        feather.write_feather(zeros, tmp_path / f"{name}.feather", compression="zstd", chunksize=rows)
    monkeypatch.setattr("femts.data.unpack.available_memory", lambda: 2**25)
    assert len(next(table_pieces(tmp_path / "pieces.feather", cells=600))) == 300
    for cells in (600, None):
        with pytest.raises(UsageError, match="memory"):
            next(table_pieces(tmp_path / "one.feather", cells=cells))
    with pytest.raises(UsageError, match="memory"):
        next(table_pieces(tmp_path / "pieces.feather"))
