"""Inference of time, series and value columns."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from data_cases import wide

import femts
from femts.cli import main
from femts.data.column_names import USUAL, ColumnNames
from femts.data.columns import _dated, holds_dates, to_frame
from femts.data.loading import load_dataset
from femts.data.read import write_table
from femts.data.stamp_parts import stamp_parts
from femts.data.stamps import whole_numbers
from femts.errors import UsageError

NAMES = {"time": "when", "series": "shop", "value": "sales"}
QUICK: dict[str, Any] = {"seq_len": 6, "pred_len": 3, "device": "cpu"}
QUARTERS = pd.date_range("1959-01-01", periods=60, freq="QS")
HOURS = pd.date_range("2010-12-30", periods=90, freq="h")


def own_wide() -> pd.DataFrame:
    return wide(60).rename(columns={"date": "when"})


def own_long() -> pd.DataFrame:
    return own_wide().melt(id_vars="when", var_name="shop", value_name="sales")


def long() -> pd.DataFrame:
    return wide(60).melt("date", var_name="unique_id", value_name="y").rename(columns={"date": "ds"})


def test_custom_column_names_are_kept(tmp_path: Path) -> None:
    for name, table in {"wide": own_wide(), "long": own_long()}.items():
        data = load_dataset(table, columns=NAMES if name == "long" else {"time": "when"}, panel=False)
        assert data.columns == ("a", "b")
        np.testing.assert_array_equal(data.values, load_dataset(wide(60)).values)
        femts.train(data, "naive", out=tmp_path / name, **QUICK)
        forecast = femts.load(tmp_path / name).predict(table)
        assert list(forecast.columns) == list(table.columns)
        assert forecast["when"].iloc[0] == pd.Timestamp("2024-01-03 12:00:00")
        if "shop" in table:
            assert forecast["shop"].tolist() == ["a"] * 3 + ["b"] * 3
            assert forecast["sales"].tolist() == pytest.approx(
                [wide(60)["a"].iloc[-1]] * 3 + [wide(60)["b"].iloc[-1]] * 3
            )


def test_invalid_column_roles_are_refused() -> None:
    for names, words in [
        ({"when": "x"}, "Unknown kind of column 'when'"),
        ({"time": "y"}, "Column 'y' is used for two of time, series and value"),
    ]:
        with pytest.raises(UsageError, match=words):
            ColumnNames.of(names)


def test_dates_that_are_all_the_same_are_no_time_stamps() -> None:
    hours = pd.date_range("2026-01-05", periods=60, freq="h").strftime("%Y-%m-%dT%H:%M:%S+01:00")
    data = load_dataset(pd.DataFrame({"Date de debut": "2026-01-01", "Horodate": hours, "Valeur": np.arange(60) % 7}))
    assert data.freq == "h" and data.columns == ("Valeur",) and data.schema.form.time == "Horodate"


def test_unix_times_of_several_devices_are_found() -> None:
    millis = 1_714_500_000_000 + 300_000 * np.arange(60).repeat(2)
    data = load_dataset(pd.DataFrame({"device": ["a", "b"] * 60, "ts": millis, "temp": np.arange(120) % 7 / 2}))
    assert data.freq == "5min" and data.series == ("a", "b") and data.schema.form.time == "ts"


def test_amounts_with_points_are_no_dates() -> None:
    assert not holds_dates(pd.Series(["14.589,93", "7.778,43", "3.005,59", "9.200,90"]))


def test_second_date_column_is_refused() -> None:
    with pytest.raises(
        UsageError, match="has a column 'date' in addition to its time stamps in 'when'; rename or drop it"
    ):
        load_dataset(own_wide().assign(date=1.0), columns={"time": "when"})


def test_integer_time_is_supported(tmp_path: Path) -> None:
    for step, first in [(1, 0), (5, -20)]:
        table = wide(60).assign(date=first + step * np.arange(60))
        data = load_dataset(table)
        assert (data.freq, data.season) == (str(step), 1)
        trained = femts.train(data, "naive", **QUICK)
        assert trained.predict(table)["date"].tolist() == [first + step * n for n in (60, 61, 62)]
        assert load_dataset(write_table(table, tmp_path / "counted.csv")).freq == str(step), "as text, too"
        skipped = load_dataset(table.drop(index=[7, 8]))
        assert skipped.observed is not None and np.flatnonzero((~skipped.observed).any(1)).tolist() == [7, 8]
        with pytest.raises(UsageError, match=rf"step '{step}' of the training data"):
            trained.predict(wide(60))
        with pytest.raises(UsageError, match="no regular frequency"):
            load_dataset(table.assign(date=np.arange(60) ** 2))


def test_date_columns_are_detected() -> None:
    for cells, dates in [
        (["2024-01-01", "2024-01-02"], True),
        (["01/02/2024", "02/02/2024"], True),  # refused later, by a sentence on day and month
        (["1 May 2024", "2 May 2024"], True),
        (["Monday", "Tuesday"], False),
        (["Store 12", "Store 2020"], False),
        (["12:30", "12:45"], False),
        (["1.5", "2.5"], False),
        (["A-2020", "B-2021"], False),
        ([0, 1, 2], False),
        ([1990, 1991, 1992], True),
        ([1990, 1992, 1991], False),
        ([True, False], False),
        ([None, None], False),
        ([[1], [2]], False),
        (pd.period_range("2024", periods=2, freq="M"), True),
        ([1955.0, 1956.0], True),
        ([1955.0, np.inf], False),
        (["2024-01-01", "soon", "2024-01-03"], True),
    ]:
        assert holds_dates(pd.Series(cells)) == dates


def test_series_and_value_columns_are_inferred() -> None:
    table = long().rename(columns={"ds": "day", "unique_id": "shop", "y": "sales"})
    data = load_dataset(table[["shop", "day", "sales"]], panel=False)
    assert data.columns == ("a", "b")
    assert data.schema.form.named() == {"time": "day", "series": "shop", "value": "sales"}
    assert data.notes[1] == "'shop' names its 2 series"
    city = load_dataset(wide(60)[["date", "a"]].assign(city="Ulm"))
    assert city.columns == ("a",) and any("'city' (is constant)" in note for note in city.notes)
    days = load_dataset(wide(60)[["date", "a"]].assign(weekday=lambda f: f["date"].dt.day_name()))
    assert days.columns == ("a",) and any("'weekday' (follows from the date)" in note for note in days.notes)
    with pytest.raises(UsageError, match="has the text 'off' in column 'b' at data row 3"):
        load_dataset(wide(60).astype({"b": object}).assign(b=lambda f: f["b"].where(f.index != 2, "off")))


ABSENT: dict[str, tuple[dict[str, Any], str]] = {
    "time": ({"columns": {"time": "gone"}}, "no column 'gone' for columns={'time': 'gone'}; choose from"),
    "another case": ({"columns": {"time": "When"}}, "no column 'When' .*; did you mean 'when'?"),
    "series": ({"columns": {"series": "gone"}}, "no column 'gone' for columns={'series': 'gone'}; choose from"),
    "keys": ({"columns": {"series": "shop+gone"}}, "no column 'gone' for columns={'series': 'shop+gone'}"),
    "value": ({"columns": {"time": "when", "value": "gone"}}, "no column 'gone' for columns={'value': 'gone'}"),
    "sheet": ({"sheet": "Sheet9"}, "no sheets; remove sheet='Sheet9'"),
}


@pytest.mark.parametrize("suffix", ["frame", ".csv", ".json", ".parquet"])
@pytest.mark.parametrize("case", ABSENT)
def test_named_columns_that_a_table_lacks_are_refused(case: str, suffix: str, tmp_path: Path) -> None:
    reading, message = ABSENT[case]
    table = own_long()
    source = table if suffix == "frame" else write_table(table, tmp_path / f"mine{suffix}")
    with pytest.raises(UsageError, match=message.replace("?", r"\?").replace("+", r"\+")):
        load_dataset(source, **reading)


def test_series_of_rows_may_be_named_before_they_have_a_value_column() -> None:
    years = pd.DataFrame({"city": ["Ulm", "Rom"], **{str(year): [1.5, year] for year in range(1990, 2020)}})
    assert load_dataset(years, columns={"series": "city", "value": "sales"}).series == ("Ulm", "Rom")


def test_time_column_is_the_one_named_so_or_the_first() -> None:
    table = wide(60)[["a", "date"]].assign(end=lambda f: f["date"]).rename(columns={"date": "begin"})
    assert load_dataset(table).schema.form.time == "begin"
    assert load_dataset(table.rename(columns={"end": "time"})).schema.form.time == "time"


def test_rows_without_dates_are_numbered(tmp_path: Path) -> None:
    for form in ["frame", "array", "list", "series", "file", "index in the file", "counted"]:
        table = wide(60).drop(columns="date")
        path, time, first = tmp_path / "mine.csv", "row", 0
        given: dict[str, Any] = {
            "frame": table,
            "array": table.to_numpy(),
            "list": table["a"].tolist(),
            "series": table["a"],
        }
        given["counted"] = table.assign(hour=range(5, 65))[["hour", "a", "b"]]
        table.to_csv(path, index=form == "index in the file")
        if form == "counted":
            time, first = "hour", 5
        data = load_dataset(given.get(form, path), season=7)
        assert (data.freq, data.season, data.rows) == ("1", 7, 60) and data.stamps is not None
        assert data.stamps[[0, -1]].tolist() == [first, first + 59]
        assert any("numbers the rows" in each or "its rows are numbered" in each for each in data.notes)
        run = femts.train(data, "naive", **QUICK, out=tmp_path / form)
        forecast = run.predict(given.get(form, pd.read_csv(path)) if "index" not in form else table)
        assert forecast[time].tolist() == [first + 60, first + 61, first + 62]
        if path.is_file() and "file" in form:
            assert main(["predict", str(tmp_path / form), str(path), "-o", str(tmp_path / "next.csv")]) == 0
            pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "next.csv"), forecast)


def test_time_column_may_be_renamed_at_prediction(tmp_path: Path) -> None:
    table = wide(60).rename(columns={"date": "Zeit"})
    made = femts.train(table, "naive", out=tmp_path / "run", **QUICK)
    expected = made.predict(table)
    assert list(expected.columns) == ["Zeit", "a", "b"]
    for name in ("date", "Hour", 1.5):
        other = femts.load(tmp_path / "run").predict(table.rename(columns={"Zeit": name}))
        pd.testing.assert_frame_equal(other, expected.rename(columns={"Zeit": str(name)}))
    pd.testing.assert_frame_equal(made.predict(load_dataset(table).frame()), expected)


class InterchangeFrame:
    """A table that supports the dataframe interchange protocol only."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame

    def __dataframe__(self, *_: Any, **__: Any) -> Any:
        return self.frame.__dataframe__()


