"""Text in files stays as it is written, and only columns that are used are judged."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import femts
from femts.data.read import read_table, table_pieces
from femts.data.recent import read_recent
from femts.errors import UsageError

DAYS = pd.date_range("2024-01-01", periods=56).strftime("%Y-%m-%d").tolist()
CODES = {
    "postcodes": ["00417", "00938", "01200"],
    "with and without zeros": ["0075", "75", "750"],
    "exponents": ["12E3", "12000", "1E4"],
    "decimals": ["2015.10", "2015.1", "2015.11"],
    "countries": ["NA", "NL", "NZ"],
    "words for nothing": ["None", "Some", "All"],
    "truth": ["True", "true", "TRUE"],
    "signs": ["+1", "1", "01"],
}


def long(codes: list[str], header: str = "unique_id,ds,y", mark: str = ",") -> str:
    rows = [f"{code},{day},{100 * k + n}" for k, code in enumerate(codes) for n, day in enumerate(DAYS)]
    return "\n".join([header, *rows, ""]).replace(",", mark)


@pytest.mark.parametrize("mark", [",", ";"])
@pytest.mark.parametrize("name", CODES)
def test_names_of_series_are_kept_as_written(
    name: str, mark: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes, path = CODES[name], tmp_path / "mine.csv"
    path.write_text(long(codes, mark=mark))
    data = femts.load_dataset(path)
    assert data.series == tuple(codes) and data.values[:, 0].tolist() == [
        100 * k + n for k in range(3) for n in range(56)
    ]
    path.write_text(long(codes, "code,when,sold", mark))
    columns = {"series": "code", "time": "when", "value": "sold"}
    assert femts.load_dataset(path, columns=columns).series == tuple(codes)
    forecaster = femts.train(femts.load_dataset(path, columns=columns), "naive", 2, seq_len=4)
    forecast = forecaster.predict(read_table(path, forecaster.config.schema.form))
    assert forecast["code"].drop_duplicates().tolist() == codes
    pieces = pd.concat(table_pieces(path, forecaster.config.schema.form, cells=30))
    assert pieces["code"].drop_duplicates().tolist() == codes
    monkeypatch.setattr("femts.data.formats.text.PIECE", 12)  # cells: four rows
    assert femts.load_dataset(path, columns=columns).series == tuple(codes)


@pytest.mark.parametrize("where", ["first", "last", "everywhere"])
def test_codes_with_zeros_are_names_wherever_they_are(where: str, tmp_path: Path) -> None:
    codes = {"first": ["0075", "75", "750"], "last": ["75", "750", "0075"], "everywhere": ["0075", "0750", "0001"]}[
        where
    ]
    rows = [f"x,{day},{100 * k + n},{code}" for k, code in enumerate(codes) for n, day in enumerate(DAYS)]
    (tmp_path / "mine.csv").write_text("\n".join(["shop,day,sold,sku", *rows, ""]))
    table = read_table(tmp_path / "mine.csv")
    assert sorted(table["sku"].cat.categories) == sorted(codes) and table["sold"].dtype.kind == "i"
    assert table.attrs["femts.notes"] == ("column 'sku' has leading zeros and is read as text",)
    (tmp_path / "mine.csv").write_text(long(codes, "sku,day,sold"))
    assert femts.load_dataset(tmp_path / "mine.csv").series == tuple(codes)


@pytest.mark.parametrize("cell", ["0", "0.5", "00:15", "10", "-0", "0e3"])
def test_numbers_that_begin_with_zero_stay_numbers(cell: str, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("date,a,b\n" + "".join(f"{day},{n},{cell}\n" for n, day in enumerate(DAYS)))
    table = read_table(tmp_path / "mine.csv")
    assert table["a"].dtype.kind == "i" and (table["b"].dtype.kind in "if") == (":" not in cell)


def test_padded_numbers_can_be_forecast(tmp_path: Path) -> None:
    text = "date,a\n" + "".join(f"{day},{n:05}\n" for n, day in enumerate(DAYS))
    (tmp_path / "mine.csv").write_text(text)
    assert femts.load_dataset(tmp_path / "mine.csv").values[:, 0].tolist() == list(range(56))
    parts = "year,month,day,a\n" + "".join(f"2024,{day[5:7]},{day[8:]},{n * n % 7}\n" for n, day in enumerate(DAYS))
    (tmp_path / "mine.csv").write_text(parts)
    assert femts.load_dataset(tmp_path / "mine.csv").freq == "D"


@pytest.mark.parametrize("word", ["None", "NA", "none", "Nothing", "nil"])
def test_category_keeps_its_word(word: str, tmp_path: Path) -> None:
    events = ["Feast" if n % 9 == 4 else "Fair" if n % 9 == 7 else word for n in range(56)]
    loads = [100 + 20 * (event != word) + 5 * (event == "Feast") for event in events]
    rows = [f"{day},{load},{event}" for day, load, event in zip(DAYS, loads, events, strict=True)]
    (tmp_path / "mine.csv").write_text("\n".join(["date,load,event", *rows, ""]))
    ahead = ["2024-02-26", "2024-02-27", "2024-02-28", "2024-02-29"]
    given = "\n".join(["date,event", f"{ahead[0]},Feast", *(f"{day},{word}" for day in ahead[1:]), ""])
    (tmp_path / "ahead.csv").write_text(given)
    data = femts.load_dataset(tmp_path / "mine.csv", future_covariates="event")
    assert data.schema.form.categories[0].values == (word, "Fair", "Feast") and not np.isnan(data.covariates).any()
    forecaster = femts.train(data, "ridge", 4, seq_len=8)
    form = forecaster.config.schema.form
    forecast = forecaster.predict(
        read_table(tmp_path / "mine.csv", form), future=read_table(tmp_path / "ahead.csv", form)
    )
    assert forecast["load"].to_numpy()[0] > 115 > 105 > forecast["load"].to_numpy()[1:].max()
    (tmp_path / "ahead.csv").write_text(given.replace("Feast", word))
    alone = forecaster.predict(read_table(tmp_path / "mine.csv", form), future=read_table(tmp_path / "ahead.csv", form))
    assert alone["load"].max() < 105


@pytest.mark.parametrize("mark", ["NA", "None", "nan", "", "null", "#N/A", "n/a"])
def test_marks_of_missing_numbers(mark: str, tmp_path: Path) -> None:
    rows = [f"{day},{mark if n in (5, 20) else n},{n % 3}" for n, day in enumerate(DAYS)]
    (tmp_path / "mine.csv").write_text("\n".join(["date,a,b", *rows, ""]))
    assert read_table(tmp_path / "mine.csv")["a"].dtype == np.float64
    data = femts.load_dataset(tmp_path / "mine.csv")
    assert np.flatnonzero(np.isnan(data.values[:, 0])).tolist() == [5, 20]


DOUBTFUL: dict[str, Callable[[int], str]] = {
    "points beside decimal commas": lambda n: f"{27217 + n % 2}.0\t{n % 50},75",
    "thousands beside decimal commas": lambda n: f"{27 + n % 2}.217\t{n % 50},75",
    "three decimals beside whole numbers": lambda n: f"{'1.027' if n % 2 else '960'}\t{n % 50}.75",
    "commas before three digits": lambda n: f"1,2{n % 10}7\t{n % 50}",
    "three decimals with commas": lambda n: f"{'1,027' if n % 2 else '960'}\t{n % 50},75",
}


@pytest.mark.parametrize("name", DOUBTFUL)
def test_columns_that_are_not_used_are_not_judged(name: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.tsv"
    path.write_text("date\tzip\tsales\n" + "".join(f"{day}\t{DOUBTFUL[name](n)}\n" for n, day in enumerate(DAYS)))
    data = femts.load_dataset(path, target="sales")
    assert data.columns == ("sales",) and data.values[:3, 0].tolist() == pytest.approx([0, 1, 2], abs=0.8)
    forecaster = femts.train(data, "naive", 2, seq_len=4)
    forecaster.predict(read_recent(path, 4, data.schema, data.columns, "D", cells=30))
    if name == "points beside decimal commas":  # another decimal mark, but a clear one
        assert femts.load_dataset(path, target="zip").values[:2, 0].tolist() == [27217, 27218]
        return
    for used in ({"target": "zip"}, {"target": "sales", "past_covariates": "zip"}, {}):
        with pytest.raises(UsageError, match=r"column 'zip'|has '1,207', in which the comma could be"):
            femts.load_dataset(path, **used)  # type: ignore[arg-type]


def test_doubts_of_a_long_table(tmp_path: Path) -> None:
    rows = [f"{shop};{day};{n},5;{'1.027' if n % 2 else '2.000'}" for shop in "ab" for n, day in enumerate(DAYS)]
    (tmp_path / "mine.csv").write_text("\n".join(["unique_id;ds;y;extra", *rows, ""]))
    assert femts.load_dataset(tmp_path / "mine.csv", target="y").series == ("a", "b")
    for used in ({"target": "extra"}, {"target": "y", "past_covariates": "extra"}):
        with pytest.raises(
            UsageError, match=r"has '2\.000' in column 'extra' at data row 1, but other numbers use a dec"
        ):
            femts.load_dataset(tmp_path / "mine.csv", **used)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"has '2\.000' in column 'extra'"):
        femts.load_dataset(tmp_path / "mine.csv", target="extra", freq="W", aggregate="sum")


def test_text_of_workbooks(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    table = pd.read_csv(io.StringIO(long(["00417", "0075", "NA"])), dtype={"unique_id": str}, keep_default_na=False)
    table.to_excel(tmp_path / "mine.xlsx", index=False)
    assert femts.load_dataset(tmp_path / "mine.xlsx").series == ("00417", "0075", "NA")
    table.assign(y=table["y"].astype(str)).replace({"y": {"5": "n/a"}}).to_excel(tmp_path / "text.xlsx", index=False)
    assert read_table(tmp_path / "text.xlsx")["y"].dtype == np.float64


def _english(value: float) -> str:
    return f"{value:,.2f}"


def _with(thousands: str, decimal: str) -> Callable[[float], str]:
    return lambda value: _english(value).translate(str.maketrans(",.", thousands + decimal))


MEASURED = {
    "kWh": lambda v: f"{_english(v)} kWh",
    "German kWh": lambda v: f"{_with('.', ',')(v)} kWh",
    "German euro": lambda v: f"€{_with('.', ',')(v)}",
    "French euro": lambda v: f"{_with(' ', ',')(v)} €",
    "narrow blanks": lambda v: f"{_with(chr(0x202F), ',')(v)} €",
    "Swiss francs": lambda v: f"CHF {_with(chr(39), '.')(v)}",
    "Brazilian": lambda v: f"R$ {_with('.', ',')(v)}",
    "negative": lambda v: f"-€{_with('.', ',')(v)}",
    "percent": lambda v: f"{_with('.', ',')(v)} %",
}


@pytest.mark.parametrize("name", MEASURED)
@pytest.mark.parametrize("separator", [None, ",", ";"])
def test_thousands_separators_and_units(name: str, separator: str | None, tmp_path: Path) -> None:
    numbers = np.array([1234.5, 987.25, 12345.0, 1500.75, 800.5, 2345678.9] * 10)
    dates = pd.date_range("2024-01-01", periods=60)
    table = pd.DataFrame({"date": dates, "x": [MEASURED[name](number) for number in numbers]})
    source: Any = table
    if separator is not None:
        source = tmp_path / "table.csv"
        table.to_csv(source, index=False, sep=separator)
    data = femts.load_dataset(source)
    np.testing.assert_array_equal(data.values[:, 0], -numbers if name == "negative" else numbers)
    assert any(note.startswith("units within cells are left out") for note in data.notes)


def test_whole_thousands_and_units() -> None:
    def table(cells: list[str]) -> pd.DataFrame:
        return pd.DataFrame({"date": pd.date_range("2024-01-01", periods=60), "x": cells * 20})

    values = femts.load_dataset(table(["1,234 kWh", "987 kWh", "1,234,567 kWh"])).values[:3, 0]
    assert values.tolist() == [1234, 987, 1234567]
    with pytest.raises(
        UsageError, match="'1,234 kWh' in column 'x' at data row 1; write its numbers with decimals, or"
    ):
        femts.load_dataset(table(["1,234 kWh", "987 kWh", "45,678 kWh"]))
    assert femts.load_dataset(table(["1 234 kWh", "987,5 kWh", "45 678 kWh"])).values[1, 0] == 987.5
