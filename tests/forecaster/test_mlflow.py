"""MLflow: forecasters as models of its stores."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from small_panels import panel_forecaster, panel_table
from small_tables import small_table

import femts
from femts.data.loading import load_dataset

TABLE = small_table()
SAME = pd.testing.assert_frame_equal
# Decides which tests are run without importing MLflow, which takes two seconds.
needs_mlflow = pytest.mark.skipif(
    importlib.util.find_spec("mlflow") is None, reason="needs mlflow: pip install '.[mlflow]'"
)


@pytest.fixture
def mlflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """MLflow with a store of files in the test's folder; the one in a database takes six seconds to begin."""
    for name in ("MLFLOW_ALLOW_FILE_STORE", "MLFLOW_DISABLE_TELEMETRY"):
        monkeypatch.setenv(name, "true")
    monkeypatch.setenv("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "store").as_uri())
    monkeypatch.delenv("MLFLOW_RUN_ID", raising=False)
    monkeypatch.chdir(tmp_path)
    import mlflow.pyfunc

    return mlflow


@pytest.fixture(scope="module")
def ridge() -> femts.Forecaster:
    return femts.train(TABLE, "ridge", 12, seq_len=24)


def _with_known(rows: int = 300, ahead: int = 12) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A history whose load follows `cold`, and the same with `ahead` more rows in which only `cold` is known."""
    table = small_table(rows + ahead, ("load",))
    table["cold"] = np.random.default_rng(0).normal(size=len(table)).cumsum()
    table["load"] += table["cold"]
    whole = table.assign(load=table["load"].where(table.index < rows))
    return table[:rows], whole


@needs_mlflow
def test_pyfunc_forecasts_as_predict_does(mlflow: Any, ridge: femts.Forecaster) -> None:
    femts.mlflow.save_model(ridge, "model")
    model = mlflow.pyfunc.load_model("model")
    SAME(model.predict(TABLE), ridge.predict(TABLE))
    params: dict[str, Any] = {"horizon": 6, "level": [80, 95], "outliers": "keep"}
    SAME(model.predict(TABLE, params=params), ridge.predict(TABLE, **params))
    SAME(model.predict({"history": TABLE}, params={"quantiles": [0.1]}), ridge.predict(TABLE, quantiles=[0.1]))
    whole = TABLE.assign(load=(100 * TABLE["load"]).astype(int), date=TABLE["date"].astype(str))
    SAME(model.predict(whole), ridge.predict(whole))  # refused by a signature with columns
    with pytest.raises(femts.UsageError, match="lacks 'heat'"):
        model.predict(TABLE[["date", "load"]])
    assert model.get_raw_model().config == ridge.config


@needs_mlflow
def test_pyfunc_forecasts_series_by_name(mlflow: Any) -> None:
    panel = panel_forecaster("ridge")
    femts.mlflow.save_model(panel, "model")
    params: dict[str, Any] = {"series": ["short", "long"], "level": [80]}
    SAME(
        mlflow.pyfunc.load_model("model").predict(panel_table(), params=params), panel.predict(panel_table(), **params)
    )


@needs_mlflow
def test_rows_after_the_last_target_are_future_covariates(mlflow: Any) -> None:
    past, whole = _with_known()
    trained = femts.train(past, "ridge", 12, seq_len=24, target="load", future_covariates="cold")
    femts.mlflow.save_model(trained, "model")
    model, ahead = mlflow.pyfunc.load_model("model"), whole[len(past) :]
    expected = trained.predict(past, future=ahead)
    SAME(model.predict(whole), expected)
    SAME(model.predict({"history": past, "future": ahead[["date", "cold"]]}), expected)
    gap = whole.assign(load=whole["load"].where(whole.index != len(past) - 5))  # a gap does not end the history
    with pytest.warns(femts.GapWarning):
        assert model.predict(gap)["date"].equals(expected["date"])
    with pytest.raises(femts.UsageError, match="has no 'cold' at"):
        model.predict(whole[:-1])


@needs_mlflow
def test_history_of_each_series_ends_with_its_last_target(mlflow: Any) -> None:
    parts = [_with_known(rows)[1].assign(shop=name) for name, rows in (("a", 300), ("b", 288))]
    whole = pd.concat([part.iloc[:, [0, 3, 1, 2]] for part in parts], ignore_index=True)
    past = whole[whole["load"].notna()]
    names = {"time": "date", "series": "shop", "value": "load"}
    data = load_dataset(past, columns=names, target="load", future_covariates="cold", panel=True)
    trained = femts.train(data, "ridge", 12, seq_len=24)
    femts.mlflow.save_model(trained, "model")
    forecast = mlflow.pyfunc.load_model("model").predict(whole)
    SAME(forecast, trained.predict(past, future=whole))
    ends = past.groupby("shop")["date"].max() + pd.Timedelta("1h")
    assert forecast.groupby("shop")["date"].min().equals(ends)


@needs_mlflow
def test_run_gets_configuration_and_scores(mlflow: Any, ridge: femts.Forecaster) -> None:
    with mlflow.start_run() as run:
        mlflow.log_param("who", "me")
        made = femts.mlflow.log_model(ridge, "load", tags={"team": "grid"}, registered_model_name="load")
        femts.mlflow.log_model(ridge, "again")  # the same forecaster has the same parameters
        with pytest.raises(
            femts.UsageError, match=r"has the parameter model\.name with the value 'ridge', not 'naive'"
        ):
            femts.mlflow.log_model(femts.train(TABLE, "naive", 12, seq_len=24), "other")
    logged = mlflow.get_run(run.info.run_id).data
    for part in ("val", "test"):
        for name in ("mse", "mae", "mase"):
            assert logged.metrics[f"{part}_{name}"] == pytest.approx(ridge.metrics[part][name])  # type: ignore[literal-required]
    assert logged.metrics["test_coverage_80"] == ridge.metrics["intervals"]["test"]["80"]["coverage"]
    assert logged.params["model.name"] == "ridge" and logged.params["training.seed"] == "42"
    assert logged.params["data.sha256"] == ridge.data["sha256"] and logged.params["who"] == "me"
    model = mlflow.get_logged_model(made.model_id)
    assert {metric.key for metric in model.metrics} == set(logged.metrics) and model.tags["team"] == "grid"
    for uri in (made.model_uri, f"runs:/{run.info.run_id}/load", "models:/load/1"):
        loaded = femts.mlflow.load_model(uri)
        assert loaded.metrics == ridge.metrics
        SAME(loaded.predict(TABLE, level=[80]), ridge.predict(TABLE, level=[80]))


@needs_mlflow
def test_model_without_a_run_has_the_parameters_itself(mlflow: Any, own: Path) -> None:
    made = femts.mlflow.log_model(own / "run", "naive", params={"region": "north"})
    assert mlflow.active_run() is None and made.run_id is None
    params = mlflow.get_logged_model(made.model_id).params
    assert (params["model.name"], params["region"]) == ("naive", "north")


@needs_mlflow
def test_requirements_are_those_of_the_run(mlflow: Any, ridge: femts.Forecaster, own: Path) -> None:
    def needed(folder: str) -> list[str]:
        return [line for line in Path(folder, "requirements.txt").read_text().splitlines() if "mlflow" not in line]

    version = f"femts=={femts.__version__}"
    femts.mlflow.save_model(own / "run", "usual")
    assert needed("usual") == [version]
    femts.mlflow.save_model(ridge, "more", extra_pip_requirements=["boto3"])
    assert needed("more") == [version, "boto3"]
    Path("more.txt").write_text("boto3\n")
    femts.mlflow.save_model(ridge, "file", extra_pip_requirements="more.txt")
    assert needed("file") == [version, "boto3"]
    femts.mlflow.save_model(ridge, "other", pip_requirements=["./femts.whl"])
    assert needed("other") == ["./femts.whl"]


def test_requirements_name_the_extras() -> None:
    from femts.mlflow import _requirement

    data = load_dataset(small_table(), holidays="DE", freq="h")
    pytest.importorskip("holidays", reason="needs the extra holidays")
    pytest.importorskip("statsforecast", reason="needs the extra stats")
    members = [femts.train(data, model, 12, seq_len=24) for model in ("ridge", "auto_ets")]
    assert _requirement(femts.mean_of(members)) == f"femts[holidays,stats]=={femts.__version__}"


@needs_mlflow
def test_scoring_server_takes_the_body_of_the_service(mlflow: Any, ridge: femts.Forecaster) -> None:
    testing = pytest.importorskip("fastapi.testclient", reason="needs fastapi")
    from mlflow.pyfunc import scoring_server

    femts.mlflow.save_model(ridge, "model")
    client = testing.TestClient(scoring_server.init(mlflow.pyfunc.load_model("model")))
    records = TABLE.tail(24).assign(date=TABLE["date"].astype(str)).to_dict("records")
    for sent in ({"dataframe_records": records}, {"inputs": {"history": records}}):
        answer = client.post("/invocations", json={**sent, "params": {"level": [80]}})
        assert answer.status_code == 200, answer.text
        forecast = pd.DataFrame(answer.json()["predictions"])
        expected = ridge.predict(TABLE.tail(24), level=[80])
        SAME(forecast.drop(columns="date"), expected.drop(columns="date"), rtol=1e-9)


@needs_mlflow
def test_mistakes_are_named(mlflow: Any, ridge: femts.Forecaster) -> None:
    Path("full").mkdir()
    Path("full/file").touch()
    with pytest.raises(femts.UsageError, match="full exists; choose a new or empty folder"):
        femts.mlflow.save_model(ridge, "full")
    with pytest.raises(femts.RunFailure, match="Could not write full/file/model: Not a directory"):
        femts.mlflow.save_model(ridge, "full/file/model")
    with pytest.raises(femts.UsageError, match="Folder nowhere does not exist"):
        femts.mlflow.load_model("nowhere")
    with pytest.raises(femts.UsageError, match=r"cannot load the model 'runs:/x/y' \(Run 'x' not found\)"):
        femts.mlflow.load_model("runs:/x/y")
    mlflow.pyfunc.save_model("other", loader_module="femts.mlflow", pip_requirements=[])
    with pytest.raises(femts.UsageError, match=r"'other' was not logged by femts; load it with mlflow\.pyfunc"):
        femts.mlflow.load_model("other")


def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own: Path) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    for call in (
        lambda: femts.mlflow.save_model(own / "run", tmp_path / "model"),
        lambda: femts.mlflow.log_model(own / "run", "model"),
        lambda: femts.mlflow.load_model(tmp_path),
    ):
        with pytest.raises(femts.UsageError, match=r"is not installed; run pip install 'femts\[mlflow\]'"):
            call()
