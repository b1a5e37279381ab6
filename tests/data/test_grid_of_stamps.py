from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from femts.data.frequency import future_dates, grid_of, order_of, past_date, step_of
from femts.data.loading import load_dataset
from femts.data.stamps import read_dates
from femts.errors import UsageError

STEPS = ["s", "30s", "min", "10min", "15min", "h", "2h", "D", "B", "W-WED", "2W-SUN", "MS", "ME", "QS-JAN", "YS-JAN"]


@given(st.sampled_from(STEPS), st.integers(14, 60), st.integers(1, 30))
def test_the_step_is_found_and_continued(freq: str, rows: int, ahead: int) -> None:
    whole = pd.date_range("2023-03-01", periods=rows + ahead, freq=freq)
    found = step_of(whole[:rows])
    assert list(future_dates(whole[rows - 1], found, ahead)) == list(whole[rows:])


def test_future_follows_a_last_date_that_is_off_the_grid() -> None:
    saturday = pd.Timestamp("2024-01-06")
    assert list(future_dates(saturday, "B", 2)) == [pd.Timestamp("2024-01-08"), pd.Timestamp("2024-01-09")]


def test_a_time_zone_is_kept() -> None:
    dates = read_dates(pd.Series([f"2024-01-01T0{h}:00:00+00:00" for h in range(4)]))
    assert step_of(dates) == "h"
    assert str(future_dates(dates[-1], "h", 1)[0]) == "2024-01-01 04:00:00+00:00"


@pytest.mark.parametrize("freq", ["h", "15min", "D", "B", "W-SUN", "MS", "ME"])
def test_missing_stamps_hide_no_step(freq: str) -> None:
    whole = pd.date_range("2023-01-01", periods=100, freq=freq)
    gone = np.random.default_rng(0).choice(np.arange(1, 99), 20, replace=False)
    with_gaps = whole.delete([*gone, 40, 41, 42])
    assert step_of(with_gaps) == step_of(whole)
    assert list(grid_of(with_gaps, freq)) == list(whole)


def test_of_two_steps_that_fit_the_coarser_is_taken() -> None:
    dates = pd.bdate_range("2024-01-01", periods=30).drop(pd.Timestamp("2024-01-19"))  # every day would fit, too
    assert step_of(dates) == "B"


def test_a_stamp_off_the_grid_is_the_one_named() -> None:
    dates = pd.date_range("2024-01-01", periods=100, freq="h").insert(40, pd.Timestamp("2024-01-02 15:20"))
    with pytest.raises(UsageError, match=r"from 2024-01-02 15:00:00 to 2024-01-02 15:20:00 \(data rows 40 and 41\)"):
        step_of(dates)


def test_a_step_that_pandas_names_but_does_not_generate_is_refused() -> None:
    hours = pd.date_range("2024-01-01", periods=24 * 10, freq="h")
    office = hours[(hours.hour >= 8) & (hours.hour < 16) & (hours.dayofweek < 5)]
    with pytest.raises(UsageError, match="uneven step"):
        step_of(office)


@pytest.mark.parametrize(
    ("texts", "first"),
    [
        (["2024-02-01", "2024-02-01 01:00"], "2024-02-01"),
        (["01.02.2024", "13.02.2024"], "2024-02-01"),
        (["2/1/2024", "2/13/2024"], "2024-02-01"),
        (["20240201", "20240202"], "2024-02-01"),
        (["1 Feb 2024", "2 Feb 2024"], "2024-02-01"),
        ([2023, 2024], "2023-01-01"),
        ([2024020100, 2024020101], "2024-02-01"),
        (["2024020100", "2024020101"], "2024-02-01"),
        ([202402010000.0, 202402010010.0], "2024-02-01"),
        ([20240201000000, 20240201000030], "2024-02-01"),
        (["01/02/2024 1:30 PM", "01/13/2024 1:30 PM"], "2024-01-02 13:30"),
        (["01/02/2024 12:00:05 am", "13/02/2024 12:00:05 am"], "2024-02-01 00:00:05"),
        (["2/1/2024 12 p.m.", "2/13/2024 12 p.m."], "2024-02-01 12:00"),
        (["2024-01-02 12:00 AM", "2024-01-02 1:00 AM"], "2024-01-02"),
        (["2024/01/02 12:00AM", "2024/01/02 1:00AM"], "2024-01-02"),
    ],
)
def test_dates_are_read_where_they_can_mean_one_thing_only(texts: list[Any], first: str) -> None:
    assert read_dates(pd.Series(texts))[0] == pd.Timestamp(first)


