"""Errors carry the argument at fault, its value, and keywords that mend it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import femts
from femts.errors import UsageError

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # on the accuracy of these models

HOURS = pd.date_range("2024-01-01", periods=600, freq="h")
WAVES = np.sin(np.arange(600) / 24 * 2 * np.pi)
TABLE = pd.DataFrame({"date": HOURS, "load": 10 + WAVES, "temperature": 5 - WAVES + np.arange(600) / 1e3})
LONG = pd.concat(
    pd.DataFrame({"unique_id": name, "ds": HOURS, "y": 10 + WAVES * k, "size": float(k)})
    for k, name in ((1, "a"), (2, "b"))
)
NUMBERED = TABLE.drop(columns="date")

NEEDS_FILES = pytest.mark.skipif(
    not os.environ.get("FEMTS_DATA"), reason="needs the real files; set FEMTS_DATA to their folder"
)
READING: list[Any] = [
    (TABLE, {"freq": "fortnight"}, "freq", "fortnight"),
    (TABLE, {"season": "weekly"}, "season", "weekly"),
    (TABLE, {"na": [float("inf")]}, "na", [float("inf")]),
    (TABLE, {"target": ["laod"]}, "target", ["laod"]),
    (
        TABLE,
        {"target": ["load"], "past_covariates": ["load", "temperature"]},
        "past_covariates",
        ["load", "temperature"],
    ),
    (TABLE, {"static_covariates": "temperature"}, "static_covariates", ["temperature"]),
    (TABLE, {"columns": {"time": "dtae"}}, "columns", {"time": "dtae"}),
    (TABLE, {"drop": ["temprature"]}, "drop", ["temprature"]),
    (TABLE, {"sheet": "Sheet1"}, "sheet", "Sheet1"),
    (TABLE, {"skip_rows": -1}, "skip_rows", -1),
    (TABLE, {"split": ".7,.3"}, "split", ".7,.3"),
    (TABLE, {"split": ".7,.1,.2", "test_rows": 100}, "split", ".7,.1,.2"),
    (TABLE, {"val_rows": 0}, "val_rows", 0),
    (TABLE, {"test_rows": 50, "test_from": "2024-01-20"}, "test_from", "2024-01-20"),
    (TABLE, {"test_from": "2031-01-01"}, "test_from", "2031-01-01"),
    (NUMBERED, {"test_from": "2024-01-20"}, "test_from", "2024-01-20"),
    (TABLE, {"min": 20, "max": 10}, "min", 20),
    (TABLE, {"max": "high"}, "max", "high"),
    (TABLE, {"transform": "log"}, "transform", "log"),
    (TABLE, {"aggregate": "sum"}, "aggregate", "sum"),
    (TABLE, {"aggregate": "men", "freq": "D"}, "aggregate", "men"),
    (TABLE, {"outliers": "mising"}, "outliers", "mising"),
    (TABLE, {"calendar": "yes"}, "calendar", "yes"),
    (NUMBERED, {"calendar": True}, "calendar", True),
    pytest.param("ETTh1", {"freq": "D"}, "freq", "D", marks=NEEDS_FILES),
    ("synthetic", {"panel": "no"}, "panel", "no"),
]


def mended(error: UsageError, given: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords of a call with the remedy of its error applied."""
    return {name: value for name, value in {**given, **error.remedy}.items() if value is not None}


def check(call: Callable[..., object], given: Mapping[str, Any], argument: str, value: object) -> UsageError:
    """Check the error of a call, and that the call succeeds with the remedy if there is one."""
    with pytest.raises(UsageError) as caught:
        call(**given)
    error = caught.value
    assert (error.argument, error.value) == (argument, value), str(error)
    assert not {"\x02", "\x03"} & set(str(error))
    if error.remedy:
        call(**mended(error, given))
    return error


@pytest.mark.parametrize(("source", "given", "argument", "value"), READING)
def test_reading(source: pd.DataFrame | str, given: dict[str, Any], argument: str, value: object) -> None:
    error = check(lambda **reading: femts.load_dataset(source, **reading), given, argument, value)
    assert error.remedy or argument in ("calendar", "panel")


@pytest.fixture(scope="module")
def data() -> femts.Dataset:
    return femts.load_dataset(TABLE)


@pytest.fixture(scope="module")
def forecaster(data: femts.Dataset) -> femts.Forecaster:
    return femts.train(data, "ridge", 12, seq_len=48)


