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


TABLE = pd.DataFrame({"date": pd.date_range("2024-01-01", periods=100, freq="D"), "y": 2.0 * np.arange(100)})


def test_scores_have_the_value_by_hand() -> None:
    trained = femts.train(TABLE, "naive", STEPS, season=1, refit=False)
    steps = trained.scores("test", by="step").query("units == 'raw' and step != 'all'")
    assert steps["within_5"].tolist() == [1.0, 1.0, 0.0, 0.0]


def test_models_are_compared_by_it() -> None:
    made = femts.compare(TABLE, "naive", STEPS, n_windows=3, metric="within_5", season=1).table
    assert made.set_index("model")["within_5"].to_dict() == {"drift": 1.0, "naive": 0.5, "mean": 0.0}
