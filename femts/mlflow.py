"""MLflow: logs forecasters as models of a flavour of their own that is a `pyfunc`, too; requires `pip install
'femts[mlflow]'`.

The model is the run folder, which contains data and no code, so that loading it unpickles nothing.
"""

from __future__ import annotations

import math
import sys
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from femts._version import __version__
from femts.config.arguments import check_path, check_text
from femts.errors import RunFailure, UsageError
from femts.forecaster.forecaster import Forecaster, load
from femts.models.mean import MeanConfig
from femts.models.registry import model_card
from femts.text import quote

if TYPE_CHECKING:
    from mlflow.models.model import ModelInfo

FLAVOR = "femts"
RUN = "run"  # name of the run folder in that of the model
COUNTS = ("windows", "season")  # keys of `Scores` that are no scores
LONGEST = 500  # characters of a parameter that every tracking server stores
# Arguments of `Forecaster.predict` by their MLflow type; those of `LISTS` are lists, which cannot be None.
PARAMS = {
    "horizon": "long",
    "level": "double",
    "quantiles": "double",
    "series": "string",
    "outliers": "string",
    "new": "string",
}
LISTS = ("level", "quantiles", "series", "new")


def save_model(forecaster_or_run: Forecaster | str | Path, path: str | Path, **options: Any) -> None:
    """Save a forecaster as an MLflow model in a local folder.

    Its signature has the arguments of `Forecaster.predict` as parameters, but no columns: MLflow would refuse tables that
    `predict` accepts, such as whole numbers, dates as text or a long form.

    Args:
        forecaster_or_run: a forecaster, or the folder of a finished run.
        path: folder to write, which does not exist or is empty.
        options: passed to `mlflow.pyfunc.save_model`, such as `input_example`, `metadata` or `extra_pip_requirements`. By
            default, `pip_requirements` is this version of femts with the extras that the model needs.

    Raises:
        UsageError: MLflow is not installed, there is no such run, or the folder has files in it.
        RunFailure: The folder cannot be written.
    """
    mlflow, folder = _mlflow(), check_path(path, "The folder of the model")
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise UsageError(f"{folder} exists; choose a new or empty folder.", argument="path", value=path)
    forecaster = _forecaster(forecaster_or_run)
    options = {"signature": _signature(), **options}
    if not {"pip_requirements", "conda_env"} & options.keys():
        extra = options.pop("extra_pip_requirements", None) or []
        # A text names a file. MLflow would infer the other requirements by loading the model in a process of its own.
        options["pip_requirements"] = [
            _requirement(forecaster),
            *([f"-r {extra}"] if isinstance(extra, str) else extra),
        ]
    model = options.pop("mlflow_model", None) or mlflow.models.Model()
    model.add_flavor(FLAVOR, femts_version=__version__, model=forecaster.config.model, data=f"data/{RUN}")
    with tempfile.TemporaryDirectory() as place:
        forecaster.save(Path(place) / RUN)
        with warnings.catch_warnings():
            # The signature is complete without an example.
            warnings.filterwarnings("ignore", "(?s).*input example was not provided", UserWarning)
            try:
                mlflow.pyfunc.save_model(
                    folder, loader_module=__name__, data_path=str(Path(place) / RUN), mlflow_model=model, **options
                )
            except OSError as error:
                raise RunFailure(f"Could not write {folder}: {error.strerror}; choose another folder.") from error


