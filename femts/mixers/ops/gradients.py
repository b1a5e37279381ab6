"""Gradients where float32 ends, and where torch asks for other derivatives than the first."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx

from femts.errors import UsageError

WEIGHT, READ = 2.0**80, 2.0**60  # largest gradient of a selection weight, and of a sum that is read


def bounded(weight: Tensor, most: float = WEIGHT) -> Tensor:
    """`weight`, with a gradient of at most `most`, and of 0 where the weight is 0.

    Values are up to e^40 and what is read of them down to e^-40, so the gradient of a weight
    reaches e^80, and over a small mass infinity; times the decay that makes this weight next to 0,
    that would be NaN.
    """
    if torch.compiler.is_compiling() or transformed():
        return weight.masked_fill(weight == 0, 0.0)
    result: Tensor = _Bounded.apply(weight, most)
    return result


class _Bounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, weight: Tensor, most: float) -> Tensor:  # type: ignore[override]
        ctx.save_for_backward(weight)
        ctx.most = most  # type: ignore[attr-defined]
        return weight.view_as(weight)

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        (weight,) = ctx.saved_tensors  # type: ignore[attr-defined]
        most: float = ctx.most  # type: ignore[attr-defined]
        return grad.clamp(-most, most).masked_fill(weight == 0, 0.0), None


def transformed() -> bool:
    """Tell that a transform of `torch.func` is at work: it needs operations that are made of torch's own."""
    return not torch.compiler.is_compiling() and torch._C._are_functorch_transforms_active()


def twice() -> bool:
    """Tell, in a backward pass, that its result is to be differentiated in turn (`create_graph`)."""
    return torch.is_grad_enabled() and not torch.compiler.is_compiling()


def derived(
    function: Callable[..., Tensor | tuple[Tensor, ...]], inputs: tuple[Tensor | None, ...], *grads: Tensor
) -> tuple[Tensor | None, ...]:
    """Gradients of the inputs of `function`, made of torch's own operations, which have gradients again.

    A backward pass by hand reads what its forward pass kept for it; autograd takes these for constants, and a second
    derivative through them would silently lack terms.

    Args:
        function: what the forward pass computes, in operations that autograd knows.
        inputs: those of the forward pass, as it saved them.
        grads: of its outputs.

    Returns:
        A gradient for each input, None for what needs none.
    """
    with torch.enable_grad():
        aliases = tuple(None if x is None else x.view_as(x) for x in inputs)  # or one input might be made of another
        needed = [x for x in aliases if x is not None and x.requires_grad]
        outputs = function(*aliases)
        gradients = iter(torch.autograd.grad(outputs, needed, grads, create_graph=True))
    return tuple(next(gradients) if x is not None and x.requires_grad else None for x in aliases)


def first_only(x: Tensor, kernel: str) -> Tensor:
    """`x`, made by a library's `kernel` without second derivatives: asked for one, the backward pass is refused."""
    result: Tensor = _FirstOnly.apply(x, kernel)
    return result


class _FirstOnly(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, kernel: str) -> Tensor:  # type: ignore[override]
        ctx.kernel = kernel  # type: ignore[attr-defined]
        return x.view_as(x)

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        if twice():
            operation = ctx.kernel.partition("=")[0]  # type: ignore[attr-defined]
            raise UsageError(f"Kernel '{ctx.kernel}' has no second derivative; set FEMTS_KERNELS={operation}=torch.")  # type: ignore[attr-defined]
        return grad, None
