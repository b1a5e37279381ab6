"""Outputs and gradients are independent of the rest of the batch."""

from __future__ import annotations

import torch
from combinations import pairwise
from mixer_cases import PRIORS, make_input, make_layer
from torch import Tensor


@pairwise(prior=PRIORS, causal=(True, False), length=(14, 300))
def test_batch_gradient_is_the_sum_over_samples(prior: str, causal: bool, length: int) -> None:
    layer, x = make_layer(prior, causal=causal), make_input(3, length)

    def output_and_gradients(part: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        y = layer(part)
        return y, torch.autograd.grad(y.square().sum(), list(layer.parameters()))

    y, whole = output_and_gradients(x)
    ys, each = zip(*(output_and_gradients(x[i : i + 1]) for i in range(3)), strict=True)
    torch.testing.assert_close(torch.cat(ys), y, rtol=1e-11, atol=1e-12)
    top = max(gradient.abs().max().item() for gradient in whole)
    for one, others in zip(whole, zip(*each, strict=True), strict=True):
        torch.testing.assert_close(sum(others), one, rtol=1e-9, atol=1e-12 * top)
