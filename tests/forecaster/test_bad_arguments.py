# mypy: disable-error-code="arg-type,call-arg,dict-item"
"""Arguments of wrong types to every public function."""

from __future__ import annotations

import inspect
import itertools
import warnings
from collections.abc import Callable, Iterator
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from small_tables import small_table

import femts
from femts import FemtsError, Forecaster
from femts.data.loading import load_dataset
from femts.data.schema import Reading

NUMBERS = [None, -1, 0.5, float("nan"), True, "x", "a\0b", b"x", object()]
HOLDERS = [[6, 12], [[1], {}], [], {3: None}, np.zeros((3, 2)), small_table()["load"], pd.DataFrame({"a": [1.0]})]
THINGS: list[Any] = [*NUMBERS, *HOLDERS]
QUICK: dict[str, Any] = {"model": "naive", "pred_len": 12, "seq_len": 24}
TABLE = small_table()


@pytest.fixture(scope="module")
def forecaster() -> Forecaster:
    return femts.train(TABLE, **QUICK)


@pytest.fixture(scope="module")
def panel() -> Forecaster:
    return femts.train(load_dataset(TABLE, panel=True), **QUICK)


@pytest.fixture(autouse=True)
def in_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings(action="ignore"):
        yield


CALLS: dict[str, tuple[Callable[[Forecaster], Callable[..., Any]], dict[str, Any]]] = {
    "audit": (lambda f: femts.audit, {"forecaster_or_run": "none", "dataset": TABLE}),
    "backtest": (lambda f: femts.backtest, {"data": TABLE, "n_windows": 1, "step_size": 1}),
    "backtest_scores": (lambda f: femts.backtest_scores, {"frame": TABLE}),
    "check": (lambda f: femts.check, {"data": TABLE, "horizon": 1}),
    "compare": (lambda f: femts.compare, {"data": TABLE, "models": "naive", "horizon": 12, "n_windows": 1}),
    "datasets": (lambda f: femts.datasets, {}),
    "forecast": (lambda f: femts.forecast, {"data": TABLE, "horizon": 12, "model": "naive"}),
    "leaderboard": (lambda f: femts.leaderboard, {"scores": TABLE}),
    "load": (lambda f: femts.load, {"folder": "none"}),
    "load_dataset": (lambda f: femts.load_dataset, {"source": TABLE}),
    "mean_of": (lambda f: femts.mean_of, {}),
    "mlflow.load_model": (lambda f: femts.mlflow.load_model, {"model_uri": "none"}),
    "mlflow.log_model": (lambda f: femts.mlflow.log_model, {"forecaster_or_run": "none", "name": "name"}),
    "mlflow.save_model": (lambda f: femts.mlflow.save_model, {"forecaster_or_run": "none", "path": "model"}),
    "models": (lambda f: femts.models, {}),
    "pairs": (
        lambda f: femts.pairs,
        {"pairs": "naive:ridge", "datasets": "synthetic", "pred_lens": 12, "train": False},
    ),
    "report": (lambda f: femts.report, {"path": "page.html", "dataset": TABLE}),
    "score_tasks": (lambda f: femts.score_tasks, {"tasks": "none.yaml", "models": "naive", "train": False}),
    "table": (lambda f: femts.table, {"datasets": "synthetic", "models": "naive", "pred_lens": 12, "train": False}),
    "tune": (lambda f: femts.tune, {"dataset": TABLE, **QUICK, "trials": 1}),
    "train": (lambda f: femts.train, {"dataset": TABLE, **QUICK}),
    "Forecaster.calibrate": (lambda f: f.calibrate, {}),
    "Forecaster.coverage": (lambda f: f.coverage, {}),
    "Forecaster.evaluate": (lambda f: f.evaluate, {}),
    "Forecaster.explain": (lambda f: f.explain, {"history": TABLE}),
    "Forecaster.export": (lambda f: f.export, {"path": "none/model.onnx", "horizon": 0}),
    "Forecaster.importance": (lambda f: f.importance, {"windows": 2, "repeats": 1, "dataset": TABLE}),
    "Forecaster.load": (lambda f: Forecaster.load, {"folder": "none"}),
    "Forecaster.plot": (lambda f: f.plot, {"history": TABLE}),
    "Forecaster.predict": (lambda f: f.predict, {"history": TABLE}),
    "Forecaster.predict_array": (lambda f: f.predict_array, {"x": np.zeros((1, 24, 2))}),
    "Forecaster.preprocess_record": (lambda f: f.preprocess_record, {}),
    "Forecaster.sample": (lambda f: f.sample, {"history": TABLE, "n": 2}),
    "Forecaster.totals": (lambda f: f.totals, {"history": TABLE, "n": 2}),
    "Forecaster.save": (lambda f: f.save, {"folder": "run"}),
    "Forecaster.scores": (lambda f: f.scores, {}),
    "Forecaster.to": (lambda f: f.to, {"device": "cpu"}),
    "Forecaster.training_data": (lambda f: f.training_data, {}),
    "Forecaster.write": (lambda f: f.write, {"folder": Path("run")}),
    "update": (lambda f: femts.update, {"data": TABLE}),
}
CALLS["Forecaster.of"] = (lambda f: f.of, {"name": "load"})
FURTHER = {
    "load_dataset": tuple(Reading.__annotations__),
    "table": tuple("seq_lens protocol settings param_grid target roll_out engine jobs time_limit device".split()),
    "score_tasks": tuple("settings engine jobs time_limit device data_root train".split()),
    "Forecaster.plot": ("level", "future", "actual", "columns", "series"),
}
OTHERS = set(
    "BoundPrior Check Comparison Update Prior ForecastModel SegmentForecaster FreeEnergyMixer FreeEnergyMixerConfig CATALOG DatasetCard register "
    "register_prior visible __version__ Forecaster Forecaster.device AccuracyWarning AgeWarning CellWarning GapWarning "
    "FemtsError ForecastWarning RunFailure ScaleWarning UnitsWarning UsageError ModelConfig Dataset Batch Supports".split()
)