INDEXED = {
    "stamps": wide(60).set_index("date"),
    "stamps without a name": wide(60).set_index("date").rename_axis(None),
    "stamps under a name": wide(60).set_index("date").rename_axis("Hour"),
    "text": wide(60).astype({"date": str}).set_index("date").rename_axis("when"),
    "periods": wide(60).set_index(pd.PeriodIndex(wide(60)["date"], freq="h")).drop(columns="date"),
    "names of series": long().set_index("unique_id"),
    "names of series and stamps": long().set_index(["unique_id", "ds"]),
    "another library's": InterchangeFrame(wide(60)),
}


def test_index_is_used_as_time_stamps() -> None:
    for name in INDEXED:
        table, plain = INDEXED[name], load_dataset(wide(60))
        before = table.copy(deep=True) if isinstance(table, pd.DataFrame) else None
        data = load_dataset(table, panel=False)
        np.testing.assert_array_equal(data.values, plain.values)
        assert data.columns == ("a", "b") and data.freq == "h"
        assert data.stamps is not None and data.stamps.equals(plain.stamps)
        forecast = femts.train(table, "naive", **QUICK).predict(table)
        expected = femts.train(plain, "naive", **QUICK).predict(wide(60))
        np.testing.assert_array_equal(forecast.iloc[:3, -1], expected["a" if "series" in name else "b"])
        if before is not None:
            pd.testing.assert_frame_equal(table, before)


