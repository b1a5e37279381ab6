from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from femts.data.grid import future_dates, grid_of, order_of, season_of, step_of
from femts.data.timestamps import read_dates
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
    ("freq", "season"),
    [
        *(("h", 24), ("2h", 12), ("15min", 96), ("10min", 144), ("s", 86400), ("48h", 1)),
        *(
            ("D", 7),
            ("2D", 1),
            ("B", 5),
            ("W-SUN", 52),
            ("MS", 12),
            ("ME", 12),
            ("QS-JAN", 4),
            ("YS-JAN", 1),
            (None, 1),
        ),
    ],
)
def test_season(freq: str | None, season: int) -> None:
    assert season_of(freq) == season


@pytest.mark.parametrize(
    ("texts", "first"),
    [
        (["2024-02-01", "2024-02-01 01:00"], "2024-02-01"),
        (["01.02.2024", "13.02.2024"], "2024-02-01"),
        (["2/1/2024", "2/13/2024"], "2024-02-01"),
        (["20240201", "20240202"], "2024-02-01"),
        (["1 Feb 2024", "2 Feb 2024"], "2024-02-01"),
        ([2023, 2024], "2023-01-01"),
    ],
)
def test_dates_are_read_where_they_can_mean_one_thing_only(texts: list[Any], first: str) -> None:
    assert read_dates(pd.Series(texts))[0] == pd.Timestamp(first)


def test_order_is_found() -> None:
    dates = pd.date_range("2024-01-01", periods=4)
    assert order_of(dates) is None
    for stamps, order in ((dates[[1, 0, 3, 2]], [1, 0, 3, 2]), (pd.Index([3, 2, 1]), [2, 1, 0])):
        np.testing.assert_array_equal(order_of(stamps), order)
    with pytest.raises(UsageError, match="repeats 2 dates, the first 2024-01-01 00:00:00 at data row 2"):
        order_of(dates[[0, 0, 1, 1]])
