"""Linear attention with decay by flash-linear-attention, using the first of its operations that is correct on this
device.

Its kernels for the same task support different compilers: with some versions of Triton, the gradients of some are wrong
on Hopper. Each is therefore compared once per process, gradients included, with a dense float64 product before it is
used.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module

import torch
from torch import Tensor
from torch.nn import functional as F

from femts.mixers.ops.gradients import first_only
from femts.mixers.ops.precision import full_precision

OPERATIONS = ("chunk_simple_gla", "fused_chunk_simple_gla")
TOLERANCE = 2e-5  # relative to the largest entry, for outputs and gradients in float32

Operation = Callable[..., tuple[Tensor, Tensor]]


def scores_fla(q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor | None) -> Tensor:
    """`femts.mixers.priors.linear.chunked_scores`: q and k (B, T, H, d_k), v (B, T, H, c),
    log_decay (B, T, H) or None."""
    name, failures = checked_operation(q.device)
    if name is None:
        raise RuntimeError(f"No operation of flash-linear-attention is correct on this device: {failures}.")
    return first_only(scores_by(_operation(name), q, k, v, log_decay), "linear=fla")


def scores_by(operation: Operation, q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor | None) -> Tensor:
    """The same by one `operation` of the library, which requires an even width of `v`."""
    g = q.new_zeros(q.shape[:3]) if log_decay is None else log_decay
    wide = F.pad(v, (0, v.shape[-1] % 2))
    scores: Tensor = operation(q.contiguous(), k.contiguous(), wide.contiguous(), g.contiguous(), scale=1.0)[0]
    return scores[..., : v.shape[-1]]


def failed_check(device: torch.device) -> str | None:
    """Reason why no operation of the library may be used on `device`, or None if one may."""
    name, failures = checked_operation(device)
    return None if name else f"no operation of flash-linear-attention agrees with the definition here ({failures})"


@cache
def checked_operation(device: torch.device) -> tuple[str | None, str]:
    """The first operation that agrees with the definition, or None, and the failures of those before it."""
    failures: list[str] = []
    for name in OPERATIONS:
        # The first call may be a forecast, without gradients, or a step within an autocast.
        with torch.inference_mode(False), torch.enable_grad(), full_precision(device.type):
            wrong = disagreement(_operation(name), device)
        if wrong is None:
            return name, "; ".join(failures)
        failures.append(f"{name}: {wrong}")
    return None, "; ".join(failures)


def _operation(name: str) -> Operation:
    operation: Operation = getattr(import_module("fla.ops.simple_gla"), name)
    return operation


def disagreement(operation: Operation, device: torch.device) -> str | None:
    """Describe how `operation` fails on `device` for an odd length with no, moderate and strong decay, or return
    None."""
    for rate in (0.0, 0.05, 5.0):
        generator = torch.Generator().manual_seed(0)
        q, k = (torch.rand(2, 193, 2, 16, generator=generator, dtype=torch.float64) + 0.01 for _ in "qk")
        v = torch.randn(2, 193, 2, 17, generator=generator, dtype=torch.float64)
        g = -rate * torch.rand(2, 193, 2, generator=generator, dtype=torch.float64)
        upstream = torch.randn(v.shape, generator=generator, dtype=torch.float64)
        exact = [x.requires_grad_() for x in (q, k, v, g)]
        given = [x.detach().to(device, torch.float32).requires_grad_() for x in exact]
        expected = _dense(*exact)
        references = (expected, *torch.autograd.grad(expected, exact, upstream))
        try:
            answer = scores_by(operation, *given)
            answers = (answer, *torch.autograd.grad(answer, given, upstream.to(answer)))
        except Exception as failure:  # any failure to compile or run here rules it out
            return f"{type(failure).__name__}: {(str(failure) or 'no message').splitlines()[0]}"
        for what, one, other in zip(
            ("output", "gradient of q", "of k", "of v", "of the decay"), answers, references, strict=True
        ):
            error = ((one.double().cpu() - other).abs().max() / other.abs().max()).item()
            if not error <= TOLERANCE:
                return f"{what} off by {error:.1e} at decays up to {rate:g}"
    return None


def _dense(q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor) -> Tensor:
    """The definition: scores are multiplied by all decays between key and query (eq. 28)."""
    total = log_decay.cumsum(1).transpose(1, 2)
    fade = (total.unsqueeze(3) - total.unsqueeze(2)).tril().exp().tril()
    return torch.einsum("bhti,bihc->bthc", torch.einsum("bthd,bihd->bhti", q, k) * fade, v)
