"""Linear attention with flash-linear-attention."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from kernel_cases import assert_near, with_gradients
from torch import Tensor

from femts.mixers.kernels import linear_fla
from femts.mixers.kernels.linear_fla import checked_operation, disagreement, scores_by
from femts.mixers.priors.linear import chunked_scores

CPU = torch.device("cpu")


def recurrent(q: Tensor, k: Tensor, v: Tensor, g: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """Reference of the library's operations, token by token: (o, state)."""
    assert v.shape[-1] % 2 == 0, "its kernels want an even width"
    state, outputs = torch.zeros(*q.shape[::2], q.shape[3], v.shape[3], dtype=q.dtype), []
    for t in range(q.shape[1]):
        state = state * g[:, t, :, None, None].exp() + k[:, t].unsqueeze(-1) * v[:, t].unsqueeze(-2)
        outputs.append(torch.einsum("bhd,bhdc->bhc", scale * q[:, t], state))
    return torch.stack(outputs, 1), state


@pytest.mark.parametrize("decays", [True, False], ids=["gla", "linear"])
@pytest.mark.parametrize("length", [1, 130])
def test_matches_the_chunked_form(length: int, decays: bool) -> None:
    torch.manual_seed(0)
    q, k, v, g = (torch.rand(2, length, 3, *tail).double() for tail in ((4,), (4,), (5,), ()))
    given = [q, k, v] + ([-g] if decays else [])
    by_library = lambda q, k, v, g=None: scores_by(recurrent, q, k, v, g)  # noqa: E731
    chunked = lambda q, k, v, g=None: chunked_scores(q, k, v, g)  # noqa: E731
    assert_near(with_gradients(by_library, given), with_gradients(chunked, given), 1e-12)


def test_reference_form_passes_the_self_check() -> None:
    naive = pytest.importorskip("fla.ops.simple_gla.naive", reason="needs flash-linear-attention and Triton")
    assert disagreement(naive.naive_chunk_simple_gla, CPU) is None


class WrongGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, g: Tensor) -> Tensor:
        return g.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return 1.001 * grad


def test_kernel_with_wrong_gradients_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(q: Tensor, k: Tensor, v: Tensor, g: Tensor, scale: float) -> tuple[Tensor, Tensor]:
        return recurrent(q, k, v, WrongGradient.apply(g), scale)

    def broken(q: Tensor, k: Tensor, v: Tensor, g: Tensor, scale: float) -> tuple[Tensor, Tensor]:
        raise RuntimeError("it does not compile\nhere")

    operations = {"broken": broken, "wrong": wrong, "right": recurrent}
    monkeypatch.setattr(linear_fla, "_operation", operations.__getitem__)
    monkeypatch.setattr(linear_fla, "OPERATIONS", ("broken", "wrong", "right"))
    checked_operation.cache_clear()
    name, failures = checked_operation(CPU)
    assert name == "right"
    assert "broken: RuntimeError: it does not compile;" in failures and "wrong: gradient of" not in failures
    assert "wrong: of the decay off by 1.0e-03" in failures
    monkeypatch.setattr(linear_fla, "OPERATIONS", ("wrong",))
    checked_operation.cache_clear()
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):  # a forecast may be the first to ask
        assert "of the decay off by 1.0e-03" in (linear_fla.failed_check(CPU) or "")
    checked_operation.cache_clear()
