"""Columns named like the bounds of the forecast of another column."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from small_tables import small_table

import femts
from femts.errors import UsageError

SMALL: dict[str, Any] = {"model": "seasonal_naive", "pred_len": 6, "seq_len": 24, "out": None}


def long(*columns: str) -> pd.DataFrame:
    """A long table of two series with these columns."""
    return pd.concat([small_table(100, columns).assign(unique_id=name) for name in "ab"]).rename(columns={"date": "ds"})


CLASH: dict[str, tuple[pd.DataFrame, dict[str, Any], str, str]] = {
    "lower": (small_table(100, ("x", "x-lo-80")), {}, "x-lo-80", "x"),
    "upper, before its column": (small_table(100, ("x-hi-97.5", "x")), {}, "x-hi-97.5", "x"),
    "quantile": (small_table(100, ("a", "x", "x-q-10")), {}, "x-q-10", "x"),
    "bound of a bound": (small_table(100, ("x-lo-80", "x-lo-80-lo-5")), {}, "x-lo-80-lo-5", "x-lo-80"),
    "panel of columns": (small_table(100, ("x", "x-lo-80")), {"panel": True}, "x-lo-80", "x"),
    "targets of a panel": (long("x", "x-lo-80"), {"target": ["x", "x-lo-80"]}, "x-lo-80", "x"),
    "time stamps": (
        small_table(100, ("x", "y")).rename(columns={"date": "x-lo-80"}),
        {"columns": {"time": "x-lo-80"}},
        "x-lo-80",
        "x",
    ),
    "names of series": (
        long("x").rename(columns={"unique_id": "x-hi-80"}),
        {"columns": {"series": "x-hi-80", "value": "x"}},
        "x-hi-80",
        "x",
    ),
}


@pytest.mark.parametrize(("table", "reading", "name", "of"), CLASH.values(), ids=CLASH.keys())
def test_bound_beside_its_column_is_refused(table: pd.DataFrame, reading: dict[str, Any], name: str, of: str) -> None:
    says = f"Column '{name}' has the name of a bound of the forecast of '{of}', and one table cannot hold both; rename"
    with pytest.raises(UsageError, match=says):
        femts.train(table, **SMALL, **reading)


FREE: dict[str, tuple[pd.DataFrame, dict[str, Any]]] = {
    "a bound alone": (small_table(100, ("x-lo-80", "heat")), {}),
    "no number": (small_table(100, ("x", "x-lo-")), {}),
    "another end": (small_table(100, ("x", "x-low-80")), {}),
    "not a target": (small_table(100, ("x", "x-lo-80")), {"target": ["x"]}),
    "a covariate": (small_table(100, ("x", "x-lo-80", "y")), {"target": ["x"], "future_covariates": ["x-lo-80"]}),
    "series of a long table": (long("y").replace({"unique_id": {"a": "x", "b": "x-lo-80"}}), {}),
}


@pytest.mark.parametrize(("table", "reading"), FREE.values(), ids=FREE.keys())
def test_other_names_are_free(table: pd.DataFrame, reading: dict[str, Any]) -> None:
    made = femts.train(table, **SMALL, **reading)
    ahead = table.tail(6) if reading.get("future_covariates") else None
    future = None if ahead is None else ahead.assign(date=ahead["date"] + pd.Timedelta(hours=6))
    forecast = made.predict(table, level=[80], future=future)
    assert forecast.columns.is_unique
