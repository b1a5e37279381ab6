"""Inference and continuation of frequencies, and default seasons."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import femts
from femts.cli import main
from femts.data.frequency import further_seasons, future_dates, grid_of, order_of, past_date, step_of
from femts.errors import UsageError

STEPS = ["s", "30s", "min", "10min", "15min", "h", "2h", "D", "B", "W-WED", "2W-SUN", "MS", "ME", "QS-JAN", "YS-JAN"]


@given(st.sampled_from(STEPS), st.integers(14, 60), st.integers(1, 30))
def test_frequency_is_inferred_and_continued(freq: str, rows: int, ahead: int) -> None:
    whole = pd.date_range("2023-03-01", periods=rows + ahead, freq=freq)
    assert list(future_dates(whole[rows - 1], step_of(whole[:rows]), ahead)) == list(whole[rows:])


def test_frequency_is_inferred_despite_gaps() -> None:
    for freq in ["h", "15min", "D", "B", "W-SUN", "MS", "ME"]:
        whole = pd.date_range("2023-01-01", periods=100, freq=freq)
        gone = np.random.default_rng(0).choice(np.arange(1, 99), 20, replace=False)
        with_gaps = whole.delete([*gone, 40, 41, 42])
        assert step_of(with_gaps) == step_of(whole)
        assert list(grid_of(with_gaps, freq)) == list(whole)


def test_coarser_of_two_matching_frequencies_is_used() -> None:
    dates = pd.bdate_range("2024-01-01", periods=30).drop(pd.Timestamp("2024-01-19"))  # every day would fit, too
    assert step_of(dates) == "B"


def test_irregular_stamps_are_located() -> None:
    dates = pd.date_range("2024-01-01", periods=100, freq="h").insert(40, pd.Timestamp("2024-01-02 15:20"))
    with pytest.raises(
        UsageError,
        match=r"15:00:00 and 2024-01-02 15:20:00 \(data rows 40 and 41\) are 20 min apart, most others 60 min",
    ):
        step_of(dates)
    hours = pd.date_range("2024-01-01", periods=24 * 10, freq="h")
    with pytest.raises(UsageError, match="irregular time stamps"):  # pandas names a step that does not generate them
        step_of(hours[(hours.hour >= 8) & (hours.hour < 16) & (hours.dayofweek < 5)])


def test_future_dates_follow_an_off_grid_stamp() -> None:
    saturday = pd.Timestamp("2024-01-06")
    assert list(future_dates(saturday, "B", 2)) == [pd.Timestamp("2024-01-08"), pd.Timestamp("2024-01-09")]


def test_past_date_counts_steps() -> None:
    for last, freq, n, first in [
        ("2024-03-01", "MS", 3, "2023-12-01"),
        ("2024-03-04 10:00+01:00", "h", 24, "2024-03-03 10:00+01:00"),
        ("2024-03-04", "B", 1, "2024-03-01"),
    ]:
        assert past_date(pd.Timestamp(last), freq, n) == pd.Timestamp(first)
        assert past_date(90, "5", 3) == 75
        assert past_date(pd.Timestamp("1700-01-01"), "YS", 2**15) < pd.Timestamp("1678-01-01"), "before all stamps"


def test_order_is_found_and_duplicates_are_refused() -> None:
    dates = pd.date_range("2024-01-01", periods=4)
    assert order_of(dates) is None
    for stamps, order in ((dates[[1, 0, 3, 2]], [1, 0, 3, 2]), (pd.Index([3, 2, 1]), [2, 1, 0])):
        np.testing.assert_array_equal(order_of(stamps), order)
    with pytest.raises(
        UsageError, match=r"repeats 2 dates, the first 2024-01-01 00:00:00 at data row 2; .* per date, or add them up"
    ):
        order_of(dates[[0, 0, 1, 1]])
    local = pd.date_range("2025-10-25", periods=48, freq="h", tz="Europe/Berlin").tz_localize(None)
    with pytest.raises(
        UsageError, match=r"repeats 1 date, .*or write the stamps in UTC, in case a clock was set back\."
    ):
        order_of(local)


SEASONS = {  # of 60 rows of a step
    **{"h": 24, "2h": 12, "15min": 96, "10min": 144, "45min": 32, "90min": 16, "10s": 8640, "s": 86_400},
    **{"5h": 24, "7h": 24, "11h": 24, "7min": 206, "17min": 85, "29min": 149, "25h": 1},
    **{"D": 7, "2D": 7, "3D": 7, "36h": 14, "5D": 1, "10D": 1, "B": 5},
    **{"W-WED": 52, "2W-SUN": 26, "4W-SUN": 13, "3W-SUN": 1},
    **{"MS": 12, "ME": 12, "2MS": 6, "5MS": 1, "QS-JAN": 4, "2QS-JAN": 2, "BQE-DEC": 4, "YS-JAN": 1},
}


def waves(freq: str, rows: int = 60, start: str = "2020-01-01", hours: float = 24) -> pd.DataFrame:
    dates = pd.date_range(start, periods=rows, freq=freq)
    return pd.DataFrame({"date": dates, "y": 5 + np.sin((dates - dates[0]) / pd.Timedelta(hours=hours) * 2 * np.pi)})


def test_default_season_of_each_frequency() -> None:
    for freq, season in SEASONS.items():
        assert femts.load_dataset(waves(freq)).season == season


def test_default_season_fits_a_daily_cycle() -> None:
    for freq in ["5h", "7min", "90min", "23h", "17min"]:
        assert femts.train(waves(freq, 1200), "seasonal_naive", 24).metrics["test"]["mse"] < 0.01, "of a variance of 1"


def test_explicit_season_and_frequency_are_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table = waves("h", 600, hours=18)
    table.to_csv("table.csv", index=False)
    first = ["--dataset", "table.csv", "--model", "seasonal_naive", "--horizon", "24", "--season", "18", "--freq", "h"]
    for out, options in {"run": first, "again": ["--config", "run/config.yaml"]}.items():
        assert main(["train", *options, "--out", out]) == 0
        loaded = femts.load(out)
        assert loaded.season == loaded.config.model_config.season == loaded.metrics["test"]["season"] == 18  # type: ignore[attr-defined]
        assert loaded.config.schema.freq == "h"
        assert loaded.config.seq_len % 18 == 0, "whole seasons"
        assert loaded.evaluate()["mse"] < 1e-9
        assert loaded.training_data().season == 18
    beside = femts.backtest(loaded, table, n_windows=2, step_size=24)
    assert np.abs(beside["seasonal_naive"] - beside["actual"]).max() < 1e-9
    assert femts.load_dataset(table, season=1).season == 1, "none"
    assert femts.load_dataset("synthetic", season=[12, 168]).season == 12


def two_seasons() -> tuple[pd.DataFrame, NDArray[np.float64]]:
    """A daily and a stronger weekly cycle, and the following values."""
    hour = np.arange(700)
    y = np.sin(hour * 2 * np.pi / 24) + 2 * np.sin(hour * 2 * np.pi / 168)
    return pd.DataFrame({"date": pd.date_range("2024", periods=652, freq="h"), "y": y[:652]}), y[652:]


def test_first_of_several_seasons_is_the_default() -> None:
    for season, first in [([24, 168], 24), ("168,24", 168)]:
        trained = femts.train(femts.load_dataset(two_seasons()[0], season=season), "seasonal_naive", 24)  # type: ignore[arg-type]
        assert trained.season == trained.config.model_config.season == trained.metrics["test"]["season"] == first  # type: ignore[attr-defined]


def test_mstl_uses_every_season() -> None:
    pytest.importorskip("statsforecast")
    table, after = two_seasons()
    errors = []
    for season in (24, [24, 168], [24, 5000]):
        data = femts.load_dataset(table, season=season)
        trained = femts.train(data, "mstl", 48, settings={"model.windows": 1})
        errors.append(np.square(trained.predict(table)["y"] - after).mean())
    assert errors[1] < 0.05 < errors[0] == errors[2], "one that the rows do not hold twice is left out"


def test_explicit_frequency_overrides_inference() -> None:
    days = waves("D", 300)
    some = days[days["date"].dt.day_of_week.isin([0, 2, 4])]
    assert femts.load_dataset(some).freq == "1D"
    trained = femts.train(femts.load_dataset(some, freq="D"), "naive", 7)
    assert trained.freq == trained.config.schema.freq == "D"
    with pytest.warns(femts.errors.GapWarning):
        assert set(trained.predict(some)["date"].dt.day_of_week) == {0, 2, 4}, "never a value on other days"
    assert femts.load_dataset(days.iloc[::2], freq="D").values.shape == (299, 1), "guessed to be of every second day"
    assert femts.load_dataset(days.head(2).assign(date=[1, 3]), freq="1").freq == "1"
    assert femts.load_dataset(waves("2B"), freq="2B").season == 5, "shown as of two days, with gaps"
    panel = pd.concat([some.assign(unique_id=name) for name in "ab"]).rename(columns={"date": "ds"})
    assert femts.load_dataset(panel, freq="D", panel=True).freq == "D"
    assert femts.load_dataset("synthetic", freq="h").freq == "h"
    with pytest.raises(UsageError, match="has the step 'h', not 'D'; remove freq='D'"):
        femts.load_dataset("synthetic", freq="D")


def test_invalid_season_or_frequency_is_refused() -> None:
    for reading, says in [
        ({"freq": "s"}, "the requested step 's' at data row 2 .*: nine in ten of the stamps are missing"),
        ({"freq": 2}, "the requested step '2' at data row 1"),
        ({"freq": "99999999999D"}, "Step '99999999999D' is not a pandas frequency; use h, 15min"),
        ({"freq": "fortnight"}, "Step 'fortnight' is not a pandas frequency; use h, 15min"),
        ({"freq": "-1h"}, "Step '-1h' is no"),
        ({"freq": 0}, "Step '0' is no"),
        ({"season": 0}, "Season '0' is not a number of steps"),
        ({"season": "24,week"}, "Season '24,week' is no"),
        ({"season": [24, 24]}, "nor a list of different ones"),
        ({"season": [[24]]}, r"Season '\[\[24\]\]' is no"),
    ]:
        with pytest.raises(UsageError, match=says):
            femts.load_dataset(waves("W-WED"), **reading)  # type: ignore[arg-type]


def test_long_gaps_are_filled_with_a_warning() -> None:
    days = pd.date_range("2010-01-01", "2020-01-01")
    table = pd.DataFrame({"date": days[:400].append(days[3000:3400]), "a": np.arange(800.0) ** 2 % 7})
    data = femts.load_dataset(table)
    assert data.freq == "D" and len(data.values) == 3400
    assert (
        data.notes[0]
        == "only 800 of the 3400 time stamps at its step 'D' are present; the others are filled with missing values"
    )
    assert femts.load_dataset(table.assign(date=[*range(400), *range(3000, 3400)])).freq == "1"
    assert femts.load_dataset(table[::2]).freq == "2D"
    for stray in (table.drop(index=range(401, 800)), table.drop(index=range(399))):
        with pytest.raises(UsageError, match=r"remove those beyond a long gap, as only 401 of \d+ are present"):
            femts.load_dataset(stray)


def test_subdaily_frequencies_have_a_weekly_season() -> None:
    for freq, further in [
        ("h", (168,)),
        ("30min", (336,)),
        ("15min", (672,)),
        ("6h", (28,)),
        ("D", ()),
        ("MS", ()),
        ("5h", ()),
        (None, ()),
        ("1", ()),
    ]:
        assert further_seasons(freq) == further


@pytest.mark.parametrize(("years", "step"), [(5, "5YS"), (2, "2YS")])
def test_step_advised_for_rows_years_apart_can_be_followed(years: int, step: str) -> None:
    random = np.random.default_rng(0)
    days = random.integers(-40, 40, 30) * years + np.arange(30) * round(365.25 * years)
    days[7] += 200 * years  # so that some periods are skipped
    dates = (pd.Timestamp("1800-06-01") + pd.to_timedelta(np.sort(days), unit="D")).astype("M8[s]")
    with pytest.raises(UsageError, match=f"irregular time stamps: .*; resample with freq='{step}'"):
        step_of(dates)
    made = femts.load_dataset(pd.DataFrame({"date": dates, "value": np.arange(30.0)}), freq=step)
    assert made.freq == f"{step}-JAN" and 29 <= made.rows <= 33
