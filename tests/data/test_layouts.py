"""Layouts of files: lines before the header, several header rows, footers, years as columns, months beside years."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import femts
from femts.data.read import read_table, table_pieces
from femts.data.recent import read_recent
from femts.data.schema import Schema
from femts.errors import UsageError

DAYS = pd.date_range("2024-01-01", periods=40)
ROWS = [f"{day:%Y-%m-%d},{n}.5,{n * n}" for n, day in enumerate(DAYS)]
BODY = "\n".join(ROWS) + "\n"
PLAIN = "date,a,b\n" + BODY


def blanks(text: str) -> str:
    return text.replace(",", "   ")


FILES: dict[str, tuple[str, str | None]] = {
    # lines before the header
    "a title": ("Daily report\n\n" + PLAIN, "its first line is left out ('Daily report')"),
    "a source, as of the World Bank": (
        '"Data Source","Indicators",\n\n"Last Updated Date","2024-01-01",\n\n'
        + "".join(f"{line},\n" for line in PLAIN.splitlines()),
        "its first 2 lines, before the header, are left out ('Data Source', 'Indicators')",
    ),
    "settings of a logger": (
        "Logger: X-17\nInterval: 1 day\nStart: 2024-01-01\n" + PLAIN,
        "its first 3 lines, before the header, are left out ('Logger: X-17')",
    ),
    "a title padded with commas": ("Report,,\n,,\n" + PLAIN, "its first line is left out ('Report')"),
    "a title before semicolons": (
        "Messstation: Mitte, Nord\n" + PLAIN.replace(",", ";").replace(".5", ",5"),
        "its first line is left out ('Messstation: Mitte, Nord')",
    ),
    "a title before tabs": ("Report\n" + PLAIN.replace(",", "\t"), "its first line is left out ('Report')"),
    "more notes below than rows compared": (
        PLAIN + "Total,1,2\n" + "".join(f" Em {2000 + n} outras{', antes não' * (n == 5)}\n" for n in range(20)),
        "its last 21 rows are left out as a footer ('Total', 'Em 2000 outras', ...)",
    ),
    # a separator at the end of each row
    "commas at the ends": ("".join(f"{line},\n" for line in PLAIN.splitlines()), None),
    "semicolons at the ends": ("".join(f"{line};\n" for line in PLAIN.replace(",", ";").splitlines()), None),
    "tabs at the ends": ("".join(f"{line}\t\n" for line in PLAIN.replace(",", "\t").splitlines()), None),
    "two commas at the ends": ("".join(f"{line},,\n" for line in PLAIN.splitlines()), None),
    "commas at the ends of rows alone": ("date,a,b\n" + BODY.replace("\n", ",\n"), None),
    # header rows
    "units": ("date,a,b\n,°C,MW\n" + BODY, "the row below its header is left out ('°C', 'MW')"),
    "units and kinds": (
        "TOA5,X-17,CR1000,2\ndate,a,b\nTS,Volts,Deg C\n,Avg,Smp\n" + BODY,
        "the row below its header is left out ('TS', 'Volts', 'Deg C')",
    ),
    "units in brackets": (
        "date,a,b\n[UTC],[m/s],[%]\n" + BODY,
        "the row below its header is left out ('[UTC]', '[m/s]', '[%]')",
    ),
    "a first cell in the second row": (",a,b\ndate,,\n" + BODY, None),
    "units before tabs": (
        "date\ta\tb\n-\tkWh\tkWh\n" + BODY.replace(",", "\t"),
        "the row below its header is left out ('-', 'kWh', 'kWh')",
    ),
    # blanks
    "blanks": (blanks(PLAIN), None),
    "blanks before each row": ("".join(f"  {line}\n" for line in blanks(PLAIN).splitlines()), None),
    "blanks with clocks": (
        "date  a  b\n" + "".join(f"{line.replace(',', ' 00:00 ', 1).replace(',', '  ')}\n" for line in ROWS),
        "columns 'date' and 'time' are combined into time stamps",
    ),
    "a title before blanks": ("Daily report\n" + blanks(PLAIN), "its first line is left out ('Daily', 'report')"),
    "units before blanks": ("date a b\n- m s\n" + blanks(BODY), "the row below its header is left out ('-', 'm', 's')"),
    # comments
    "comments within": (
        "date,a,b\n" + "".join(f"{line}\n" + "# a remark, long\n" * (n in (7, 20)) for n, line in enumerate(ROWS)),
        "2 lines that begin with # are left out",
    ),
    "comments at the beginning and end": (
        "# a, b\n# c\n" + PLAIN + "# end\n",
        "3 lines that begin with # are left out",
    ),
    "a row that is no longer valid": (PLAIN.replace("2024-01-20", "#2024-01-20\n2024-01-20", 1), None),
    "a comment below the header": ("date,a,b\n# unit,m,s\n" + BODY, "a line that begins with # is left out"),
    "comments between blanks": (blanks("date,a,b\n# units\n" + BODY), "a line that begins with # is left out"),
    # footers
    "a source": (
        PLAIN + "\nSource: statistics office\n",
        "its last row is left out as a footer ('Source: statistics office')",
    ),
    "a total": (PLAIN + "Total,800,20540\n", "its last row is left out as a footer ('Total')"),
    "a source with commas": (PLAIN + "Source: one, two, three, four\nQ: provisional, r: revised\n", None),
    "remarks": (
        PLAIN + "\nQ: quality, from 1 to 3\nNote: provisional\n",
        "its last 2 rows are left out as a footer ('Q: quality', 'Note: provisional')",
    ),
    "a mean and a remark": (
        PLAIN + "Mean,20,500\n\n(c) 2024\n",
        "its last 2 rows are left out as a footer ('Mean', '(c) 2024')",
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_what_surrounds_a_table_is_left_out_and_said(name: str, tmp_path: Path) -> None:
    text, note = FILES[name]
    (tmp_path / "plain.csv").write_text(PLAIN)
    (tmp_path / "mine.csv").write_text(text.replace("#2024-01-20\n2024", "#2024") if "no longer" in name else text)
    data, plain = femts.load_dataset(tmp_path / "mine.csv"), femts.load_dataset(tmp_path / "plain.csv")
    expected = np.array(plain.values)
    if "no longer" in name:
        expected[19] = np.nan
    np.testing.assert_array_equal(data.values, expected)
    assert data.columns == ("a", "b") and data.freq == "D" and data.stamps[0] == DAYS[0]  # type: ignore[index]
    assert note is None or note in data.notes
    if "clocks" not in name:
        recent = read_recent(tmp_path / "mine.csv", 10, Schema(panel=False), ("a", "b"), "D", cells=30)
        np.testing.assert_array_equal(recent[["a", "b"]].to_numpy(dtype=float), expected[-10:])


NAMES: dict[str, tuple[str, list[str]]] = {
    "groups above names": (",Sales,,Costs,\nDate,A,B,A,B\n", ["Date", "Sales A", "Sales B", "Costs A", "Costs B"]),
    "repeated groups": (
        ",Sales,Sales,Costs,Costs\nDate,A,B,A,B\n",
        ["Date", "Sales A", "Sales B", "Costs A", "Costs B"],
    ),
    "levels of pandas": (",a,a,b,b\n,x,y,x,y\ndate,,,,\n", ["date", "a x", "a y", "b x", "b y"]),
    "prices of one share": (
        "Price,Close,High,Low,Volume\nTicker,S,S,S,S\nDate,,,,\n",
        ["Date", "Close", "High", "Low", "Volume"],
    ),
    "prices of two": (
        "Price,Close,Close,High,High\nTicker,S,T,S,T\nDate,,,,\n",
        ["Date", "Close S", "Close T", "High S", "High T"],
    ),
    "one group": ("Load,,,,\nDate,A,B,C,D\n", ["Date", "A", "B", "C", "D"]),
}


@pytest.mark.parametrize("name", NAMES)
def test_rows_of_a_header_are_joined(name: str, tmp_path: Path) -> None:
    header, columns = NAMES[name]
    cells = [[n**2 % 7 + k for k in range(4)] for n in range(len(DAYS))]
    rows = "".join(f"{day:%Y-%m-%d},{','.join(map(str, row))}\n" for day, row in zip(DAYS, cells, strict=True))
    (tmp_path / "mine.csv").write_text(header + rows)
    assert list(read_table(tmp_path / "mine.csv").columns) == columns
    data = femts.load_dataset(tmp_path / "mine.csv")
    assert data.columns == tuple(columns[1:]) and data.values.tolist() == cells


def test_corrupt_last_date_is_no_footer(tmp_path: Path) -> None:
    for cell in ("2024-13-45", "soon", "2024/99/99"):
        (tmp_path / "mine.csv").write_text(PLAIN + f"{cell},1,2\n")
        with pytest.raises(
            UsageError, match=f"has '{cell}' where data row 41 should have a date|has no 'date'|has 'nan'"
        ):
            femts.load_dataset(tmp_path / "mine.csv")


def test_long_row_within_a_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text(PLAIN + "2024-03-01,1,2,3,4\n" + "2024-03-02,1,2\n" * 60)
    with pytest.raises(UsageError, match=r"is not a table \(Expected 3 fields in line 42, saw 5\)"):
        femts.load_dataset(tmp_path / "mine.csv")


YEARS = range(1990, 2010)
COUNTS = {key: [100 + 7 * k + year - 1990 for year in YEARS] for k, key in enumerate("ABC")}


def rows_of(names: dict[str, list[str]], mark: str = ",", year: str = "{}", cell: str = "{}") -> str:
    header = mark.join([*names, *(year.format(each) for each in YEARS)])
    keys = zip(*names.values(), strict=True)
    lines = [mark.join([*key, *map(cell.format, counts)]) for key, counts in zip(keys, COUNTS.values(), strict=True)]
    return "\n".join([header, *lines, ""])


WIDE: dict[str, tuple[str, tuple[str, ...]]] = {
    "World Bank": (
        '"Data Source","X",\n\n"Updated","2024-01-01",\n\n'
        + rows_of(
            {"Country Name": ["A", "B", "C"], "Country Code": ["a", "b", "c"], "Indicator Name": ["P"] * 3}
        ).replace("\n", ",\n"),
        ("A", "B", "C"),
    ),
    "World Bank, downloaded by hand": (
        rows_of({"Series Name": ["P"] * 3, "Country Name": ["A", "B", "C"]}, year="{0} [YR{0}]")
        + "\n\nData from database: Indicators\nLast Updated: 06/28/2024\n",
        ("A", "B", "C"),
    ),
    "two columns needed": (
        rows_of({"region": ["N", "N", "S"], "sex": ["F", "M", "F"], "unit": ["x"] * 3}),
        ("N / F", "N / M", "S / F"),
    ),
    "Eurostat": (
        rows_of({"freq,unit,geo\\TIME_PERIOD": ["A,PC,AT", "A,PC,BE", "A,PC,BG"]}, "\t", "{} ", "{} p"),
        ("AT", "BE", "BG"),
    ),
    "blanks within names": (
        rows_of({"Million tonnes": ["North Land", "South Land", "Isle"]}) + ",,\n",
        ("North Land", "South Land", "Isle"),
    ),
    "numbers before words": (rows_of({"RegionID": ["9", "54", "14"], "RegionName": ["A", "B", "C"]}), ("A", "B", "C")),
    "numbers alone": (rows_of({"Part": ["21029628", "21029627", "17"]}), ("21029628", "21029627", "17")),
    "quarters": (
        rows_of({"geo": ["A", "B", "C"], "name": ["x", "y", "z"]}, year="{}-Q1").replace("\n", "\n"),
        ("A", "B", "C"),
    ),
}


@pytest.mark.parametrize("name", WIDE)
def test_years_as_columns_are_read_as_series(name: str, tmp_path: Path) -> None:
    text, series = WIDE[name]
    (tmp_path / "mine.csv").write_text(text)
    data = femts.load_dataset(tmp_path / "mine.csv")
    assert data.series == series
    np.testing.assert_array_equal(data.values[:, 0], np.concatenate(list(COUNTS.values())))
    assert str(data.stamps[0]) == "1990-01-01 00:00:00" and len(data) == 3  # type: ignore[index]
    forecaster = femts.train(data, "naive", 2, seq_len=4)
    forecast = forecaster.predict(read_table(tmp_path / "mine.csv", forecaster.config.schema.form))
    np.testing.assert_allclose(forecast["y"], [counts[-1] for counts in COUNTS.values() for _ in range(2)], rtol=1e-6)


def test_flags_and_gaps_of_eurostat(tmp_path: Path) -> None:
    cells = ["1.5", "2.5 p", ": ", "4.5 b", ":c", *(f"{n}.5 e" for n in range(6, 25))]
    text = (
        "freq,geo\\TIME_PERIOD\t" + "\t".join(f"{2000 + n} " for n in range(24)) + "\nA,AT\t" + "\t".join(cells) + "\n"
    )
    (tmp_path / "mine.tsv").write_text(text + text.splitlines()[1].replace("AT", "BE") + "\n")
    values = femts.load_dataset(tmp_path / "mine.tsv").values[:24, 0]
    np.testing.assert_array_equal(values[:6], [1.5, 2.5, np.nan, 4.5, np.nan, 6.5])


MONTHS = (20 + np.random.default_rng(0).permutation(12 * 8) / 100).reshape(8, 12)
LETTERS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def month_rows(mark: str, cells: str = "{:.2f}", more: str = "") -> str:
    return "".join(mark.join([str(2000 + n), *map(cells.format, row)]) + more + "\n" for n, row in enumerate(MONTHS))


MONTHLY: dict[str, str] = {
    "no header, as of weather services": " 2000 2007\n" + month_rows("   "),
    "a sentinel below": " 2000 2007\n" + month_rows("   ") + "  -99.90\n nino, from somewhere\n https://example.org\n",
    "names and means": "Land: means\nYear," + ",".join(LETTERS) + ",J-D,DJF\n" + month_rows(",", more=",20.1,***"),
    "a mean without any value": "Year," + ",".join(LETTERS) + ",D-N\n" + month_rows(",", more=",***"),
    "numbers as names": "YEAR;" + ";".join(map(str, range(1, 13))) + "\n" + month_rows(";"),
    "full names": "Jahr\tJanuar\tFebruar\tMärz\tApril\tMai\tJuni\tJuli\tAugust\tSeptember\tOktober\tNovember\tDezember\n"
    + month_rows("\t"),
    "capitals": "year " + " ".join(map(str.upper, LETTERS)) + "\n" + month_rows(" "),
    "a title and no header": "Index, monthly\n" + month_rows(","),
    "a year of two words": "Cases\nAno Diagnóstico;Jan;Fev;Mar;Abr;Mai;Jun;Jul;Ago;Set;Out;Nov;Dez;Total\n"
    + month_rows(";", more=";240"),
}


MONTHLY["years without a name, backwards"] = (
    ";Mean;"
    + ";".join(LETTERS)
    + "\n"
    + "".join(line.replace(";", ";20.5;", 1) + "\n" for line in reversed(month_rows(";").splitlines()))
)
MONTHLY["Spanish"] = "Año,Ene,Feb,Mar,Abr,May,Jun,Jul,Ago,Sep,Oct,Nov,Dic\n" + month_rows(",")


@pytest.mark.parametrize("name", MONTHLY)
def test_months_beside_years_are_read_as_rows(name: str, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text(MONTHLY[name])
    data = femts.load_dataset(tmp_path / "mine.txt")
    np.testing.assert_array_equal(data.values[:, 0], MONTHS.ravel())
    assert (data.freq, data.columns, str(data.stamps[0])) == ("MS", ("value",), "2000-01-01 00:00:00")  # type: ignore[index]
    assert any("each row is a year with its months beside it" in note for note in data.notes)
    forecaster = femts.train(data, "seasonal_naive", 3, seq_len=24)
    recent = read_recent(tmp_path / "mine.txt", 24, forecaster.config.schema, forecaster.columns, "MS", cells=26)
    np.testing.assert_allclose(forecaster.predict(recent)["value"], MONTHS[-1, :3], rtol=1e-6)


def test_years_beside_months_are_read_as_rows(tmp_path: Path) -> None:
    names = "Enero Febrero Marzo Abril Mayo Junio Julio Agosto Septiembre Octubre Noviembre Diciembre".split()
    lines = [",".join([name, *map(str, row)]) for name, row in zip(names, MONTHS.T, strict=True)]
    years = ",".join(str(2000 + n) for n in range(8))
    means = "Promedio," + ",".join(map(str, MONTHS.mean(1)))
    (tmp_path / "mine.csv").write_text("\n".join([f"MES/AÑO,{years}", *lines, means, ""]))
    data = femts.load_dataset(tmp_path / "mine.csv")
    np.testing.assert_array_equal(data.values[:, 0], MONTHS.ravel())
    assert data.freq == "MS" and str(data.stamps[0]) == "2000-01-01 00:00:00"  # type: ignore[index]
    assert "Promedio is left out, since the months hold the values" in data.notes
    assert any("each column is a year with its months below it" in note for note in data.notes)


def test_rows_of_twelve_shops_are_no_months(tmp_path: Path) -> None:
    years = ",".join(str(2000 + n) for n in range(8))
    rows = "".join(",".join([str(n + 1), *map(str, row)]) + "\n" for n, row in enumerate(MONTHS.T))
    (tmp_path / "mine.csv").write_text(f"shop,{years}\n{rows}")
    assert len(femts.load_dataset(tmp_path / "mine.csv").series) == 12
    (tmp_path / "mine.csv").write_text(f"Month,{years}\n{rows}")
    np.testing.assert_array_equal(femts.load_dataset(tmp_path / "mine.csv").values[:, 0], MONTHS.ravel())


def test_series_named_by_numbers_are_no_months(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("," + ",".join(map(str, range(1, 13))) + "\n" + month_rows(","))
    data = femts.load_dataset(tmp_path / "mine.csv")
    assert data.freq == "YS-JAN" and len(data.columns) == 12


def test_gaps_in_months(tmp_path: Path) -> None:
    text = month_rows(" ").replace(f"{MONTHS[1, 2]:.2f}", "-99.90").splitlines()
    last = " ".join(text[-1].split()[:5] + ["-99.90"] * 8)
    (tmp_path / "mine.txt").write_text("\n".join([" 2000 2007", *text[:-1], last, "-99.90", ""]))
    data = femts.load_dataset(tmp_path / "mine.txt")
    assert data.rows == 7 * 12 + 4 and np.flatnonzero(np.isnan(data.values[:, 0])).tolist() == [14]
    assert "the number -99.9 below its rows stands for missing values" in data.notes
    stars = "Year " + " ".join(LETTERS) + "\n" + "\n".join(text).replace("-99.90", "***") + "\n"
    (tmp_path / "mine.txt").write_text(stars)
    assert np.isnan(femts.load_dataset(tmp_path / "mine.txt").values[14, 0])


def test_rows_without_a_year_are_named(tmp_path: Path) -> None:
    first = "<2000," + ",".join(["1"] * 12)
    (tmp_path / "mine.csv").write_text("Year," + ",".join(LETTERS) + "\n" + first + "\n" + month_rows(","))
    data = femts.load_dataset(tmp_path / "mine.csv")
    np.testing.assert_array_equal(data.values[:, 0], MONTHS.ravel())
    assert "1 row without a year is left out (<2000)" in data.notes


def test_total_beside_dated_columns_is_left_out(tmp_path: Path) -> None:
    names = ";".join(f"{month} {year}" for year in (2022, 2023) for month in LETTERS)
    rows = [f"shop {n};" + ";".join(f"{n}.{k:03d},5" for k in range(24)) + ";1.000,5\n" for n in range(1, 5)]
    (tmp_path / "mine.csv").write_text(f"Filiale;{names};Gesamt\n" + "".join(rows))
    data = femts.load_dataset(tmp_path / "mine.csv")
    assert data.series == ("shop 1", "shop 2", "shop 3", "shop 4") and data.freq == "MS"
    np.testing.assert_array_equal(data["shop 2"].values[:, 0], 2000.5 + np.arange(24))
    assert "column 'Gesamt' is left out, since column 'Filiale' names the series" in data.notes


def test_total_without_a_date_is_a_footer(tmp_path: Path) -> None:
    days = pd.date_range("2015-03-20", periods=31)
    body = "".join(f"{day.month}/{day.day}/{day:%y},{n % 7 + 40}\n" for n, day in enumerate(days))
    (tmp_path / "mine.csv").write_text(f"# All data\n# 20150320-20150419\n\nDay Index,Sessions\n{body},1327\n")
    data = femts.load_dataset(tmp_path / "mine.csv")
    assert (
        data.rows == 31 and data.values[-1, 0] == 42 and "its last row is left out as a footer ('1327')" in data.notes
    )
    (tmp_path / "mine.csv").write_text(f"Day Index,Sessions\n{body},1327\n,1328\n")
    with pytest.warns(femts.GapWarning, match="has 2 rows without a date, the first at data row 32; they are left out"):
        assert femts.load_dataset(tmp_path / "mine.csv").rows == 31


@pytest.mark.parametrize("missing", ["", "NA", "n/a"])
def test_few_rows_without_a_date_are_left_out(missing: str, tmp_path: Path) -> None:
    days = [f"{day:%Y-%m-%d}" for day in pd.date_range("2024-01-01", periods=40)]
    for several in ([7], [7, 8, 20]):
        cells = [missing if n in several else day for n, day in enumerate(days)]
        (tmp_path / "mine.csv").write_text("day,a\n" + "".join(f"{day},{n}\n" for n, day in enumerate(cells)))
        with pytest.warns(femts.GapWarning, match="without a date, the first at data row 8; "):
            data = femts.load_dataset(tmp_path / "mine.csv")
        assert data.rows == 40 and np.flatnonzero(np.isnan(data.values[:, 0])).tolist() == several
    cells = [missing if n % 2 else day for n, day in enumerate(days)]  # which may repeat the date above
    (tmp_path / "mine.csv").write_text("day,a\n" + "".join(f"{day},{n}\n" for n, day in enumerate(cells)))
    with pytest.raises(UsageError, match="where data row 2 should have a date"):
        femts.load_dataset(tmp_path / "mine.csv")


def test_dates_beside_dated_columns_are_left_out(tmp_path: Path) -> None:
    hours = pd.date_range("2025-10-30", periods=72, freq="h").strftime("%d/%m/%Y %H:%M")
    head = ",".join(["code", "station", "last reading", *hours])
    rows = "".join(f"{n},S{n},01/11/2025 23:00,{','.join(str(n + k) for k in range(72))}\n" for n in range(3))
    (tmp_path / "mine.csv").write_text(f"{head}\n{rows}")
    data = femts.load_dataset(tmp_path / "mine.csv")
    assert data.series == ("S0", "S1", "S2") and data.freq == "h" and data.lengths.tolist() == [72] * 3
    assert "columns 'code', 'last reading' are left out, since column 'station' names the series" in data.notes
    made = femts.train(tmp_path / "mine.csv", "naive", 2, seq_len=24).predict(pd.read_csv(tmp_path / "mine.csv"))
    assert made.columns.tolist()[:2] == ["station", "ds"] and len(made) == 6


def test_short_months_as_columns_are_read_as_series(tmp_path: Path) -> None:
    names = ",".join(f"{day:%b-%y}" for day in pd.date_range("2008-10-01", periods=6, freq="MS"))
    (tmp_path / "mine.csv").write_text(f"Part,{names}\n301,0,0,2,0,1,0\n17,4,,0,3,0,1\n")
    data = femts.load_dataset(tmp_path / "mine.csv")
    assert (data.series, data.freq, str(data.stamps[0])) == (("301", "17"), "MS", "2008-10-01 00:00:00")  # type: ignore[index]
    np.testing.assert_array_equal(data.values[:, 0], [0, 0, 2, 0, 1, 0, 4, np.nan, 0, 3, 0, 1])


def test_months_of_several_stations(tmp_path: Path) -> None:
    lines = [f"{name},{line}" for name in ("north", "south") for line in month_rows(",").splitlines()]
    (tmp_path / "mine.csv").write_text("\n".join(["station,Year," + ",".join(LETTERS), *lines, ""]))
    data = femts.load_dataset(tmp_path / "mine.csv")
    assert data.series == ("north", "south") and data.lengths.tolist() == [96, 96]


def test_lines_are_skipped_and_columns_dropped(tmp_path: Path) -> None:
    odd = "x,1,2\nanother,2,3\n" + "date,a,b,flag\n" + "".join(f"{line},ok\n" for line in ROWS)
    (tmp_path / "mine.csv").write_text(odd)
    data = femts.load_dataset(tmp_path / "mine.csv", skip_rows=2, drop="flag")
    assert data.columns == ("a", "b") and data.rows == 40
    schema = data.schema
    assert schema.reading() == {"skip_rows": 2, "drop": ["flag"]} and type(schema).from_dict(schema.to_dict()) == schema
    forecaster = femts.train(data, "naive", 2, seq_len=4)
    recent = read_recent(tmp_path / "mine.csv", 4, forecaster.config.schema, forecaster.columns, "D")
    assert list(forecaster.predict(recent).columns) == ["date", "a", "b"]
    with pytest.raises(UsageError, match="has no column 'flags' to drop; did you mean 'flag'"):
        femts.load_dataset(tmp_path / "mine.csv", skip_rows=2, drop=["flags"])
    with pytest.raises(UsageError, match="'skip_rows' takes a number of lines from 0 to 10000, not '-1'"):
        femts.load_dataset(tmp_path / "mine.csv", skip_rows=-1)
    assert femts.data.schema.Schema().to_dict().keys() == {"na", "columns", "roles"}


def test_sheet_of_a_workbook_is_chosen(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    plain = pd.read_csv(io.StringIO(PLAIN), parse_dates=["date"])
    with pd.ExcelWriter(tmp_path / "mine.xlsx") as book:
        pd.DataFrame({"About": ["a workbook", "of 2024"], "x": [1, 2]}).to_excel(
            book, sheet_name="Read me", index=False
        )
        plain.head(4).to_excel(book, sheet_name="Summary", index=False)
        plain.to_excel(book, sheet_name="Data", index=False, startrow=3)
        plain.head(30).to_excel(book, sheet_name="More", index=False)
        book.sheets["Data"]["A1"] = "Daily report"
        book.sheets["Data"]["A46"] = "Source: the office"
    data = femts.load_dataset(tmp_path / "mine.xlsx")
    assert data.notes[:2] == (
        "of its 4 sheets, 'Data' was read, as it looks most like a table; choose another with sheet=NAME",
        "its first line is left out ('Daily report')",
    )
    np.testing.assert_array_equal(data.values, plain[["a", "b"]])
    more = femts.load_dataset(tmp_path / "mine.xlsx", sheet="More")
    assert more.rows == 30 and not [note for note in more.notes if "sheet" in note]
    assert femts.load_dataset(tmp_path / "mine.xlsx", sheet="Data", skip_rows=3).rows == 40
    with pytest.raises(UsageError, match=r"Sheet 'Date' of file .* does not exist; did you mean 'Data'"):
        femts.load_dataset(tmp_path / "mine.xlsx", sheet="Date")


def test_years_as_columns_of_a_sheet(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    table = pd.DataFrame(list(COUNTS.values()), columns=list(YEARS))
    table.insert(0, "Million tonnes", ["North", "South", "Isle"])
    with pd.ExcelWriter(tmp_path / "mine.xlsx") as book:
        pd.DataFrame({"Contents": ["Oil", "Gas"]}).to_excel(book, sheet_name="Contents", index=False)
        table.to_excel(book, sheet_name="Oil", index=False, startrow=2)
        book.sheets["Oil"]["A1"] = "Oil: production"
        book.sheets["Oil"]["A8"] = "Note: provisional"
    data = femts.load_dataset(tmp_path / "mine.xlsx")
    assert data.series == ("North", "South", "Isle") and data.lengths.tolist() == [20, 20, 20]


def test_pieces_of_other_layouts(tmp_path: Path) -> None:
    for name in ("a total", "comments within", "units", "blanks"):
        (tmp_path / "mine.csv").write_text(FILES[name][0])
        pieces = pd.concat(table_pieces(tmp_path / "mine.csv", cells=12))
        assert len(pieces) == 40 and pieces["b"].astype(int).tolist() == [n * n for n in range(40)]
