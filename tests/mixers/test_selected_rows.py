"""Outputs at selected tokens equal the full output, gradients included."""

from __future__ import annotations

from unittest.mock import patch

import torch
from mixer_cases import make_input, make_layer, over_layers, over_priors

from femts.mixers import FreeEnergyMixer
from femts.mixers.priors import linear, softmax

ROWS = [slice(1, None, 2), slice(-1, None), slice(2, 6), slice(None)]


def check_both(layer: FreeEnergyMixer, rows: slice, mask: torch.Tensor | None = None) -> None:
    """Compare outputs and gradients of both ways."""
    x, found = make_input(), []
    weight = make_input(seed=3)[:, rows]
    for way in (lambda x: layer(x, mask, rows), lambda x: layer(x, mask)[:, rows]):
        leaf = x.clone().requires_grad_()
        layer.zero_grad()
        y = way(leaf)
        (y * weight).sum().backward()
        grads = [leaf.grad, *(p.grad for p in layer.parameters())]
        found.append([y.detach(), *(g.clone() for g in grads if g is not None)])
    assert len(found[0]) == len(found[1])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


@over_layers
def test_selected_rows_match_the_full_output(prior: str, components: str) -> None:
    for rows in ROWS:
        check_both(make_layer(prior, components), rows)


@over_priors
def test_selected_rows_with_masks_and_long_forms(prior: str) -> None:
    for causal in (True, False):
        mask = torch.ones(2, 9, dtype=torch.bool)
        mask[0, :3] = mask[1, 5:] = False  # the first rows of one see nothing, where causal
        layer = make_layer(prior, causal=causal)
        for rows in ROWS:
            check_both(layer, rows, mask)
            with patch.object(softmax, "SHORT", 0), patch.object(linear, "DENSE_UP_TO", 0):
                check_both(layer, rows, mask)
                check_both(layer, rows)
