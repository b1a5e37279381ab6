"""Chunked reading of the ends of the series of a panel."""

from __future__ import annotations

import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import femts
from femts.data.read import read_table, write_table
from femts.data.recent_series import read_recent_series
from femts.errors import UsageError
from femts.forecaster.forecaster import Forecaster

L, P, ROWS = 14, 7, 120
NAMES = ("a", "b", "c", "d")
PIECES = (20, 900, 2**20)  # cells


def panel(rows: int = ROWS) -> pd.DataFrame:
    """Counts of series that end on different days, with a known and a static covariate, one with missing rows and values."""
    rng, parts = np.random.default_rng(0), list[pd.DataFrame]()
    for number, name in enumerate(NAMES):
        days, promo = np.arange(rows - number), rng.random(rows - number) < 0.2
        y = rng.poisson((1 + number) * (1 + np.sin(2 * np.pi * days / 7) + promo)).astype(np.float64)
        stamps = pd.date_range("2024-01-01", periods=len(days))
        parts.append(pd.DataFrame({"unique_id": name, "ds": stamps, "y": y, "promo": promo * 1.0, "size": number}))
    parts[1] = parts[1].drop(index=[30, rows - 9]).assign(y=lambda part: part["y"].where(part.index != 50))
    return pd.concat(parts, ignore_index=True)


def ahead() -> pd.DataFrame:
    days = pd.date_range("2024-01-01", periods=ROWS + P)
    return pd.concat([pd.DataFrame({"unique_id": name, "ds": days, "promo": 1.0}) for name in (*NAMES, "new")])


def with_value(table: pd.DataFrame, name: str, row: int, value: float) -> pd.DataFrame:
    """The table with another value in a row of a series, counted from its end if negative."""
    made = table.copy()
    made.loc[table.index[table["unique_id"] == name][row], "y"] = value
    return made


def with_gap() -> pd.DataFrame:
    """A series without values in the first rows that are read and in those before them."""
    table = panel()
    rows = table.index[table["unique_id"] == "c"]
    table.loc[rows[-80:-5], "y"] = np.nan
    return table


def with_new() -> pd.DataFrame:
    table = panel()
    return pd.concat([table, table[table["unique_id"] == "d"].assign(unique_id="new", y=lambda new: 3 * new["y"])])


def by_time(table: pd.DataFrame) -> pd.DataFrame:
    return table.sort_values("ds", kind="stable")


def stopped() -> pd.DataFrame:
    """A series with a long gap before its last rows."""
    table = panel()
    rows = table.index[table["unique_id"] == "d"]
    return table.drop(index=rows[40:-6])


CUT: dict[str, Callable[[], pd.DataFrame]] = {
    "in order": panel,
    "a long gap": with_gap,
    "a new series": with_new,
    "day first": lambda: panel().assign(ds=lambda table: table["ds"].dt.strftime("%d/%m/%Y")),
    "a series stopped and began again": stopped,
    "keys in another order": lambda: panel()[["size", "ds", "y", "promo", "unique_id"]],
}
WHOLE: dict[str, Callable[[], pd.DataFrame]] = {
    "by time": lambda: by_time(panel()),
    "backwards": lambda: panel().iloc[::-1],
    "in no order": lambda: panel().sample(frac=1, random_state=1),
    "an old value below the bound": lambda: with_value(panel(), "b", 3, -1.0),
    "rows without readings": lambda: panel().assign(y=lambda table: table["y"].where(table["ds"] < "2024-04-20")),
    "a series without its last reading": lambda: with_value(panel(), "a", -1, np.nan),
}


@pytest.fixture(scope="module")
def forecaster() -> Forecaster:
    data = femts.load_dataset(panel(), target="y", future_covariates="promo", static_covariates="size")
    return femts.train(data, "boost", P, seq_len=L, device="cpu", settings={"model.rounds": 20})


def read(path: Path, made: Forecaster, cells: int) -> pd.DataFrame:
    return read_recent_series(path, L + made.preprocess.reach, made.config.schema, made.freq, made.preprocess, cells)


def outcome(made: Forecaster, history: pd.DataFrame) -> Any:
    """The forecast and the warnings, or the message of an error."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", UserWarning)
        try:
            forecast = made.predict(history, future=ahead(), level=[80])
        except UsageError as error:
            return str(error)
    return forecast, [str(each.message) for each in said]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("name", [*CUT, *WHOLE])
def test_forecast_is_that_of_all_rows(name: str, suffix: str, forecaster: Forecaster, tmp_path: Path) -> None:
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    path = write_table((CUT | WHOLE)[name]().reset_index(drop=True), tmp_path / f"mine{suffix}")
    whole = read_table(path)
    expected = outcome(forecaster, whole)
    for cells in PIECES:
        history = read(path, forecaster, cells)
        made = outcome(forecaster, history)
        assert (len(history) == len(whole)) == (name in WHOLE)
        if isinstance(expected, str):
            assert made == expected
            continue
        pd.testing.assert_frame_equal(made[0], expected[0], check_exact=True)
        assert made[1] == expected[1]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (lambda table: pd.concat([table, table.iloc[[5]].assign(y=1.0)]), "a repeated date"),
        (lambda table: pd.concat([table.iloc[:6], table.iloc[[5]].assign(y=1.0), table.iloc[6:]]), "next to its row"),
        (lambda table: with_value(table, "b", 3, np.inf), "infinite"),
        (lambda table: table.assign(y=table["y"].astype(object).where(table.index != 4, "x")), "text"),
        (lambda table: table.assign(size=table["size"].where(table.index != 4, 7)), "static"),
    ],
)
def test_errors_in_rows_that_are_left_out_are_those_of_the_whole_file(
    changed: Callable[[pd.DataFrame], pd.DataFrame], message: str, forecaster: Forecaster, tmp_path: Path
) -> None:
    path = write_table(changed(panel()), tmp_path / "mine.csv")
    expected = outcome(forecaster, read_table(path))
    assert isinstance(expected, str), message
    for cells in PIECES:
        assert outcome(forecaster, read(path, forecaster, cells)) == expected


def test_memory_does_not_grow_with_the_file(forecaster: Forecaster, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    peaks = list[int]()
    for rows in (2000, 20_000):
        path = write_table(panel(rows), tmp_path / f"{rows}.parquet")
        tracemalloc.start()
        history = read(path, forecaster, cells=20_000)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert len(history) < 4 * 400
    assert peaks[1] < 8 * peaks[0], peaks


def closed_on_sundays(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(y=table["y"].where(table["ds"].dt.dayofweek < 6))


@pytest.mark.parametrize("opened", [False, True])
def test_an_early_value_opens_a_time_without_values(opened: bool, tmp_path: Path) -> None:
    data = femts.load_dataset(closed_on_sundays(panel()), target="y")
    made = femts.train(data, "naive", P, seq_len=L, device="cpu")
    assert made.preprocess.closures is not None
    table = closed_on_sundays(panel())
    if opened:
        table = with_value(table, "a", 6, 3.0)  # the first Sunday
    path = write_table(table, tmp_path / "mine.csv")
    whole = read_table(path)
    history = read(path, made, PIECES[1])
    assert (len(history) == len(whole)) == opened
    with warnings.catch_warnings(action="ignore"):
        pd.testing.assert_frame_equal(made.predict(history), made.predict(whole), check_exact=True)