def test_index_column_without_a_name_is_left_out(tmp_path: Path) -> None:
    plain, shops = wide(60), long().rename(columns={"unique_id": "shop", "ds": "day", "y": "sales"})
    note = "its first column has no name and numbers the rows, so it is left out"
    for table in (plain, plain.sort_values("a"), plain.set_axis([*range(30)] * 2), long(), shops):
        expected = load_dataset(table)
        table.to_csv(tmp_path / "a.csv")
        table.to_csv(tmp_path / "b.csv", sep=";", decimal=",")
        table.to_excel(tmp_path / "a.xlsx")
        for source in (*sorted(tmp_path.iterdir()), pd.read_csv(tmp_path / "a.csv")):
            data = load_dataset(source)
            assert (data.columns, data.series, data.notes[0]) == (expected.columns, expected.series, note)
            np.testing.assert_allclose(data.values, expected.values, rtol=1e-6)
    made = femts.train(tmp_path / "a.csv", "naive", **QUICK)
    pd.testing.assert_frame_equal(made.predict(pd.read_csv(tmp_path / "a.csv")), made.predict(shops))
    plain.set_index("date").rename_axis(None).to_excel(tmp_path / "dates.xlsx")
    assert load_dataset(tmp_path / "dates.xlsx").columns == ("a", "b")
    values = plain.rename(columns={"a": "Unnamed: 0"})[["Unnamed: 0", "date", "b"]]
    assert load_dataset(values).columns == ("Unnamed: 0", "b")
    values.rename(columns={"Unnamed: 0": ""}).to_csv(tmp_path / "values.csv", index=False)
    with pytest.raises(UsageError, match="has no name for column 1"):
        load_dataset(tmp_path / "values.csv")


