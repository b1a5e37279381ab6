"""The selective scan of mamba-ssm."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
import torch
from kernel_cases import assert_near, with_gradients
from torch import Tensor

from femts.mixers.kernels.selective_scan_mamba_ssm import selective_scan_mamba_ssm
from femts.mixers.ops.selective_scan_plain import selective_scan_plain


def documented_scan(u: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor) -> Tensor:
    """`selective_scan_fn` by its docstring: u, delta (B, D, L), A (D, N), B, C (B, N, L); channels first."""
    assert u.is_contiguous() and delta.is_contiguous()
    x, ys = torch.zeros(*u.shape[:2], A.shape[1], dtype=u.dtype), []
    for t in range(u.shape[2]):
        fed = delta[:, :, t, None] * u[:, :, t, None] * B[:, None, :, t]
        x = torch.exp(delta[:, :, t, None] * A) * x + fed
        ys.append((x * C[:, None, :, t]).sum(-1))
    return torch.stack(ys, 2)


@pytest.mark.parametrize("length", [1, 9])
def test_matches_the_plain_scan_with_gradients(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    library = ModuleType("mamba_ssm.ops.selective_scan_interface")
    library.selective_scan_fn = documented_scan  # type: ignore[attr-defined]
    for name in ("mamba_ssm", "mamba_ssm.ops"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, library.__name__, library)
    torch.manual_seed(0)
    shapes = ((2, length, 3, 4), (2, length, 4), (5, 4), (2, length, 5), (2, length, 5))
    given = [torch.rand(shape, dtype=torch.float64) for shape in shapes]
    assert_near(with_gradients(selective_scan_mamba_ssm, given), with_gradients(selective_scan_plain, given), 1e-12)
