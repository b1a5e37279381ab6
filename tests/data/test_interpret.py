"""What is decided about a table for which the user gives no options, and how it is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import femts
from femts.data.dataset import Dataset
from femts.errors import UsageError

DAYS = pd.date_range("2023-01-02", periods=120)
WAVE = np.round(50 + 10 * np.sin(2 * np.pi * np.arange(120) / 7) + np.arange(120) ** 2 % 5, 2)


def table(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame({"date": DAYS, "load": WAVE, **columns})


def notes(data: Dataset) -> str:
    return "\n".join(data.notes)


LEFT_OUT: dict[str, tuple[dict[str, Any], str]] = {
    "a running number": ({"No": np.arange(1, 121)}, "'No' (numbers the rows)"),
    "flags": ({"holiday": (np.arange(120) % 30 == 3) * 1}, "'holiday' (contains flags)"),
    "weekdays": ({"weekday": DAYS.day_of_week}, "'weekday' (follows from the date)"),
    "years and months": (
        {"year": DAYS.year, "month": DAYS.month},
        "'month' (follows from the date)",
    ),
    "constants": ({"station": 4711, "unit": "kW"}, "'station', 'unit' (is constant)"),
    "almost nothing": ({"remark": [None] * 119 + ["new"]}, "'remark' (is empty, or almost)"),
    "categories": ({"weather": ["sun", "rain", "rain"] * 40}, "'weather' (contains categories)"),
    "a running total": ({"total": WAVE.cumsum()}, "'total' (is the running total of 'load')"),
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_columns_that_are_no_targets_are_left_out(name: str, tmp_path: Path) -> None:
    columns, words = LEFT_OUT[name]
    made = table(**columns)
    made.to_csv(tmp_path / "mine.csv", index=False)
    for source in (made, tmp_path / "mine.csv"):
        data = femts.load_dataset(source)
        assert data.columns == ("load",) and words in notes(data)
    run = femts.train(data, "seasonal_naive", 7)
    assert list(run.predict(made).columns) == ["date", "load"], "later tables have the columns, too"


@pytest.mark.parametrize("order", [1, -1])
def test_columns_that_name_series_are_found(order: int) -> None:
    parts = [
        table(city=city, kind=kind, id=np.arange(120) + 1000 * n).assign(load=WAVE + n)
        for n, (city, kind) in enumerate([("Ulm", "in"), ("Ulm", "out"), ("Graz", "in"), ("Graz", "out")])
    ]
    whole = pd.concat(parts).sort_values("date", kind="stable")[::order]
    data = femts.load_dataset(whole)
    assert sorted(data.series) == ["Graz / in", "Graz / out", "Ulm / in", "Ulm / out"] and data.columns == ("load",)
    assert "'city' and 'kind' name its 4 series" in data.notes
    np.testing.assert_array_equal(data["Graz / in"].values[:, 0], WAVE + 2)
    forecast = femts.train(data, "seasonal_naive", 7).predict(whole, series=["Ulm / out"])
    np.testing.assert_allclose(forecast["load"], (WAVE + 1)[-7:])


def test_one_series_of_several_is_forecast_jointly_on_request() -> None:
    whole = pd.concat([table(city=city) for city in ("Ulm", "Graz")])
    data = femts.load_dataset(whole, panel=False)
    assert data.columns == ("Ulm", "Graz") and data.rows == 120


TRANSACTIONS = pd.DataFrame(
    {
        "day": DAYS.repeat(np.arange(120) % 4 + 1),
        "order": np.arange(int((np.arange(120) % 4 + 1).sum())),
        "shop": "Ulm",
    }
).assign(amount=lambda f: f["order"] ** 2 % 97 + 0.5, shop=lambda f: np.where(f["order"] % 5 < 3, "Ulm", "Graz"))


def test_constant_values_of_several_series_are_forecast_jointly() -> None:
    dates = pd.date_range("2024-01-01", periods=40)
    table = pd.concat([pd.DataFrame({"date": dates, "shop": shop, "sold": 5.0 + n}) for n, shop in enumerate("pq")])
    for names in ({}, {"series": "shop"}):
        assert femts.load_dataset(table, panel=False, columns=names).columns == ("p", "q")


def test_remedy_for_transactions_works_to_the_letter() -> None:
    with pytest.raises(UsageError) as caught:
        femts.load_dataset(TRANSACTIONS)
    remedy, _, more = str(caught.value).partition("aggregate them with ")[2].partition(", and ")
    sums = femts.load_dataset(TRANSACTIONS, **eval(f"dict({remedy})"))
    np.testing.assert_allclose(sums.values[:, 0], TRANSACTIONS.groupby("day")["amount"].sum())
    by = eval(f"dict({remedy}, {more.partition(' for one series')[0]})")
    assert sorted(femts.load_dataset(TRANSACTIONS, **by).series) == ["Graz", "Ulm"]


def test_rows_are_counted() -> None:
    counts = femts.load_dataset(TRANSACTIONS.drop(index=range(10, 20)), freq="D", aggregate="count")
    expected = TRANSACTIONS.drop(index=range(10, 20)).groupby("day").size().reindex(DAYS, fill_value=0)
    assert counts.columns == ("count",)
    np.testing.assert_array_equal(counts.values[:, 0], expected)
    by: dict[str, Any] = {"freq": "D", "aggregate": "count", "columns": {"time": "day", "series": "shop"}}
    panel = femts.load_dataset(TRANSACTIONS, **by)
    late = 120 - panel["Graz"].rows
    both = panel["Ulm"].values[late:, 0] + panel["Graz"].values[:, 0]
    np.testing.assert_array_equal(both, (np.arange(120) % 4 + 1)[late:])
    with pytest.raises(UsageError, match="Rows are counted, so 'amount' cannot be a target"):
        femts.load_dataset(TRANSACTIONS, freq="D", aggregate="count", target="amount")


def test_sums_of_an_excerpt_begin_with_it() -> None:
    how: dict[str, Any] = {"freq": "D", "aggregate": "sum", "columns": {"time": "day", "series": "shop"}}
    run = femts.train(femts.load_dataset(TRANSACTIONS, target="amount", **how), "seasonal_naive", 7)
    recent = TRANSACTIONS[TRANSACTIONS["day"] >= DAYS[-14]]
    expected = run.predict(recent).set_index("shop")["amount"]
    ulm = run.predict(recent[recent["shop"] == "Ulm"]).set_index("shop")["amount"]
    np.testing.assert_allclose(ulm["Ulm"], expected["Ulm"])
    assert (ulm["Graz"].abs() < 1e-4).all(), "a known shop without a row sold nothing"


@pytest.mark.parametrize("number", [-200.0, -999.0, -9999.0, 9999.0, 1e20])
@pytest.mark.parametrize("kind", [float, "float32"])
def test_sentinels_are_found(number: float, kind: str) -> None:
    values = np.where(np.isin(np.arange(120), [5, 6, 7, 60, 119]), number, WAVE)
    made = table(load=values.astype(kind), heat=WAVE * 2)
    data = femts.load_dataset(made)
    assert (
        np.flatnonzero(np.isnan(data.values[:, 0])).tolist() == [5, 6, 7, 60, 119]
        and not np.isnan(data.values[:, 1]).any()
    )
    assert f"{number:g} in load is read as missing (5 values); keep such numbers with na='none'" in data.notes
    assert not np.isnan(femts.load_dataset(made, na="none").values).any()
    run = femts.train(data, "naive", 7)
    with pytest.warns(femts.errors.GapWarning):
        assert abs(run.predict(made)["load"] - WAVE[118]).max() < 1e-4, "also in later tables"


@pytest.mark.parametrize(
    "values", [np.arange(120) % 3 - 1, np.minimum(WAVE, 55), np.where(WAVE > 58, 66, WAVE), WAVE * 0]
)
def test_lawful_numbers_stay(values: Any) -> None:
    data = femts.load_dataset(table(other=values), target=["load", "other"])
    np.testing.assert_array_equal(data.values[:, 1], values)


@pytest.mark.parametrize(
    ("distance", "step"), [(150, "5min"), (55, "1min"), (3500, "1h"), (9, "10s"), (80_000, "1D"), (1_000, "15min")]
)
def test_uneven_readings_are_averaged_over_their_usual_distance(distance: int, step: str) -> None:
    rng = np.random.default_rng(0)
    when = pd.Timestamp("2024-03-01") + pd.to_timedelta(np.cumsum(rng.uniform(0.7, 1.3, 800) * distance), unit="s")
    data = femts.load_dataset(pd.DataFrame({"date": when, "y": rng.normal(size=800)}))
    assert data.freq == step and data.schema.freq == step and f"so the step is '{step}'" in notes(data)


def test_events_at_any_time_are_not_averaged() -> None:
    rng = np.random.default_rng(0)
    when = pd.Timestamp("2024-03-01") + pd.to_timedelta(np.cumsum(rng.pareto(0.7, 300) * 600), unit="s")
    with pytest.raises(UsageError, match="irregular time stamps"):
        femts.load_dataset(pd.DataFrame({"date": when, "magnitude": rng.normal(size=300)}))


@pytest.mark.parametrize(
    ("dates", "first"),
    [
        (pd.date_range("1954-06-01", periods=60, freq="MS").strftime("%d/%m/%Y"), "1954-06-01"),
        (pd.date_range("2024-01-01", periods=288, freq="h").strftime("%m/%d/%Y %H:%M"), "2024-01-01"),
        (pd.date_range("2001-06-11 11:00", periods=120, freq="10min").strftime("%m/%d/%Y %H:%M"), "2001-06-11 11:00"),
        (pd.date_range("1992-01-01", periods=11, freq="YS").strftime("%d/%m/%Y"), "1992-01-01"),
    ],
    ids=["months", "hours of twelve days", "minutes of a day", "years"],
)
def test_day_and_month_are_told_apart_by_even_steps(dates: pd.Index, first: str) -> None:
    data = femts.load_dataset(pd.DataFrame({"date": dates, "y": np.arange(len(dates)) ** 2 % 7}))
    assert data.stamps is not None and data.stamps[0] == pd.Timestamp(first)


def test_dates_that_are_even_both_ways_are_refused() -> None:
    days = pd.date_range("2024-01-01", periods=12).strftime("%m/%d/%Y")
    with pytest.raises(UsageError, match=r"ambiguous dates such as '01/02/2024', whose day could be the month"):
        femts.load_dataset(pd.DataFrame({"date": days, "y": np.arange(12) ** 2 % 7}))


AMOUNTS: dict[str, tuple[list[str], list[float]]] = {
    "dollars": (["$125,789.89", " $1,000 ", "$7"], [125789.89, 1000, 7]),
    "accounting": (["(1,234.50)", "2,000,000", "-12"], [-1234.5, 2e6, -12]),
    "points between thousands": (["1.292,41", "523,1", "1.027", "-"], [1292.41, 523.1, 1027, np.nan]),
    "percent": (["12 %", "7.5%", "-3%"], [12, 7.5, -3]),
    "footnotes": (["14.3*", "15.0", "9†"], [14.3, 15, 9]),
    "marks of nothing": (["***", "1.5", "2.5", "---"], [np.nan, 1.5, 2.5, np.nan]),
    "words of nothing": (["Not Available", "1.5", "2.5", "no data"], [np.nan, 1.5, 2.5, np.nan]),
}


@pytest.mark.parametrize("name", AMOUNTS)
def test_amounts_in_text_are_numbers(name: str) -> None:
    cells, numbers = AMOUNTS[name]
    times = 120 // len(cells)
    data = femts.load_dataset(table(load=cells * times))
    np.testing.assert_array_equal(data.values[:, 0], numbers * times)


def test_doubtful_thousands_are_refused() -> None:
    with pytest.raises(UsageError, match=r"has the text '1,234' in column 'load' .* remove thousands separators"):
        femts.load_dataset(table(load=["1,234", "7", "12"] * 40), target="load")


def test_rows_that_agree_are_merged() -> None:
    whole = table(heat=WAVE + 1)
    empty = whole.iloc[[3, 50]].assign(load=np.nan)
    data = femts.load_dataset(pd.concat([empty, whole, whole.tail(2)]))
    np.testing.assert_array_equal(data.values, whole[["load", "heat"]])
    assert "4 rows that repeat a date without another value are left out" in data.notes
    with pytest.raises(UsageError, match=r"repeats 1 date|no columns that name series"):
        femts.load_dataset(pd.concat([whole, whole.tail(1).assign(load=1.0)]))


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_days_at_varying_times_are_days(zone: str | None) -> None:
    when = (DAYS + pd.to_timedelta(17 + np.arange(120) % 3 / 2, unit="h")).tz_localize(zone)
    data = femts.load_dataset(table(date=when))
    assert data.freq == "D" and list(data.stamps) == list(DAYS.tz_localize(zone))  # type: ignore[arg-type]
    assert "every stamp falls on a different day, so stamps are read as days" in notes(data)


TIMES: dict[str, pd.DataFrame] = {
    "not the first": pd.DataFrame({"station": "x", "MESS_DATUM": DAYS.strftime("%Y%m%d0000").astype(int)}),
    "a year with months by name": pd.DataFrame(
        {
            "Year": np.arange(120) // 12 + 2000,
            "month": [f"{m:%B}" for m in pd.date_range("2000", periods=12, freq="MS")] * 10,
        }
    ),
    "short names of months": pd.DataFrame(
        {
            "year": np.arange(120) // 12 + 2000,
            "Month": [f"{m:%b}" for m in pd.date_range("2000", periods=12, freq="MS")] * 10,
        }
    ),
    "hours of a day": pd.DataFrame({"date": DAYS[:5].repeat(24), "time": np.tile(np.arange(24), 5)}),
    "parts and a clock": pd.DataFrame(
        {
            **{"Year": 2024, "m": 5, "d": np.repeat(np.arange(1, 6), 24)},
            "Time": [f"{hour:02}:00" for hour in range(24)] * 5,
        }
    ),
    "a clock without a name": pd.DataFrame(
        {"Datum": DAYS[:5].repeat(24).strftime("%d.%m.%Y"), "": [f"{hour:02}:00" for hour in range(24)] * 5}
    ),
}


@pytest.mark.parametrize("name", TIMES)
def test_time_stamps_are_found(name: str, tmp_path: Path) -> None:
    made = TIMES[name].assign(load=WAVE)
    made.to_csv(tmp_path / "mine.csv", index=False)
    data = femts.load_dataset(tmp_path / "mine.csv")
    assert data.columns == ("load",) and data.rows == 120 and data.values[:, 0].tolist() == WAVE.tolist()


def test_invalid_clocks_name_no_series() -> None:
    clocks = pd.DataFrame({"date": DAYS[:5].repeat(24), "hour": np.tile(np.arange(24) + 7, 5), "load": WAVE})
    with pytest.raises(UsageError, match="repeats 115 dates"):
        femts.load_dataset(clocks)


def test_numbers_are_no_header() -> None:
    made = table().rename(columns={"date": "0", "load": "50.25"}).assign(**{"0": range(120)})
    with pytest.raises(UsageError, match="has numbers such as '0' as column names; add a header row"):
        femts.load_dataset(made)


def test_identifiers_alone_are_not_forecast() -> None:
    numbers = np.random.default_rng(0).permutation(10**6)[:120]
    with pytest.raises(
        UsageError, match=r"has no column of numbers that could be forecast: 'order id' \(contains codes"
    ):
        femts.load_dataset(table().drop(columns="load").assign(**{"order id": numbers}))


def test_identifiers_named_for_sales_are_not_added_up() -> None:
    sales = TRANSACTIONS.assign(_SalesTeamID=np.random.default_rng(0).integers(3, 30, len(TRANSACTIONS)))
    with pytest.raises(UsageError) as caught:
        femts.load_dataset(sales)
    assert caught.value.remedy is not None and caught.value.remedy["target"] == ["amount"]


def test_other_dates_are_named_where_rows_repeat() -> None:
    hours = pd.date_range("2024-01-01", periods=240, freq="h")
    table = pd.DataFrame({"date": hours.strftime("%Y-%m-%d"), "datetime": hours.astype(str), "load": range(240)})
    table["load"] = np.sin(table["load"])
    with pytest.raises(
        UsageError, match=r"240 rows at 10 dates in 'date'.*; use the dates in 'datetime' with"
    ) as caught:
        femts.load_dataset(table)
    remedy = str(caught.value).partition("datetime' with ")[2].partition(", or ")[0]
    data = femts.load_dataset(table, **eval(f"dict({remedy})"))
    assert (data.freq, data.rows, data.columns) == ("h", 240, ("load",))
    assert "column 'date' is left out, since 'datetime' holds the time stamps" in data.notes
    with pytest.raises(UsageError, match="no columns that name series; aggregate them with"):
        femts.load_dataset(table.assign(datetime=hours.normalize() + pd.Timedelta(days=1)))  # which repeat as well


def test_column_that_names_series_but_for_a_row_is_in_the_remedy() -> None:
    dates = pd.date_range("2020-01-01", periods=48, freq="MS")
    cars = pd.concat([pd.DataFrame({"month": dates, "make": f"make {n}", "sold": 10.0 * n}) for n in range(40)])
    cars["sold"] += np.random.default_rng(0).integers(0, 9, len(cars))
    cars = pd.concat([cars, cars.iloc[[5]].assign(sold=1.0)], ignore_index=True)
    with pytest.raises(UsageError) as caught:
        femts.load_dataset(cars)
    remedy, _, by = str(caught.value).partition("aggregate them with ")[2].partition(", and ")
    data = femts.load_dataset(cars, **eval(f"dict({remedy}, {by.partition(' for one series')[0]})"))
    assert len(data.series) == 40 and data.lengths.tolist() == [48] * 40


def test_table_without_numbers_is_refused_with_its_columns() -> None:
    with pytest.raises(
        UsageError, match=r"has no column of numbers that could be forecast: 'weather' \(contains categ"
    ):
        femts.load_dataset(table(weather=["sun", "rain", "fog"] * 40).drop(columns="load"))


def test_sparse_series_of_a_panel_is_filled() -> None:
    some = table(city="Ulm").iloc[[*range(0, 120, 4)]]
    data = femts.load_dataset(pd.concat([table(city="Graz"), some]))
    assert data.series == ("Graz", "Ulm") and int(np.isfinite(data["Ulm"].values).sum()) == 30


@pytest.mark.parametrize(
    ("name", "per_day", "how", "other"),
    [
        ("amount", 8, "sum", None),
        ("price", 8, "mean", None),
        ("basket", 8, "sum", "mean"),  # transactions, of which the name tells nothing
        ("payment", 2, "sum", "mean"),
    ],
)
def test_remedy_for_rows_of_the_same_day_can_be_followed(name: str, per_day: int, how: str, other: str | None) -> None:
    random = np.random.default_rng(0)
    days = np.repeat(pd.date_range("2024-01-01", periods=150, freq="D"), random.poisson(per_day, 150))
    frame = pd.DataFrame({"date": days, name: random.gamma(2, 20, len(days)).round(2)})
    with pytest.raises(UsageError, match=f"aggregate='{how}'") as refused:
        femts.load_dataset(frame, target=name)
    assert refused.value.remedy["aggregate"] == how
    assert (f"or with aggregate='{other}' if" in str(refused.value)) == (other is not None)
    made = femts.load_dataset(frame, target=name, **refused.value.remedy)
    expected = frame.groupby("date")[name].agg(how)[:50]
    np.testing.assert_allclose(made.values[(expected.index - days[0]).days, 0], expected)
