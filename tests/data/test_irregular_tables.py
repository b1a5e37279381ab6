"""Irregular stamps, one series per row, compound keys and daylight saving time."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from combinations import in_turn

import femts
from femts.cli.run_options import read_history
from femts.data.frequency import step_of
from femts.data.recent import read_recent
from femts.data.schema import Schema
from femts.data.series_rows import from_rows
from femts.errors import UsageError

P, ROWS = 4, 60
MONTHS = pd.date_range("2005-01-01", periods=ROWS, freq="MS")
DAYS = np.random.default_rng(0).integers(27, 31, ROWS)
VARYING: dict[str, tuple[pd.DatetimeIndex, str]] = {
    "the 30th, February clipped": (
        pd.DatetimeIndex([min(m + pd.Timedelta(days=29), m + pd.offsets.MonthEnd(0)) for m in MONTHS]),
        "MS",
    ),
    "the 28th to the 31st": (
        pd.DatetimeIndex(
            [min(m + pd.Timedelta(days=int(d)), m + pd.offsets.MonthEnd(0)) for m, d in zip(MONTHS, DAYS, strict=True)]
        ),
        "MS",
    ),
    "the first, but one is late": (MONTHS.where(np.arange(ROWS) != 5, pd.Timestamp("2005-06-15")), "MS"),
    "the 15th": (MONTHS + pd.Timedelta(days=14), "MS"),
    "last working day but of a holiday": (
        pd.date_range("2005-01-01", periods=ROWS, freq="BME").where(np.arange(ROWS) != 11, pd.Timestamp("2005-12-29")),
        "MS",
    ),
    "quarters of February on": (
        pd.date_range("2005-02-01", periods=ROWS, freq="QS-FEB") + pd.to_timedelta(DAYS - 7, unit="D"),
        "QS-FEB",
    ),
    "quarters, any month": (
        pd.date_range("2005-01-01", periods=ROWS, freq="QS-JAN") + pd.to_timedelta(np.arange(ROWS) % 3 * 31, unit="D"),
        "QS-JAN",
    ),
    "the last Friday of June": (
        pd.DatetimeIndex(
            [
                june - pd.Timedelta(days=(june.weekday() - 4) % 7)
                for june in pd.date_range("1950", periods=ROWS, freq="YE-JUN")
            ]
        ),
        "YS-JUN",
    ),
    "years, any month": (
        pd.date_range("1950-01-01", periods=ROWS, freq="YS-JAN") + pd.to_timedelta(DAYS * 9 - 200, unit="D"),
        "YS-JAN",
    ),
    "a clock beside each": (MONTHS + pd.to_timedelta(DAYS - 3, unit="D") + pd.Timedelta(hours=9), "MS"),
    "a time zone": ((MONTHS + pd.Timedelta(days=14)).tz_localize("UTC"), "MS"),
}


def stamps(data: femts.Dataset) -> pd.Index:
    """Stamps of a dataset that has some."""
    assert data.stamps is not None
    return data.stamps


def dated(when: Any) -> pd.DataFrame:
    return pd.DataFrame({"date": when, "y": 50 + np.sin(np.arange(len(when))).cumsum()})


def trained_and_loaded(data: femts.Dataset, folder: Path, model: str = "naive") -> femts.Forecaster:
    femts.train(data, model, P, seq_len=12, device="cpu", out=folder / "run")
    loaded = femts.load(folder / "run")
    assert Schema.from_dict(loaded.config.schema.to_dict()) == loaded.config.schema
    return loaded


def forecast_of(forecaster: femts.Forecaster, table: pd.DataFrame, folder: Path, **more: Any) -> pd.DataFrame:
    """The forecast from a table, checked against the forecast from its file."""
    made = forecaster.predict(table, **more)
    table.to_csv(folder / "history.csv", index=False)
    pd.testing.assert_frame_equal(forecaster.predict(read_history(folder / "history.csv", forecaster), **more), made)
    if not forecaster.config.schema.panel:
        pieces = read_recent(
            folder / "history.csv", 12, forecaster.config.schema, forecaster.columns, forecaster.freq, cells=11
        )
        pd.testing.assert_frame_equal(forecaster.predict(pieces, **more), made)
    return made


@in_turn(name=tuple(VARYING), long=(False, True))
def test_varying_days_are_read_as_calendar_periods(name: str, long: bool, tmp_path: Path) -> None:
    when, freq = VARYING[name]
    begin = when[0].normalize().replace(day=1, month={"QS-FEB": 2, "YS-JUN": 6}.get(freq, 1))
    first = pd.date_range(begin, periods=ROWS + P, freq=freq)
    table = dated(when)
    if long:
        table = pd.concat([table.assign(unique_id=name) for name in "ab"]).rename(columns={"date": "ds"})
    data = femts.load_dataset(table)
    assert data.freq == freq and data.stamps is not None and list(data.stamps[:ROWS]) == list(first[:ROWS])
    (note,) = [note for note in data.notes if "stamps are read as" in note]
    kind = {"M": "month", "Q": "quarter", "Y": "year"}[freq[0]]
    assert note.startswith(f"every stamp falls in a different {kind}, so stamps are read as {kind}s (")
    forecast = forecast_of(trained_and_loaded(data, tmp_path), table, tmp_path)
    assert list(forecast["ds" if long else "date"].head(P)) == list(first[ROWS:])


def test_missing_months_become_missing_values() -> None:
    when, _ = VARYING["the 30th, February clipped"]
    data = femts.load_dataset(dated(when).drop(index=[5, 20, 21]))
    assert list(stamps(data)) == list(MONTHS) and np.flatnonzero(np.isnan(data.values[:, 0])).tolist() == [5, 20, 21]


def test_regular_frequency_is_kept() -> None:
    for freq in ["ME", "BME", "MS", "BMS", "28D", "QE-DEC", "BQE-DEC", "YE-JUN", "W-FRI"]:
        when = pd.date_range("2005-01-01", periods=ROWS, freq=freq)
        assert step_of(when) == step_of(when.delete([9, 30])) == freq.replace("28D", "4W-SAT") or freq == "28D"
        assert not [note for note in femts.load_dataset(dated(when)).notes if "stamps are read as" in note]


def fiscal(periods: int = 96) -> pd.DatetimeIndex:
    """Ends of fiscal periods of 4, 4 and 5 weeks."""
    weeks = np.tile([4, 4, 5], periods // 3).cumsum()
    return pd.DatetimeIndex(pd.Timestamp("2015-01-31") + pd.to_timedelta(7 * weeks, unit="D"))


def market() -> pd.DatetimeIndex:
    hours = pd.to_timedelta(np.arange(9, 16) * 60 + 30, unit="min")
    return pd.DatetimeIndex(np.concatenate([day + hours for day in pd.bdate_range("2023-01-02", periods=40)]))


def test_fiscal_weeks_are_not_read_as_months() -> None:
    for some in (fiscal(3), fiscal(), fiscal()[:24]):
        with pytest.raises(UsageError, match="irregular time stamps"):
            step_of(some)


def test_explicit_period_frequency_accepts_any_day() -> None:
    for freq in ["MS", "QS-OCT", "YS-JAN"]:
        ends = pd.date_range("2005-01-01", periods=20, freq=freq) + pd.Timedelta(days=20)
        data = femts.load_dataset(dated(ends), freq=freq)
        assert (data.stamps == ends - pd.Timedelta(days=20)).all() and "stamps are read as" in data.notes[0]


def test_daily_history_is_refused_by_a_monthly_model(tmp_path: Path) -> None:
    forecaster = trained_and_loaded(femts.load_dataset(dated(VARYING["the 15th"][0])), tmp_path)
    with pytest.raises(UsageError, match="does not keep the step 'MS' of the training data at data row 1"):
        forecaster.predict(dated(pd.date_range("2010-01-01", periods=90)))


@pytest.mark.parametrize(("when", "season"), [(market(), 7), (fiscal(), 12)])
def test_freq_1_numbers_rows_of_irregular_stamps(when: pd.DatetimeIndex, season: int, tmp_path: Path) -> None:
    table = dated(when)
    with suppress(UsageError):
        assert femts.load_dataset(table).freq != "1"
    data = femts.load_dataset(table.sample(frac=1, random_state=0), freq=1, season=season)
    np.testing.assert_array_equal(data.values[:, 0], table["y"])
    assert stamps(data).tolist() == list(range(len(when))) and (data.freq, data.season) == ("1", season)
    assert (
        "its rows are numbered in the order of the dates in 'date'; set the season length with season=N" in data.notes
    )
    forecaster = trained_and_loaded(data, tmp_path, "seasonal_naive")
    for history in (table, table.iloc[::-1], table.tail(30)):
        forecast = forecast_of(forecaster, history, tmp_path)
        assert forecast["row"].tolist() == list(range(len(history), len(history) + P))
        np.testing.assert_allclose(forecast["y"], table["y"].iloc[len(when) - season :].head(P), rtol=1e-6)
    forecaster.plot(table)
    beside = femts.backtest(forecaster, table, n_windows=2)
    assert beside["cutoff"].max() == len(table) - 1 - P


def test_freq_1_numbers_each_series_separately(tmp_path: Path) -> None:
    short = dated(fiscal()[:60]).assign(unique_id="short")
    table = pd.concat([dated(fiscal()).assign(unique_id="long"), short]).sample(frac=1, random_state=0)
    for columns in ({}, {"time": "date"}):
        named = table if columns else table.rename(columns={"date": "ds"})
        data = femts.load_dataset(named, freq="1", season=12, columns=columns)
        assert data.lengths.tolist() == [96, 60] or data.lengths.tolist() == [60, 96]
        assert stamps(data["short"]).tolist() == list(range(60))
        np.testing.assert_array_equal(data["short"].values[:, 0], short["y"])
    forecast = forecast_of(trained_and_loaded(data, tmp_path), table, tmp_path)
    assert forecast[forecast["unique_id"] == "short"]["row"].tolist() == list(range(60, 60 + P))
    with pytest.raises(UsageError, match="has series whose rows are numbered separately"):
        femts.load_dataset(table, freq=1, columns={"time": "date"}, panel=False)
    twice = pd.concat([table, table.head(1)])
    with pytest.raises(UsageError, match=r"has series '.*' twice at .* \(data row 157\); keep one"):
        femts.load_dataset(twice, freq=1, columns={"time": "date"})


def test_future_covariates_are_matched_by_row_number() -> None:
    table = dated(market()).assign(k=np.arange(280) % 7 == 3)
    table["y"] += 20 * table["k"]
    forecaster = femts.train(femts.load_dataset(table, freq=1, season=7, future_covariates="k"), "ridge", P, seq_len=14)
    ahead = pd.DataFrame({"date": pd.date_range("2023-02-27 09:30", periods=P, freq="h"), "k": [0, 0, 0, 1]})
    with pytest.raises(
        UsageError, match=r"has no column 'row', .* add the column, starting at 280 for the first forecast step"
    ):
        forecaster.predict(table, future=ahead)
    forecast = forecaster.predict(table, future=ahead[["k"]].assign(row=np.arange(280, 280 + P)))
    assert forecast["y"].idxmax() == 3


def test_freq_1_keeps_integer_stamps() -> None:
    assert stamps(femts.load_dataset(dated(range(1990, 2050)), freq=1))[0] == 1990


ROW_TABLE = pd.DataFrame(np.arange(240.0).reshape(6, 40), columns=[f"V{n}" for n in range(1, 41)])
ROW_TABLE.insert(0, "id", [f"T{n}" for n in range(6)])
YEARS = ROW_TABLE.set_axis(["id", *map(str, range(1980, 2020))], axis=1)


@pytest.mark.parametrize(
    ("table", "time", "next_"), [(ROW_TABLE, "row", 40), (YEARS, "ds", pd.Timestamp("2020-01-01"))]
)
def test_row_per_series_table_is_forecast(table: pd.DataFrame, time: str, next_: Any, tmp_path: Path) -> None:
    table.to_csv(tmp_path / "rows.csv", index=False)
    data = femts.load_dataset(tmp_path / "rows.csv")
    assert data.series == tuple(table["id"]) and data.freq == ("1" if time == "row" else "YS-JAN")
    np.testing.assert_array_equal(data.values[:, 0], np.arange(240))
    assert "each row is read as a series, named by column 'id'" in data.notes[0]
    forecaster = trained_and_loaded(data, tmp_path)
    forecast = forecast_of(forecaster, table, tmp_path)
    assert list(forecast.columns) == ["id", time, "y"] and forecast[time][0] == next_
    assert forecaster.evaluate()["mse"] >= 0, "from the file"
    other = forecaster.predict(table.assign(id=table["id"].iloc[::-1].to_numpy()))
    np.testing.assert_allclose(other["y"], forecast["y"], rtol=1e-6)
    together = femts.load_dataset(table, panel=False)
    assert together.columns == tuple(table["id"]) and together.values.shape == (40, 6)
    joined = forecast_of(trained_and_loaded(together, tmp_path / "joined"), table, tmp_path)
    assert list(joined.columns) == ["id", time, "y"] and len(joined) == 6 * P


def test_row_per_series_trims_missing_ends(tmp_path: Path) -> None:
    lines = ["name," + ",".join(str(year) for year in range(1990, 2030))]
    lines += ["long," + ",".join(map(str, range(40))), "short," + ",".join(map(str, range(25))) + "," * 3]
    lines += ["late,,," + ",".join(map(str, range(38))), "gap,1,,3," + ",".join(map(str, range(37)))]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    data = femts.load_dataset(tmp_path / "rows.csv")
    assert dict(zip(data.series, data.lengths.tolist(), strict=True)) == {
        "long": 40,
        "short": 25,
        "late": 38,
        "gap": 40,
    }
    assert str(stamps(data["late"])[0])[:4] == "1992" and str(stamps(data["short"])[-1])[:4] == "2014"
    assert np.isnan(data["gap"].values[1, 0])
    marked = pd.read_csv(tmp_path / "rows.csv").fillna(-9)
    assert femts.load_dataset(marked, na=-9).lengths.tolist() == data.lengths.tolist()


def test_other_layouts_are_not_read_as_row_per_series() -> None:
    for table in [
        ROW_TABLE.assign(id="T"),
        ROW_TABLE.rename(columns={"V3": "date"}),
        ROW_TABLE.assign(id=range(6)),
        ROW_TABLE.assign(V3="word"),
        ROW_TABLE[["id", "V1"]],
        YEARS.assign(id=pd.date_range("2024-01-01", periods=6).astype(str)),
    ]:
        frame, names, notes = from_rows(table, Schema().form, "The frame")
        assert frame is table and names == Schema().form and not notes


def test_nonnumeric_cell_is_located() -> None:
    with pytest.raises(UsageError, match="has the text 'off' in column 'V3' at data row 2"):
        femts.load_dataset(ROW_TABLE.astype({"V3": object}).replace({"V3": {42.0: "off"}}))


KEYS = pd.DataFrame(
    [
        {"date": day, "region": region, "purpose": purpose, "trips": 10.0 + place}
        for place, (region, purpose) in enumerate([("N", "biz"), ("N", "fun"), ("S", "biz"), ("S", "fun")])
        for day in pd.date_range("2010-01-01", periods=ROWS, freq="MS")
    ]
)


@pytest.mark.parametrize("panel", [None, True, False])
def test_single_value_column_is_inferred_for_compound_keys(panel: bool | None, tmp_path: Path) -> None:
    data = femts.load_dataset(KEYS, columns={"series": "region+purpose"}, panel=panel)
    names = ("N / biz", "N / fun", "S / biz", "S / fun")
    assert (data.columns if panel is False else data.series) == names
    forecast = forecast_of(trained_and_loaded(data, tmp_path), KEYS, tmp_path)
    assert list(forecast.columns) == ["region+purpose", "date", "trips"]
    np.testing.assert_allclose(forecast["trips"], np.repeat([10.0, 11.0, 12.0, 13.0], P), rtol=1e-6)


def test_key_columns_are_found() -> None:
    cases: list[tuple[Any, ...]] = [
        (KEYS, {}),
        (KEYS.assign(price=1.0), {"columns": {"series": "region+purpose"}}),
        (KEYS.rename(columns={"date": "when"}), {}),
        (KEYS.assign(store=KEYS["purpose"].eq("biz") * 1).drop(columns="purpose"), {}),
    ]
    for table, given in cases:
        data = femts.load_dataset(table, **given)
        assert len(data) == 4 and data.lengths.tolist() == [ROWS] * 4 and data.columns == ("trips",)


def test_forecast_keeps_the_name_of_the_time_stamps() -> None:
    assert list(femts.forecast(KEYS, 2, model="naive").columns)[:2] == ["region+purpose", "date"]


def test_duplicate_column_names_are_refused() -> None:
    table = KEYS.set_axis(["date", "region", "region", "trips"], axis=1)
    for reading in ({}, {"freq": 1}, {"columns": {"series": "region+trips"}}):
        with pytest.raises(UsageError, match="has two columns named 'region'; rename one"):
            femts.load_dataset(table, **reading)


def test_time_column_is_inferred_beside_keys_and_target() -> None:
    data = femts.load_dataset(KEYS.assign(price=1.0), columns={"series": "region+purpose"}, target="trips")
    assert len(data) == 4 and data.columns == ("trips",)


def berlin(start: str, end: str, freq: str = "h") -> pd.DataFrame:
    """Stamps with UTC offsets; `k` marks rows where `y` is higher by 20."""
    when = pd.date_range(start, end, freq=freq, tz="Europe/Berlin")
    k = (np.arange(len(when)) % 12 == 5) * 1.0
    y = 20 * k + np.random.default_rng(0).normal(size=len(when))
    return pd.DataFrame({"date": [each.isoformat() for each in when], "y": y, "k": k})


def test_repeated_dst_hour_is_averaged_unless_it_is_told_apart() -> None:
    local = pd.date_range("2023-01-01", "2023-11-10", freq="h", tz="Europe/Berlin")
    table = dated(local.tz_localize(None))
    for each in (table, table[::-1], table.drop_duplicates("date")):
        data = femts.load_dataset(each)
        assert data.freq == "h" and int(np.isnan(data.values).sum()) == 1, "an hour of March, which there was not"
    given = femts.load_dataset(table, freq="h")
    np.testing.assert_array_equal(given.values, femts.load_dataset(table).values)
    with pytest.raises(UsageError, match="give freq='h' to average them, or write the stamps in UTC"):
        femts.load_dataset(table.sample(frac=1.0, random_state=0))  # whose repeated hours may be of other days
    utc = table["date"].dt.tz_localize("Europe/Berlin", ambiguous="infer").dt.tz_convert("UTC")
    data = femts.load_dataset(table.assign(date=utc))
    assert data.freq == "h" and not np.isnan(data.values).any()


@pytest.mark.parametrize(
    ("freq", "change", "end", "panel"),
    [("h", "2024-03-31T01:00", "2024-04-05", False), ("D", "2024-03-31", "2024-05-10", True)],
)
def test_future_covariates_cross_a_dst_change(freq: str, change: str, end: str, panel: bool) -> None:
    whole = berlin("2023-12-01", end, freq)
    if panel:
        whole = whole.assign(unique_id="a").rename(columns={"date": "ds"})
    time = "ds" if panel else "date"
    winter = whole[time].str.slice(0, len(change)) <= change
    assert whole[time][winter].str.endswith("+01:00").all() and whole[time][~winter].str.endswith("+02:00").all()
    target: dict[str, Any] = {"target": "y"} if panel else {}
    data = femts.load_dataset(whole[winter], future_covariates="k", **target)
    forecaster = femts.train(data, "ridge", 12, seq_len=12)
    for future in (whole[~winter], whole):
        forecast = forecaster.predict(whole[winter], future=future.drop(columns="y"))
        ahead = whole[~winter].head(12).reset_index(drop=True)
        assert forecast["y"].idxmax() == ahead["k"].idxmax()
    days = pd.DatetimeIndex(forecast[time])
    expected = pd.to_datetime(ahead[time], utc=True)
    assert (days.strftime("%F") == ahead[time].str[:10]).all() if freq == "D" else (days == expected).all()
