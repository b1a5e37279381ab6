"""Matrix products in bfloat16."""

from __future__ import annotations

import pytest
import torch

from femts.data.batch import Batch
from femts.data.windows import Windows
from femts.evaluation.evaluator import evaluate
from femts.mixers.ops.precision import full_precision, linear, low_precision_products
from femts.models.registry import build_config, build_model


def gradients(name: str, enabled: bool) -> torch.Tensor:
    torch.manual_seed(0)
    model = build_model(name, build_config(name, seq_len=96, pred_len=24, n_channels=7, settings={"dropout": 0.0}))
    with low_precision_products(enabled):
        loss = model.loss(Batch(torch.randn(8, 96, 7), future=torch.randn(8, 24, 7)))
    loss.backward()
    assert loss.dtype == torch.float32 and all(
        p.grad is not None and p.grad.dtype == p.dtype for p in model.parameters()
    )
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


@pytest.mark.parametrize("name", ["fem_sm", "fem_gla", "fem_aft", "fem_mamba", "sm"])
def test_gradients_near_float32(name: str) -> None:
    plain = gradients(name, enabled=False)
    low = gradients(name, enabled=True)
    # gla: .013 here and .018 at 7 channels and 1024 steps, for near 0 rounding decides what its
    # relu keeps; others .0003 there.
    assert 0 < (low - plain).norm() < (2e-2 if name == "fem_gla" else 1e-2) * plain.norm()
    assert torch.equal(gradients(name, enabled=False), plain)


def test_other_dtypes_are_unchanged() -> None:
    x, weight = torch.randn(3, 4, dtype=torch.float64), torch.randn(2, 4, dtype=torch.float64)
    with low_precision_products():
        assert torch.equal(linear(x, weight, None), x @ weight.T)


def test_setting_is_restored_and_not_used_for_scores() -> None:
    torch.manual_seed(0)
    model = build_model("fem_sm", build_config("fem_sm", seq_len=24, pred_len=12, n_channels=2, settings={}))
    windows = Windows(torch.randn(60, 2), 24, 12)
    plain = evaluate(model, windows)
    with pytest.raises(ArithmeticError), low_precision_products():
        assert evaluate(model, windows) == plain
        raise ArithmeticError
    x = torch.randn(3, 4)
    assert torch.equal(linear(x, x, None), x @ x.T)


def test_autocast_inside_uses_the_current_weights() -> None:
    """Torch clears its cache of weights in bfloat16 at the end of the outermost autocast only."""
    layer, x = torch.nn.Linear(4, 4, bias=False), torch.randn(3, 4)
    with full_precision("cpu"):
        for factor in (1.0, 2.0):
            layer.weight.data.mul_(factor)
            with torch.autocast("cpu", torch.bfloat16):
                got = layer(x)
            assert torch.equal(got, x.bfloat16() @ layer.weight.bfloat16().T)
