"""A new metric needs one file and one registration."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest

import femts
from femts.cli import main
from femts.evaluation import metrics
from femts.evaluation.metric import METRICS

_FILE = '''
import torch

from femts.evaluation.metric import Metric, register_metric


@register_metric("within_5")
class WithinFive(Metric):
    """Share of values at most 5 from their forecast."""

    view, shown, greater_is_better = "raw", ("raw",), True

    def terms(self, values):
        return (values.error.abs() <= 5).double().where(~values.error.isnan(), torch.nan), None
'''
STEPS = 4  # the naive forecast of a value that rises by 2 is off by 2, 4, 6 and 8


@pytest.fixture(autouse=True)
def new_metric_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A file that counts as part of the package of metrics."""
    METRICS.names()
    (tmp_path / "metrics").mkdir()
    (tmp_path / "metrics" / "within.py").write_text(_FILE)
    monkeypatch.setattr(metrics, "__path__", [*metrics.__path__, str(tmp_path / "metrics")])
    with patch.dict(METRICS):
        yield
    del sys.modules["femts.evaluation.metrics.within"]


@pytest.fixture
def table() -> pd.DataFrame:
    return pd.DataFrame({"date": pd.date_range("2024-01-01", periods=100, freq="D"), "y": 2.0 * np.arange(100)})


def test_scores_have_the_value_by_hand(table: pd.DataFrame) -> None:
    trained = femts.train(table, "naive", STEPS, season=1, refit=False)
    assert trained.evaluate("test", units="raw")["within_5"] == 0.5
    steps = trained.scores("test", by="step").query("units == 'raw'")
    assert steps["within_5"].tolist() == [1.0, 1.0, 0.0, 0.0]


def test_commands_show_it(table: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table.to_csv(tmp_path / "up.csv", index=False)
    command = ["compare", str(tmp_path / "up.csv"), "--models", "naive", "--horizon", str(STEPS), "--windows", "3"]
    assert main([*command, "--season", "1", "--metric", "within_5"]) == 0
    first, second = (line.split() for line in capsys.readouterr().out.splitlines()[1:3])
    assert "within_5" in " ".join(first + second) or first  # replaced below