def log_model(forecaster_or_run: Forecaster | str | Path, name: str, **options: Any) -> ModelInfo:
    """Log a forecaster as an MLflow model, with its configuration as parameters.

    In an active MLflow run, the run gets these parameters as well, and the scores of the forecaster as metrics, such as
    `test_mase` or `val_mse`, and `test_coverage_80` for its intervals. Those of a refitted forecaster are of the model
    that was scored.

    Args:
        forecaster_or_run: a forecaster, or the folder of a finished run.
        name: name of the model.
        options: passed to `mlflow.models.Model.log`, such as `registered_model_name` or `tags`, and to `save_model`.

    Returns:
        The `ModelInfo` of MLflow, whose `model_uri` is for `load_model` and `mlflow.pyfunc.load_model`.

    Raises:
        UsageError: MLflow is not installed, there is no such run, or another forecaster was logged in the active MLflow
            run.
    """
    mlflow, name = _mlflow(), check_text(name, "name")
    forecaster = _forecaster(forecaster_or_run)
    params = _parameters(forecaster)
    active = mlflow.active_run()
    if active is not None:
        _check_parameters(mlflow.get_run(active.info.run_id).data.params, params)
        mlflow.log_params(params)
        mlflow.log_metrics(_scores(forecaster))
    options = {**options, "params": {**params, **(options.get("params") or {})}}
    made: ModelInfo = mlflow.models.Model.log(
        artifact_path=None,
        name=name,
        flavor=sys.modules[__name__],
        flavor_name=FLAVOR,
        forecaster_or_run=forecaster,
        **options,
    )
    return made


def load_model(model_uri: str | Path, device: str = "cpu") -> Forecaster:
    """Load the forecaster of an MLflow model; `mlflow.pyfunc.load_model` loads a model that only forecasts.

    Args:
        model_uri: a folder, or an address of MLflow such as `models:/load/2` or `runs:/RUN_ID/NAME`.
        device: device for the weights.

    Returns:
        The forecaster as it was logged, verified by its hashes.

    Raises:
        UsageError: MLflow is not installed, it has no such model, or this is not one of femts.
    """
    mlflow, folder = _mlflow(), check_path(model_uri, "The model")
    uri = str(model_uri)  # a Path would take a slash from `s3://`
    if ":" not in uri:
        uri = str(folder)
        if not folder.is_dir():
            text = f"Folder {folder} does not exist; give that of save_model, or the model_uri of log_model."
            raise UsageError(text, argument="model_uri", value=model_uri)
    with tempfile.TemporaryDirectory() as place:
        try:
            folder = Path(mlflow.artifacts.download_artifacts(uri, dst_path=place))
            flavors = mlflow.models.Model.load(folder).flavors
        except (mlflow.exceptions.MlflowException, OSError, ImportError) as error:  # some stores need a package
            reason = str(error).strip().partition("\n")[0].rstrip(".")
            text = (
                f"MLflow cannot load the model '{quote(model_uri)}' ({quote(reason)}); give the model_uri of log_model."
            )
            raise UsageError(text, argument="model_uri", value=model_uri) from error
        if FLAVOR not in flavors:
            text = f"Model '{quote(model_uri)}' was not logged by femts; load it with mlflow.pyfunc.load_model."
            raise UsageError(text, argument="model_uri", value=model_uri)
        return load(folder / flavors[FLAVOR]["data"], device)


class PyfuncForecaster:
    """What `mlflow.pyfunc.load_model` wraps."""

    def __init__(self, forecaster: Forecaster) -> None:
        self.forecaster = forecaster

    def get_raw_model(self) -> Forecaster:
        """The forecaster; `mlflow.pyfunc.PyFuncModel.get_raw_model` calls this."""
        return self.forecaster

    def predict(self, model_input: Any, params: Mapping[str, Any] | None = None) -> pd.DataFrame:
        """Forecast the steps after the end of a table, as `Forecaster.predict` does.

        Args:
            model_input: the history; for a model with future covariates, with rows after its end whose targets are empty,
                in order of time. Or both tables by name, `history` and `future`, as in the body of an HTTP request.
            params: arguments of `Forecaster.predict` named in `PARAMS`.

        Returns:
            The forecast; see `Forecaster.predict`.
        """
        given = {name: value for name, value in (params or {}).items() if value is not None and value != []}
        if isinstance(model_input, Mapping) and "history" in model_input:
            tables = {name: _table(model_input[name]) for name in ("history", "future") if name in model_input}
        else:
            tables = _divided(self.forecaster, _table(model_input))
        return self.forecaster.predict(**tables, **given)


def _load_pyfunc(path: str) -> PyfuncForecaster:
    """Called by `mlflow.pyfunc.load_model` with the path of the run folder."""
    return PyfuncForecaster(load(path))


