"""A new model needs one file and one registration."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from checkout import Checkout
from model_cases import (
    check_audit,
    check_card,
    check_gaps_are_left_out,
    check_horizons,
    check_single_channels,
    make_model,
    quick_run,
)
from small_tables import small_table

import femts
from femts import models
from femts.cli import main
from femts.errors import UsageError
from femts.models.registry import MODELS, model_names, register

_FILE = """
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from femts.config.model import ModelConfig
from femts.data.batch import Batch
from femts.errors import UsageError
from femts.models.base import ForecastModel, Supports
from femts.models.registry import register


@dataclass(frozen=True)
class WeightedMeanConfig(ModelConfig):
    steps: int = 12

    def __post_init__(self):
        if not 1 <= self.steps <= self.seq_len:
            raise UsageError(f"Setting 'model.steps' ({self.steps}) is not from 1 to the look-back of {self.seq_len}.")


@register("weighted_mean", "A mean of the last steps, whose weights are learned.")
@register("weighted_mean_short", "The same of three steps.", steps=3)
class WeightedMean(ForecastModel):
    Config: ClassVar[type] = WeightedMeanConfig
    training_defaults = {"lr": 1e-2}
    supports = Supports(channels=1, subsampling=True)

    def __init__(self, config):
        super().__init__(config)
        self.score = nn.Parameter(torch.linspace(-1.0, 1.0, config.steps).repeat(config.pred_len, 1))

    def forward(self, batch: Batch) -> Tensor:
        return torch.einsum("ps,bsc->bpc", self.score.softmax(-1), batch.past[:, -self.config.steps :])
"""
NAMES = ("weighted_mean", "weighted_mean_short")
SHAPE = ("--horizon", "12", "--seq-len", "24")


@pytest.fixture(autouse=True)
def new_model_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A file that counts as part of the models package."""
    model_names()
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "weighted_for_test.py").write_text(_FILE)
    monkeypatch.setattr(models, "__path__", [*models.__path__, str(tmp_path / "models")])
    with patch.dict(MODELS):
        assert set(NAMES) <= set(model_names())
        yield
    del sys.modules["femts.models.weighted_for_test"]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of the new model."""
    small_table().to_csv(tmp_path / "past.csv", index=False)
    folder = tmp_path / "run"
    data = ("--dataset", str(tmp_path / "past.csv"), "--model", "weighted_mean")
    assert main(["train", *data, *SHAPE, "--max-steps", "5", "--out", str(folder)]) == 0
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_new_model_has_the_common_properties(name: str) -> None:
    check_card(name)
    check_horizons(name)
    check_gaps_are_left_out(name)
    check_single_channels(name, gaps=False)
    check_single_channels(name, gaps=True)


def test_audit_of_a_new_model(monkeypatch: pytest.MonkeyPatch) -> None:
    check_audit("weighted_mean")
    made = type(make_model("weighted_mean"))
    forward: Any = made.forward
    monkeypatch.setattr(made, "forward", lambda model, batch: forward(model, replace(batch, past=batch.past.flip(-1))))
    assert {check.name for check in femts.audit(quick_run("weighted_mean")).failed} == {"other channels"}


def test_new_model_trains_and_roundtrips(tmp_path: Path) -> None:
    table = small_table()
    trained = femts.train(table, "weighted_mean", 12, seq_len=24, max_steps=30, device="cpu", out=tmp_path / "run")
    assert trained.config.training.lr == 1e-2
    untrained = femts.train(
        table, "weighted_mean", 12, seq_len=24, max_steps=1, settings={"training.lr": 1e-9}, device="cpu"
    )
    assert trained.metrics["val"]["mse"] < untrained.metrics["val"]["mse"]
    loaded = femts.load(tmp_path / "run")
    assert all(torch.equal(value, loaded.model.state_dict()[key]) for key, value in trained.model.state_dict().items())
    assert loaded.evaluate("test", dataset=femts.load_dataset(table)) == trained.metrics["test"]
    forecast = loaded.predict(table, 30)
    assert forecast.shape == (30, 3) and np.isfinite(forecast[["load", "heat"]].to_numpy()).all()


def test_commands_accept_a_new_model(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(run)]) == 0
    assert main(["predict", str(run), str(tmp_path / "past.csv"), "--out", str(tmp_path / "next.csv")]) == 0
    assert len((tmp_path / "next.csv").read_text().splitlines()) == 1 + 12
    capsys.readouterr()
    assert main(["models"]) == 0
    lines = [line.split(maxsplit=2) for line in capsys.readouterr().out.splitlines()]
    assert ["weighted_mean", str(12 * 96), "A mean of the last steps, whose weights are learned."] in lines
    assert main(["models", "weighted_mean_short"]) == 0
    settings = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["model.steps", "3"] in settings and ["training.lr", "0.01"] in settings


def test_invalid_uses_of_a_new_model_are_refused(tmp_path: Path) -> None:
    table = small_table()
    with pytest.raises(UsageError, match=r"'model\.steps' \(25\) is not from 1 to the look-back of 24"):
        femts.train(table, "weighted_mean", 12, seq_len=24, settings={"model.steps": 25})
    with pytest.raises(UsageError, match=r"Unknown setting 'model\.step'; did you mean 'model\.steps'"):
        femts.train(table, "weighted_mean", 12, seq_len=24, settings={"model.step": 3})
    with pytest.raises(UsageError, match="did you mean 'weighted_mean'"):
        femts.train(table, "weigthed_mean", 12, seq_len=24)
    with pytest.raises(UsageError, match=r"'weighted_mean' does not support training\.loss=pinball"):
        make_model("weighted_mean", (0.1, 0.5, 0.9))
    with pytest.raises(ValueError, match="'weighted_mean' is registered twice"):
        register("weighted_mean", "Again.")(type(make_model("weighted_mean")))


def test_benchmark_table_scores_a_new_model(tmp_path: Path) -> None:
    checkout = Checkout.make(tmp_path)  # the cells of a table are processes of their own
    checkout.add("models/weighted_mean.py", _FILE)
    small_table().to_csv(tmp_path / "boiler.csv", index=False)
    cells = ("--datasets", "boiler.csv", "--models", "weighted_mean,naive", "--horizons", "12", "--seq-len", "24")
    few = ("--set", "training.max_steps=100", "--jobs", "2")
    lines = [line.split() for line in checkout.run("table", *cells, *few).splitlines()]
    assert ["boiler", "weighted_mean", "naive", "seasonal_naive"] in lines
    scores = next(line for line in lines if line[0] == "12")
    assert float(scores[1].rstrip("*")) < float(scores[2].rstrip("*"))