@pytest.mark.parametrize(
    ("given", "argument", "value"),
    [
        ({"model": "rigde"}, "model", "rigde"),
        ({"pred_len": "long"}, "pred_len", "long"),
        ({"seq_len": 0}, "seq_len", 0),
        ({"seq_len": 500}, "seq_len", 500),
        ({"seq_len": "far"}, "seq_len", "far"),
        ({"protocol": "papr"}, "protocol", "papr"),
        ({"device": "tpu"}, "device", "tpu"),
        ({"seed": -1}, "seed", -1),
        ({"time_limit": "soon"}, "time_limit", "soon"),
        ({"resume": True}, "resume", True),
        ({"overwrite": True}, "overwrite", True),
        ({"refit": "no"}, "refit", "no"),
        ({"lr": 0.1}, "lr", 0.1),
        ({"settings": {"training.seed": -1}}, "training.seed", -1),
        ({"settings": {"model.season": "x"}}, "model.season", "x"),
        ({"settings": {"model.nothing": 1}}, "model.nothing", 1),
        ({"target": ["load"]}, "target", ["load"]),  # of a dataset that is loaded already
    ],
)
def test_training(data: femts.Dataset, given: dict[str, Any], argument: str, value: object) -> None:
    usual = {"model": "ridge", "pred_len": 12, "seq_len": 48}
    check(lambda **named: femts.train(data, **named), usual | given, argument, value)


def test_a_setting_that_the_caller_gave_as_such_keeps_its_name(data: femts.Dataset) -> None:
    error = check(lambda **named: femts.train(data, "ridge", **named), {"lr": 0.1, "pred_len": 12}, "lr", 0.1)
    assert error.remedy == {"lr": None, "settings": {"training.lr": 0.1}}


def test_folders(data: femts.Dataset, tmp_path: Path) -> None:
    usual: dict[str, Any] = {"model": "ridge", "pred_len": 12, "seq_len": 48, "out": tmp_path / "run"}
    femts.train(data, **usual)
    error = check(lambda **named: femts.train(data, **named), usual, "out", tmp_path / "run")
    assert error.remedy == {"overwrite": True}


@pytest.mark.parametrize(
    ("given", "argument", "value"),
    [
        ({"horizon": 0}, "horizon", 0),
        ({"level": [0.8]}, "level", [0.8]),
        ({"quantiles": [90]}, "quantiles", [90]),
        ({"series": ["a"]}, "series", ["a"]),
        ({"outliers": "mising"}, "outliers", "mising"),
    ],
)
def test_predicting(forecaster: femts.Forecaster, given: dict[str, Any], argument: str, value: object) -> None:
    error = check(lambda **named: forecaster.predict(TABLE, **named), given, argument, value)
    assert error.remedy


@pytest.mark.parametrize(
    ("given", "argument", "value"),
    [
        ({"part": "tset"}, "part", "tset"),
        ({"pred_len": 0}, "pred_len", 0),
        ({"pred_len": []}, "pred_len", []),
    ],
)
def test_scoring(forecaster: femts.Forecaster, given: dict[str, Any], argument: str, value: object) -> None:
    error = check(lambda **named: forecaster.evaluate(**{"dataset": TABLE, **named}), given, argument, value)
    assert error.remedy


@pytest.mark.parametrize(
    ("call", "given", "argument", "value"),
    [
        (femts.forecast, {"model": "ridge"}, "model", "ridge"),
        (femts.forecast, {"model": "simple_ensemble", "horizon": "far"}, "horizon", "far"),
        (femts.compare, {"models": "rigde", "horizon": 12, "n_windows": 1}, "models", "rigde"),
        (femts.compare, {"models": "ridge", "metric": "mas", "horizon": 12, "n_windows": 1}, "metric", "mas"),
        (femts.compare, {"models": "ridge", "n_windows": 0, "horizon": 12}, "n_windows", 0),
        (femts.compare, {"models": "ridge", "n_windows": 90, "horizon": 12}, "n_windows", 90),
        (femts.tune, {"model": "ridge", "trials": 0, "pred_len": 12}, "trials", 0),
        (femts.tune, {"model": "ridge", "trials": 1, "time_limit": "soon", "pred_len": 12}, "time_limit", "soon"),
        (femts.tune, {"model": "ridge", "trials": 1, "origins": 90, "pred_len": 12}, "origins", 90),
    ],
)
def test_other_doors(
    data: femts.Dataset, call: Callable[..., object], given: dict[str, Any], argument: str, value: object
) -> None:
    error = check(lambda **named: call(data, **named), given, argument, value)
    assert error.remedy or argument == "time_limit"


@pytest.mark.parametrize(
    ("given", "argument", "value"),
    [
        ({"n_windows": 0}, "n_windows", 0),
        ({"n_windows": 500, "refit": True}, "n_windows", 500),
        ({"n_windows": 40}, "n_windows", 40),
        ({"level": [80], "refit": True, "n_windows": 1}, "refit", True),
    ],
)
def test_backtests(forecaster: femts.Forecaster, given: dict[str, Any], argument: str, value: object) -> None:
    error = check(lambda **named: femts.backtest(forecaster, TABLE, **named), given, argument, value)
    assert error.remedy


def test_messages_without_a_single_argument_at_fault_name_none() -> None:
    with pytest.raises(UsageError) as caught:
        femts.load_dataset(pd.DataFrame({"date": HOURS, "load": ["a"] * 600}))
    assert caught.value.argument is None
