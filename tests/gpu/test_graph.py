"""Training steps replayed from a CUDA graph."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from small_steps import CONFIG, MODELS, trained, trainer
from torch import Tensor

from femts.errors import RunFailure
from femts.training.constants import WARM_UP

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device, and this machine has none")
WHOLE = 54  # of 60 steps: six epochs of nine whole batches and a smaller one


DRAWN = {"channels": 2, "batch_size": 8, "accumulate": 2}


@pytest.mark.parametrize("precision", ["32", "bf16"])
@pytest.mark.parametrize(("name", "also"), [*((name, {}) for name in MODELS), ("fem_sm", DRAWN)])
def test_replayed_steps_are_the_eager_ones(name: str, also: dict[str, int], precision: str, tmp_path: Path) -> None:
    config = replace(CONFIG, lr=1e-3, **also)  # type: ignore[arg-type]  # what sums in another order change grows
    eager, none = trained(name, config, tmp_path, device="cuda", precision=precision)
    replayed, count = trained(name, config, tmp_path, graph=True, device="cuda", precision=precision)
    assert (none, count) == (0, WHOLE - 2 * WARM_UP)
    assert replayed.losses == pytest.approx(eager.losses, rel=1e-3 if precision == "32" else 2e-2)
    assert replayed.losses[-1] != replayed.losses[WARM_UP]


@pytest.mark.parametrize("precision", ["32", "bf16"])
def test_replayed_steps_learn(precision: str) -> None:
    # a cache of the weights that an autocast casts would compute all steps with the first ones
    made = trainer("dlinear", replace(CONFIG, max_steps=None), graph=True, device="cuda", precision=precision)
    for _ in range(200):
        made.step()
    made.take_losses()
    losses = made.state.losses
    assert sum(losses[-20:]) < 0.9 * sum(losses[:20])


def test_each_replay_draws_the_masks_of_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    config = replace(CONFIG, lr=1e-12, weight_decay=0.0)  # so that only masks and windows differ
    losses = []
    for graph in (False, True):
        made = trainer("fem_sm", config, graph=graph, device="cuda")
        for _ in range(9):  # an epoch but for its last batch
            made.step()
        first = made.batches.of(0)
        monkeypatch.setattr(made.batches, "of", lambda step, first=first: first)
        for _ in range(9):
            made.step()
        made.take_losses()
        losses.append(made.state.losses)
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)
    assert len({round(loss, 4) for loss in losses[1][9:]}) > 5, "the same windows under other masks"


def test_step_that_cannot_be_captured_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    made = trainer("dlinear", CONFIG, graph=True, device="cuda")
    loss = made.model.loss

    def reading(*args: Any) -> Tensor:
        value = loss(*args)
        value.item()
        return value

    monkeypatch.setattr(made.model, "loss", reading)
    with pytest.raises(RunFailure, match=r"cannot be captured as a CUDA graph \(.*\); set training.graph=off"):
        for _ in range(WARM_UP + 1):
            made.step()
