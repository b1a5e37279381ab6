"""Appendix P in small: the script of the full size is `scripts/toy_argmax.py`."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "toy_argmax.py"


@pytest.fixture(scope="module")
def toy() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("toy_argmax", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["toy_argmax"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["toy_argmax"]


def test_each_channel_has_one_maximum(toy: ModuleType) -> None:
    task = toy.Task(seq_len=32, d_model=64, batch=8)
    v, winner = task.draw(seed=3)
    assert v.shape == (8, 32, 64) and (v.argmax(1) == winner).all()
    assert (v > 0.5).sum(1).eq(1).all()
    assert (task.draw(seed=3)[0] == v).all() and (task.draw(seed=4)[0] != v).any()


def test_fem_solves_argmax_and_softmax_does_not(toy: ModuleType) -> None:
    """T = 32 and D = 64, so chance is 3 % and one token holds the winners of several channels of a head."""
    task = toy.Task(seq_len=32, d_model=64, heads=4, val_samples=320, steps=250, lr=5e-2)
    accuracy, mse = toy.train(task, "LT")
    softmax_accuracy, softmax_mse = toy.train(task, "")
    assert accuracy > 0.99
    assert softmax_accuracy < 0.12
    assert mse < 0.15 * softmax_mse
