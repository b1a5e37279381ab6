"""Tables of known columns: what is asked of the rows at the steps to come, and that nothing is asked of others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from small_tables import small_table

import femts
from femts.errors import UsageError

P = 12
QUICK: dict[str, Any] = {"pred_len": P, "seq_len": 24, "max_steps": 4, "device": "cpu"}


def table(rows: int = 400) -> pd.DataFrame:
    """`load` jumps with `open`."""
    frame = small_table(rows)[["date", "load"]]
    frame["open"] = (np.random.default_rng(5).uniform(size=rows) < 0.3).astype(float)
    return frame.assign(load=frame["load"] + 3 * frame["open"])


@pytest.fixture(scope="module")
def known() -> femts.Forecaster:
    return femts.train(femts.load_dataset(table(), target=["load"], future=["open"]), "ridge", **QUICK)


STRAY: dict[str, Any] = {
    "a later date": ["2031-05-05"],
    "a half hour": ["2024-01-17 20:30"],
    "a date twice": ["2024-01-18", "2024-01-18"],
    "a half hour before": ["2024-01-02 00:30"],
}


@pytest.mark.parametrize("stray", STRAY)
def test_rows_beyond_the_needed_steps_do_not_matter(known: femts.Forecaster, stray: str) -> None:
    frame = table()
    more = pd.DataFrame({"date": pd.to_datetime(STRAY[stray]), "open": "unknown"}, index=range(len(STRAY[stray])))
    future = frame[-P:][["date", "open"]]
    usual = known.predict(frame[:-P], future=future)
    pd.testing.assert_frame_equal(known.predict(frame[:-P], future=pd.concat([future, more])), usual)
    text = pd.concat([more, future]).astype(str)
    pd.testing.assert_frame_equal(known.predict(frame[:-P], future=text), usual)
    long = pd.concat([future, more.assign(open=0.0)]).rename(columns={"date": "ds", "open": "y"})
    pd.testing.assert_frame_equal(known.predict(frame[:-P], future=long.assign(unique_id="open")), usual)


def test_of_the_needed_rows_all_is_asked(known: femts.Forecaster) -> None:
    frame = table()
    with pytest.raises(UsageError, match=r"known columns \(13 rows for these steps\) repeats 1 date, .* keep one row"):
        known.predict(frame[:-P], future=pd.concat([frame, frame[-1:]]))
    with pytest.raises(UsageError, match="has no 'open' at 2024-01-17 04:00:00; give open for the 12 steps"):
        known.predict(frame[:-P], future=frame[:-P])


def test_known_columns_are_of_the_instants_of_the_history(known: femts.Forecaster) -> None:
    frame, zoned = table(), table().assign(date=table()["date"].dt.tz_localize("UTC"))
    usual = known.predict(frame[:-P], future=frame)
    east = zoned.assign(date=zoned["date"].dt.tz_convert("Asia/Tokyo"))
    np.testing.assert_array_equal(known.predict(zoned[:-P], future=east)["load"], usual["load"])
    with pytest.raises(
        UsageError, match="known columns has stamps in the time zone UTC, and the history has stamps wi"
    ):
        known.predict(frame[:-P], future=zoned)
    with pytest.raises(UsageError, match="The history has stamps in the time zone UTC, and the table of known columns"):
        known.predict(zoned[:-P], future=frame)


def test_a_panel_asks_nothing_of_other_rows_either() -> None:
    frame = table().rename(columns={"date": "ds", "load": "y"})
    frame = pd.concat([frame.assign(unique_id=name) for name in ("a", "b")], ignore_index=True)
    forecaster = femts.train(femts.load_dataset(frame, target="y", future="open", panel=True), "ridge", **QUICK)
    cut = frame["ds"].iloc[-P]
    history, future = frame[frame["ds"] < cut], frame[frame["ds"] >= cut].drop(columns="y")
    usual = forecaster.predict(history, future=future)
    for stray in STRAY.values():
        more = pd.DataFrame({"ds": pd.to_datetime(stray), "open": "unknown", "unique_id": "a"}, index=range(len(stray)))
        pd.testing.assert_frame_equal(forecaster.predict(history, future=pd.concat([more, future])), usual)
    east = future.assign(ds=future["ds"].dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"))
    zoned = history.assign(ds=history["ds"].dt.tz_localize("UTC"))
    np.testing.assert_array_equal(forecaster.predict(zoned, future=east)["y"], usual["y"])
    with pytest.raises(UsageError, match="known columns has stamps in the time zone Asia/Tokyo, and the history has"):
        forecaster.predict(history, future=east)
