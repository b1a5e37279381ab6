"""A plugin package with a model, metric, loss, scaler and intervals."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from forks import Forked
from small_tables import small_table

import femts

_MODULE = '''
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import torch
from torch import nn

from femts.config.model import ModelConfig
from femts.data.scaler import register_scaler
from femts.evaluation.conformal import register_intervals
from femts.evaluation.metric import Metric, register_metric
from femts.models.base import ForecastModel
from femts.models.losses import register_loss
from femts.models.registry import register


@register("last_and_shift", "The last value, and a learned shift for each step.")
class LastAndShift(ForecastModel):
    Config = ModelConfig

    def __init__(self, config):
        super().__init__(config)
        self.shift = nn.Parameter(torch.zeros(config.pred_len, 1))

    def forward(self, batch):
        return batch.past[:, -1:] + self.shift


@register_loss("huber")
def huber(prediction, batch):
    errors = nn.functional.huber_loss(prediction, batch.future, reduction="none")
    return errors.mean() if batch.future_observed is None else errors[batch.future_observed].mean()


@register_metric("largest")
class Largest(Metric):
    """Mean of the largest absolute error of each window and column."""

    per_window = True

    def terms(self, values):
        return values.error.abs().nan_to_num(0).amax(1, keepdim=True), None


@register_scaler("range")
def range_of(values):
    low, high = np.nanmin(values, axis=0), np.nanmax(values, axis=0)
    return low, high - low


@register_intervals("normal")
def normal(errors, levels, disjoint):
    deviation = np.sqrt(np.nanmean(errors**2, axis=-1))
    return np.stack([NormalDist().inv_cdf(0.5 + level / 200) * deviation for level in levels])
'''
SETTINGS = {"loss": "huber", "metric": "largest", "scaler": "range", "intervals": "normal"}
RECIPE = [part for name, value in SETTINGS.items() for part in ("--set", f"training.{name}={value}")]
LENGTHS = ("--seq-len", "24", "--set", "training.max_steps=20")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table and an installed plugin package in `site`."""
    folder = tmp_path_factory.mktemp("plugin")
    info = folder / "site" / "my_femts-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-femts\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[femts.plugins]\nmine = my_femts\n")
    (folder / "site" / "my_femts.py").write_text(_MODULE)
    small_table().to_csv(folder / "boiler.csv", index=False)
    return folder


SEVERAL = """
import sys
from pages import cells_in_this_process
from femts.cli import main

with cells_in_this_process():
    sys.exit(max(main(line.split()) for line in sys.argv[1:]))
"""


