"""User-defined models in benchmark tables."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from forks import forked_cells
from small_tables import small_table

import femts
from femts import plugins
from femts.data.catalog import DatasetCard, register_dataset
from femts.data.catalog.registry import CATALOG
from femts.errors import CellWarning, UsageError
from femts.mixers.priors.registry import PRIORS, register_prior
from femts.models.registry import MODELS, model_names

_MODULE = """
from torch import Tensor, nn

from femts.config.model import ModelConfig
from femts.data.batch import Batch
from femts.models.base import ForecastModel
from femts.models.registry import register


@register("own_line", "A linear map.")
class OwnLine(ForecastModel):
    Config = ModelConfig

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.map = nn.Linear(config.seq_len, config.pred_len)

    def forward(self, batch: Batch) -> Tensor:
        return self.map(batch.past.mT).mT


@register("own_short", "Its last step alone.")
class OwnShort(OwnLine):
    def forward(self, batch: Batch) -> Tensor:
        return super().forward(batch)[:, -1:]


@register("own_broken", "Without the transposes.")
class OwnBroken(OwnLine):
    def forward(self, batch: Batch) -> Tensor:
        return self.map(batch.past)  # line 31
"""

_BROOK = DatasetCard(
    name="Brook", filename="brook.csv", rows=30, channels=3, freq="h", season=24, description="Three gauges."
)


@pytest.fixture(autouse=True)
def own_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A module with three models."""
    model_names()
    (tmp_path / "own_models_for_test.py").write_text(_MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    with patch.dict(MODELS), patch.dict(CATALOG), patch.dict(plugins._MODULES):
        importlib.import_module("own_models_for_test")
        yield
    del sys.modules["own_models_for_test"]


def test_table_trains_own_models_and_reports_failures(tmp_path: Path) -> None:
    small_table().to_csv(tmp_path / "mine.csv", index=False)
    names, few = ["own_line", "own_short", "own_broken"], {"training.max_steps": 5}
    how: dict[str, Any] = {"seq_lens": 24, "settings": few, "jobs": 1, "device": "cpu", "results": tmp_path / "results"}
    says = r"^2 of 3 cells failed .* \(1, 1, 2\), not \(1, 12, 2\) .* fix"
    with forked_cells(), pytest.warns(CellWarning, match=says):
        table = femts.table(tmp_path / "mine.csv", names, 12, **how)
    assert list(table["mse"].notna()) == [True, False, False]
    with pytest.warns(CellWarning, match=r"RuntimeError: .* \(line 31 of .*own_models_for_test\.py\)"):
        femts.pairs([("own_broken", "own_line")], tmp_path / "mine.csv", 12, train=False, **how)


def test_models_registered_in_a_script_are_refused_first(tmp_path: Path) -> None:
    plugins._MODULES["own_line"] = "__main__"
    small_table().to_csv(tmp_path / "mine.csv", index=False)
    with pytest.raises(UsageError, match=r"^'own_line' is defined in the script .* move it to its own module"):
        femts.table(tmp_path / "mine.csv", "own_line", 12, seq_lens=24, results=tmp_path / "results")
    assert not (tmp_path / "results").exists()


def test_only_used_modules_are_loaded() -> None:
    register_dataset(_BROOK)
    with patch.dict(PRIORS):
        own: Any = type("OwnPrior", (), {"NAME": "own_prior", "__module__": "own_priors"})
        register_prior(own)
    assert plugins.modules_of({"settings": {"model.prior": "own_prior"}}) == {"own_priors"}
    assert plugins.modules_of({"dataset": "Brook", "pred_len": 12}) == {__name__}
    assert plugins.modules_of(["naive", {"model": ["own_line"]}]) == {"own_models_for_test"}
    assert plugins.modules_of({"model": "fem_sm", "seed": 1}) == set()
