"""Times at which a series never has a value, such as nights or Sundays, are left out of forecasts and totals."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import femts
from femts.cli import main
from femts.data.closures import Closures, closed_ahead
from femts.errors import GapWarning, UsageError

SHUT = {"north": 6, "south": 0}  # weekday of each shop


def daily(shut: int = 6, rows: int = 100) -> pd.DataFrame:
    """Visits on days from a Wednesday on, without one day of the week."""
    dates = pd.date_range("2024-01-03", periods=rows)
    table = pd.DataFrame({"date": dates, "visits": 50 + 10 * (dates.day_of_week == 5) + np.arange(rows) % 3})
    return table[dates.day_of_week != shut]


def shops() -> pd.DataFrame:
    return pd.concat([daily(shut).assign(shop=name) for name, shut in SHUT.items()], ignore_index=True)


def masked(table: pd.DataFrame, steps: int, **reading: Any) -> pd.DataFrame:
    """The closures of the steps after a table with one column of values, by stamp."""
    data = femts.load_dataset(table, **reading)
    assert data.stamps is not None and data.freq is not None
    ahead = pd.date_range(data.stamps[-1], periods=steps + 1, freq=data.freq)[1:]
    return pd.DataFrame(closed_ahead(None, np.array([-1]), data, ahead)[0], ahead)


def test_a_day_of_the_week() -> None:
    made = masked(daily(), 28)
    assert (made[0] == (made.index.day_of_week == 6)).all() and made[0].sum() == 4


def test_nights_and_weekends_of_readings_by_the_half_hour() -> None:
    dates = pd.date_range("2024-01-01", "2024-02-15", freq="30min")
    opens = (dates.day_of_week < 5) & (dates.hour >= 8) & (dates.hour < 17)
    table = pd.DataFrame({"date": dates, "visits": np.arange(len(dates)) % 7 + 0.5})[opens]
    made = masked(table, 14 * 48)
    assert (~made[0]).equals(
        pd.Series((made.index.day_of_week < 5) & (made.index.hour >= 8) & (made.index.hour < 17), made.index)
    )


def test_months_of_a_season() -> None:
    dates = pd.date_range("2015-01-01", "2022-03-01", freq="MS")
    table = pd.DataFrame({"date": dates, "visits": np.arange(len(dates)) % 7 + 0.5})[dates.month < 5]
    made = masked(table, 12, freq="MS")
    assert (made[0] == (made.index.month >= 5)).all()


@pytest.mark.parametrize("kept", [0.6, 0.85])
def test_values_that_are_missing_by_chance(kept: float) -> None:
    table = daily(shut=7, rows=60).reset_index(drop=True)
    table["visits"] = table["visits"].where(np.random.default_rng(1).random(60) < kept)
    assert not masked(table, 14).to_numpy().any()


def test_three_times_are_too_few() -> None:
    assert not masked(daily(rows=25), 14).to_numpy().any() and masked(daily(rows=33), 14).to_numpy().any()


def test_readings_that_are_coarser_than_the_step_are_filled() -> None:
    dates = pd.date_range("2024-01-01", periods=200, freq="3h")
    data = femts.load_dataset(pd.DataFrame({"date": dates, "load": np.arange(200) % 8 + 0.5}), freq="h")
    assert Closures.fit(data) is None


def test_columns_have_their_own() -> None:
    table = daily(6).merge(daily(0), "outer", "date", suffixes=("_north", "_south")).sort_values("date")
    with pytest.warns(GapWarning, match="^4 of 28 values are at times"):
        made = femts.forecast(table, 14, level=None)
    days = pd.DatetimeIndex(made["date"]).day_of_week
    assert len(made) == 14
    assert (made["visits_north"].isna() == (days == 6)).all() and (made["visits_south"].isna() == (days == 0)).all()


def test_forecasts_leave_them_out_and_say_so() -> None:
    table = daily()
    match = r"2 of 14 steps are at times of the day, week or year that never have a value, the first at 2024-04-14 .*leaves them out"
    with pytest.warns(GapWarning, match=match):
        made = femts.forecast(table, 14)
    assert len(made) == 12 and not made.isna().to_numpy().any()
    assert (pd.DatetimeIndex(made["date"]).day_of_week != 6).all()


def test_a_horizon_without_any_step_names_one_that_has() -> None:
    table = daily()
    table = table[table["date"] <= "2024-04-06"]  # a Saturday
    with pytest.raises(UsageError, match="the 1 step after it; ask for at least horizon=2") as refused:
        femts.forecast(table, 1)
    assert refused.value.remedy == {"horizon": 2}
    assert femts.forecast(table, 2)["date"].tolist() == [pd.Timestamp("2024-04-08")]


@pytest.mark.parametrize("season", [24, 1])
@pytest.mark.filterwarnings("ignore::femts.errors.GapWarning")
def test_the_horizon_of_the_remedy_reaches_over_closed_days(season: int) -> None:
    dates = pd.date_range("2024-01-01", "2024-03-18", freq="h")  # a Monday
    opens = (dates.day_of_week >= 5) & (dates.hour >= 9) & (dates.hour < 17)
    table = pd.DataFrame({"date": dates, "visits": np.arange(len(dates)) % 5 + 3.0})[opens]
    data = femts.load_dataset(table, freq="h", season=season)
    with pytest.raises(UsageError) as refused:
        femts.forecast(data, 48)
    made = femts.forecast(data, refused.value.remedy["horizon"])
    assert made["date"].tolist() == [pd.Timestamp("2024-03-23 09:00:00")]


@pytest.mark.filterwarnings("ignore::femts.errors.GapWarning")
def test_gaps_that_are_counted_are_those_of_open_times() -> None:
    table = daily(rows=150).assign(price=1.0 + np.arange(129) % 2)
    table.loc[table.index[-3], ["visits", "price"]] = np.nan
    data = femts.load_dataset(table, target="visits", future_covariates="price")
    assert [note.partition(", in ")[0] for note in data.notes if "missing" in note][-2:] == [
        "42 of 300 values are missing at times of the day, week or year that never have one",
        "2 of 300 values are missing",
    ]
    fc, before = femts.train(data, "ridge", 7, seq_len=28), data.covariates.copy()
    with pytest.warns(GapWarning, match="lacks 1 of 28 values, the first in column 'visits'"):
        fc.predict(data, future=pd.DataFrame({"date": pd.date_range("2024-06-01", periods=7), "price": 1.0}))
    np.testing.assert_array_equal(data.covariates, before)


@pytest.fixture(scope="module")
def of_shops() -> femts.Forecaster:
    return femts.train(femts.load_dataset(shops(), target="visits"), "ridge", 14, seq_len=35, refit=True)


def open_days(made: pd.DataFrame) -> bool:
    return all(
        (pd.DatetimeIndex(of_one["date"]).day_of_week != SHUT[name]).all() for name, of_one in made.groupby("shop")
    )


@pytest.mark.filterwarnings("ignore::femts.errors.GapWarning")
def test_forecasts_and_paths_of_a_panel(of_shops: femts.Forecaster) -> None:
    made, paths = of_shops.predict(shops()), of_shops.sample(shops(), 2)
    assert len(made) == 24 and len(paths) == 48 and open_days(made) and open_days(paths)
    assert not paths.isna().to_numpy().any()


@pytest.mark.filterwarnings("ignore::femts.errors.GapWarning")
def test_totals_are_over_open_days(of_shops: femts.Forecaster) -> None:
    made = of_shops.predict(shops())
    each = of_shops.totals(shops(), over="total", by="shop").set_index("shop")
    assert each["steps"].tolist() == [12, 12]
    assert each["visits"].to_numpy() == pytest.approx(made.groupby("shop", sort=False)["visits"].sum(), rel=0.02)
    least = of_shops.totals(shops(), over="total", by="shop", how="min")["visits"]
    assert (least > 45).all()
    steps = of_shops.totals(shops(), over="step", by="all").set_index("date")["visits"]
    assert len(steps) == 14 and steps.loc["2024-04-14"] < 60 < steps.loc["2024-04-16"]


@pytest.mark.filterwarnings("ignore::femts.errors.GapWarning")
def test_new_series_have_those_that_all_have() -> None:
    table = pd.concat([daily().assign(shop=name) for name in SHUT], ignore_index=True)
    fc = femts.train(femts.load_dataset(table, target="visits"), "ridge", 14, seq_len=35)
    made = fc.predict(table, new=["west"])
    assert made["shop"].value_counts().to_dict() == {"north": 12, "south": 12, "west": 12}
    assert (pd.DatetimeIndex(made["date"]).day_of_week != 6).all()


@pytest.mark.filterwarnings("ignore::femts.errors.GapWarning")
def test_a_saved_run_knows_them_and_a_history_can_open_them(of_shops: femts.Forecaster, tmp_path: Path) -> None:
    of_shops.save(tmp_path / "run")
    loaded, recent = femts.load(tmp_path / "run"), shops().groupby("shop").tail(15)
    pd.testing.assert_frame_equal(loaded.predict(recent), of_shops.predict(recent))
    assert open_days(loaded.predict(recent)) and len(loaded.of("north").predict(daily().tail(30))) == 12
    sunday = pd.DataFrame({"date": [pd.Timestamp("2024-04-07")], "visits": 40.0, "shop": "north"})
    opened = pd.concat([shops(), sunday]).sort_values(["shop", "date"])
    made = loaded.predict(opened)
    assert made["shop"].value_counts().to_dict() == {"north": 14, "south": 12}


def test_future_covariates_are_not_needed_where_all_is_closed() -> None:
    table = daily(rows=150).assign(promotion=0.0)
    table.loc[table.index % 3 == 0, ["promotion", "visits"]] = 1.0, 80.0
    known, later = table[:-12], table[-12:].drop(columns="visits")
    data = femts.load_dataset(known, target="visits", future_covariates="promotion")
    fc = femts.train(data, "ridge", 14, seq_len=28)
    with pytest.warns(GapWarning, match="2 of 14 steps"):
        made = fc.predict(known, future=later)
    assert made["date"].tolist() == later["date"].tolist() and made["visits"].max() > 65
    with pytest.raises(UsageError, match="has no 'promotion' at 2024-05-18"):
        fc.predict(known, future=later[later["date"] != "2024-05-18"])


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "visits.csv", tmp_path / "out.csv"
    daily().to_csv(path, index=False)
    with warnings.catch_warnings():
        assert main(["forecast", str(path), "--horizon", "14", "--out", str(out)]) == 0
    assert "note: 2 of 14 steps are at times" in capsys.readouterr().err and len(pd.read_csv(out)) == 12


@pytest.mark.filterwarnings("ignore::femts.errors.GapWarning")
def test_pictures_leave_a_gap(of_shops: femts.Forecaster) -> None:
    panel = of_shops.plot(shops()).axes[0]
    line = next(each for each in panel.lines if each.get_label() == "forecast")
    days, values = pd.DatetimeIndex(line.get_xdata()), np.asarray(line.get_ydata(), dtype=float)
    assert len(days) == 15 and (np.isnan(values) == (days.day_of_week == 6)).all()