def run(folder: Path, *arguments: str, options: tuple[str, ...] = ("-m", "femts")) -> subprocess.CompletedProcess[str]:
    """Run the command line in a subprocess."""
    path = os.pathsep.join(
        [str(folder / "site"), str(Path(femts.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    )
    return Forked([*options, *arguments], folder, {**os.environ, "PYTHONPATH": path}).completed()


@pytest.fixture(scope="module")
def trained(folder: Path) -> Path:
    """A run that uses every plugin component."""
    asked = ("--dataset", "boiler.csv", "--model", "last_and_shift", "--horizon", "12", "--out", "run")
    made = run(folder, "train", *asked, *LENGTHS, *RECIPE)
    assert made.returncode == 0, made.stderr
    return folder / "run"


def test_plugin_trains_a_run(trained: Path) -> None:
    metrics = json.loads((trained / "metrics.json").read_text())
    assert metrics["val"]["largest"] > metrics["val"]["mae"] and metrics["test"]["largest"] > metrics["test"]["mae"]
    rows = pd.read_csv(trained / "metrics.csv")
    assert rows["val_largest"].iloc[-1] == pytest.approx(metrics["val"]["largest"])
    printed = run(trained.parent, "evaluate", "run").stdout.splitlines()
    shown = dict(zip(printed[0].split(), printed[1].split(), strict=True))
    assert shown["largest"] == f"{metrics['test']['largest']:.4f}"
    several = run(trained.parent, "evaluate", "run", "--horizon", "6,12", "--json").stdout
    each = [one["largest"] for one in json.loads(several)["pred_len"].values()]
    assert json.loads(several)["mean"]["largest"] == pytest.approx(sum(each) / 2)
    table = run(trained.parent, "evaluate", "run", "--by", "channel", "--csv").stdout
    assert "largest" in table.splitlines()[0].split(","), "a metric of a plugin is part of every score"


def test_commands_load_the_plugin(folder: Path, trained: Path) -> None:
    lines = (
        "predict run boiler.csv --level 50,85 --out next.csv",
        "evaluate run",
        "report run --out page.html",
        "models",
    )
    made = run(folder, *lines, options=("-c", SEVERAL))
    assert made.returncode == 0, made.stderr
    assert "The last value, and a learned shift for each step." in made.stdout
    forecast = pd.read_csv(folder / "next.csv")
    half = [(forecast[f"load-hi-{level}"] - forecast["load"]).to_numpy() for level in (50, 85)]
    assert half[1] / half[0] == pytest.approx([1.43953 / 0.67449] * 12, rel=1e-3), "normal quantiles"


def test_a_registered_metric_is_in_backtests_comparisons_and_tasks(folder: Path, trained: Path) -> None:
    task = {"name": "heat", "data": "boiler.csv", "horizon": 12, "windows": 2}
    (folder / "tasks.yaml").write_text(json.dumps({"tasks": [task]}))
    lines = (
        "backtest run boiler.csv --n-windows 2",
        "compare boiler.csv --models ridge --horizon 12 --n-windows 3 --metric largest",
        "table --tasks tasks.yaml --models ridge",
    )
    made = run(folder, *lines, options=("-c", SEVERAL))
    assert made.returncode == 0, made.stderr
    backtest, compared = (
        next(line for line in made.stdout.splitlines() if start in line) for start in ("cutoff", "win_rate")
    )
    assert {"largest_scaled", "largest_raw"} <= set(backtest.split()) and "largest" in compared.split()
    (record,) = (folder / "results" / "tasks").glob("heat-*/ridge-seed42.json")
    scores = json.loads(record.read_text())["scores"]
    assert scores["largest"] > 0 and {"mase", "sql", "wape", "wql"} < set(scores)
    assert "MASE / SQL / LARGEST" in made.stdout and f"{scores['sql']:.3f} / {scores['largest']:.3f}" in made.stdout


@pytest.mark.slow
def test_benchmark_table_loads_the_plugin(folder: Path) -> None:
    asked = ("--datasets", "boiler.csv", "--models", "last_and_shift", "--horizons", "12", "--jobs", "2")
    made = run(folder, "table", *asked, *LENGTHS, *RECIPE)
    assert made.returncode == 0, made.stderr
    (record,) = (folder / "results").rglob("last_and_shift*.json")
    content = json.loads(record.read_text())
    assert content["config"]["training"]["metric"] == "largest"
    (line,) = (line for line in made.stdout.splitlines() if line.startswith("largest"))
    assert line.split()[1] == f"{content['test']['largest']:.3f}"
    shown = run(folder, "table", *asked, *LENGTHS, *RECIPE, "--show", "--format", "csv").stdout
    (row,) = csv.DictReader(io.StringIO(shown))
    assert float(row["largest"]) == pytest.approx(content["test"]["largest"])


def test_plugin_names_are_refused_without_the_package(folder: Path, tmp_path: Path) -> None:
    for name, value in SETTINGS.items():
        with pytest.raises(femts.UsageError, match=f"Unknown .*'{value}'"):
            femts.train(
                small_table(), "dlinear", 12, seq_len=24, settings={f"training.{name}": value}, out=tmp_path / "r"
            )
    assert not (tmp_path / "r").exists()


def test_broken_plugin_is_refused(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "site" / "broken-1.0.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (other / "entry_points.txt").write_text("[femts.plugins]\nbroken = no_such_module\n")
    made = run(tmp_path, "models")
    assert made.returncode == 2 and made.stderr.count("\n") == 1, made.stderr
    assert "Plugin 'broken' cannot be imported from no_such_module" in made.stderr
