"""Which code computes an operation: torch anywhere, a faster library where there is one and the tensors lie on a CUDA device.

Every choice gives the same result up to rounding, so a checkpoint moves between them. `FEMTS_KERNELS` asks for one by name
(`torch` for all operations, or a list such as `scan=torch,read=triton`), as `using` does in Python; what was asked for and
cannot be had is refused.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.util import find_spec

import torch

from femts.errors import UsageError, suggest

ASKED = "FEMTS_KERNELS"


@dataclass(frozen=True)
class Kernel:
    """A library that computes an operation; `why_not(device)` says why it cannot there, or None."""

    name: str
    why_not: Callable[[torch.device], str | None]


def _torch(device: torch.device) -> None:
    return None


def _triton(device: torch.device) -> str | None:
    if find_spec("triton") is None:
        return "Triton is not installed"
    if device.type != "cuda" and os.environ.get("TRITON_INTERPRET") != "1":
        return f"Triton needs a CUDA device, not '{device.type}'"
    return None


def _fla(device: torch.device) -> str | None:
    if find_spec("fla") is None or find_spec("triton") is None:
        return "flash-linear-attention (fla) is not installed"
    if device.type != "cuda":
        return f"fla needs a CUDA device, not '{device.type}'"
    from femts.mixers.kernels.linear_fla import failed_check

    return failed_check(device)


def _mamba_ssm(device: torch.device) -> str | None:
    if find_spec("mamba_ssm") is None:
        return "mamba-ssm is not installed"
    return None if device.type == "cuda" else f"mamba-ssm needs a CUDA device, not '{device.type}'"


# Fastest first; torch, which can everywhere, last.
OPERATIONS: dict[str, tuple[Kernel, ...]] = {
    "read": (Kernel("triton", _triton), Kernel("torch", _torch)),
    "scan": (Kernel("triton", _triton), Kernel("torch", _torch)),
    "linear": (Kernel("fla", _fla), Kernel("torch", _torch)),
    "selective_scan": (Kernel("mamba_ssm", _mamba_ssm), Kernel("triton", _triton), Kernel("torch", _torch)),
}
WHAT = {
    "read": "the free-energy read of every prior",
    "scan": "rnn_softmax, rnn_decay and the conditioner",
    "linear": "linear and gla, causal, beyond 128 tokens",
    "selective_scan": "mamba, causal",
}

_asked: ContextVar[dict[str, str] | None] = ContextVar("asked", default=None)


def chosen(operation: str, device: torch.device) -> str:
    """The name of what computes `operation` on tensors of `device`.

    Raises:
        UsageError: what was asked for, by `using` or `FEMTS_KERNELS`, does not exist or cannot run there.
    """
    given = _asked.get()
    asked = (requested() if given is None else given).get(operation)
    if asked is None:
        if device.type != "cuda":  # there the libraries would only be interpreted, or refuse
            return "torch"
        return next(kernel.name for kernel in OPERATIONS[operation] if kernel.why_not(device) is None)
    kernel = next(kernel for kernel in OPERATIONS[operation] if kernel.name == asked)
    reason = kernel.why_not(device)
    if reason:
        raise UsageError(f"Kernel '{operation}={asked}' cannot run because {reason}; use {operation}=torch, or leave it open.")
    return asked


def requested() -> dict[str, str]:
    """What `FEMTS_KERNELS` asks for, by operation.

    Raises:
        UsageError: it names an operation or a library that there is not.
    """
    text = os.environ.get(ASKED, "").strip()
    if text == "torch":
        return dict.fromkeys(OPERATIONS, "torch")
    return _checked(dict(part.strip().partition("=")[::2] for part in text.split(",") if part.strip()))


@contextmanager
def using(**choices: str) -> Iterator[None]:
    """Within it, `operation=name` computes: `using(scan="torch")`; operations that are not named choose for themselves."""
    token = _asked.set(_checked(choices))
    try:
        yield
    finally:
        _asked.reset(token)


def _checked(choices: dict[str, str]) -> dict[str, str]:
    for operation, name in choices.items():
        if operation not in OPERATIONS:
            raise UsageError(f"Unknown kernel operation '{operation}' in {ASKED}{suggest(operation, OPERATIONS)}")
        names = [kernel.name for kernel in OPERATIONS[operation]]
        if name not in names:
            raise UsageError(f"Unknown kernel '{operation}={name}' in {ASKED}{suggest(name, names)}")
    return choices
