"""Selection priors are distributions that equal their definition (appendix H)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from combinations import in_turn, pairwise
from mixer_cases import PRIORS, SCAN_PRIORS, dense, make_input, make_layer, over_directions, over_priors
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from femts.errors import UsageError
from femts.mixers import FreeEnergyMixer, FreeEnergyMixerConfig
from femts.mixers.priors import softmax
from femts.mixers.priors.linear import BoundLinear
from femts.mixers.priors.softmax import NARROW, SHORT, VECTOR, BoundSoftmax, is_short


@pairwise(prior=PRIORS, causal=(True, False), length=(1, 140))
def test_weights_are_a_distribution_and_match_mix(prior: str, causal: bool, length: int) -> None:
    layer, x = make_layer(prior, "L", causal=causal), make_input(batch=1, length=length)
    bound, p = layer.bind(x), dense(layer, x)
    assert (p >= 0).all()
    assert (p.sum(2) - 1).abs().max() < 1e-12
    if causal:
        assert (p[:, ~torch.ones(length, length, dtype=torch.bool).tril()] == 0).all(), "no weight on the future"
    else:
        assert (p[:, 0] > 0).all(), "the first token sees every other"
    columns = make_input(1, length, 2 * layer.widths.fem_dim, seed=5).unflatten(-1, (layer.config.heads, -1))
    columns = columns if layer.config.heads > 1 else columns.reshape(1, length, 1, -1)
    p = p if p.shape[-1] == 1 else p.repeat(1, 1, 1, 1, 2)
    expected = (p * columns.unsqueeze(1)).sum(2)
    torch.testing.assert_close(bound.mix(columns), expected, rtol=1e-11, atol=1e-12)


def test_weights_shape() -> None:
    for prior in PRIORS:
        layer = make_layer(prior)
        per_channel = prior in ("rnn_softmax", "rnn_decay", "mamba")
        assert layer.weights(make_input()).shape == ((2, 9, 9, layer.widths.fem_dim) if per_channel else (2, 2, 9, 9))


@over_directions
@pytest.mark.parametrize("prior", ["linear", "gla"])
def test_dense_and_chunked_linear_attention_agree(prior: str, causal: bool) -> None:
    layer, x = make_layer(prior, "", causal=causal), make_input(length=150)
    mask = torch.rand(2, 150, generator=torch.Generator().manual_seed(0)) > 0.3
    for keep in (None, mask):
        bound: Any = layer.bind(x, keep)
        v = make_input(2, 150, 6, seed=4).unflatten(-1, (2, -1))
        one, other = (
            BoundLinear(bound.q, bound.k, bound.log_decay, causal, bound.support, dense=flag).mix(v)
            for flag in (True, False)
        )
        torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("prior", ["softmax", "linear"])
def test_permutation_equivariance_without_positions(prior: str) -> None:
    layer, x = make_layer(prior, "LTG", causal=False, use_rope=False), make_input(length=11)
    order = torch.randperm(11, generator=torch.Generator().manual_seed(3))
    torch.testing.assert_close(layer(x[:, order]), layer(x)[:, order], rtol=1e-11, atol=1e-12)
    moved = make_layer(prior, "LTG", causal=False, use_rope=True)
    assert (moved(x[:, order]) - moved(x)[:, order]).abs().max() > 1e-4, "with positions the order matters"


@over_priors
def test_causal_and_full_agree_at_the_last_token(prior: str) -> None:
    causal, full = make_layer(prior, "LTG", causal=True), make_layer(prior, "LTG", causal=False)
    full.load_state_dict(causal.state_dict())
    x = make_input(length=10)
    assert (causal(x) - full(x))[:, :-1].abs().max() > 1e-3
    torch.testing.assert_close(causal(x)[:, -1], full(x)[:, -1], rtol=1e-10, atol=1e-12)


class LargestTensor(TorchDispatchMode):
    """Records the size of the largest tensor created."""

    def __init__(self) -> None:
        super().__init__()
        self.numel = 0

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        sizes = [
            t.untyped_storage().nbytes() // t.element_size() for t in tree_leaves(out) if isinstance(t, torch.Tensor)
        ]
        self.numel = max([self.numel, *sizes])
        return out


@in_turn(prior=SCAN_PRIORS, causal=(True, False))
def test_scan_priors_use_linear_memory(prior: str, causal: bool) -> None:
    """No (T, T) and no (B, T, H, d, d) tensor is created."""
    layer = make_layer(prior, "CLTG", n_embd=32, causal=causal, dtype=torch.float32)
    sizes = []
    for length in (512, 1024):
        x = make_input(1, length, 32, dtype=torch.float32)
        with LargestTensor() as largest, torch.no_grad():
            layer(x)
        sizes.append(largest.numel)
    states = layer.config.ssm_rank if prior == "mamba" else 1
    projected = sum(layer.split_sizes.values())
    assert sizes[1] <= 2.1 * sizes[0]
    assert sizes[1] <= 1024 * max(3 * layer.widths.fem_dim * states, projected, 64 * layer.config.n_head) * 1.1


@pairwise(
    length=(1, VECTOR - 1, VECTOR, SHORT + 1),
    widths=((8, 8), (4, 12), (12, 4), (NARROW, NARROW + 1)),
    causal=(True, False),
)
def test_softmax_paths_match_the_definition(
    length: int, widths: tuple[int, int], causal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The dense path and the kernel with equal and padded widths, gradients included."""
    key, value = widths
    inputs = [torch.randn(3, length, 2, width, dtype=torch.float64, requires_grad=True) for width in (key, key, value)]
    results = []
    for form in ("chosen", "kernel", "definition"):
        q, k, v = inputs
        if form == "kernel":
            monkeypatch.setattr(softmax, "is_short", lambda *_: False)
        if form == "definition":
            scores = torch.einsum("bthd,bihd->bhti", q, k) / key**0.5
            if causal:
                scores = scores.masked_fill(torch.ones(length, length).triu(1).bool(), -torch.inf)
            mixed = torch.einsum("bhti,bihc->bthc", scores.softmax(-1), v)
        else:
            mixed = BoundSoftmax(q, k, None, causal, "auto").mix(v)
        results.append([mixed, *torch.autograd.grad(mixed.sin().sum(), inputs)])
    for found, by_kernel, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)
        torch.testing.assert_close(by_kernel, expected, rtol=1e-10, atol=1e-12)


def test_short_softmax_path_selection() -> None:
    q, v = torch.empty(1, 2, SHORT, NARROW), torch.empty(1, SHORT, 2, NARROW)
    assert is_short(q, v)
    assert not is_short(torch.empty(1, 2, SHORT + 1, NARROW), v)
    assert not is_short(q, torch.empty(1, SHORT, 2, NARROW + 1))
    assert not is_short(q.to("meta"), v)


def test_softmax_with_unequal_widths_uses_linear_memory() -> None:
    length = 512
    bound = BoundSoftmax(torch.randn(1, length, 1, 4), torch.randn(1, length, 1, 4), None, True, "auto")
    with LargestTensor() as largest, torch.no_grad():
        bound.mix(torch.randn(1, length, 1, 12))
    assert largest.numel < length * length / 8


def test_flash_on_cpu_is_refused() -> None:
    with pytest.raises(UsageError, match=r"flash.*cannot run because.*cpu.*softmax_backend='auto'"):
        layer = FreeEnergyMixer(FreeEnergyMixerConfig(16, 2, softmax_backend="flash"))
        layer(make_input(dtype=torch.float32))
