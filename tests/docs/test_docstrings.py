"""Docstrings list arguments, return values and exceptions; commands describe their options."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import pandas as pd
import pytest
import torch
import typer
from commands import COMMANDS
from small_tables import small_table

import femts
from femts.cli import app
from femts.config.training import TrainingConfig
from femts.data.batch import Batch
from femts.data.loading import load_dataset
from femts.errors import FemtsError

SECTION = re.compile(r"^(Args|Returns|Raises):\n((?:    .*\n|\n)+)", re.MULTILINE)


def _public() -> dict[str, Callable[..., object]]:
    """Public functions and methods by dotted name."""
    found: dict[str, Callable[..., object]] = {}
    for name in femts.__all__:
        thing = getattr(femts, name)
        if inspect.isclass(thing):
            for key in dir(thing):
                base = next(base for base in thing.__mro__ if key in vars(base))
                if (
                    key[0] != "_"
                    and base.__module__.startswith("femts.")
                    and inspect.isfunction(
                        inspect.unwrap(getattr(getattr(thing, key), "__func__", getattr(thing, key)))
                    )
                ):
                    owner = base.__name__ if base.__name__ in femts.__all__ else name
                    found[f"{owner}.{key}"] = getattr(thing, key)
        elif callable(thing):
            found[name] = thing
    return found | {f"mlflow.{name}": getattr(femts.mlflow, name) for name in ("load_model", "log_model", "save_model")}


PUBLIC = _public()


def _sections(docstring: str) -> dict[str, str]:
    return dict(SECTION.findall(docstring + "\n"))


def _listed(section: str) -> set[str]:
    """Names that start the lines of a section; `x, y: ...` has two."""
    return {name for line in re.findall(r"^    ([\w, ]+):", section, flags=re.MULTILINE) for name in line.split(", ")}


def test_docstrings_list_arguments_returns_and_raises() -> None:
    for name, thing in PUBLIC.items():
        text, signature = inspect.getdoc(thing), inspect.signature(thing, eval_str=False)
        assert text, name
        taken = {key for key in signature.parameters if key not in ("self", "cls")}
        raises = re.search(r"^\s+raise \w+", inspect.getsource(thing), flags=re.MULTILINE)
        if "\n" not in text:  # one line names what it takes
            assert taken <= set(re.findall(r"`(\w+)`", text)), name
            assert not raises, name
            continue
        sections = _sections(text)
        assert _listed(sections.get("Args", "")) == taken, name
        assert ("Returns" in sections) == (signature.return_annotation != "None"), name
        assert "Raises" in sections or not raises, name


@pytest.mark.parametrize("thing", [femts.Dataset, femts.FreeEnergyMixerConfig, TrainingConfig])
def test_dataclass_docstrings_list_every_field(thing: type) -> None:
    described = re.search(r"^Attributes:\n((?:    .*\n)+)", (inspect.getdoc(thing) or "") + "\n", flags=re.MULTILINE)
    assert described
    assert _listed(described[1]) == {field.name for field in fields(thing) if not field.name.startswith("_")}


@pytest.mark.parametrize("module", ["femts.data.loading", "femts.mixers.layer"])
def test_docstring_examples_run(module: str) -> None:
    done = doctest.testmod(importlib.import_module(module))
    assert (done.failed, done.attempted > 1) == (0, True)


def _layer() -> femts.FreeEnergyMixer:
    return femts.FreeEnergyMixer(femts.FreeEnergyMixerConfig(n_embd=8, n_head=2, causal=False))


def _of_series() -> femts.Forecaster:
    return femts.train(load_dataset(small_table(), panel=True), "naive", 6, seq_len=12)


WITHOUT_BASELINE = pd.DataFrame({"task": ["a"], "model": ["ridge"], "mase": [1.0]})
BEYOND_THE_CAP = 1e5 * torch.randn(1, 9, 8, generator=torch.Generator().manual_seed(0))

MISTAKES: dict[str, Callable[[femts.Forecaster], object]] = {
    "Dataset.before_test": lambda fc: load_dataset(small_table(20)).before_test(2, 99),
    "audit": lambda fc: femts.audit("none"),
    "backtest": lambda fc: femts.backtest(fc, small_table(), n_windows=0, step_size=1),
    "check": lambda fc: femts.check(fc, small_table(), horizon=0),
    "update": lambda fc: femts.update(fc, small_table()[:10]),
    "backtest_scores": lambda fc: femts.backtest_scores(small_table(), fc),
    "compare": lambda fc: femts.compare(small_table(), "ridge", n_windows=0),
    "datasets": lambda fc: femts.datasets("a\0b"),
    "forecast": lambda _: femts.forecast(small_table(), 6, model="dlinear"),
    "leaderboard": lambda fc: femts.leaderboard(WITHOUT_BASELINE),
    "load": lambda fc: femts.load("none"),
    "load_dataset": lambda fc: femts.load_dataset("ETTh11"),
    "mean_of": lambda fc: femts.mean_of([fc]),
    "mlflow.load_model": lambda fc: femts.mlflow.load_model("none"),
    "mlflow.log_model": lambda fc: femts.mlflow.log_model("none", "name"),
    "mlflow.save_model": lambda fc: femts.mlflow.save_model("none", "model"),
    "models": lambda fc: femts.models("fem_gal"),
    "register": lambda fc: femts.register("ridge", "taken")(type(fc.model)),
    "report": lambda fc: femts.report("none", "page.html"),
    "pairs": lambda fc: femts.pairs("fem_sm"),
    "score_tasks": lambda fc: femts.score_tasks("none.yaml", "ridge"),
    "table": lambda fc: femts.table("ETTh11"),
    "train": lambda fc: femts.train("synthetic", model="fem_gal"),
    "tune": lambda fc: femts.tune("synthetic", model="fem_gal"),
    "Forecaster.predict_array": lambda fc: fc.predict_array([[1.0]]),
    "Forecaster.training_data": lambda fc: fc.training_data(),
    "Forecaster.predict": lambda fc: _of_series().predict(small_table(), 0),
    "Forecaster.sample": lambda fc: _of_series().sample(small_table(), 0),
    "Forecaster.totals": lambda fc: _of_series().totals(small_table(), "weeks"),  # type: ignore[arg-type]
    "Forecaster.evaluate": lambda fc: _of_series().evaluate("tset"),
    "Forecaster.plot": lambda fc: _of_series().plot(small_table(), series=["wind"]),
    "Forecaster.explain": lambda fc: _of_series().explain(small_table()),
    "Forecaster.importance": lambda fc: _of_series().importance(windows=1),
    "Forecaster.of": lambda fc: _of_series().of("wind"),
    "Forecaster.coverage": lambda fc: _of_series().coverage(level=[100]),
    "Forecaster.calibrate": lambda fc: _of_series().calibrate(level=[0]),
    "Forecaster.scores": lambda fc: _of_series().scores("tset"),
    "ForecastModel.error": lambda fc: fc.model.error(torch.zeros(1, 1, 2), torch.zeros(1, 3, 2)),
    "ForecastModel.forward": lambda fc: femts.ForecastModel(fc.config.model_config)(Batch(torch.zeros(1, 24, 2))),
    "ForecastModel.rolled_out": lambda fc: fc.model.rolled_out(Batch(torch.zeros(1, 24, 2)), 0),
    "FreeEnergyMixer.forward": lambda fc: _layer()(torch.zeros(1, 3, 8), torch.ones(1, 2)),
    "FreeEnergyMixer.hidden_temperature": lambda fc: _layer().hidden_temperature(BEYOND_THE_CAP),
    "FreeEnergyMixer.posterior": lambda fc: _layer().posterior(BEYOND_THE_CAP),
    "FreeEnergyMixer.selection": lambda fc: _layer().selection(BEYOND_THE_CAP),
    "FreeEnergyMixer.step": lambda fc: _layer().step(torch.zeros(1, 8), None),  # type: ignore[arg-type]
    "Prior.bind": lambda fc: femts.Prior.bind(_layer().prior, {}, None),
    "Prior.init_state": lambda fc: femts.Prior.init_state(_layer().prior, 1, 8),
    "Prior.log_scores": lambda fc: femts.Prior.log_scores(_layer().prior, {}, torch.ones(1, 3, 1)),
    "Prior.step": lambda fc: femts.Prior.step(_layer().prior, {}, torch.zeros(1, 2, 4), None),
}


def test_documented_exceptions_are_raised(own: Path) -> None:
    assert set(MISTAKES) == {
        name for name, thing in PUBLIC.items() if "Raises" in _sections(inspect.getdoc(thing) or "")
    }
    for name, mistake in MISTAKES.items():
        forecaster = femts.load(own / "run")
        if name == "Forecaster.training_data":
            forecaster = replace(forecaster, data={**forecaster.data, "sha256": "other"})
        with pytest.raises((FemtsError, ValueError, TypeError)) as raised:
            mistake(forecaster)
        said = _listed(_sections(inspect.getdoc(PUBLIC[name]) or "")["Raises"])
        assert type(raised.value).__name__ in said, name


def test_every_command_and_option_has_help() -> None:
    def check(command: object, path: str) -> list[str]:
        assert command.help, path  # type: ignore[attr-defined]
        for parameter in command.params:  # type: ignore[attr-defined]
            assert parameter.help, f"{path} {parameter.name}"
        inner = getattr(command, "commands", {})
        return [path, *(found for name, each in inner.items() for found in check(each, f"{path} {name}".strip()))]

    assert {"", *COMMANDS} == set(check(typer.main.get_command(app), ""))