def test_dates_and_booleans_are_not_whole_numbers() -> None:
    for cells in ([1, 2], [1.0, 2.0], pd.Series(["1", "2"], dtype="category")):
        np.testing.assert_array_equal(whole_numbers(pd.Series(cells)), [1, 2])
    for other in ([True, False], [1.5, 2], [1, None], ["a", "1"], wide(2)["date"], wide(2)["date"].dt.to_period("D")):
        assert whole_numbers(pd.Series(other)) is None


def test_column_that_numbers_the_rows_is_left_out() -> None:
    table = wide(60)
    table.insert(1, "id", range(60))
    note = "left out: 'id' (numbers the rows); to use them, name them as target or covariates"
    assert note in load_dataset(table).notes and load_dataset(table).columns == ("a", "b")
    for data in (load_dataset(table, target=["id", "a"]), load_dataset(wide(60)), load_dataset(table[["date", "id"]])):
        assert not any("numbers the rows" in each for each in data.notes)


def test_features_derived_from_time_stamps_are_kept() -> None:
    when = wide(60)["date"]
    parts = {"year": when.dt.year, "month": when.dt.month, "day": when.dt.day}
    table = wide(60).rename(columns={"date": "when"})
    for some in (parts, {**parts, "hour": when.dt.hour}, {"year": parts["year"], "quarter": when.dt.quarter}):
        for time in (when, when.astype(str), when.dt.strftime("%d.%m.%Y %H:%M")):
            data = load_dataset(table.assign(when=time, **some), target=["a", "b", *some])
            assert data.columns == ("a", "b", *some) and list(data.stamps) == list(when)  # type: ignore[arg-type]
    later = table.assign(**parts, hour=when.dt.hour).assign(when=when + pd.Timedelta("400D"))
    assert load_dataset(later).stamps[0] == when[0]  # type: ignore[index]


def test_index_of_series_names_and_stamps_makes_a_long_table() -> None:
    expected, stamps = load_dataset(long()), long()["ds"]
    for names in (["item_id", "timestamp"], [None, None], ["unique_id", "timestamp"], ["item_id", "ds"]):
        for items in (long()["unique_id"], long()["unique_id"].map({"a": 1, "b": 2})):
            for value in ("y", "target"):
                table = pd.DataFrame({value: long()["y"].to_numpy()}, index=[items, stamps]).rename_axis(names)
                before = table.copy()
                for form in (table, table.swaplevel(), table[value]):
                    data = load_dataset(form)
                    np.testing.assert_array_equal(data.values, expected.values)
                    assert data.series == tuple(items.astype(str).unique())
                forecast = femts.train(table, "naive", **QUICK).predict(table)
                assert list(forecast.columns) == [names[0] or "unique_id", names[1] or "date", value]
                pd.testing.assert_frame_equal(table, before)