def _mlflow() -> Any:
    """The package mlflow, with what is used of it."""
    try:
        import mlflow.artifacts
        import mlflow.models
        import mlflow.pyfunc
    except ImportError as error:
        name = error.name or "mlflow"
        raise UsageError(f"MLflow needs {name}, which is not installed; run pip install 'femts[mlflow]'.") from error
    return mlflow


def _forecaster(given: Forecaster | str | Path) -> Forecaster:
    return given if isinstance(given, Forecaster) else load(given)


def _signature() -> Any:
    """Signature of every forecaster."""
    from mlflow.models import ModelSignature
    from mlflow.types import ParamSchema, ParamSpec

    specs = [
        ParamSpec(name, kind, [], (-1,)) if name in LISTS else ParamSpec(name, kind, None)
        for name, kind in PARAMS.items()
    ]
    return ModelSignature(params=ParamSchema(specs))


def _requirement(forecaster: Forecaster) -> str:
    """Requirement of this version of femts, with the extras for the model or its members and the holidays."""
    config, schema = forecaster.config.model_config, forecaster.config.schema
    members = config.members if isinstance(config, MeanConfig) else [forecaster.config]
    needs = [model_card(each.model).model_class.needs for each in members]
    extras = {each[1] for each in needs if each is not None} | ({"holidays"} if schema.roles.holidays else set())
    named = f"[{','.join(sorted(extras))}]" if extras else ""
    return f"femts{named}=={__version__}"


def _parameters(forecaster: Forecaster) -> dict[str, str]:
    """What `config.yaml` says, with dotted names, and the hash of the training data."""
    found = dict[str, Any]()
    for name, value in forecaster.config.to_dict().items():
        found |= {f"{name}.{key}": each for key, each in value.items()} if isinstance(value, dict) else {name: value}
    del found["format"]
    return {name: str(value)[:LONGEST] for name, value in {**found, "data.sha256": forecaster.data["sha256"]}.items()}


def _check_parameters(logged: Mapping[str, str], params: Mapping[str, str]) -> None:
    """Raise UsageError if a run has other values of parameters, which MLflow does not change."""
    other = next((name for name, value in params.items() if logged.get(name, value) != value), None)
    if other is not None:
        raise UsageError(
            f"The active MLflow run has the parameter {other} with the value '{quote(logged[other])}', not "
            f"'{quote(params[other])}'; log each forecaster in a run of its own, as within mlflow.start_run(nested=True)."
        )


def _scores(forecaster: Forecaster) -> dict[str, float]:
    """Finite scores of each split, and the coverage of the test split by the intervals."""
    metrics = forecaster.metrics
    found = {
        f"{part}_{name}": value
        for part, scores in (("val", metrics.get("val")), ("test", metrics.get("test")))
        for name, value in (scores or {}).items()
        if name not in COUNTS
    }
    if "intervals" in metrics:
        found |= {f"test_coverage_{level}": each["coverage"] for level, each in metrics["intervals"]["test"].items()}
    numbers = {name: value for name, value in found.items() if type(value) in (int, float)}
    return {name: float(value) for name, value in numbers.items() if math.isfinite(value)}  # type: ignore[arg-type]


def _table(given: Any) -> Any:
    """Records as a table; anything else as it is."""
    return pd.DataFrame.from_records(list(given)) if isinstance(given, list | np.ndarray) else given


def _divided(forecaster: Forecaster, table: Any) -> dict[str, Any]:
    """History and future covariates in one table, for a model with future covariates: the history of each series ends
    with its last row that has a target."""
    schema = forecaster.config.schema
    form, others = schema.form, {*schema.roles.future, *schema.roles.past}
    columns = table.columns if schema.roles.future and isinstance(table, pd.DataFrame) else ()
    targets = [
        name for name in dict.fromkeys((*forecaster.targets, form.value)) if name in columns and name not in others
    ]
    if not targets:
        return {"history": table}
    observed = table[targets].notna().any(axis=1)[::-1]
    keys = [table[name][::-1] for name in (form.keys or (form.series,)) if name in table]
    within = (observed.groupby(keys, sort=False, dropna=False).cummax() if keys else observed.cummax())[::-1]
    return {"history": table[within.to_numpy()], "future": table}
