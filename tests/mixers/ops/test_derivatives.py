"""Second derivatives and `torch.func` transforms."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable

import pytest
import torch
from combinations import pairwise
from mixer_cases import PRIORS, gradient_of, make_input, make_layer
from torch import Tensor, nn
from torch.func import functional_call, grad, jvp, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from femts.data.batch import Batch
from femts.errors import UsageError
from femts.mixers.ops.gradients import first_only
from femts.mixers.ops.norm import rms_norm
from femts.mixers.ops.selective_scan import selective_scan
from femts.mixers.ops.selective_scan_plain import selective_scan_plain
from femts.models.registry import build_config, build_model

Parameters = dict[str, Tensor]
Function = Callable[[Parameters], Tensor]


def loss(layer: nn.Module, x: Tensor | Batch, parameters: Parameters) -> Tensor:
    y: Tensor = functional_call(layer, parameters, (x,))
    return y.square().sum()


def directions(parameters: Parameters) -> Parameters:
    generator = torch.Generator().manual_seed(3)
    return {name: torch.randn(p.shape, generator=generator, dtype=p.dtype) for name, p in parameters.items()}


def product(ours: Parameters, theirs: Parameters) -> Tensor:
    return torch.stack([(ours[name] * theirs[name]).sum() for name in ours]).sum()


def relative(got: Parameters, want: Parameters) -> float:
    """Largest difference relative to the largest entry."""
    top = max(w.abs().max() for w in want.values())
    return max((got[name] - want[name]).abs().max() / top for name in want).item()


def gradient(function: Function, parameters: Parameters, create_graph: bool = False) -> Parameters:
    found = torch.autograd.grad(function(parameters), list(parameters.values()), create_graph=create_graph)
    return dict(zip(parameters, found, strict=True))


def hessian_product(function: Function, parameters: Parameters, way: str) -> Parameters:
    """Hessian-vector product by `autograd.grad` or `backward`."""
    first = gradient(function, parameters, create_graph=True)
    along = product(first, directions(parameters))
    if way == "grad":
        return dict(zip(parameters, torch.autograd.grad(along, list(parameters.values())), strict=True))
    for p in parameters.values():
        p.grad = None
    along.backward()
    return {name: gradient_of(p) for name, p in parameters.items()}


def differences(function: Function, parameters: Parameters, step: float = 1e-6) -> Parameters:
    """Hessian-vector product by central differences of the gradient."""
    sides = []
    for sign in (step, -step):
        moved = {n: (p + sign * d).detach().requires_grad_() for (n, p), d in along(parameters)}
        sides.append(gradient(function, moved))
    return {name: (sides[0][name] - sides[1][name]) / (2 * step) for name in parameters}


def along(parameters: Parameters) -> Iterable[tuple[tuple[str, Tensor], Tensor]]:
    return zip(parameters.items(), directions(parameters).values(), strict=True)


@pairwise(prior=PRIORS, causal=(True, False), length=(5, 140), way=("grad", "backward"))
def test_second_derivatives_match_finite_differences(prior: str, causal: bool, length: int, way: str) -> None:
    layer, x = make_layer(prior, "CLTG", causal=causal), make_input(1, length)
    parameters: Parameters = dict(layer.named_parameters())
    function = functools.partial(loss, layer, x)
    with sdpa_kernel(SDPBackend.MATH):  # as the docstring of the layer says
        assert relative(hessian_product(function, parameters, way), differences(function, parameters)) < 1e-4


def test_unsupported_second_derivative_is_refused() -> None:
    layer, x = make_layer("softmax"), make_input(1, 40)
    with pytest.raises(RuntimeError, match="not implemented"):
        hessian_product(functools.partial(loss, layer, x), dict(layer.named_parameters()), "grad")


@pytest.mark.parametrize("model", ["fem_sm", "fem_mamba"])
def test_second_derivatives_of_a_forecaster(model: str) -> None:
    torch.manual_seed(0)
    small = {"d_model": 16, "n_heads": 2, "n_layers": 1, "dropout": 0.0}
    host = build_model(model, build_config(model, seq_len=24, pred_len=8, n_channels=2, settings=small)).double()
    x = make_input(2, 24, 2)
    parameters: Parameters = dict(host.named_parameters())
    function = functools.partial(loss, host, Batch(x))
    assert relative(hessian_product(function, parameters, "grad"), differences(function, parameters)) < 1e-5


@pytest.mark.parametrize("weighted", [True, False], ids=["weights", "bare"])
def test_norm_second_derivatives(weighted: bool) -> None:
    x = make_input(2, 3, 5).requires_grad_()
    given = (x, torch.linspace(0.5, 2, 5, dtype=torch.float64).requires_grad_()) if weighted else (x,)
    assert torch.autograd.gradgradcheck(lambda x, w=None: rms_norm(x, w, 1e-5), given)


@pytest.mark.parametrize("chunk", [None, 3])
def test_selective_scan_second_derivatives(chunk: int | None) -> None:
    torch.manual_seed(0)
    shapes = ((2, 7, 3, 4), (2, 7, 4), (5, 4), (2, 7, 5), (2, 7, 5))
    given = {n: torch.rand(s, dtype=torch.float64).requires_grad_() for n, s in zip("udabc", shapes, strict=True)}

    def product_of(scan: Callable[..., Tensor]) -> Parameters:
        return hessian_product(lambda p: scan(*p.values()).square().sum(), given, "grad")

    assert (
        relative(product_of(functools.partial(selective_scan, chunk=chunk)), product_of(selective_scan_plain)) < 1e-11
    )


def test_kernel_without_second_derivatives_is_refused() -> None:
    x = torch.ones(2, requires_grad=True)
    torch.autograd.grad(first_only(x, "linear=fla").square().sum(), x)
    with pytest.raises(UsageError, match=r"'linear=fla' has no second derivative; set FEMTS_KERNELS=linear=torch\."):
        torch.autograd.grad(first_only(x, "linear=fla").square().sum(), x, create_graph=True)


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pairwise(prior=PRIORS, causal=(True, False), length=(5, 300))
def test_torch_func_transforms_match_autograd(prior: str, causal: bool, length: int) -> None:
    layer, x = make_layer(prior, "CLTG", causal=causal), make_input(2, length)
    parameters: Parameters = dict(layer.named_parameters())
    function = functools.partial(loss, layer, x)
    want = gradient(function, parameters)
    assert relative(grad(function)(parameters), want) < 1e-11
    each = vmap(lambda p, sample: grad(lambda p: loss(layer, sample[None], p))(p), (None, 0))(parameters, x)
    assert relative({name: g.sum(0) for name, g in each.items()}, want) < 1e-11
    slope: Tensor = jvp(function, (parameters,), (directions(parameters),))[1]
    assert slope.item() == pytest.approx(product(want, directions(parameters)).item(), rel=1e-10)
