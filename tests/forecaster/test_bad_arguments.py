"""What is not a table, a number or a name, where one belongs, in Python: a sentence that says what was given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from small_tables import small_table

import femts
from femts import Forecaster
from femts.errors import UsageError

NO_TABLES = {
    "Series": small_table()["load"],
    "dict": {"date": [], "load": []},
    "ndarray": np.zeros((3, 2)),
    "list": [1.0, 2.0],
    "NoneType": None,
    "int": 3,
}


@pytest.fixture(scope="module")
def forecaster() -> Forecaster:
    return femts.train(small_table(), "naive", 12, seq_len=24)


def read(**given: Any) -> object:
    """Load a table with arguments of any type."""
    return femts.load_dataset(small_table(), **given)


@pytest.mark.parametrize("kind", NO_TABLES)
@pytest.mark.parametrize(
    "use",
    [
        lambda forecaster, table: femts.train(table, "naive", 12, seq_len=24),
        lambda forecaster, table: femts.load_dataset(table),
        lambda forecaster, table: forecaster.predict(table),
        lambda forecaster, table: forecaster.explain(table),
        lambda forecaster, table: forecaster.evaluate(dataset=table if table is not None else "none"),
        lambda forecaster, table: forecaster.predict(small_table(), future=table if table is not None else "none"),
    ],
    ids=["train", "load_dataset", "predict", "explain", "evaluate", "future"],
)
def test_what_is_no_table_is_named(forecaster: Forecaster, use: Callable[[Any, Any], Any], kind: str) -> None:
    with pytest.raises(UsageError) as caught:
        use(forecaster, NO_TABLES[kind])
    assert str(caught.value).endswith(".")


def test_the_kind_that_was_given_is_said() -> None:
    with pytest.raises(UsageError, match=r"The data are a ndarray; give a name, the path of a file, or a DataFrame\."):
        femts.train(np.zeros((99, 2)), "naive", 12)  # type: ignore[arg-type]
    with pytest.raises(
        UsageError, match=r"no time stamps in the index of its Series; give it a DatetimeIndex or PeriodIndex\."
    ):
        femts.train(NO_TABLES["Series"], "naive", 12)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda f: f.predict(small_table(), horizon=10**20), r"A horizon of 1(0{20}) steps .* from 1 to 1000000"),
        (lambda f: f.evaluate(pred_len="3"), "A horizon of 3 steps cannot be forecast"),
        (lambda f: f.evaluate(pred_len=10**20), "A horizon of 1"),
        (lambda f: f.calibrate(pred_len=2.0), "A horizon of 2.0 steps"),
        (lambda f: f.scores(by=3), "cannot be grouped by '3'"),
        (lambda f: f.predict_array("x"), "The look-backs are a str that is no array"),
        (
            lambda f: f.predict_array(np.full((1, 24, 2), 1e30)),
            r"column 'load' at data row 1, a value more than 1e\+15",
        ),
        (lambda f: femts.train(small_table(), "naive", 10**20), "Horizon is 1"),
        (lambda f: femts.train(small_table(), "naive", 12, seq_len=10**20), "Look-back is 1"),
        (lambda f: femts.train(small_table(), "naive", 12, seed=10**20), "Setting 'training.seed' is 1"),
        (lambda f: femts.train(small_table(), settings={"training.lr": pd.DataFrame()}), "not a DataFrame"),
        (lambda f: read(na="x"), r"Sentinels 'x' are not numbers; write na=\[-9999\]"),
        (lambda f: read(na=[-1, float("inf")]), "Sentinel inf is not finite; leave such cells empty"),
        (lambda f: read(target=3), r"Argument 'target' is a int; give names"),
        (lambda f: read(columns={"time": 3}), "Argument 'columns' takes names"),
        (lambda f: femts.load_dataset("x" * 300 + ".csv"), r"cannot be opened \(File name too long\)"),
        (lambda f: femts.load_dataset("a\0b.csv"), r"File a\\x00b.csv cannot exist"),
    ],
)
def test_arguments_that_are_none(forecaster: Forecaster, call: Callable[[Forecaster], Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        call(forecaster)


def test_a_column_near_1e30_is_forecast_by_ridge() -> None:
    table = small_table()
    table["heat"] = 1e30 + table["heat"]
    assert np.isfinite(femts.train(table, "ridge", 12, seq_len=24).predict(table)["heat"]).all()


@pytest.mark.parametrize("size", [1e-310, 1e-300, 1e-30, 1e30, 1e37])
def test_a_column_of_any_size_is_scaled(size: float) -> None:
    table = small_table()
    usual, sized = (femts.train(t, "ridge", 12, seq_len=24) for t in (table, table.assign(heat=table["heat"] * size)))
    assert sized.metrics["test"]["mse"] == pytest.approx(usual.metrics["test"]["mse"], rel=1e-3)


def test_a_history_with_two_columns_of_stamps_is_refused(forecaster: Forecaster) -> None:
    frame = small_table()
    twice = pd.concat([frame, frame[["date"]]], axis=1)
    with pytest.raises(UsageError, match="The history has two columns named 'date'; rename one"):
        forecaster.predict(twice)