def _arguments(name: str) -> list[str]:
    taken = inspect.signature(reduce(getattr, name.split("."), femts)).parameters
    named = [key for key, each in taken.items() if key not in ("self", "cls") and each.kind is not each.VAR_KEYWORD]
    return [*named, *FURTHER.get(name, ())]


def test_every_public_function_is_called() -> None:
    methods = [name for name in dir(Forecaster) if name[0] != "_" and inspect.isroutine(getattr(Forecaster, name))]
    flavor = [f"mlflow.{name}_model" for name in ("load", "log", "save")]
    assert {*femts.__all__, *(f"Forecaster.{name}" for name in methods), *flavor} - OTHERS == {*CALLS}


OF_PANELS = ("predict", "plot", "explain", "scores", "of", "coverage")  # which name or group series
CASES = [(name, "wide") for name in CALLS] + [(f"Forecaster.{name}", "long") for name in OF_PANELS]


@pytest.mark.parametrize(("name", "form"), CASES)
def test_wrong_argument_types_are_accepted_or_refused(
    forecaster: Forecaster, panel: Forecaster, name: str, form: str
) -> None:
    function, usual = CALLS[name]
    called: Any = panel if form == "long" else forecaster
    before = dict(vars(called))
    for argument, thing in itertools.product(_arguments(name), THINGS):
        if argument == "model" and thing is None:
            continue  # femts chooses the model, which takes its time
        given = {**usual, argument: thing}
        if argument == "forecaster_or_run" or (name in ("report", "audit") and argument == "dataset"):
            given.setdefault("forecaster_or_run", forecaster)
        if name in ("report", "audit") and argument != "forecaster_or_run":
            given["forecaster_or_run"] = forecaster if argument == "dataset" else "none"
        if name == "mean_of":
            given.setdefault("forecasters", [forecaster, forecaster])
        if name in ("backtest", "backtest_scores", "check", "update"):
            given.setdefault("forecaster", forecaster)
        try:
            function(called)(**given)
        except FemtsError as error:
            assert str(error)[-1] in ".?", (repr(thing), str(error))
        except Exception as error:
            raise AssertionError(f"{name}({argument}={thing!r}) raised {type(error).__name__}: {error}") from error
        finally:
            vars(called).update(before)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            lambda f: femts.train(TABLE, pred_len=[6, 12]),
            r"Horizon '\[6, 12\]' is not a number of steps; give a whole number of at least 1",
        ),
        (lambda f: f.evaluate(dataset=3), r"The data are a int; give a name"),
        (lambda f: femts.report(f, 3), r"The page is '3', which is not a path"),
        (lambda f: f.save(None), r"The run folder is 'None', which is not a path"),
        (
            lambda f: femts.backtest(3, TABLE, n_windows=1, step_size=1),
            r"The forecaster is '3'; give what femts\.train",
        ),
        (lambda f: femts.table(TABLE), r"Argument 'datasets' is a DataFrame; pass a name"),
        (lambda f: femts.table("synthetic", modles="naive"), r"Unknown argument 'modles' of a table; did you mean"),
        (lambda f: femts.compare(TABLE, "naive", 12, seed="x"), "'training.seed' takes a whole number, not 'x'"),
        (lambda f: f.calibrate(pred_len=2.0), "A horizon of 2.0 steps"),
        (lambda f: f.scores(by=3), "cannot be grouped by '3'"),
        (lambda f: femts.train(TABLE, "naive", 12, seq_len=10**20), "Look-back is 1"),
        (lambda f: femts.train(TABLE, settings={"training.lr": pd.DataFrame()}), "not a DataFrame"),
        (
            lambda f: femts.load_dataset(TABLE, na=[-1, float("inf")]),
            "The value inf for missing data is not finite; leave such cells empty",
        ),
        (lambda f: femts.load_dataset(TABLE, target=3), r"Argument 'target' is a int; give column names"),
        (lambda f: femts.load_dataset(TABLE, columns={"time": 3}), "Argument 'columns' takes column names"),
        (lambda f: femts.load_dataset("a\0b.csv"), r"File a\\x00b.csv cannot exist"),
        (
            lambda f: femts.train(np.zeros((9, 2, 2)), "naive", 12),
            r"The frame has the shape \(9, 2, 2\); give an array \(rows,\) or \(rows, columns\)",
        ),
        (lambda f: f.predict(pd.concat([TABLE, TABLE[["date"]]], axis=1)), "The history has two columns named 'date'"),
    ],
)
def test_invalid_argument_is_named(forecaster: Forecaster, call: Callable[[Forecaster], Any], says: str) -> None:
    with pytest.raises(femts.UsageError, match=says):
        call(forecaster)


def test_ridge_forecasts_values_near_1e30() -> None:
    table = small_table()
    table["heat"] = 1e30 + table["heat"]
    assert np.isfinite(
        femts.train(table, "ridge", 12, seq_len=24, target=["load", "heat"]).predict(table)["heat"]
    ).all()


@pytest.mark.parametrize("size", [1e-310, 1e-30, 1e37])
def test_scaling_of_extreme_magnitudes(size: float) -> None:
    table = small_table()
    usual, sized = (femts.train(t, "ridge", 12, seq_len=24) for t in (table, table.assign(heat=table["heat"] * size)))
    assert sized.metrics["test"]["mse"] == pytest.approx(usual.metrics["test"]["mse"], rel=1e-3)
