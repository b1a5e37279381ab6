"""Errors by window and by series."""

from __future__ import annotations

import pytest
import torch
from every_window import every_window
from torch import Tensor

from femts.config.model import ModelConfig
from femts.data.resident import ScaledSeries
from femts.data.windows import Windows
from femts.evaluation.constants import MOST_ERRORS
from femts.evaluation.evaluator import evaluate
from femts.evaluation.window_errors import WindowErrors
from femts.models.naive import Naive

L, P, C = 6, 4, 3


def series(rows: int) -> Tensor:
    return torch.randn(rows, C, generator=torch.Generator().manual_seed(0))


def errors_of(windows: Windows, batch_size: int) -> tuple[list[float | None], float]:
    sums = WindowErrors()
    score = evaluate(Naive(ModelConfig(L, P, C)), windows, batch_size, also=[sums])
    return sums.thinned(), score["mse"]


def test_error_per_window() -> None:
    windows = Windows(series(40), L, P)
    batch, y = every_window(windows)
    by_hand = (batch.past[:, -1:] - y).square().mean((1, 2)).tolist()
    for batch_size in (1, 7, 100):
        assert errors_of(windows, batch_size)[0] == pytest.approx(by_hand, rel=1e-4)


def test_neighbouring_windows_are_averaged() -> None:
    rows = 3 * MOST_ERRORS + L + P - 1
    thinned, mse = errors_of(Windows(series(rows), L, P), 64)
    assert len(thinned) == MOST_ERRORS
    assert sum(each or 0.0 for each in thinned) / MOST_ERRORS == pytest.approx(mse, rel=1e-5)
    assert all(each == float(f"{each:.5g}") for each in thinned)


def test_empty_window_has_no_error() -> None:
    observed = torch.ones(40, C, dtype=torch.bool)
    observed[20:30] = False
    thinned, _ = errors_of(Windows(ScaledSeries(series(40), observed), L, P), 8)
    empty = [row for row in range(len(thinned)) if (row + L >= 20 and row + L + P <= 30) or 20 <= row <= 30 - L]
    assert [row for row, each in enumerate(thinned) if each is None] == empty


def test_errors_per_series_are_averaged() -> None:
    windows = Windows(series(40), L, P)
    sums = WindowErrors()
    evaluate(Naive(ModelConfig(L, P, C)), windows, 7, also=[sums])
    each = sums.thinned()
    number = torch.tensor([0] * 5 + [3] * 10 + [4] * (len(windows) - 15))  # 1 and 2 have no windows
    by_hand = [sum(e or 0.0 for e in some) / len(some) for some in (each[:5], each[5:15], each[15:])]
    assert sums.thinned(number) == pytest.approx(by_hand, rel=1e-4)
    many = WindowErrors()
    rows = 2 * MOST_ERRORS + L + P - 1
    evaluate(Naive(ModelConfig(L, P, C)), Windows(series(rows), L, P), 64, also=[many])
    assert many.thinned(torch.arange(2 * MOST_ERRORS)) == many.thinned()