@pytest.mark.parametrize("how", ["%Y%m%d%H", "%Y%m%d%H%M", "%m/%d/%Y %I:%M %p"])
def test_hours_are_hours_however_they_are_written(how: str) -> None:
    hours = pd.date_range("2020-01-01", periods=400, freq="h")
    stamps = pd.Series(hours.strftime(how))
    data = load_dataset(pd.DataFrame({"date": stamps, "x": np.arange(400.0)}))
    assert data.freq == "h" and data.rows == 400 and data.dates is not None and (data.dates == hours).all()


def test_digits_that_are_no_stamps_stay_numbers_and_one_mistake_is_told() -> None:
    for first in (60000, 4820010124, 10**11, 30 * 10**9):
        numbers = pd.Series(np.arange(first, first + 400))
        assert read_dates(numbers).tolist() == numbers.tolist()
    assert read_dates(pd.Series([2020010100, 2020010101]), freq="1").tolist() == [2020010100, 2020010101]
    hours = pd.date_range("2020-01-01", periods=40, freq="h").strftime("%Y%m%d%H").to_numpy(dtype=object, copy=True)
    hours[7] = "2020013207"
    with pytest.raises(UsageError, match="has '2020013207' where data row 8 should have a date"):
        read_dates(pd.Series(hours))


def test_the_day_is_doubted_as_it_is_written() -> None:
    with pytest.raises(UsageError, match="such as '01/02/2020 3:00 PM' whose day could be the month"):
        read_dates(pd.Series(["01/02/2020 3:00 PM", "01/03/2020 3:00 PM"]))


@pytest.mark.parametrize(
    ("last", "freq", "n", "first"),
    [
        ("2024-03-01", "MS", 3, "2023-12-01"),
        ("2024-03-04 10:00+01:00", "h", 24, "2024-03-03 10:00+01:00"),
        ("2024-03-04", "B", 1, "2024-03-01"),
    ],
)
def test_the_past_is_counted_in_steps(last: str, freq: str, n: int, first: str) -> None:
    assert past_date(pd.Timestamp(last), freq, n) == pd.Timestamp(first)


def test_the_past_of_numbers_and_before_all_stamps() -> None:
    assert past_date(90, "5", 3) == 75
    assert past_date(pd.Timestamp("1700-01-01"), "YS", 2**15) < pd.Timestamp("1678-01-01")


@pytest.mark.parametrize("how", ["%d.%m.%Y", "%d.%m.%Y %H:%M", "%d. %m. %Y", "%d.%m.%y"])
def test_before_a_dot_comes_the_day(how: str) -> None:
    hours = pd.date_range("2025-11-06", periods=24, freq="h" if "%H" in how else "D")[:7]
    assert read_dates(pd.Series(hours.strftime(how))).equals(hours)


def test_repeats_of_a_clock_that_is_set_back_have_a_remedy() -> None:
    local = pd.date_range("2025-10-25", periods=48, freq="h", tz="Europe/Berlin").tz_localize(None)
    with pytest.raises(
        UsageError, match=r"repeats 1 date, .*or write the stamps in UTC, where a clock was set back\.$"
    ):
        order_of(local)
    with pytest.raises(UsageError, match=r"keep one row a date\.$"):
        order_of(local[[0, 0, 1, 2, 3, 4, 5, 5]])


def test_order_is_found() -> None:
    dates = pd.date_range("2024-01-01", periods=4)
    assert order_of(dates) is None
    for stamps, order in ((dates[[1, 0, 3, 2]], [1, 0, 3, 2]), (pd.Index([3, 2, 1]), [2, 1, 0])):
        np.testing.assert_array_equal(order_of(stamps), order)
    with pytest.raises(UsageError, match="repeats 2 dates, the first 2024-01-01 00:00:00 at data row 2"):
        order_of(dates[[0, 0, 1, 1]])