def test_index_of_three_levels_needs_the_series_named() -> None:
    index = pd.MultiIndex.from_arrays([["north"] * 120, long()["unique_id"], long()["ds"]])
    for names, keys in ((["region", "shop", "day"], "region+shop"), ([None] * 3, "level_0+level_1")):
        table = pd.DataFrame({"y": long()["y"].to_numpy()}, index=index.set_names(names))
        assert load_dataset(table).series == ("a", "b")
        assert load_dataset(table, columns={"series": keys}).series == ("north / a", "north / b")


def test_numbered_series_are_found() -> None:
    one = wide(60).rename(columns={"b": "sales"}).assign(a=1.0)
    table = pd.concat([one.assign(shop=shop, item=item) for shop in (0, 1) for item in (7, 8)])
    one_item = table[table["item"] == 7].drop(columns="item")
    with_words = table.assign(item=table["item"].map({7: "tea", 8: "milk"}), id=range(240))
    with_words = with_words[["date", "id", "item", "shop", "sales"]]
    for shops, found in (
        (one_item, ("0", "1")),
        (table, ("0 / 7", "0 / 8", "1 / 7", "1 / 8")),
        (one_item.set_index(["shop", "date"])[["sales", "a"]], ("0", "1")),
        (with_words, ("tea / 0", "milk / 0", "tea / 1", "milk / 1")),
    ):
        data = load_dataset(shops)
        assert data.series == found and data.columns == ("sales",)
    assert len(load_dataset(table, columns={"time": "date", "series": "shop+item"}, target=["sales"]).series) == 4
    for repeated in (one.iloc[[*range(60), 59]], pd.concat([one, one])):
        assert load_dataset(repeated).rows == 60


def test_index_of_levels_without_dates_is_refused() -> None:
    table = long().assign(ds=long()["ds"].rank(method="dense").astype(int)).set_index(["unique_id", "ds"])
    assert load_dataset(table).series == ("a", "b")
    table = table.rename_axis(["item_id", "step"])
    with pytest.raises(UsageError, match="index of the levels 'item_id', 'step', of which none contains dates"):
        load_dataset(table)
    assert load_dataset(table, columns={"time": "step", "series": "item_id"}).series == ("a", "b")


def test_pandas_series_is_accepted() -> None:
    series = wide(60).set_index("date")["a"]
    for name, column in (("a", "a"), (None, "y")):
        made = femts.train(series.rename(name), "naive", **QUICK)
        assert list(made.predict(series.rename(name)).columns) == ["date", column]
    counted = femts.train(series.reset_index(drop=True), "naive", **QUICK)
    assert counted.predict(series.reset_index(drop=True))["row"].tolist() == [60, 61, 62]


def test_non_time_index_is_ignored() -> None:
    for index in (range(60), range(1900, 1960), [f"row {n}" for n in range(60)]):
        table = wide(60).drop(columns="date").set_axis(list(index), axis=0)
        assert to_frame(table) is table
    numbered = wide(60).set_index(pd.date_range("1999-01-01", periods=60))
    assert to_frame(numbered) is numbered  # it has a column of stamps


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_polars_and_pyarrow_frames_are_accepted(library: str) -> None:
    module = pytest.importorskip(library)
    turned = module.from_pandas if library == "polars" else module.table
    for frame in (wide(60), long()):
        plain, other = load_dataset(frame), load_dataset(turned(frame))
        np.testing.assert_array_equal(other.values, plain.values)
        assert other.columns == plain.columns and list(other.stamps) == list(plain.stamps)  # type: ignore[arg-type]
        made = femts.train(turned(frame), "naive", **QUICK)
        pd.testing.assert_frame_equal(made.predict(turned(frame)), made.predict(frame), check_dtype=False)


def test_unconvertible_frame_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stream:
        def __arrow_c_stream__(self, _: Any = None) -> Any:
            raise TypeError("no schema")

    with pytest.raises(UsageError, match=r"The frame cannot be converted to a pandas DataFrame \(no schema\)"):
        load_dataset(Stream())  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match=r"a Stream, which needs pyarrow; run pip install pyarrow"):
        load_dataset(Stream())  # type: ignore[arg-type]
    for thing in ({"a": [1]}, 3, None):
        with pytest.raises(UsageError, match="; give a name, the path of a file, or a DataFrame"):
            load_dataset(thing)  # type: ignore[arg-type]


