"""Runs small enough to be repeated."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from femts.data.dataset import Dataset
from femts.data.loading import load_dataset
from femts.data.synthetic import synthetic_frame
from femts.forecaster.forecaster import Forecaster
from femts.training.loop import Trainer
from femts.training.train import train

if TYPE_CHECKING:  # spawned processes import this file
    import pytest

DATA = load_dataset(synthetic_frame(2000))
TRAIN, VAL, TEST = (int(DATA.split.windows(part, 48, 24)[0, 3]) for part in ("train", "val", "test"))
SMALL: dict[str, Any] = {"seq_len": 48, "pred_len": 24, "max_epochs": 3, "device": "cpu", "refit": False}
MODELS: dict[str, dict[str, Any]] = {
    # By the default recipe, not by its paper's.
    "dlinear": {"training.batch_size": 125, "training.lr": 1e-3, "training.keep": "best"},
    # Dropout on, several batches in an epoch, small enough for a second a run.
    "fem_sm": {
        "training.batch_size": 320,
        "training.keep": "best",
        "model.d_model": 16,
        "model.n_layers": 1,
        "model.n_heads": 2,
        "model.dropout": 0.3,
    },
}
MODELS["fem_mamba"] = MODELS["fem_sm"]  # beside weights that decay, more that do not
MODELS["fem_sm_ridge"] = MODELS["fem_sm"]  # beside trained weights, some that are fitted before the first step


def small_run(model: str = "dlinear", data: Dataset = DATA, **changes: Any) -> Forecaster:
    """Train `model` for three short epochs; `settings` override `MODELS`."""
    settings = {**MODELS.get(model, {}), **changes.pop("settings", {})}
    return train(data, model, **{**SMALL, **changes}, settings=settings)


def essence(forecaster: Forecaster) -> dict[str, Any]:
    """Everything that equal runs must share to the bit."""
    history = [{k: v for k, v in row.items() if k != "seconds"} for row in forecaster.validations]
    kept = {k: forecaster.metrics[k] for k in ("kept_step", "steps", "stopped", "val", "test")}
    weights = {name: value.cpu().tolist() for name, value in forecaster.model.state_dict().items()}
    assert forecaster.intervals is not None
    return {**kept, "history": history, "weights": weights, "intervals": forecaster.intervals.to_bytes().hex()}


def signal_at(monkeypatch: pytest.MonkeyPatch, call: int, number: signal.Signals) -> None:
    """Send this process a signal in the `call`-th training step."""
    take, calls = Trainer.step, 0

    def step(self: Trainer) -> None:
        nonlocal calls
        calls += 1
        if calls == call:
            os.kill(os.getpid(), number)
        take(self)

    monkeypatch.setattr(Trainer, "step", step)


@contextmanager
def forked_workers() -> Iterator[None]:
    """Fork the processes of trainings on several devices, instead of importing all anew in each."""
    from lightning_fabric import strategies  # loaded by trainings of networks only

    own = strategies.DDPStrategy

    def forking(start_method: str) -> Any:
        assert start_method == "spawn"
        return own(start_method="fork")

    with patch.object(strategies, "DDPStrategy", forking):
        yield
