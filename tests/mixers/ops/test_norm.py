"""RMSNorm, compared with torch."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from femts.mixers.ops.norm import RMSNorm, rms_norm


def test_matches_torch_with_gradients() -> None:
    for weighted in [True, False]:
        for shape in [(5,), (2, 5), (2, 3, 4, 5)]:
            torch.manual_seed(0)
            x = torch.randn(shape, dtype=torch.float64, requires_grad=True)
            weight = torch.randn(5, dtype=torch.float64, requires_grad=True) if weighted else None
            inputs = [x] if weight is None else [x, weight]
            ours, theirs = rms_norm(x, weight, 1e-5), F.rms_norm(x, (5,), weight, 1e-5)
            torch.testing.assert_close(ours, theirs, rtol=1e-13, atol=1e-13)
            upstream = torch.randn_like(ours)
            for one, other in zip(*(torch.autograd.grad(y, inputs, upstream) for y in (ours, theirs)), strict=True):
                torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


def test_float32_accuracy() -> None:
    x = torch.logspace(-12, 12, 25)[:, None] * torch.randn(25, 64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(
        rms_norm(x, None, 1e-5), F.rms_norm(x.double(), (64,), None, 1e-5).float(), rtol=2e-6, atol=0
    )


def test_parameters_and_dtypes_match_torch() -> None:
    norm = RMSNorm(4, eps=1e-5)
    assert list(norm.state_dict()) == ["weight"]
    assert norm(torch.zeros(2, 4)).abs().max() == 0
    assert norm.bfloat16()(torch.ones(2, 4).bfloat16()).dtype == torch.bfloat16
