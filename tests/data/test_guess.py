"""What a table could be forecast as: names of series, targets, and how to aggregate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from femts.data.guess import advice, reasons_in_words, series_keys, step_at_hand, target_columns
from femts.data.kinds import column_kinds, mark_running_totals

RNG = np.random.default_rng(0)
DAYS = pd.date_range("2022-01-01", periods=100, freq="D")
MONTHS = pd.date_range("2012-01-01", periods=60, freq="MS")


def panel(stamps: pd.DatetimeIndex = DAYS, **names: Any) -> pd.DataFrame:
    """A row for each combination of names, and date, with a value."""
    index = pd.MultiIndex.from_product([*names.values(), stamps], names=[*names, "date"])
    frame = index.to_frame(index=False)
    frame["value"] = RNG.gamma(3, 20, len(frame)).round(1)
    return frame


def look(frame: pd.DataFrame, time: str = "date") -> Any:
    return advice(frame, time, pd.DatetimeIndex(pd.to_datetime(frame[time])))


def test_series_by_sector_beside_year_and_month() -> None:
    frame = panel(MONTHS, sector=list("ABC")).rename(columns={"value": "people"})
    frame.insert(1, "year", frame["date"].dt.year)
    frame.insert(2, "month", frame["date"].dt.month)
    found = look(frame)
    assert (found.keys, found.targets, found.aggregate) == (("sector",), ("people",), None)
    assert reasons_in_words(found.left_out) == "'year', 'month' (follows from the date)"


def test_columns_almost_empty_or_constant_name_nothing() -> None:
    frame = panel(MONTHS, LOCATION=["AUT", "BEL"]).rename(columns={"value": "Value"})
    frame["Flag"], frame["Unit"], frame["Note"] = None, "EUR", ["E" if i % 70 == 5 else None for i in range(len(frame))]
    found = look(frame)
    assert (found.keys, found.targets) == (("LOCATION",), ("Value",))
    assert dict(found.left_out) == {"Flag": "is empty, or almost", "Unit": "is constant", "Note": "is empty, or almost"}


def test_transactions_are_added_up_by_day() -> None:
    days = np.repeat(DAYS, RNG.poisson(8, 100))
    n = len(days)
    words = np.array(["fuel", "rent", "food"])[RNG.integers(0, 3, n)]
    frame = pd.DataFrame({"date": days, "reference": [f"REF {i}" for i in range(n)], "category": words})
    frame["amount"] = RNG.gamma(2, 20, n).round(2)
    found = look(frame)
    assert (found.keys, found.targets, found.aggregate, found.freq) == (None, ("amount",), "sum", "D")
    assert found.by == ("category",)


def test_admissions_are_counted() -> None:
    days = np.repeat(DAYS, RNG.poisson(7, 100))
    frame = pd.DataFrame({"Date d'entrée": days, "Age": RNG.integers(0, 95, len(days))})
    frame["Sexe"] = np.where(RNG.random(len(days)) < 0.5, "M", "F")
    found = look(frame, "Date d'entrée")
    assert (found.keys, found.targets, found.aggregate, found.freq) == (None, (), "count", "D")


def test_readings_are_averaged() -> None:
    hours = pd.date_range("2022-01-01", periods=300, freq="h")
    frame = pd.DataFrame({"date": np.repeat(hours, 3), "reading": RNG.normal(20, 3, 900)})
    assert (look(frame).aggregate, look(frame).freq) == ("mean", "h")


def test_a_few_repeated_readings_are_averaged() -> None:
    frame = pd.DataFrame({"date": pd.date_range("2022-01-01", periods=400, freq="h"), "traffic_volume": 1.0})
    frame["traffic_volume"] = RNG.poisson(900, 400)
    frame["weather"] = np.array(["rain", "mist"])[np.arange(400) % 2]
    frame = pd.concat([frame, frame.iloc[50:60].assign(weather="fog")], ignore_index=True)
    found = look(frame)
    assert (found.keys, found.targets, found.aggregate) == (None, ("traffic_volume",), "mean")


KEYS: dict[str, tuple[pd.DataFrame, tuple[str, ...]]] = {
    "text": (panel(shop=["a", "b", "c"]), ("shop",)),
    "numbers with a name": (panel(store=[1, 2, 3]), ("store",)),
    "numbers without": (panel(abc=[1, 2, 3]), ("abc",)),
    "two": (panel(state=["x", "y"], item=[1, 2, 3]), ("state", "item")),
    "three": (panel(region=["x", "y"], purpose=["u", "v", "w"], sex=["f", "m"]), ("region", "purpose", "sex")),
    "a part is enough": (panel(shop=["a", "b", "c"]).assign(city=np.repeat(["s", "t", "t"], 100)), ("shop",)),
    "few years": (panel(pd.date_range("2020", periods=3, freq="YS"), country=list("ABCD")), ("country",)),
    "many names": (panel(DAYS[:8], item=[f"item {i}" for i in range(900)]), ("item",)),
    "dates once": (panel(shop=["a"]), ()),
    "young and ended": (panel(shop=["a", "b", "c"]).iloc[[*range(70), *range(150, 200), *range(200, 300)]], ("shop",)),
    "codes in categories": (panel(shop=["a", "b", "c"]).astype({"shop": "category"}), ("shop",)),
}


@pytest.mark.parametrize("case", KEYS)
def test_names_of_series(case: str) -> None:
    frame, keys = KEYS[case]
    for each in (frame, frame.sample(frac=1, random_state=0).reset_index(drop=True)):
        found = series_keys(each, "date", pd.DatetimeIndex(each["date"]))
        assert found == keys
        assert series_keys(each, "date") == found


def test_rows_repeated_in_every_cell_are_counted() -> None:
    frame = panel(shop=["a", "b"])
    found = look(pd.concat([frame, frame.iloc[[5, 120, 121]]], ignore_index=True))
    assert found.keys == ("shop",)
    alone = frame.iloc[:100]
    found = look(pd.concat([alone, alone.iloc[:4]], ignore_index=True))
    assert found.keys == ()


def test_a_table_written_twice_has_series() -> None:
    frame = panel(shop=["a", "b"])
    assert series_keys(pd.concat([frame, frame], ignore_index=True), "date") == ("shop",)


def test_sales_of_one_piece_are_events() -> None:
    days = np.repeat(DAYS, RNG.poisson(7, 100))
    frame = pd.DataFrame({"date": days, "sku": RNG.choice(["0075", "75", "12E3"], len(days)), "sold": 1})
    found = look(frame)
    assert (found.keys, found.aggregate, found.freq, found.by) == (None, "count", "D", ("sku",))


@pytest.mark.parametrize(
    "names",
    [
        {"text": [f"remark {i}" for i in range(200)]},
        {"flag": np.repeat(["Y", "N"], 100)},
        {"shop": [None, *["a"] * 99, *["b"] * 100]},
        {"weekday": np.tile(DAYS.day_name(), 2)},
        {"level": RNG.normal(size=200)},
        {"sales": np.repeat([1, 2], 100)},
    ],
    ids=lambda names: next(iter(names)),
)
def test_what_cannot_name_series(names: dict[str, Any]) -> None:
    frame = panel(shop=["a", "b"]).drop(columns="shop").assign(**names)
    assert series_keys(frame, "date") is None


def test_customers_who_come_by_chance_are_no_series() -> None:
    n = 600
    frame = pd.DataFrame({"date": np.repeat(DAYS, 6), "branch": RNG.choice(list("ABC"), n)})
    frame["customer"] = RNG.choice([f"c{i}" for i in range(290)], n)
    frame["customer"] = frame.groupby("date")["customer"].transform(
        lambda each: RNG.permutation(each.unique().tolist() * 9)[: len(each)]
    )
    frame = frame.drop_duplicates(["date", "customer"])
    frame["amount"] = RNG.gamma(2, 20, len(frame))
    found = look(frame)
    assert (found.keys, found.aggregate) == (None, "sum")


def targets(**columns: Any) -> tuple[str, ...]:
    n = len(DAYS)
    frame = pd.DataFrame({"date": DAYS, **columns}, index=range(n))
    return look(frame).targets


def test_targets_begin_with_a_value_by_name() -> None:
    noise = {name: RNG.normal(50, 5, 100) for name in ("humidity", "sales", "sales_hi", "age", "gas")}
    assert targets(**noise) == ("sales", "humidity", "gas", "age", "sales_hi")


def test_running_totals_beside_their_differences_are_no_targets() -> None:
    new, other = RNG.poisson(9, 100), RNG.poisson(1, 100)
    assert targets(new=new, total=new.cumsum(), deaths=other.cumsum()) == ("new",)
    corrected = new.cumsum() - np.where(np.arange(100) == 70, 30, 0)
    assert targets(new=new, total=corrected) == ("new",)
    assert targets(meter=new.cumsum() + 4.5, temperature=RNG.normal(size=100)) == ("meter", "temperature")


def test_running_totals_are_recognised_within_series() -> None:
    frame = panel(country=list("ABC")).rename(columns={"value": "cases"})
    frame["total"] = frame.groupby("country")["cases"].cumsum()
    frame["day_number"] = frame.groupby("country").cumcount()
    frame["population"] = frame["country"].map({"A": 10_000, "B": 70_000, "C": 3_000})
    found = look(frame.sample(frac=1, random_state=0).reset_index(drop=True))
    assert (found.keys, found.targets) == (("country",), ("cases",))
    assert dict(found.left_out) == {
        "total": "is the running total of 'cases'",
        "day_number": "numbers the rows",
        "population": "does not vary within a series",
    }


@pytest.mark.parametrize("values", [np.arange(100), np.arange(100) % 7, np.arange(100) % 2, np.arange(100) * 2.5])
def test_the_only_column_is_the_target(values: Any) -> None:
    assert targets(x=values) == ("x",)
    assert targets(x=values, level=RNG.normal(size=100))[-1] == "level"


def test_targets_need_numbers() -> None:
    assert targets(x=["word"] * 50 + ["other"] * 50) == targets(x=np.full(100, 2.5)) == ()


def test_targets_without_a_time_column() -> None:
    frame = pd.DataFrame({"id": range(100), "y": RNG.normal(size=100), "flag": [True, False] * 50})
    assert target_columns(column_kinds(frame), None) == ("y",)
    assert mark_running_totals(frame, column_kinds(frame), []) == column_kinds(frame)


@pytest.mark.parametrize(
    ("stamps", "step"),
    [
        (DAYS, "D"),
        (DAYS[::7], "W"),
        (MONTHS, "MS"),
        (MONTHS[::3], "QS"),
        (MONTHS[::12], "YS"),
        (pd.date_range("2022-01-01", periods=900, freq="h"), "h"),
        (pd.date_range("2022-01-01", periods=900, freq="5min", tz="UTC"), "5min"),
        (pd.date_range("2022-01-01", periods=900, freq="10s").delete([5, 70, 71]), "10s"),
        (pd.Timestamp("2022-01-01") + pd.to_timedelta(RNG.integers(0, 10**6, 900), unit="s"), "h"),
        (pd.Timestamp("2022-01-01") + pd.to_timedelta(RNG.integers(0, 4000, 9000), unit="s"), "min"),
        (pd.Timestamp("2022-01-01") + pd.to_timedelta(RNG.integers(0, 10**6, 20_000), unit="s"), "min"),
        (pd.Timestamp("2022-01-01") + pd.to_timedelta(RNG.integers(0, 10**8, 900), unit="s"), "D"),
        (pd.date_range("2022-01-01", periods=400, freq="3D", tz="UTC"), "W"),
        (pd.RangeIndex(9), None),
        (DAYS[:0], None),
    ],
    ids=lambda value: str(value) if value is None or isinstance(value, str) else type(value).__name__,
)
def test_step_to_aggregate_by(stamps: pd.Index, step: str | None) -> None:
    assert step_at_hand(stamps) == step


def test_many_more_series_than_rows_inspected() -> None:
    """Names of most of 20,000 series are not among the rows of which the kinds of columns are told."""
    months, series = pd.date_range("2024-01-01", periods=3, freq="MS"), 20_000
    values = np.random.default_rng(0).normal(size=3 * series)
    table = pd.DataFrame({"shop": np.repeat(np.arange(series), 3), "date": np.tile(months, series), "y": values})
    table["shop"] = "s" + table["shop"].astype(str)
    assert series_keys(table, "date") == ("shop",)
