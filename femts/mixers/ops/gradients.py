"""Gradients beyond the range of float32, and higher derivatives and transforms of torch."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx

from femts.errors import UsageError

WEIGHT, READ = 2.0**80, 2.0**60  # largest gradients of a selection weight and of a sum that is read


def bounded(weight: Tensor, most: float = WEIGHT) -> Tensor:
    """`weight`, with a gradient of at most `most`, and of 0 if the weight is 0.

    Values reach e^40 and their reads e^-40, so the gradient of a weight reaches e^80, or infinity over a small mass;
    multiplied by the decay that makes this weight almost 0, it would be NaN.
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
    """Return whether a transform of `torch.func` is active, which requires operations composed of torch's own."""
    return not torch.compiler.is_compiling() and torch._C._are_functorch_transforms_active()


def twice() -> bool:
    """Return, in a backward pass, whether its result will be differentiated in turn (`create_graph`)."""
    return torch.is_grad_enabled() and not torch.compiler.is_compiling()


def derived(
    function: Callable[..., Tensor | tuple[Tensor, ...]], inputs: tuple[Tensor | None, ...], *grads: Tensor
) -> tuple[Tensor | None, ...]:
    """Gradients of the inputs of `function`, composed of torch's own operations and hence differentiable.

    A manual backward pass reads the tensors saved by its forward pass, which autograd treats as constants; a second
    derivative through them would silently lack terms.

    Args:
        function: computation of the forward pass, in operations that autograd supports.
        inputs: inputs of the forward pass, as saved.
        grads: gradients of its outputs.

    Returns:
        A gradient for each input, None for inputs that need none.
    """
    with torch.enable_grad():
        # otherwise one input might be computed from another
        aliases = tuple(None if x is None else x.view_as(x) for x in inputs)
        needed = [x for x in aliases if x is not None and x.requires_grad]
        outputs = function(*aliases)
        gradients = iter(torch.autograd.grad(outputs, needed, grads, create_graph=True))
    return tuple(next(gradients) if x is not None and x.requires_grad else None for x in aliases)


def first_only(x: Tensor, kernel: str) -> Tensor:
    """Mark `x`, computed by a library's `kernel` without second derivatives, so that the backward pass raises if one is
    requested."""
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
