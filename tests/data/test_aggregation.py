"""Rows that are aggregated over the steps of `freq`, because they do not keep them or because they are transactions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import femts
from femts.cli import main
from femts.errors import UsageError

NOTE = "do not keep the step"


def readings(n: int = 4000, seconds: float = 60.0, tz: str | None = "Europe/Berlin") -> pd.DataFrame:
    """Rows at random distances of about `seconds`, with gaps, a sentinel and a covariate known in advance."""
    rng = np.random.default_rng(0)
    since = pd.to_timedelta(np.cumsum(rng.uniform(0.5, 1.5, n) * seconds), unit="s")
    when = pd.Timestamp("2024-03-30 22:17", tz=tz) + since
    day = 2 * np.pi * np.arange(n) * seconds / 86400
    table = pd.DataFrame({"time": when, "load": 9 + np.sin(day) + 0.1 * rng.normal(size=n), "open": (day // 1) % 2})
    table.loc[5:8, "load"] = np.nan
    table.loc[70, "load"] = -999
    return table


@pytest.mark.parametrize(
    ("freq", "tz"), [("15min", "Europe/Berlin"), ("h", "Asia/Kolkata"), ("4h", "Europe/Berlin"), ("7min", None)]
)
def test_frequent_rows_are_averaged_over_the_steps_they_lie_in(freq: str, tz: str | None) -> None:
    table = readings(tz=tz)
    data = femts.load_dataset(table, columns={"time": "time"}, freq=freq, na=-999, target=["load", "open"])
    assert data.freq == freq and any(NOTE in note for note in data.notes)
    assert isinstance(data.stamps, pd.DatetimeIndex)
    ends = [*data.stamps[1:], data.stamps[-1] + (pd.Timedelta(1, "h") if freq == "h" else pd.Timedelta(freq))]
    for row, (stamp, end) in enumerate(zip(data.stamps, ends, strict=True)):
        inside = table[(table["time"] >= stamp) & (table["time"] < end)].replace(-999, np.nan)
        np.testing.assert_allclose(data.values[row], inside[["load", "open"]].mean().to_numpy(), rtol=1e-12)
    if freq != "7min":
        assert (data.stamps.minute % {"15min": 15}.get(freq, 60) == 0).all()
    if freq == "4h":
        assert (data.stamps.hour % 4 == 0).all(), "before and after clocks are set forward"


def test_jittered_rows_move_to_the_nearest_step() -> None:
    steps = pd.date_range("2024-01-01", periods=300, freq="15min")
    jitter = pd.to_timedelta(np.random.default_rng(0).uniform(-200, 200, 300), unit="s")
    table = pd.DataFrame({"date": steps + jitter, "y": np.sin(np.arange(300.0))})
    assert femts.load_dataset(table).freq == "15min", "the step nearest to the usual distance"
    data = femts.load_dataset(table.drop(index=[7, 8]), freq="15min")
    assert data.stamps is not None and data.stamps.equals(steps.as_unit(data.stamps.unit))  # type: ignore[attr-defined]
    np.testing.assert_array_equal(data.values[:, 0], table["y"].where(~table.index.isin([7, 8])))


@pytest.mark.parametrize(("freq", "first"), [("W-SUN", "2024-01-07"), ("MS", "2024-01-01"), ("D", "2024-01-01")])
def test_steps_of_the_calendar(freq: str, first: str) -> None:
    hours = pd.date_range("2024-01-01 00:30", periods=24 * 120, freq="h", tz="Europe/Berlin")
    values = np.random.default_rng(0).normal(size=len(hours))
    data = femts.load_dataset(pd.DataFrame({"date": hours, "y": values}), freq=freq)
    expected = pd.Series(values, hours).resample(freq).mean()
    np.testing.assert_allclose(data.values[:, 0], expected[:-1])  # the last row is the first hour of 30 April
    assert data.stamps is not None and data.stamps[0] == pd.Timestamp(first, tz="Europe/Berlin")


@pytest.mark.parametrize("how", [None, "sum"])
@pytest.mark.parametrize(
    ("freq", "end", "last"),
    [
        ("h", "2024-02-07 10:30", "2024-02-07 09:00"),
        ("h", "2024-02-07 10:45", "2024-02-07 10:00"),
        ("D", "2024-02-07 10:45", "2024-02-06"),
        ("D", "2024-02-07 23:45", "2024-02-07"),
        ("W-SUN", "2024-02-17 23:45", "2024-02-11"),
        ("W-SUN", "2024-02-18 23:45", "2024-02-18"),
        ("MS", "2024-02-28 23:45", "2024-01-01"),
        ("MS", "2024-02-29 23:45", "2024-02-01"),
        ("ME", "2024-02-28 23:45", "2024-01-31"),
        ("ME", "2024-02-29 23:45", "2024-02-29"),
    ],
)
def test_last_step_is_left_out_until_it_is_over(how: Any, freq: str, end: str, last: str) -> None:
    when = pd.date_range("2023-10-01", end, freq="15min")
    table = pd.DataFrame({"date": when, "y": np.arange(len(when)) % 7.0})
    data = femts.load_dataset(table, freq=freq, **({} if how is None else {"aggregate": how}))
    assert data.stamps is not None and data.stamps[-1] == pd.Timestamp(last)
    expected = getattr(pd.Series(table["y"].to_numpy(), when).resample(freq), how or "mean")()
    cut = int(how == "sum" and freq == "W-SUN")  # the first week has a Sunday alone
    np.testing.assert_allclose(data.values[:, 0], expected[cut : cut + len(data.values)])


def test_rows_on_the_steps_are_unchanged() -> None:
    table = pd.DataFrame({"date": pd.date_range("2024-01-01 00:07", periods=99, freq="h"), "y": np.arange(99.0)})
    data = femts.load_dataset(table.drop(index=4), freq="h")
    assert not any(NOTE in note for note in data.notes) and data.stamps is not None
    assert str(data.stamps[0]) == "2024-01-01 00:07:00" and np.isnan(data.values[4, 0])


def test_repeated_or_too_sparse_rows_are_refused() -> None:
    table = readings()
    how: Any = {"columns": {"time": "time"}}
    with pytest.raises(
        UsageError, match=r"repeats 1 date, .* and no columns name series; keep one row per date, or aggregate"
    ):
        femts.load_dataset(pd.concat([table, table.tail(1).assign(load=1e3)]), freq="h", **how)
    with pytest.raises(UsageError, match=r"the requested step 's' .* nine in ten of the stamps are missing"):
        femts.load_dataset(table, freq="s", **how)
    with pytest.raises(UsageError, match="has the text 'off' in column 'load'"):
        femts.load_dataset(table.astype({"load": object}).replace({"load": {-999: "off"}}), freq="h", **how)


def test_a_run_averages_the_tables_that_it_is_given(tmp_path: Path) -> None:
    table = readings()
    data = femts.load_dataset(table, columns={"time": "time"}, freq="15min", na=-999, future_covariates="open")
    forecaster = femts.train(data, "ridge", 8, seq_len=48, out=tmp_path / "run")
    ahead = readings(600).assign(time=lambda rows: rows["time"] + (table["time"].iloc[-1] - rows["time"].iloc[0]))
    forecast = forecaster.predict(table, future=ahead)
    regular = data.frame()
    quarters = ahead.assign(time=ahead["time"].dt.floor("15min")).groupby("time", as_index=False)["open"].mean()
    pd.testing.assert_frame_equal(forecast, forecaster.predict(regular, future=quarters))
    ours, theirs = (femts.backtest(forecaster, rows, n_windows=3) for rows in (table, regular))
    pd.testing.assert_frame_equal(ours, theirs)
    table.to_csv(tmp_path / "readings.csv", index=False)
    ahead.to_csv(tmp_path / "ahead.csv", index=False)
    command = ["predict", tmp_path / "run", tmp_path / "readings.csv", "--future", tmp_path / "ahead.csv"]
    assert main([*map(str, command), "--out", str(tmp_path / "next.csv")]) == 0
    written = pd.read_csv(tmp_path / "next.csv")
    np.testing.assert_allclose(written["load"], forecast["load"], rtol=1e-9)
    assert list(pd.to_datetime(written["time"], utc=True)) == list(forecast["time"])


def test_a_run_with_an_explicit_step_averages_later_readings() -> None:
    steps = pd.date_range("2024-01-01", periods=400, freq="15min")
    table = pd.DataFrame({"date": steps, "y": np.random.default_rng(0).normal(size=400)})
    late = table.assign(date=steps + pd.to_timedelta(np.arange(400) % 7, unit="min"))
    expected = femts.train(table, "ridge", 4, seq_len=24, freq="15min").predict(table)
    pd.testing.assert_frame_equal(femts.train(table, "ridge", 4, seq_len=24, freq="15min").predict(late), expected)
    with pytest.raises(
        UsageError, match=r"'15min' of the training data .*, or train with freq='15min', which averages"
    ):
        femts.train(table, "ridge", 4, seq_len=24).predict(late)


def test_series_of_a_panel_are_averaged_separately() -> None:
    parts = [readings(900 + 50 * n).assign(host=name, room=n + 0.1) for n, name in enumerate("ba")]
    panel = pd.concat(parts).sample(frac=1, random_state=0)
    columns = {"time": "time", "series": "host"}
    roles: Any = {"target": "load", "static_covariates": "room", "na": -999}
    data = femts.load_dataset(panel, columns=columns, freq="h", **roles)
    assert len(data) == 2 and data.static is not None and any(NOTE in note for note in data.notes)
    for name, part in zip("ba", parts, strict=True):
        alone = femts.load_dataset(part[["time", "load"]], columns={"time": "time"}, freq="h", na=-999)
        start, stop = data.spans[data.series.index(name)]
        np.testing.assert_allclose(data.values[start:stop], alone.values)


def orders(n: int = 3000) -> pd.DataFrame:
    """Orders of three stores over 90 days, one of which opens late and one of which closes early."""
    rng = np.random.default_rng(0)
    when = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 90 * 24 * 60, n), unit="min")
    table = pd.DataFrame({"date": when, "store": rng.choice(list("abc"), n), "qty": rng.integers(1, 5, n) / 2})
    table["price"] = rng.normal(9, 1, n)
    late = (table["store"] == "b") & (table["date"] < "2024-01-20")
    early = (table["store"] == "c") & (table["date"] > "2024-03-10")
    closed = table["date"].dt.day_name() == "Sunday"
    return table[~(late | early | closed)].reset_index(drop=True)


HOW: Any = {"columns": {"time": "date", "series": "store"}, "target": "qty", "freq": "D"}


def test_transactions_are_added_up() -> None:
    table = orders()
    data = femts.load_dataset(table, aggregate="sum", future_covariates="price", **HOW)
    assert "each step of 'D' is the sum of its rows" in data.notes
    for name, lines in table.groupby("store"):
        daily = lines.set_index("date").resample("D")
        own = data[str(name)]
        days = pd.date_range(lines["date"].min().normalize(), table["date"].max(), freq="D")
        assert own.stamps is not None and list(own.stamps) == list(days)
        np.testing.assert_allclose(own.values[:, 0], daily["qty"].sum().reindex(days, fill_value=0.0))
        np.testing.assert_allclose(own.covariates[:, 0], daily["price"].mean().reindex(days))
        assert (own.values[own.stamps.day_name() == "Sunday", 0] == 0).all()  # type: ignore[attr-defined]
    wide = femts.load_dataset(table[["date", "qty"]], freq="D", aggregate="sum")
    np.testing.assert_allclose(wide.values[:, 0], table.set_index("date")["qty"].resample("D").sum())


@pytest.mark.parametrize("how", ["mean", "median", "min", "max"])
def test_other_aggregates(how: str) -> None:
    table = orders()[["date", "qty"]]
    data = femts.load_dataset(table, freq="D", aggregate=how)
    np.testing.assert_allclose(data.values[:, 0], getattr(table.set_index("date")["qty"].resample("D"), how)())


def test_steps_of_missing_values_alone_have_no_sum() -> None:
    table = orders()
    table.loc[table["date"].dt.date == pd.Timestamp("2024-02-07").date(), "qty"] = np.nan
    data = femts.load_dataset(table[["date", "qty"]], freq="D", aggregate="sum")
    assert np.flatnonzero(np.isnan(data.values[:, 0])).tolist() == [37]


def test_a_run_adds_up_the_transactions_that_it_is_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, path = orders(), tmp_path / "orders.csv"
    table.to_csv(path, index=False)
    words = ["--columns", "time=date,series=store", "--target", "qty", "--freq", "D"]
    command = ["train", "--dataset", str(path), "--model", "ridge", "--horizon", "7", "--seq-len", "14", *words]
    assert main([*command, "--out", str(tmp_path / "run")]) == 2
    assert "keep one row per date, or add them up, as with --freq D --aggregate sum" in capsys.readouterr().err
    assert main([*command, "--aggregate", "sum", "--out", str(tmp_path / "run")]) == 0
    forecaster = femts.load(tmp_path / "run")
    forecast = forecaster.predict(table)
    pd.testing.assert_frame_equal(forecast, forecaster.predict(forecaster.training_data()))
    assert forecast["date"].nunique() == 7, "all series end with the table"
    assert main(["predict", str(tmp_path / "run"), str(path), "--out", str(tmp_path / "next.csv")]) == 0
    np.testing.assert_allclose(pd.read_csv(tmp_path / "next.csv")["qty"], forecast["qty"])


def test_invalid_aggregates_are_refused() -> None:
    for given, says in (
        ({"aggregate": "summ", "freq": "D"}, "^Unknown aggregate 'summ'; did you mean 'sum'"),
        ({"aggregate": "sum"}, "needs the step as a time; add freq='D' or the like"),
        ({"aggregate": "sum", "freq": 1}, "needs the step as a time"),
        ({"aggregate": 3, "freq": "D"}, "Argument 'aggregate'"),
        ({"aggregate": "sum", "freq": "D", "target": "sold"}, "has no column 'sold'"),
    ):
        with pytest.raises(UsageError, match=says):
            femts.load_dataset(orders(), **given)  # type: ignore[arg-type]


CLOCKS_SET_BACK = {  # a zone, a day on which its clocks are set back, and the step of the rows
    "berlin": ("Europe/Berlin", "2024-10-27", "h"),
    "quarters": ("Europe/Berlin", "2024-10-27", "15min"),
    "new-york": ("America/New_York", "2024-11-03", "h"),
    "havana": ("America/Havana", "2024-11-03", "h"),
    "cairo": ("Africa/Cairo", "2024-11-01", "30min"),
    "sydney": ("Australia/Sydney", "2024-04-07", "10min"),
}


@pytest.mark.parametrize("name", CLOCKS_SET_BACK)
@pytest.mark.parametrize("kind", ["wide", "panel"])
def test_hours_that_clocks_repeat_are_averaged(name: str, kind: str) -> None:
    zone, day, freq = CLOCKS_SET_BACK[name]
    stamps = pd.date_range(pd.Timestamp(day) - pd.Timedelta("9D"), periods=20 * 96, freq=freq, tz=zone).tz_localize(
        None
    )
    table = pd.DataFrame({"date": stamps, "y": np.arange(len(stamps)) * 1.0})
    if kind == "panel":
        table = pd.concat([table.assign(unique_id=key) for key in "ab"]).rename(columns={"date": "ds"})
    step = pd.Timedelta(1, "h") // pd.Timedelta(pd.tseries.frequencies.to_offset(freq))
    data = femts.load_dataset(table)
    assert data.freq == freq
    says = f"repeat {step} time stamp{'s' * (step > 1)}, the first "
    assert sum(says in note for note in data.notes) == 1
    data = data["a"] if kind == "panel" else data
    read = pd.Series(data.values[:, 0], pd.DatetimeIndex(data.stamps))
    expected = pd.Series(np.arange(len(stamps)) * 1.0, stamps).groupby(level=0).mean()
    pd.testing.assert_series_equal(read, expected.asfreq(freq), check_freq=False, check_names=False)
    assert len(stamps) - len(expected) == step


def test_other_repeated_hours_are_refused() -> None:
    hours = pd.date_range("2024-01-01", periods=480, freq="h")
    for twice in ([2], [26, 50], [12]):
        stamps = hours.insert(300, hours[twice[0]]) if twice != [26, 50] else hours.append(hours[twice])
        table = pd.DataFrame({"date": stamps, "y": np.arange(float(len(stamps)))})
        if twice == [2]:
            assert len(femts.load_dataset(table, freq="h").values) == 480
        else:
            with pytest.raises(UsageError, match=r"no columns that name series|repeats"):
                femts.load_dataset(table, freq="h")


@pytest.mark.parametrize("freq", ["bh", "cbh", "2bh"])
@pytest.mark.parametrize("tz", [None, "Europe/Berlin"], ids=["naive", "zoned"])
def test_rows_in_business_hours_are_averaged(freq: str, tz: str | None) -> None:
    table = readings(1600, 1500.0, tz=tz)
    data = femts.load_dataset(table[["time", "load"]], columns={"time": "time"}, freq=freq, na=-999)
    stamps, hours = pd.DatetimeIndex(data.stamps), 2 if freq == "2bh" else 1
    assert data.freq == freq and data.season == 8 // hours
    assert set(stamps.hour) == set(range(9, 17, hours)) and set(stamps.day_of_week) == set(range(5))
    for row in (0, 5, 70, len(stamps) - 1):
        inside = table["time"].between(stamps[row], stamps[row] + pd.Timedelta(hours=hours), inclusive="left")
        np.testing.assert_allclose(data.values[row, 0], table["load"][inside].replace(-999, np.nan).mean())
    assert "outside business hours left out" in data.notes[0]
    made = femts.train(table[["time", "load"]], "seasonal_naive", 8, freq=freq, na=-999, seq_len=16)
    ahead = made.predict(table[["time", "load"]])
    assert (ahead["time"].dt.hour.isin(range(9, 17, hours)) & (ahead["time"].dt.day_of_week < 5)).all()
    hours_only = femts.load_dataset(pd.DataFrame({"date": stamps, "y": np.arange(len(stamps)) * 1.0}), freq=freq)
    np.testing.assert_array_equal(hours_only.values[:, 0], np.arange(len(stamps)))
    night = table[table["time"].dt.hour >= 20]
    with pytest.raises(UsageError, match=f"no rows in business hours, the requested step '{freq}'; give another step"):
        femts.load_dataset(night, columns={"time": "time"}, freq=freq)


@pytest.mark.parametrize("aggregate", [None, "sum", "count"])
@pytest.mark.parametrize("freq", ["1ns", "5ns", "us"])
def test_much_too_short_steps_are_refused(freq: str, aggregate: str | None) -> None:
    table = readings(1600, 1500.0)
    how: dict[str, Any] = {} if aggregate is None else {"aggregate": aggregate}
    with pytest.raises(
        UsageError, match=r"steps of '(5ns|ns|us)'; give a longer step|does not keep the requested step"
    ):
        femts.load_dataset(table[["time", "load"]], columns={"time": "time"}, freq=freq, na=-999, **how)


def test_stray_date_is_refused_in_sums() -> None:
    table = readings(1600, 1500.0)[["time", "load"]]
    table.loc[0, "time"] = pd.Timestamp("1970-01-01", tz=table["time"].dt.tz)
    with pytest.raises(UsageError, match=r"from 1970-01-01 .* remove stray dates"):
        femts.load_dataset(table, columns={"time": "time"}, freq="min", aggregate="sum", na=-999)


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
@pytest.mark.parametrize(
    ("freq", "first", "last"),
    [
        ("D", "2024-01-04", "2024-05-08"),
        ("W-SUN", "2024-01-14", "2024-05-05"),
        ("MS", "2024-02-01", "2024-04-01"),
        ("ME", "2024-02-29", "2024-04-30"),
    ],
)
def test_sums_of_steps_that_the_rows_do_not_cover_are_left_out(
    freq: str, first: str, last: str, zone: str | None
) -> None:
    when = pd.date_range("2024-01-03 05:00", "2024-05-09 13:00", freq="h", tz=zone)
    table = pd.DataFrame({"date": when, "y": np.arange(len(when)) % 7.0})
    for how in ("sum", "count"):
        data = femts.load_dataset(table, freq=freq, aggregate=how)
        assert data.stamps is not None
        assert [str(each)[:10] for each in data.stamps[[0, -1]]] == [first, last]
        expected = table.set_index("date")["y"].resample(freq).agg(how)
        np.testing.assert_allclose(data.values[:, 0], expected[data.stamps])
        assert any("are left out, because the rows do not cover all of them" in note for note in data.notes)
    assert str(femts.load_dataset(table, freq=freq, aggregate="mean").stamps[0])[:10] < first  # type: ignore[index]


def test_sums_of_whole_steps_are_kept() -> None:
    for begin, end, steps in (("2024-01-01", "2024-12-31", 12), ("2024-01-02", "2024-12-31", 11)):
        days = pd.date_range(begin, end)
        data = femts.load_dataset(
            pd.DataFrame({"date": days, "y": np.arange(len(days)) % 7.0}), freq="MS", aggregate="sum"
        )
        assert data.rows == steps


@pytest.mark.parametrize("clock", [False, True])
def test_events_cut_off_at_both_ends(clock: bool) -> None:
    """Between 17 March and 25 May, hardly a day is without events, but more than half of the first month is."""
    rng = np.random.default_rng(0)
    days = rng.uniform(0, 800, 5000) if clock else rng.integers(0, 800, 5000).astype(float)
    events = pd.DataFrame({"date": pd.Timestamp("2022-03-17") + pd.to_timedelta(np.sort(days), unit="D"), "y": days})
    data = femts.load_dataset(events, freq="MS", aggregate="count")
    assert data.stamps is not None and [str(each) for each in data.stamps[[0, -1]]] == [
        "2022-04-01 00:00:00",
        "2024-04-01 00:00:00",
    ]
    assert any("2022-03-01 and 2024-05-01 are left out" in note for note in data.notes)
    assert femts.load_dataset(events, freq="D", aggregate="count").rows == 800
    rare = events.iloc[np.sort(rng.choice(5000, 25, replace=False))]
    months = (rare["date"].iloc[-1].to_period("M") - rare["date"].iloc[0].to_period("M")).n + 1
    assert femts.load_dataset(rare, freq="MS", aggregate="count").rows == months


def test_later_series_begin_with_whole_steps() -> None:
    """The first month of a shop that opened within it is missing, and not low or 0, also in a table given to a run."""
    parts = [
        pd.DataFrame({"shop": shop, "date": pd.date_range(begin, "2024-12-31"), "y": 1.0})
        for shop, begin in (("a", "2022-01-01"), ("b", "2022-06-11"))
    ]
    for part in parts:
        part["y"] += np.arange(len(part)) % 3
    table = pd.concat(parts)
    data = femts.load_dataset(table, target="y", columns={"series": "shop"}, freq="MS", aggregate="sum")
    assert data["b"].stamps is not None and str(data["b"].stamps[0]) == "2022-07-01 00:00:00"
    made = femts.train(data, "seasonal_naive", 3).predict(table)
    assert made["ds" if "ds" in made else "date"].nunique() == 3
