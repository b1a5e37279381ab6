"""Scoring conventions: drop_last and means of batch means."""

import numpy as np
import pytest
import torch

from femts.analysis.audit.conventions import convention_scores, window_errors
from femts.config.model import ModelConfig
from femts.data.resident import ScaledSeries
from femts.data.windows import Windows
from femts.evaluation.evaluator import evaluate
from femts.models.naive import Naive

WINDOWS = Windows(torch.randn(54, 3, generator=torch.Generator().manual_seed(0)), 10, 5)  # 40 windows
MODEL, SCALE = Naive(ModelConfig(10, 5, 3)), torch.tensor([1.0, 2.0, 30.0], dtype=torch.float64)


def errors() -> torch.Tensor:
    return window_errors(MODEL, WINDOWS, SCALE, batch_size=7)


def test_window_errors_match_the_evaluator() -> None:
    first, last = (convention_scores(errors(), [32])[i] for i in (0, -1))
    scores = evaluate(MODEL, WINDOWS)
    assert (first.windows, first.units) == (40, "scaled")
    assert first.mse == pytest.approx(scores["mse"], rel=1e-6)
    assert first.mae == pytest.approx(scores["mae"], rel=1e-6)
    values = WINDOWS.rows.double().numpy() * SCALE.numpy()
    raw = np.stack([values[s + 10 : s + 15] - values[s + 9] for s in range(40)])
    assert last.units == "raw"
    assert last.mse == pytest.approx(np.square(raw).mean(), rel=1e-6)
    assert last.mae == pytest.approx(np.abs(raw).mean(), rel=1e-6)


def test_drop_last_and_batch_mean_conventions() -> None:
    each = errors()[:, 0] / (5 * 3)
    found = {score.convention: score for score in convention_scores(errors(), [32, 16, 32])}
    assert len(found) == 6
    dropped = found["drop_last, batches of 32"]
    assert (dropped.windows, dropped.mse) == (32, pytest.approx(each[:32].mean().item()))
    means = found["mean of means of batches of 16"]
    assert means.windows == 40
    assert means.mse == pytest.approx(np.mean([each[:16].mean(), each[16:32].mean(), each[32:].mean()]))


def test_no_drop_last_score_without_a_full_batch() -> None:
    assert not any("drop_last" in score.convention for score in convention_scores(errors(), [64]))


def test_missing_values_are_ignored() -> None:
    observed = torch.rand(54, 3, generator=torch.Generator().manual_seed(1)) > 0.3
    windows = Windows(ScaledSeries(WINDOWS.rows, observed), 10, 5)
    first = convention_scores(window_errors(MODEL, windows, SCALE, batch_size=7), [32])[0]
    assert first.mse == pytest.approx(evaluate(MODEL, windows)["mse"], rel=1e-6)
    assert first.mse != pytest.approx(evaluate(MODEL, WINDOWS)["mse"], rel=1e-3)
