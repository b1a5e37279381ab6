"""What the columns of a table are."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from odd_frames import odd_frames

from femts.data.guess import advice
from femts.data.kinds import HEAD, column_kinds

N = 800
DAYS = pd.date_range("2021-03-01", periods=N, freq="D")
HOURS = pd.date_range("2021-03-01", periods=N, freq="h")
RNG = np.random.default_rng(0)
COUNTS = RNG.poisson(9, N)


def kind_of(cells: Any, name: str = "x", stamps: pd.DatetimeIndex | None = DAYS) -> str:
    """The kind of a column beside a date and another column, with what it follows from."""
    frame = pd.DataFrame({"date": DAYS if stamps is None else stamps, name: cells, "other": COUNTS[: len(cells)]})
    column = column_kinds(frame, "date", stamps)[1]
    return f"{column.kind} {column.detail}".strip()


CALENDAR: dict[str, tuple[Any, str, str]] = {
    "month": (DAYS.month, "x", "month"),
    "Monday is 0": (DAYS.day_of_week, "x", "weekday"),
    "Monday is 1": (DAYS.day_of_week + 1, "tag", "weekday"),
    "Sunday is 0": ((DAYS.day_of_week + 1) % 7, "x", "weekday"),
    "Sunday is 1": ((DAYS.day_of_week + 1) % 7 + 1, "x", "weekday"),
    "day": (DAYS.day, "x", "day of month"),
    "day from 0": (DAYS.day - 1, "x", "day of month"),
    "day of the year": (DAYS.day_of_year, "x", "day of year"),
    "week": (DAYS.isocalendar()["week"].to_numpy(), "x", "week"),
    "year": (DAYS.year, "x", "year"),
    "years from 0": (DAYS.year - 2021, "yr", "year"),
    "decimal year": (DAYS.year + DAYS.day_of_year / 365.25, "x", "year"),
    "year and month": (DAYS.year * 100 + DAYS.month, "x", "month"),
    "names in German": (
        DAYS.day_of_week.map(dict(enumerate(("Mo", "Di", "Mi", "Do", "Fr", "Sa", "So")))),
        "x",
        "weekday",
    ),
    "kinds of days": (np.where(DAYS.day_of_week > 4, "free", "work"), "x", "weekday"),
    "weekend": (DAYS.day_of_week > 4, "x", "weekday"),
    "season": ((DAYS.month % 12) // 3 + 1, "season", "season"),
    "waves": (np.sin(2 * np.pi * DAYS.day_of_week / 7), "dow_sin", "weekday"),
    "99 for unknown days": (np.where(np.arange(N) % 40 == 7, 99, DAYS.day), "day", "day"),
}


@pytest.mark.parametrize("case", CALENDAR)
def test_columns_of_the_calendar(case: str) -> None:
    cells, name, part = CALENDAR[case]
    assert kind_of(cells, name) == f"calendar {part}"


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        *[(name, np.arange(N) % 12 + 1) for name in ("month", "mnth", "Monat", "mês", "mes", "mois", "month_of_year")],
        *[
            (name, np.arange(N) % 7 + 1)
            for name in ("day_of_week", "Wochentag", "dayOfWeek", "jour_semaine", "weekday")
        ],
        *[(name, np.arange(N) % 31 + 1) for name in ("date_of_month", "día", "Tag", "DAY")],
        *[(name, np.arange(N) % 24) for name in ("hour", "hr", "Stunde", "hora")],
        *[(name, 2000 + np.arange(N) % 20) for name in ("year", "Jahr", "AÑO", "année", "work_year")],
    ],
)
def test_columns_of_the_calendar_by_their_names(name: str, cells: Any) -> None:
    frame = pd.DataFrame({name: cells, "visits": COUNTS})
    assert [column.kind for column in column_kinds(frame)] == ["calendar", "number"]


def test_hours_in_another_time_zone_are_of_the_calendar() -> None:
    assert kind_of((HOURS.hour + 9) % 24, stamps=HOURS) == "calendar hour"


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("x", np.sin(2 * np.pi * np.arange(N) / 7)),  # strictly periodic, but a value
        ("days", COUNTS % 31 + 1),
        ("hours_worked", COUNTS),
        ("x", COUNTS % 7),
        ("cost", np.where(np.arange(N) == 700, 12, 0)),  # nearly always 0, as is the hour of all these dates
        ("month", COUNTS * 100),
    ],
)
def test_values_that_are_not_of_the_calendar(name: str, cells: Any) -> None:
    assert kind_of(cells, name) == "number"


def test_year_of_a_forecast_names_series() -> None:
    made = pd.DataFrame({"year": np.repeat(range(1980, 2010), 5), "forecastYear": 0, "value": RNG.normal(size=150)})
    made["forecastYear"] = made["year"] + np.tile(range(5), 30)
    stamps = pd.DatetimeIndex(pd.to_datetime(made["year"].astype(str)))
    assert advice(made, "year", stamps).keys is None or advice(made, "year", stamps).keys == ("forecastYear",)
    assert column_kinds(made, "year", stamps)[1].kind == "category"


KINDS: dict[str, tuple[Any, str, str]] = {
    "text dates": (DAYS.strftime("%d.%m.%Y"), "x", "dates"),
    "datetimes": (DAYS, "x", "dates"),
    "zones": (DAYS.tz_localize("UTC"), "x", "dates"),
    "periods": (DAYS.to_period("D"), "x", "dates"),
    "days in digits": (DAYS.strftime("%Y%m%d").astype(int), "x", "dates"),
    "clocks": ([f"{i % 24:02d}:30" for i in range(N)], "x", "clock times"),
    "constant": (np.full(N, 3.5), "x", "constant"),
    "constant text": (["EUR"] * N, "x", "constant"),
    "empty": ([None] * N, "x", "empty"),
    "almost empty": (np.where(np.arange(N) < 9, 1.5, np.nan), "x", "empty"),
    "dashes": (["-"] * N, "x", "empty"),
    "ids": (RNG.permutation(N) * 17 + 10**6, "customer_id", "identifier"),
    "references": ([f"REF {i}" for i in range(N)], "x", "identifier"),
    "uuid": ([f"{i * 7919 % 65536:08x}-0000-4000" for i in range(N)], "x", "identifier"),
    "sentences": ([f"A long remark about the thing numbered {i % 300}" for i in range(N)], "x", "identifier"),
    "coordinates": (RNG.uniform(40, 50, N), "Latitude", "identifier coordinate"),
    "row numbers": (np.arange(N), "x", "running number"),
    "from 1": (np.arange(N) + 1, "Unnamed: 0", "running number"),
    "backwards": (np.arange(N)[::-1], "x", "running number"),
    "shuffled": (RNG.permutation(N), "x", "running number"),
    "within groups": (np.arange(N) % 50, "x", "running number"),
    "one for several rows": (1000 + np.arange(N) // 3, "x", "running number"),
    "truths": (COUNTS > 12, "x", "flag"),
    "0 and 1": ((COUNTS > 12) * 1, "promo", "flag"),
    "Y and N": (np.where(COUNTS > 12, "Y", "N"), "x", "flag"),
    "ja und nein": (np.where(COUNTS > 12, "ja", "nein"), "x", "flag"),
    "marks": (np.array([None, "E"])[(COUNTS > 12) * 1], "x", "flag"),
    "1 and a sentinel": (np.where(COUNTS > 12, 1, -9999), "x", "flag"),
    "words": (np.array(["fuel", "rent", "food"])[COUNTS % 3], "x", "category"),
    "codes of zones": (COUNTS % 5 + 100, "zone_id", "category"),
    "shops": (COUNTS % 5, "shop_nbr", "category"),
    "sales of a shop": (COUNTS, "shop_1", "number"),
    "sales of shops": (COUNTS * 137 % 5003, "north - rural - shop", "number"),
    "postcodes": (np.array(["00417", "01067", "10115"])[COUNTS % 3], "x", "category"),
    "words and numbers": (np.array([1, "two", 2.5, "four"], dtype=object)[COUNTS % 4], "x", "category"),
    "long names of few": (np.array(["a rate of those who are of age", "b"])[COUNTS % 2], "x", "category"),
    "counts": (COUNTS, "x", "number"),
    "sales of 0 and 1": ((COUNTS > 12) * 1, "sales", "number"),
    "steps of 10": (np.arange(N) * 10, "x", "number"),
    "text of numbers": ([f" {i * 37 % 101}.5" for i in range(N)], "x", "number"),
    "decimal commas": ([f"{i * 37 % 101},5" for i in range(N)], "x", "number"),
    "thousands": ([f"${i * 37 % 101 + 1},000.50" for i in range(N)], "x", "number"),
    "a stray word": (["off" if i == 9 else str(i * 37 % 101) for i in range(N)], "x", "number"),
    "decimals": ([Decimal(i * 37 % 101) / 8 for i in range(N)], "x", "number"),
    "number of zones": (COUNTS, "number_of_zones", "number"),
    "price index": (COUNTS / 7, "index", "number"),
}


@pytest.mark.parametrize("case", KINDS)
def test_kinds_of_columns(case: str) -> None:
    cells, name, kind = KINDS[case]
    assert kind_of(cells, name, None) == kind_of(cells, name) == kind


@pytest.mark.parametrize("dtype", [object, "string", "category"])
def test_kinds_do_not_depend_on_how_text_is_stored(dtype: Any) -> None:
    words, flags = pd.Series(np.array(["fuel", "rent", "food"])[COUNTS % 3]), pd.Series(np.where(COUNTS > 9, "Y", "N"))
    assert (kind_of(words.astype(dtype)), kind_of(flags.astype(dtype))) == ("category", "flag")


def test_a_column_named_for_stores_holds_their_numbers_only_where_dates_repeat() -> None:
    frame = pd.DataFrame({"date": DAYS, "store": COUNTS, "online": COUNTS[::-1]})
    assert column_kinds(frame, "date", DAYS)[1].kind == "number"
    twice = pd.concat([frame, frame], ignore_index=True)
    assert column_kinds(twice, "date", DAYS.append(DAYS))[1].kind == "category"


def test_flags_among_numbers_of_the_same_name_are_numbers() -> None:
    few = (COUNTS > 14) * 1
    frame = pd.DataFrame({"date": DAYS, "item_1": COUNTS, "item_2": few, "item_2_new": few, "open": few})
    assert [column.kind for column in column_kinds(frame, "date", DAYS)[1:]] == ["number", "number", "flag", "flag"]
    assert advice(frame, "date", DAYS).targets == ("item_1", "item_2")


def test_share_of_missing_cells_and_number_of_distinct_ones() -> None:
    frame = pd.DataFrame({"a": [1.5, np.nan, 2.5, 1.5], "b": ["u", "n/a", "v", None]})
    assert [(column.distinct, column.missing) for column in column_kinds(frame)] == [(2, 0.25), (2, 0.5)]


def test_large_tables_are_not_taken_for_constant_by_their_beginning() -> None:
    late = np.zeros(8 * HEAD)
    late[HEAD + 1 : HEAD + 3] = 5.0
    names = [f"series {i}" for i in range(3 * HEAD)]
    frame = pd.DataFrame(
        {"late": late, "none": 0.0, "name": (names * 3)[: len(late)], "code": np.arange(len(late)).astype(str)}
    )
    frame["code"] = "c" + frame["code"]
    assert [column.kind for column in column_kinds(frame)] == ["number", "constant", "category", "identifier"]


def test_two_columns_of_one_name_are_told_apart() -> None:
    frame = pd.DataFrame([[1.5, "a"], [2.5, "b"], [0.5, "a"], [3.5, "b"]], columns=["x", "x"])
    assert [column.kind for column in column_kinds(frame)] == ["number", "category"]


@given(odd_frames())
def test_any_frame_gets_an_answer(frame: Any) -> None:
    if isinstance(frame, pd.DataFrame) and frame.shape[1]:
        assert len(column_kinds(frame)) == frame.shape[1]
        made = advice(frame, str(frame.columns[0]))
        assert not {*made.targets} & {str(frame.columns[0]), *(made.keys or ())}