def quarters() -> pd.DataFrame:
    return pd.DataFrame({"Year": QUARTERS.year.astype(float), "quarter": QUARTERS.quarter, "gdp": np.arange(60.0) ** 2})


@pytest.mark.filterwarnings("ignore::femts.errors.AgeWarning")
def test_year_and_quarter_columns_are_combined(tmp_path: Path) -> None:
    table = quarters()
    before = table.copy()
    table.to_csv(tmp_path / "macro.csv", index=False)
    for source in (tmp_path / "macro.csv", table):
        data = load_dataset(source)
        assert (data.freq, data.columns, data.season) == ("QS-JAN", ("gdp",), 4)
        assert data.stamps is not None and data.stamps.equals(QUARTERS)
        assert data.notes[0] == "columns 'Year' and 'quarter' are combined into time stamps"
    made = femts.train(table, "ridge", 4, seq_len=8)
    assert str(made.predict(table)["date"].iloc[0].date()) == "1974-01-01"
    assert len(femts.backtest(made, table, n_windows=2, step_size=4)) == 8
    pd.testing.assert_frame_equal(table, before)


def test_date_part_columns_are_combined() -> None:
    parts = {name: getattr(HOURS, name) for name in ("year", "month", "day", "hour")}
    data = load_dataset(pd.DataFrame({"No": np.arange(90.0) ** 2 % 7, **parts, "pm": np.sin(np.arange(90.0))}))
    assert data.stamps is not None and data.stamps.equals(HOURS) and data.columns == ("No", "pm")
    days = {name: getattr(HOURS[::24], name) for name in ("year", "month", "day")}
    assert stamp_parts(pd.DataFrame(days), USUAL, _dated) == ["year", "month", "day"]
    weeks = pd.date_range("2018-01-01", periods=262, freq="W-MON")
    calendar = weeks.isocalendar().reset_index(drop=True)
    table = pd.DataFrame({"Year": calendar["year"], "week": calendar["week"], "x": np.arange(262.0) ** 2 % 7}).assign(
        month=1
    )
    data = load_dataset(table)
    assert data.stamps is not None and data.stamps.equals(weeks) and data.columns == ("x",)
    with pytest.raises(UsageError, match="has '2018-W00' where data row 1 should have a date"):
        load_dataset(table.drop(columns="month").assign(week=table["week"] - 1))


DAY_AND_CLOCK: dict[str, tuple[str, str, str, str]] = {
    "as a rule": ("date", "%Y-%m-%d", "time", "%H:%M"),
    "of an export": ("Date", "%m/%d/%Y", "Time", "%I:%M %p"),
    "of a meter": ("Datum", "%d.%m.%Y", "Uhrzeit", "%H:%M:%S"),
    "digits": ("date", "%Y%m%d", "time", "%H:%M"),
    "a midnight": ("Date", "%Y-%m-%d 00:00:00", "Time", "%H:%M"),
}


@pytest.mark.filterwarnings("ignore::femts.errors.AgeWarning")
def test_date_and_time_columns_are_combined(tmp_path: Path) -> None:
    for name in DAY_AND_CLOCK:
        hours = pd.date_range("2024-01-30", periods=480, freq="h")
        date, days, time, clock = DAY_AND_CLOCK[name]
        table = pd.DataFrame(
            {date: hours.strftime(days), time: hours.strftime(clock), "load": np.sin(np.arange(480.0))}
        )
        table.to_csv(tmp_path / "mine.csv", index=False)
        for source in (tmp_path / "mine.csv", table):
            data = load_dataset(source)
            assert (
                (data.freq, data.columns) == ("h", ("load",)) and data.stamps is not None and data.stamps.equals(hours)
            )
            assert data.notes[0] == f"columns '{date}' and '{time}' are combined into time stamps"
        run = tmp_path / name
        made = femts.train(tmp_path / "mine.csv", "naive", 4, seq_len=8, out=run)
        assert made.predict(table)["date"].iloc[0] == hours[-1] + pd.Timedelta("1h")
        assert main([*map(str, ("predict", run, tmp_path / "mine.csv", "-o", tmp_path / "ahead.csv"))]) == 0
        assert pd.read_csv(tmp_path / "ahead.csv", parse_dates=["date"])["date"].equals(made.predict(table)["date"])


