"""The layer by definition: dense float64 tensors straight from the equations, as a reference for the fast paths.

`reference` does not scan, chunk or call a kernel; it only uses the parameters of the layer. `plain_forward` computes
the same read in the layer's own dtype, to benchmark the fast paths against. The cost is O(T^2) per channel.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from femts.mixers.layer import FreeEnergyMixer
from femts.mixers.ops.dense import path_sums
from femts.mixers.read import outer_gate


class Reference(NamedTuple):
    """Shapes: `p` (B, T, T, H) or (B, T, T, E), query before key; the parts (B, T, H, d_v); `y` (B, T, D).

    Parts that the layer does not have are None.
    """

    p: Tensor
    v: Tensor
    mu: Tensor
    f_max: Tensor | None
    f: Tensor
    lam: Tensor | None
    gate: Tensor | None
    o: Tensor
    y: Tensor


def reference(layer: FreeEnergyMixer, x: Tensor, attention_mask: Tensor | None = None) -> Reference:
    """All intermediate results of `layer` for `x` (B, T, D) and a mask (B, T), True = keep, without dropout."""
    layer, x = copy.deepcopy(layer).double(), x.double()
    keep = torch.ones(x.shape[:2], dtype=torch.bool) if attention_mask is None else attention_mask.bool()
    config = layer.config
    batch, length, heads = x.shape[0], x.shape[1], config.heads

    parts = dict(zip(layer.split_sizes, layer.in_proj(x).split(list(layer.split_sizes.values()), dim=-1), strict=True))
    if config.use_conv:
        shifts = conditioner(layer, x, keep).split(list(layer.split_sizes.values()), dim=-1)
        for name, shift in zip(layer.split_sizes, shifts, strict=True):
            parts[name] = parts[name] * (1 + shift) if name == "v" else parts[name] + shift  # eq. 34b, 34a

    p = selection(layer, parts, keep)
    split = (batch, length, heads, -1)
    v = parts["v"].reshape(split)
    mu = _average(p, v)
    f_max, lam, gate, f = None, None, None, mu
    if config.use_lse:  # eq. 4
        beta = F.softplus(layer.beta_raw + 1.8).reshape(heads, -1)
        tilt = (beta * v).clamp(-config.value_logexp_cap, config.value_logexp_cap)
        z = _average(p, tilt.exp())
        f_max = torch.where(z > 0, z.log(), 0.0) / beta  # a query without any visible key reads 0
        f = f_max
    if f_max is not None and config.use_temperature:  # eq. 10
        lam = torch.sigmoid(parts["lam"]).reshape(split)
        f = (1 - lam) * mu + lam * f_max
    o = f
    if config.use_outer_gate:  # eq. 11
        gate = F.softplus(parts["g"]) + config.eps
        gate = (gate / gate.square().mean(-1, keepdim=True).sqrt()).reshape(split)
        o = gate * f
    o = layer.prior.post_read(o.flatten(2), parts).reshape(split)
    sees_something = (p.sum(2) > 0).any(-1, keepdim=True)
    return Reference(p, v, mu, f_max, f, lam, gate, o, layer.out_proj(o.flatten(2)) * sees_something)


def plain_forward(layer: FreeEnergyMixer, x: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    """Output of `layer(x, attention_mask)`, (B, T, D), by a dense p and a log-sum-exp over (B, T, T, H, d_v).

    In the layer's dtype, on its device and differentiable; projection, conditioner, p and output map are the layer's
    own.
    """
    config = layer.config
    p, parts, bound = layer._dense(x, attention_mask)
    v = layer._values(parts)
    f = mu = _average(p.flatten(3), v)
    if config.use_lse:  # eq. 4
        beta = F.softplus(layer.beta_raw + 1.8)
        tilt = (beta * v).clamp(-config.value_logexp_cap, config.value_logexp_cap)
        unseen = p == 0
        log_p = p.masked_fill(unseen, 1.0).log()  # the gradient of log 0 is NaN even if it is masked
        log_p = log_p.masked_fill(unseen & ~unseen.all(2, keepdim=True), -torch.inf)
        f = torch.logsumexp(log_p + tilt.unsqueeze(1), dim=2) / beta
    if config.use_temperature:  # eq. 10; T requires L
        lam = torch.sigmoid(parts["lam"]).view_as(v)
        f = (1 - lam) * mu + lam * f
    if config.use_outer_gate:  # eq. 11
        f = outer_gate(parts["g"], config.eps).view_as(v) * f
    y = layer._output(f, parts)
    return y if bound.support is None else y.masked_fill(~bound.support.unsqueeze(-1), 0.0)


def free_energy(p: Tensor, v: Tensor, beta: Tensor) -> Tensor:
    """F(beta) of eq. 4: p (B, T, T, H, d_v or 1), v and beta > 0 (B, T, H, d_v) -> (B, T, H, d_v)."""
    return torch.logsumexp(p.log() + beta.unsqueeze(2) * v.unsqueeze(1), dim=2) / beta


def conditioner(layer: FreeEnergyMixer, x: Tensor, keep: Tensor) -> Tensor:
    """The double sum of eq. 33: (B, T, D) -> (B, T, width of the input projection)."""
    tdc: Any = layer.conditioner
    s, u, a = tdc.in_proj(tdc.norm_in(x)).chunk(3, dim=-1)
    kernel = path_sums(-F.softplus(s) * keep.unsqueeze(-1), layer.config.causal).exp()  # K_{t,i} of eq. 33
    h = (kernel * (u * keep.unsqueeze(-1)).unsqueeze(1)).sum(2)
    a = F.softplus(a)
    modulation: Tensor = tdc.out_proj(F.silu(a / a.norm(dim=-1, keepdim=True)) * tdc.norm_hidden(h))
    return modulation


def selection(layer: FreeEnergyMixer, parts: dict[str, Tensor], keep: Tensor) -> Tensor:
    """`p_t(i)` of appendix H: (B, T, T, H), or (B, T, T, E) for the priors with one weight per channel."""
    log_s = layer.prior.log_scores({name: parts[name] for name in layer.prior.param_widths}, keep.unsqueeze(-1))
    length = log_s.shape[1]
    allowed = keep[:, None, :, None].expand(-1, length, -1, 1)
    if layer.config.causal:
        allowed = allowed & torch.ones(length, length, dtype=torch.bool).tril()[None, :, :, None]
    p = log_s.masked_fill(~allowed, -torch.inf).softmax(dim=2)
    return torch.where(allowed.any(2, keepdim=True), p, 0.0)


def _average(p: Tensor, values: Tensor) -> Tensor:
    if p.shape[-1] == values.shape[2]:
        return torch.einsum("btih,bihc->bthc", p, values)
    return torch.einsum("btie,bihe->bthe", p, values)
