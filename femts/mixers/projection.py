"""The layer's projection of its tokens, split by name: values, gates and the inputs of the prior, modulated by the
conditioner."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from femts.mixers.ops.precision import linear

ALL = slice(None)


def project(
    x: Tensor,
    features: Tensor | None,
    inner: nn.Linear,
    outer: nn.Linear | None,
    sizes: Mapping[str, int],
    rows: slice = ALL,
    of_rows: Collection[str] = (),
) -> dict[str, Tensor]:
    """Project tokens and split the result.

    Args:
        x: tokens (B, T, D), or (B, D) if `rows` selects all.
        features: output of the conditioner (B, T, H_c), or None.
        inner, outer: maps from D and from H_c to the sum of `sizes`.
        sizes: widths by name, starting with the values `v`.
        rows: the Q tokens that read.
        of_rows: names that only these tokens need.

    Returns:
        (B, T, width) by name, and (B, Q, width) for names in `of_rows`.
    """
    weight: Tensor
    bias: Tensor | None
    sizes, weight, bias = dict(sizes), inner.weight, inner.bias
    if features is not None and outer is not None:
        # A single product of [x, features] gives v, the modulated rest and the scale of the values: three separate
        # outputs of this size would cost more than the conditioner itself. A single split, because the gradient of each
        # further one fills a whole product with zeros.
        width, sizes["scale"] = sizes["v"], sizes["v"]
        weight = torch.cat([inner.weight, outer.weight], dim=1)
        scale = F.pad(outer.weight[:width], (inner.in_features, 0))
        weight = torch.cat([F.pad(inner.weight[:width], (0, outer.in_features)), weight[width:], scale])
        bias = None if bias is None else F.pad(bias, (0, width))
        x = torch.cat([x, features], dim=-1)
    if rows == ALL:
        parts = _product(x, weight, bias, sizes)
    else:
        places = dict(zip(sizes, torch.arange(sum(sizes.values())).split(list(sizes.values())), strict=True))
        parts = {}
        for tokens, needed in (
            (x, [n for n in sizes if n not in of_rows]),
            (x[:, rows], [n for n in sizes if n in of_rows]),
        ):
            if needed:
                lines = torch.cat([places[name] for name in needed])
                some = None if bias is None else bias[lines]
                parts |= _product(tokens, weight[lines], some, {name: sizes[name] for name in needed})
    if "scale" in parts:
        v = parts["v"]
        parts["v"] = torch.addcmul(v, v, parts.pop("scale"))
    return parts


def _product(x: Tensor, weight: Tensor, bias: Tensor | None, sizes: Mapping[str, int]) -> dict[str, Tensor]:
    return dict(zip(sizes, linear(x, weight, bias).split(list(sizes.values()), dim=-1), strict=True))