@pytest.mark.filterwarnings("ignore::femts.errors.AgeWarning")
def test_date_and_hour_columns_are_combined(tmp_path: Path) -> None:
    hours, load = pd.date_range("2024-01-30", periods=480, freq="h"), np.sin(np.arange(480.0))
    for date, hour, days in (
        ("date", "hour", hours.strftime("%Y-%m-%d")),
        ("dteday", "hr", hours.normalize()),
        ("Datum", "Stunde", hours.strftime("%d.%m.%Y")),
    ):
        table = pd.DataFrame({date: days, hour: hours.hour, "load": load})
        table.to_csv(tmp_path / "mine.csv", index=False)
        for source in (tmp_path / "mine.csv", table, table.astype({hour: float})):
            data = load_dataset(source)
            assert data.columns == ("load",) and list(data.stamps) == list(hours)  # type: ignore[arg-type]
            assert data.notes[0] == f"columns '{date}' and '{hour}' are combined into time stamps"
        made = femts.train(table, "naive", 4, seq_len=8)
        for rows in (8, 3, 2, 1):
            assert made.predict(table.tail(rows))["date"].iloc[0] == hours[-1] + pd.Timedelta("1h")
        zones = pd.concat([table.assign(zone=zone) for zone in ("north", "south")])
        assert load_dataset(zones).series == ("north", "south") and load_dataset(zones).freq == "h"
        ends = load_dataset(table.assign(**{hour: table[hour] + 1}))
        assert list(ends.stamps) == list(hours + pd.Timedelta("1h"))  # type: ignore[arg-type]


def test_hours_as_features_are_kept() -> None:
    days = wide(60).assign(date=pd.date_range("2024-01-01", periods=60), hour=np.arange(60) % 24)
    for table in (days, wide(60).assign(hour=wide(60)["date"].dt.hour)):
        assert load_dataset(table, target=["a", "b", "hour"]).columns == ("a", "b", "hour")
    shops = pd.concat([days.assign(unique_id=shop)[["unique_id", "date", "a", "hour"]] for shop in ("x", "y")])
    data = load_dataset(shops, columns={"value": "a"}, past_covariates=["hour"])
    assert (data.series, data.freq) == (("x", "y"), "D")


def test_date_and_time_objects_are_combined() -> None:
    hours = pd.date_range("2024-01-30", periods=96, freq="h")
    cells = pd.DataFrame({"Date": hours.normalize(), "Time": hours.time, "load": np.arange(96.0)})
    data = load_dataset(cells)
    assert data.stamps is not None and data.stamps.equals(hours)
    shops = pd.concat([cells.assign(shop=shop) for shop in ("a", "b")])
    panel = femts.load_dataset(shops, panel=True)
    assert list(panel.series) == ["a", "b"] and panel.freq == "h"
    clocks = cells.rename(columns={"Date": "day", "Time": "clock"}).astype({"clock": str})
    assert list(load_dataset(clocks).stamps) == list(hours)  # type: ignore[arg-type]


def test_columns_that_are_not_date_parts_are_kept() -> None:
    cases: list[tuple[Any, ...]] = [
        *(("clocks", {name: cell}) for name, cell in (("time", "soon"), ("time", 5), ("date", "2024-01-30 05:00"))),
        *(("clocks", {name: cell}) for name, cell in (("date", "then"), ("ds", 1))),
        *(("quarters", {"quarter": cell}) for cell in (5, 1.5, None)),
        *(("quarters", {"Year": cell}) for cell in (12, "then", pd.Series([10**5000] * 60, dtype=object))),
        ("quarters", {"date": QUARTERS}),
    ]
    for table, changes in cases:
        clocks = pd.DataFrame({"date": ["2024-01-30"] * 3, "time": ["01:00", "2:00", "03:00"], "load": 1.0})
        made, parts = (clocks, ["date", "time"]) if table == "clocks" else (quarters(), ["Year", "quarter"])
        assert stamp_parts(made, USUAL, _dated) == parts
        assert stamp_parts(made.assign(**changes), USUAL, _dated) == []
