"""Costs of training: what a step does, what is counted as arithmetic, and how the trainer's part follows."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from femts.bench import train
from femts.bench.steps import _FLOPS_TOO, BATCHES, BareSteps
from femts.bench.train import TrainBench, bench_train
from femts.config.training import TrainingConfig
from femts.errors import UsageError
from femts.evaluation.evaluator import SERIES_PER_BATCH_ON_CPU
from femts.models.registry import build_config
from femts.training.device import Place

CPU = Place("cpu", "32", 1)
SMALL: dict[str, Any] = {"d_model": 16, "n_layers": 1, "n_heads": 2}


def bare_steps(
    name: str = "fem_gla", batch_size: int = 4, channels: int = 3, place: Place = CPU, **settings: Any
) -> BareSteps:
    settings = settings or ({} if name == "dlinear" else SMALL)
    config = build_config(name, seq_len=24, pred_len=12, n_channels=channels, settings=settings)
    return BareSteps(name, config, TrainingConfig(max_epochs=1, batch_size=batch_size, device="cpu"), place)


def test_a_step_trains_and_leaves_no_gradient_behind() -> None:
    bare = bare_steps()
    before = {name: p.detach().clone() for name, p in bare.model.named_parameters()}
    assert bare.run(3) > 0
    moved = [name for name, p in bare.model.named_parameters() if not torch.equal(p, before[name])]
    assert len(moved) >= 0.9 * len(before)
    assert all(p.grad is None for p in bare.model.parameters())


def test_an_epoch_has_all_its_batches_and_the_evaluator_one() -> None:
    assert len(bare_steps(batch_size=4).windows) == 4 * BATCHES
    assert len(bare_steps(channels=2).scored) == 256
    assert len(bare_steps(channels=137, name="dlinear").scored) == SERIES_PER_BATCH_ON_CPU // 137


def test_operations_of_linear_maps_are_counted_exactly() -> None:
    # Two maps from 24 to 12 steps for 3 channels of 4 windows: forward and the gradient of the
    # weights, not of the data.
    assert bare_steps("dlinear").flops() == 2 * 2 * (2 * 4 * 3 * 24 * 12)


def test_attention_on_the_cpu_is_counted() -> None:
    q, k, v = (torch.randn(2, 3, 10, 8, requires_grad=True) for _ in range(3))
    with FlopCounterMode(display=False) as plain:
        ((q @ k.mT).softmax(-1) @ v).sum().backward()
    with FlopCounterMode(display=False, custom_mapping=_FLOPS_TOO) as fused:
        F.scaled_dot_product_attention(q, k, v).sum().backward()
    again = 2 * 2 * 3 * 10 * 10 * 8  # the fused backward pass computes the scores once more
    assert fused.get_total_flops() == plain.get_total_flops() + again


def test_products_in_place_are_counted() -> None:
    with FlopCounterMode(display=False, custom_mapping=_FLOPS_TOO) as counted:
        torch.zeros(3, 4, 5).baddbmm_(torch.randn(3, 4, 2), torch.randn(3, 2, 5))
    assert counted.get_total_flops() == 2 * 3 * 4 * 2 * 5


def test_the_trainer_takes_the_same_steps_and_the_bare_ones_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    bare = bare_steps("dlinear")
    sizes: list[int] = []
    loss = type(bare.model).loss

    def watched(self: Any, x: torch.Tensor, *rest: Any) -> torch.Tensor:
        sizes.append(len(x))
        return loss(self, x, *rest)

    monkeypatch.setattr(type(bare.model), "loss", watched)
    assert bare.through_trainer() > 0
    assert sizes == [4] * BATCHES
    assert bare.model.training
    assert all(p.grad is None for p in bare.model.parameters())
    bare.run(1)
    assert sizes == [4] * (BATCHES + 1)


def test_what_is_outside_the_steps() -> None:
    class Fake:
        calls = ""

        def run(self, steps: int) -> float:
            self.calls += str(steps)
            return 0.8 * steps

        def through_trainer(self) -> float:
            self.calls += "t"
            return 1.0 * BATCHES

    fake = Fake()
    assert train._outside(fake, 2) == pytest.approx([0.2, 0.2])  # type: ignore[arg-type]
    half = str(BATCHES // 2)
    assert fake.calls == "t" + f"{half}t{half}" * 2


def test_rows_follow_from_one_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train, "gemm_rate", lambda device, dtype: 1e9)
    bench = TrainBench(("synthetic",), ("sm", "fem_sm"), 336, 2, 1, SMALL)
    alone, mixed = bench_train(bench, CPU)
    assert [(r.dataset, r.channels, r.seq_len, r.pred_len) for r in (alone, mixed)] == [("synthetic", 6, 2048, 336)] * 2
    assert (alone.model, mixed.model) == ("sm", "fem_sm")
    assert alone.step.ratio == 1.0
    for row in (alone, mixed):
        assert row.step.ratio == pytest.approx(row.step.seconds / alone.step.seconds)
        assert row.windows_per_s == pytest.approx(2 / row.step.seconds)
        assert row.floor_seconds == pytest.approx(row.flops / 1e9)
        assert row.scoring_windows_per_s > 0
        assert row.peak_bytes > 4 * 2 * (2048 + 336) * 6, "the batch at least"
        assert row.outside < 1
        assert row.outside_spread == 0.0


def test_mistakes_are_named_before_anything_is_measured() -> None:
    def refused(says: str, **changes: Any) -> None:
        given = {
            "datasets": ("synthetic",),
            "models": ("sm",),
            "pred_len": 96,
            "batch_size": 2,
            "repeats": 1,
            "settings": {},
        }
        with pytest.raises(UsageError, match=says):
            bench_train(TrainBench(**{**given, **changes}), CPU)

    refused("'fem_gal'; did you mean 'fem_gla'", models=("sm", "fem_gal"))
    refused("'wether'; did you mean 'Weather'|'wether'.*did you mean 'Weather'", datasets=("synthetic", "wether"))
    refused("Model 'naive' has no weights", models=("sm", "naive"))
    refused("'model.layers'", settings={"layers": 2})
