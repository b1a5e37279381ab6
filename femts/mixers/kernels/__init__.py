"""Kernels for each operation: torch everywhere, and faster libraries if installed and the tensors are on a CUDA device.

All kernels give the same results up to rounding, so checkpoints are portable between them. `FEMTS_KERNELS` selects
kernels by name (`torch` for all operations, or a list such as `scan=torch,read=triton`), as does `using` in Python; a
selected kernel that is not available raises an error.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec

import torch

from femts.errors import UsageError, suggest
from femts.mixers.ops.gradients import transformed

ASKED = "FEMTS_KERNELS"


@dataclass(frozen=True)
class Kernel:
    """A library that computes an operation; `why_not(device, dtype)` gives the reason why it cannot on such tensors, or
    None."""

    name: str
    why_not: Callable[[torch.device, torch.dtype], str | None]


@cache
def installed(library: str) -> bool:
    """Return whether `library` can be imported."""
    return find_spec(library) is not None


def _torch(device: torch.device, dtype: torch.dtype) -> None:
    return None


def _triton(device: torch.device, dtype: torch.dtype) -> str | None:
    if not installed("triton"):
        return "Triton is not installed"
    if device.type != "cuda" and os.environ.get("TRITON_INTERPRET") != "1":
        return f"it needs a CUDA device, not '{device.type}'"
    return None


def _fla(device: torch.device, dtype: torch.dtype) -> str | None:
    if not installed("fla") or not installed("triton"):
        return "flash-linear-attention is not installed"
    if device.type != "cuda" or dtype != torch.float32:
        return f"it takes float32 tensors on a CUDA device, not {_kind(dtype)} ones on '{device.type}'"
    from femts.mixers.kernels.linear_fla import failed_check

    return failed_check(device)


def _mamba_ssm(device: torch.device, dtype: torch.dtype) -> str | None:
    if not installed("mamba_ssm"):
        return "mamba-ssm is not installed"
    if device.type != "cuda" or dtype != torch.float32:
        return f"it takes float32 tensors on a CUDA device, not {_kind(dtype)} ones on '{device.type}'"
    return None


def _kind(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


# Fastest first; torch, which always works, last.
OPERATIONS: dict[str, tuple[Kernel, ...]] = {
    "read": (Kernel("triton", _triton), Kernel("torch", _torch)),  # the free-energy read of every prior
    "scan": (Kernel("triton", _triton), Kernel("torch", _torch)),  # rnn_softmax, rnn_decay, the conditioner
    "linear": (Kernel("fla", _fla), Kernel("torch", _torch)),  # linear and gla, if causal and long
    # Causal mamba.
    "selective_scan": (Kernel("mamba_ssm", _mamba_ssm), Kernel("triton", _triton), Kernel("torch", _torch)),
}

_asked: ContextVar[dict[str, str] | None] = ContextVar("asked", default=None)
_ran: ContextVar[dict[str, str] | None] = ContextVar("ran", default=None)


def chosen(operation: str, device: torch.device, dtype: torch.dtype = torch.float32) -> str:
    """Name of the kernel for `operation` on tensors of `device` and `dtype`; torch under torch.compile and torch.func.

    Raises:
        UsageError: The kernel selected by `using` or `FEMTS_KERNELS` does not exist or cannot run there.
    """
    if torch.compiler.is_compiling() or transformed():
        return "torch"
    name, reasons = choice(operation, device, dtype)
    if name in reasons:
        raise UsageError(
            f"Kernel '{operation}={name}' cannot run because {reasons[name]}; use {operation}=torch, or leave it unset."
        )
    ran = _ran.get()
    if ran is not None:
        ran[operation] = name
    return name


def choice(operation: str, device: torch.device, dtype: torch.dtype = torch.float32) -> tuple[str, dict[str, str]]:
    """The kernel that `chosen` selects, and the reasons why it or faster ones are not available, by name."""
    given = _asked.get()
    asked = (requested() if given is None else given).get(operation)
    if asked is not None:
        kernel = next(kernel for kernel in OPERATIONS[operation] if kernel.name == asked)
        reason = kernel.why_not(device, dtype)
        return asked, {asked: reason} if reason else {}
    reasons: dict[str, str] = {}
    for kernel in OPERATIONS[operation]:
        reason = kernel.why_not(device, dtype)
        if reason is None and device.type != "cuda" and kernel.name != "torch":
            reason = f"it is only interpreted on '{device.type}'"
        if reason is None:
            return kernel.name, reasons
        reasons[kernel.name] = reason
    raise AssertionError(f"torch computes {operation} everywhere")


@contextmanager
def recorded() -> Iterator[dict[str, str]]:
    """Record the operations that run inside, with the kernels that computed them."""
    ran: dict[str, str] = {}
    token = _ran.set(ran)
    try:
        yield ran
    finally:
        _ran.reset(token)


def requested() -> dict[str, str]:
    """Kernels selected by `FEMTS_KERNELS`, by operation.

    Raises:
        UsageError: It names an unknown operation or library.
    """
    text = os.environ.get(ASKED, "").strip()
    if text == "torch":
        return dict.fromkeys(OPERATIONS, "torch")
    return _checked(dict(part.strip().partition("=")[::2] for part in text.split(",") if part.strip()))


@contextmanager
def using(**choices: str) -> Iterator[None]:
    """Select kernels inside, as in `using(scan="torch")`; other operations choose automatically."""
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
