"""A small version of `scripts/toy_argmax.py` (appendix P)."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "toy_argmax.py"


@pytest.fixture(scope="module")
def toy_module() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("toy_argmax", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["toy_argmax"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["toy_argmax"]


def test_each_channel_has_one_maximum(toy_module: ModuleType) -> None:
    task = toy_module.Task(seq_len=32, d_model=64, batch=8)
    v, winner = task.draw(seed=3)
    assert v.shape == (8, 32, 64) and (v.argmax(1) == winner).all()
    assert (v > 0.5).sum(1).eq(1).all()
    assert (task.draw(seed=3)[0] == v).all() and (task.draw(seed=4)[0] != v).any()


def test_fem_solves_argmax_and_softmax_does_not(toy_module: ModuleType) -> None:
    task = toy_module.Task(seq_len=32, d_model=64, heads=4, val_samples=320, steps=250, lr=5e-2)
    accuracy, mse = toy_module.train(task, "LT")
    softmax_accuracy, softmax_mse = toy_module.train(task, "")
    assert accuracy > 0.99
    assert softmax_accuracy < 0.12
    assert mse < 0.15 * softmax_mse
