"""Dropout."""

import pytest
import torch
from combinations import in_turn
from mixer_cases import gradient_of

from femts.mixers.ops.dropout import Dropout


@in_turn(p=(0.1, 0.5, 0.9), dtype=(torch.float32, torch.float64, torch.bfloat16))
def test_rate_scale_and_gradient(p: float, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    layer, x = Dropout(p), torch.ones(301, 1001, dtype=dtype, requires_grad=True)
    y = layer(x)
    dropped = (y == 0).double().mean().item()
    assert abs(dropped - p) < 5 * (p * (1 - p) / x.numel()) ** 0.5 + 2**-16
    kept = y.detach()[y != 0].double()
    assert kept.unique().numel() == 1
    assert kept[0].item() == pytest.approx(1 / (1 - p), rel=1e-2 if dtype == torch.bfloat16 else 1e-4)
    y.sum().backward()
    assert torch.equal(gradient_of(x), y.detach()), "with inputs of 1, output and gradient are the same mask"


def test_draws_are_independent_and_seeded() -> None:
    torch.manual_seed(0)
    layer, x = Dropout(0.5), torch.ones(64, 64, 64)
    mask = layer(x).bool()
    for dim in range(3):
        for lag in (1, 2, 3, 4):  # four elements share a draw
            agree = (mask == mask.roll(lag, dim)).double().mean().item()
            assert abs(agree - 0.5) < 0.006
    torch.manual_seed(0)
    assert torch.equal(layer(x).bool(), mask)


def test_vmap_randomness() -> None:
    layer, x = Dropout(0.5), torch.ones(2, 100)
    one, other = torch.func.vmap(layer, randomness="different")(x)
    assert not torch.equal(one, other)
    one, other = torch.func.vmap(layer, randomness="same")(x)
    assert torch.equal(one, other) and 0 < one.count_nonzero() < 100


def test_no_dropout_in_eval_or_at_zero() -> None:
    x = torch.randn(5, 7)
    assert torch.equal(Dropout(0.3).eval()(x), x)
    assert torch.equal(Dropout(0.0)(x), x)
    assert torch.equal(Dropout(1e-9)(x), x)
