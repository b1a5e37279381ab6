"""Tables as people keep them: in several languages, without a header, with scaled numbers, or as pairs in JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import pytest

import femts
from femts.data.dataset import Dataset
from femts.data.guess import step_at_hand
from femts.data.month_names import month_number
from femts.data.read import read_table, table_pieces
from femts.data.recent import read_recent
from femts.data.stamps import read_dates, read_stamps
from femts.errors import UsageError

DAYS = pd.date_range("2024-01-01", periods=60)
MONTHS = pd.date_range("2021-01-01", periods=36, freq="MS")
WAVE = np.round(50 + 10 * np.sin(np.arange(60)) + np.arange(60) % 5, 2)
TURKISH = "Ocak Şubat Mart Nisan May\u0131s Haziran Temmuz Ağustos Eylül Ekim Kas\u0131m Aral\u0131k".split()
POLISH = "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia".split()


def stamps_of(data: femts.Dataset) -> pd.Index:
    assert data.stamps is not None
    return data.stamps


def notes(data: Dataset) -> str:
    return "\n".join(data.notes)


def lines(*rows: Any, mark: str = ",") -> str:
    return "".join(mark.join(map(str, row)) + "\n" for row in rows)


WRITTEN: dict[str, tuple[list[str], list[str]]] = {
    "Chinese days": (["2024年1月5日", "2024年11月12日"], ["2024-01-05", "2024-11-12"]),
    "Japanese months": (["1953年1月", "1953年10月"], ["1953-01-01", "1953-10-01"]),
    "Korean months": (["2020년 1월", "2020년 2월"], ["2020-01-01", "2020-02-01"]),
    "Chinese quarters": (["2019年第4季度", "2020年第1季度"], ["2019-10-01", "2020-01-01"]),
    "Japanese quarters": (["2019年第4四半期", "2020年第1四半期"], ["2019-10-01", "2020-01-01"]),
    "Japanese fiscal years": (["2019年度", "2020年度"], ["2019-01-01", "2020-01-01"]),
    "Chinese years": (["2019年", "2020年"], ["2019-01-01", "2020-01-01"]),
    "days and times": (["2024年1月5日 13:30", "2024年1月6日 07:00"], ["2024-01-05 13:30", "2024-01-06 07:00"]),
    "Turkish months": (["Aral\u0131k 2023", "Ocak 2024"], ["2023-12-01", "2024-01-01"]),
    "Polish days": (["30 września 2023", "1 października 2023"], ["2023-09-30", "2023-10-01"]),
    "revised years": (
        ["2022", "2023(r)", "2024 (p)", "2025*"],
        ["2022-01-01", "2023-01-01", "2024-01-01", "2025-01-01"],
    ),
    "preliminary years": (["2022", "2023p"], ["2022-01-01", "2023-01-01"]),
    "a footnote of months": (["2023-09", "2023-10 (2)"], ["2023-09-01", "2023-10-01"]),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_dates_of_other_languages_and_of_revisions(name: str) -> None:
    written, meant = WRITTEN[name]
    assert read_dates(pd.Series(written)).tolist() == list(map(pd.Timestamp, meant))


def test_marks_of_revisions_are_noted() -> None:
    told = read_stamps(pd.Series(["2022", "2023(r)"]))[1]
    assert told == ("marks of revisions and footnotes behind dates, as in '2023(r)', are left out",)


@pytest.mark.parametrize("names", [TURKISH, POLISH], ids=["Turkish", "Polish"])
def test_names_of_months(names: list[str]) -> None:
    assert [month_number(name) for name in names] == list(range(1, 13))
    assert [month_number(name.upper()) for name in names] == list(range(1, 13))


def test_revised_year_beside_its_months(tmp_path: Path) -> None:
    years = [[year, *WAVE[: 12 if year < 2023 else 10]] for year in range(2019, 2024)]
    years[-1][0] = "2023(r)"
    book = openpyxl.Workbook()
    for row in (["Y\u0131llar", "Toplam", *TURKISH], *([year, sum(values), *values] for year, *values in years)):
        book.active.append(row)
    book.save(tmp_path / "mine.xlsx")
    data = femts.load_dataset(tmp_path / "mine.xlsx")
    assert (data.rows, str(stamps_of(data)[-1])) == (58, "2023-10-01 00:00:00")
    assert "marks behind years, as in '2023(r)', are left out" in notes(data)


def test_months_beside_years_in_japanese(tmp_path: Path) -> None:
    rows = [[f"{year}年", *WAVE[:12]] for year in range(2019, 2022)]
    (tmp_path / "mine.csv").write_text(lines(["年", *(f"{month}月" for month in range(1, 13))], *rows))
    data = femts.load_dataset(tmp_path / "mine.csv")
    assert (data.rows, data.freq, str(stamps_of(data)[0])) == (36, "MS", "2019-01-01 00:00:00")


def test_years_and_months_in_columns_of_other_languages() -> None:
    for year, month in (("y\u0131l", "ay"), ("rok", "miesiąc"), ("年", "月")):
        table = pd.DataFrame({year: MONTHS.year, month: MONTHS.month, "x": WAVE[:36]})
        assert str(stamps_of(femts.load_dataset(table))[-1]) == "2023-12-01 00:00:00"


def test_titles_in_several_languages_are_no_groups(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for row in (
        ["Индекс", "Index der Preise", "Index of prices"],
        ["(в процентах)", "(in Prozent)", "(in percent)"],
        ["Область", "Gebiet", "Region", *range(2010, 2022)],
        *([f"Г{n}", f"G{n}", f"R{n}", *(WAVE[:12] + n)] for n in range(4)),
    ):
        book.active.append(row)
    book.save(tmp_path / "mine.xlsx")
    data = femts.load_dataset(tmp_path / "mine.xlsx")
    assert data.series == ("Г0", "Г1", "Г2", "Г3") and data.rows == 12
    assert "its first 2 lines, before the header, are left out ('Индекс'" in notes(data)


def test_years_and_quarters_in_one_column_are_refused() -> None:
    table = pd.DataFrame({"TIME": ["1962", "1963", "1961-Q1", "1961-Q2"] * 9, "value": WAVE[:36]})
    said = "has the dates '1962' and '1961-Q1', which are of different lengths; keep the rows of one length"
    with pytest.raises(UsageError, match=said):
        femts.load_dataset(table)


HEADLESS: dict[str, tuple[str, tuple[str, ...], int]] = {
    "one column": (lines(*([f"{value:.18e}"] for value in WAVE)), ("column 1",), 60),
    "one column of whole numbers": (lines(*([int(value)] for value in WAVE)), ("column 1",), 60),
    "two columns": (lines(*zip(WAVE, WAVE[::-1], strict=True)), ("column 1", "column 2"), 60),
    "a clock that begins again": (
        lines(
            *zip([*range(22441, 22441 + 5001 * 50, 5001), *range(22450, 22450 + 5001 * 10, 5001)], WAVE, strict=True)
        ),
        ("column 2",),
        60,
    ),
    "dates and words": (
        lines(
            *((f"{day:%Y-%m-%d}", part, value) for day, value in zip(DAYS, WAVE, strict=True) for part in ("am", "pm"))
        ),
        ("column 3",),
        60,
    ),
}


@pytest.mark.parametrize("name", HEADLESS)
def test_tables_without_a_header(name: str, tmp_path: Path) -> None:
    text, columns, rows = HEADLESS[name]
    (tmp_path / "mine.csv").write_text(text)
    data = femts.load_dataset(tmp_path / "mine.csv")
    assert (data.columns, data.rows) == (columns, rows)
    assert "it has no header, so its column" in notes(data)


@pytest.mark.parametrize("header", ["load", "0", "0,1", "1,2,3", "2019,2020"])
def test_names_and_numbers_in_order_are_headers(header: str, tmp_path: Path) -> None:
    width = header.count(",") + 1
    (tmp_path / "mine.csv").write_text(header + "\n" + lines(*([value] * width for value in WAVE)))
    assert len(read_table(tmp_path / "mine.csv")) == 60


def test_blanks_around_names_are_left_out(tmp_path: Path) -> None:
    rows = [(f"{day:%Y-%m-%d}", f" {value}", f" {n}") for n, (day, value) in enumerate(zip(DAYS, WAVE, strict=True))]
    (tmp_path / "mine.csv").write_text(lines(("date", " load", " heat "), *rows))
    assert femts.load_dataset(tmp_path / "mine.csv", target="load").values[:, 0].tolist() == WAVE.tolist()


SPACED: dict[str, tuple[list[str], list[float]]] = {
    "blanks": (["1 222,8", "726,3", "12 001 222"], [1222.8, 726.3, 12001222]),
    "narrow blanks": (["1\u202f222,8", "726,3", "5"], [1222.8, 726.3, 5]),
    "points": (["1 222.8", "726.3", "5"], [1222.8, 726.3, 5]),
    "Swiss": (["1'222.80", "726.30", "5"], [1222.8, 726.3, 5]),
    "K, M and B": (["57.32K", "1.2M", "-0.5M"], [57320, 1200000, -500000]),
    "millions and billions": (["57.32m", "1.2bn", "0"], [57320000, 1.2e9, 0]),
    "thousands beside smaller numbers": (["950", "1.2K", "0"], [950, 1200, 0]),
}


@pytest.mark.parametrize("name", SPACED)
def test_numbers_with_blanks_and_scales(name: str, tmp_path: Path) -> None:
    cells, numbers = SPACED[name]
    rows = [(f"{day:%Y-%m-%d}", cells[n % 3], n) for n, day in enumerate(DAYS)]
    (tmp_path / "mine.csv").write_text(lines(("date", "volume", "n"), *rows, mark=";"))
    data = femts.load_dataset(tmp_path / "mine.csv", target="volume")
    assert data.values[:3, 0].tolist() == numbers


REFUSED = {
    "minutes or millions": ["5m", "7", "9m"],
    "bytes": ["512B", "1.2K", "3M"],
    "several units": ["5 km", "7 kg", "9"],
}


@pytest.mark.parametrize("name", REFUSED)
def test_letters_that_may_be_units_are_no_scales(name: str) -> None:
    table = pd.DataFrame({"date": DAYS, "x": REFUSED[name] * 20, "load": WAVE})
    with pytest.raises(UsageError, match="write numbers without units"):
        femts.load_dataset(table, target="x")


def test_later_tables_have_the_scales_of_training(tmp_path: Path) -> None:
    table = pd.DataFrame({"date": DAYS, "volume": [f"{n}K" if n % 3 else f"{n}.5M" for n in range(60)]})
    data = femts.load_dataset(table)
    assert "K, M and B behind numbers of volume are read as thousands, millions and billions" in notes(data)
    later = pd.DataFrame({"date": DAYS + pd.Timedelta(days=60), "volume": [f"{n}K" for n in range(60)]})
    later.to_csv(tmp_path / "later.csv", index=False)
    read = read_recent(tmp_path / "later.csv", 5, data.schema, data.columns, data.freq)
    assert read["volume"].tolist()[-2:] == [58e3, 59e3]


def test_header_that_repeats_is_left_out(tmp_path: Path) -> None:
    rows = [(f"{day:%Y-%m-%d}", value) for day, value in zip(DAYS, WAVE, strict=True)]
    path = tmp_path / "mine.csv"
    path.write_text(lines(("date", "load"), *rows[:30], ("date", "load"), *rows[30:]))
    data = femts.load_dataset(path)
    assert data.values[:, 0].tolist() == WAVE.tolist()
    assert "1 row that repeats its header is left out" in notes(data)
    assert sum(len(piece) for piece in table_pieces(path, cells=20)) == 60


@pytest.mark.parametrize("between", ["South\ndate,load\n", "date,price\n", "\nPrices\ndate,price\n"])
def test_second_table_below_is_refused(between: str, tmp_path: Path) -> None:
    rows = lines(*((f"{day:%Y-%m-%d}", value) for day, value in zip(DAYS[:30], WAVE, strict=False)))
    (tmp_path / "mine.csv").write_text("date,load\n" + rows + between + rows)
    with pytest.raises(UsageError, match=r"has another table from data row 31 on .*; give each a file of its own"):
        femts.load_dataset(tmp_path / "mine.csv")


def test_row_with_the_sums_of_all_series_is_left_out() -> None:
    table = pd.DataFrame([WAVE[:24] + n for n in range(5)], columns=[str(year) for year in range(2000, 2024)])
    table.loc[5] = table.sum()
    table.insert(0, "region", [*"ABCDE", "Total"])
    data = femts.load_dataset(table)
    assert data.series == tuple("ABCDE") and "row 'Total' is left out, since it is the sum of the others" in notes(data)
    table.iloc[5, 1:] += 7
    assert femts.load_dataset(table).series[-1] == "Total"


TIMES = (1_700_000_000 // 86400 + np.arange(60)) * 86_400
PAIRS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "Graphite": (
        [
            {"target": name, "datapoints": [[value, int(t)] for value, t in zip(WAVE, TIMES, strict=True)]}
            for name in "ab"
        ],
        ("a", "b"),
    ),
    "CoinGecko": (
        {name: [[int(t) * 1000, value] for value, t in zip(WAVE, TIMES, strict=True)] for name in ("prices", "caps")},
        ("prices", "caps"),
    ),
    "Dynatrace": (
        {
            "result": {
                "dataPoints": {"A": [[int(t) * 1000, v] for v, t in zip(WAVE, TIMES, strict=True)]},
                "unit": "count",
            }
        },
        ("A",),
    ),
    "InfluxDB": (
        {
            "results": [
                {
                    "statement_id": 0,
                    "series": [
                        {
                            "name": "cpu",
                            "columns": ["time", "usage"],
                            "values": [[f"{day:%Y-%m-%dT%H:%M:%SZ}", v] for day, v in zip(DAYS, WAVE, strict=True)],
                        }
                    ],
                }
            ]
        },
        ("usage",),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_in_json(name: str, tmp_path: Path) -> None:
    content, columns = PAIRS[name]
    (tmp_path / "mine.json").write_text(json.dumps(content))
    data = femts.load_dataset(tmp_path / "mine.json")
    assert (data.columns, data.freq) == (columns, "D")
    assert data.values[:, 0].tolist() == WAVE.tolist()


def test_series_with_other_times_are_long(tmp_path: Path) -> None:
    content = {n: [[int(t), v] for v, t in zip(WAVE, TIMES[: 60 - n], strict=False)] for n in range(2)}
    (tmp_path / "mine.json").write_text(json.dumps({"data": {f"host{n}": pairs for n, pairs in content.items()}}))
    assert femts.load_dataset(tmp_path / "mine.json").series == ("host0", "host1")


def test_tags_of_influxdb_name_series(tmp_path: Path) -> None:
    values = [[f"{day:%Y-%m-%d}", value] for day, value in zip(DAYS, WAVE, strict=True)]
    tables = [{"name": "cpu", "tags": {"host": host}, "columns": ["time", "usage"], "values": values} for host in "ab"]
    (tmp_path / "mine.json").write_text(json.dumps({"results": [{"series": tables}]}))
    data = femts.load_dataset(tmp_path / "mine.json")
    assert (data.series, data.columns) == (("a", "b"), ("usage",))


def test_columns_of_split_tables_are_no_pairs(tmp_path: Path) -> None:
    years = pd.DataFrame({"year": range(1990, 2020), "load": WAVE[:30]})
    years.to_json(tmp_path / "mine.json", orient="split")
    assert femts.load_dataset(tmp_path / "mine.json").columns == ("load",)


def test_attributes_that_change_once_are_not_forecast() -> None:
    days = np.tile(DAYS, 30)
    table = pd.DataFrame({"date": days, "station": np.repeat([f"S{n}" for n in range(30)], 60)})
    table["altitude"] = np.repeat(np.arange(30) * 7, 60)
    table.loc[30:59, "altitude"] = 12
    table["rain"] = np.tile(WAVE, 30) + np.repeat(np.arange(30), 60)
    data = femts.load_dataset(table)
    assert data.columns == ("rain",) and "'altitude' (does not vary within a series)" in notes(data)


def test_numbers_of_days_follow_from_dates() -> None:
    days = pd.DatetimeIndex(np.delete(DAYS, [3, 4, 9, 20, 21, 22]))
    since = (days - days[0]).days
    table = pd.DataFrame({"date": days, "level": WAVE[: len(days)], "code": days.year * 1000 + days.day_of_year})
    assert femts.load_dataset(table.assign(since=since)).columns == ("level",)


def test_numbered_places_name_series_or_nothing() -> None:
    hours = pd.date_range("2024-03-18 09:00", periods=4, freq="h")
    rows = [(hour, n, WAVE[n % 60]) for n in range(400) for hour in hours[: 1 + n % 3]]
    with pytest.raises(UsageError, match=r"aggregate them with freq='h', aggregate='mean', target=\['pm25'\]"):
        femts.load_dataset(pd.DataFrame(rows, columns=["time", "locationid", "pm25"]))


def test_numbers_at_each_date_name_series() -> None:
    table = pd.DataFrame({"date": np.repeat(MONTHS[:3], 40), "item": np.tile(np.arange(40) * 9 + 7169, 3)})
    table["change"] = np.random.default_rng(0).normal(size=120)
    assert len(femts.load_dataset(table).series) == 40


def test_readings_of_a_minute_are_no_clocks_set_back() -> None:
    stamps = pd.date_range("2024-01-01 02:00", periods=120, freq="min")
    table = pd.DataFrame({"date": stamps.insert(40, stamps[40]), "load": np.arange(121) % 13 + 0.5})
    with pytest.raises(UsageError, match="aggregate them with freq='min', aggregate='mean'"):
        femts.load_dataset(table)


def test_step_to_aggregate_by_has_rows_in_most_steps() -> None:
    bursts = pd.date_range("2024-03-10 03:00", periods=20, freq="min").append(
        pd.date_range("2024-03-12 03:00", periods=20, freq="min")
    )
    assert step_at_hand(bursts) == "D"
    assert step_at_hand(pd.date_range("2024-03-18 09:00", periods=4, freq="h")) == "h"


def test_ambiguous_days_can_be_numbered(tmp_path: Path) -> None:
    seconds = pd.date_range("2018-02-01 08:10:10", periods=60, freq="s").strftime("%d-%m-%Y %H:%M:%S")
    table = pd.DataFrame({"time": seconds, "power": WAVE})
    with pytest.raises(UsageError, match=r"or number the rows with columns=\{'time': 'row'\}"):
        femts.load_dataset(table)
    assert femts.load_dataset(table, columns={"time": "row"}).columns == ("power",)


def test_constant_columns_share_a_note() -> None:
    table = pd.DataFrame({"date": DAYS, "load": WAVE} | {f"c{n}": np.arange(60) // 58 * 1.5 for n in range(8)})
    told = [note for note in femts.load_dataset(table).notes if "constant" in note]
    assert told == [
        "columns 'c0', 'c1', 'c2', 'c3', 'c4', 'c5' and 2 more are constant in training, so their scales are 1"
    ]


def test_days_above_their_times(tmp_path: Path) -> None:
    rows = [
        line
        for day, value in zip(DAYS, WAVE, strict=True)
        for line in (f'" {day:%b} {day.day}, {day:%Y}",', f"7:30 PM,{value} kg,")
    ]
    (tmp_path / "mine.csv").write_text("Time,Weight,\n" + "\n".join(rows) + "\n")
    data = femts.load_dataset(tmp_path / "mine.csv")
    assert (data.rows, data.freq, str(stamps_of(data)[0])) == (60, "D", "2024-01-01 19:30:00")
    assert data.values[:, 0].tolist() == WAVE.tolist()
    assert "rows with a date alone in column 'Time' are read as the days of the times below them" in notes(data)
