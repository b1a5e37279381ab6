"""Softmax attention as a selection prior (appendix H.1): `p_t(i)` proportional to `exp(<q_t, k_i> / sqrt(d_k))`."""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from femts.errors import UsageError
from femts.mixers.budget import Widths
from femts.mixers.config import FreeEnergyMixerConfig
from femts.mixers.ops.dense import rotated
from femts.mixers.ops.gradients import transformed
from femts.mixers.ops.rope import rotate
from femts.mixers.priors.base import BoundPrior, Params, Prior, readable, visible, weigh
from femts.mixers.priors.registry import register_prior

# On a CPU, up to these sizes, a dense product over all heads at once beats the kernel that processes heads one by one
# (`python -m scripts.bench mixer`).
SHORT, NARROW = 32, 16
VECTOR = 16  # float32 numbers per AVX-512 vector


class KeyValueCache(NamedTuple):
    """Cache of all keys (B, t, H, d_k) and values (B, t, H, c) so far."""

    keys: Tensor
    values: Tensor


class BoundSoftmax(BoundPrior):
    """Attention over the visible tokens in O(T^2) time, by torch's scaled dot product attention or, if short,
    densely."""

    def __init__(
        self, q: Tensor, k: Tensor, mask: Tensor | None, causal: bool, backend: str, rows: slice = slice(None)
    ) -> None:
        support = visible(mask, causal)
        super().__init__(None if support is None else support[:, rows], (k.shape[0], k.shape[1], k.shape[2]), q)
        self.mask, k = mask, readable(k, mask)
        self.q, self.k, self.causal, self.backend, self.rows = (
            q.transpose(1, 2),
            k.transpose(1, 2),
            causal,
            backend,
            rows,
        )
        self.allowed = None if mask is None or support is None else self._allowed(mask, support)[:, :, rows]

    def _allowed(self, mask: Tensor, support: Tensor) -> Tensor:
        length = mask.shape[1]
        allowed = mask[:, None, :].expand(-1, length, -1)
        if self.causal:
            allowed = allowed.tril()
        # A row that sees nothing attends to itself and is set to 0 afterwards, so that no kernel computes an empty
        # softmax.
        eye = torch.eye(length, dtype=torch.bool, device=mask.device)
        return (allowed | (eye & ~support[:, :, None]))[:, None]

    def mix(self, values: Tensor) -> Tensor:
        if self.backend != "flash" and self.allowed is None and is_short(self.k, values):
            values = values.transpose(1, 2).to(self.q.dtype)
            return short_attention(self.q, self.k, values, self.causal, self.rows).transpose(1, 2)
        v = readable(values, self.mask).transpose(1, 2).to(self.q.dtype)
        width = max(self.q.shape[-1], v.shape[-1])
        flash = self.backend == "flash"
        if flash:
            self._check_flash(width)
        # The kernels without a (T, T) tensor require equal widths; padding with zeros changes neither scores nor reads.
        q, k, v = (_widened(x, width) for x in (self.q, self.k, v))
        allowed = self.allowed
        if (
            allowed is None and self.causal and self.rows != slice(None)
        ):  # is_causal would align the first row with the first token
            allowed = torch.ones(k.shape[2], k.shape[2], dtype=torch.bool, device=k.device).tril()[self.rows]
        # torch.func has a forward derivative and a batched form of torch's plain attention only.
        backend = SDPBackend.FLASH_ATTENTION if flash else SDPBackend.MATH if transformed() else None
        with nullcontext() if backend is None else sdpa_kernel(backend):
            mixed = F.scaled_dot_product_attention(
                q,
                k,
                v,
                attn_mask=allowed,
                is_causal=self.causal and allowed is None,
                scale=1 / math.sqrt(self.q.shape[-1]),
            )
        mixed = mixed[..., : values.shape[-1]].transpose(1, 2)
        if self.support is not None:
            mixed = mixed.masked_fill(~self.support[:, :, None, None], 0.0)
        return mixed

    def _check_flash(self, width: int) -> None:
        kind = self.q.dtype
        if self.allowed is not None:
            reason = "there is a mask"
        elif self.q.device.type != "cuda":
            reason = f"the input is on {self.q.device.type}, not on a CUDA device"
        elif kind not in (torch.float16, torch.bfloat16):
            reason = f"the input is {kind}, not 16 bits wide"
        elif width > 256:
            reason = f"keys or values have width {width} per head, which must be at most 256"
        else:
            return
        raise UsageError(f"softmax_backend='flash' cannot run because {reason}; use softmax_backend='auto'.")


def _widened(x: Tensor, width: int) -> Tensor:
    return x if x.shape[-1] == width else F.pad(x, (0, width - x.shape[-1]))


def is_short(q: Tensor, values: Tensor) -> bool:
    """Return whether `short_attention` is the faster form."""
    return q.device.type == "cpu" and q.shape[2] <= SHORT and max(q.shape[3], values.shape[3]) <= NARROW


def short_attention(q: Tensor, k: Tensor, v: Tensor, causal: bool, rows: slice = slice(None)) -> Tensor:
    """Attention of many short sequences, (B, H, T, d) each, by its dense weights; `q` (B, H, Q, d) holds the queries of
    `rows`."""
    heads, length = q.shape[:2], k.shape[2]
    q, k, v = (x.flatten(0, 1) for x in (q / math.sqrt(q.shape[3]), k, v))
    bias = torch.zeros(1, 1, device=q.device, dtype=q.dtype)
    if causal:
        later = torch.ones(length, length, device=q.device, dtype=torch.bool).triu_(1)[rows]
        bias = bias.expand(later.shape).masked_fill(later, -torch.inf)
    if length < VECTOR:  # a softmax over fewer elements is not vectorised and takes several times as long
        p = torch.baddbmm(bias.mT, k, q.mT).softmax(dim=1).mT
    else:
        p = torch.baddbmm(bias, q, k.mT).softmax(dim=-1)
    return weigh(p, v).unflatten(0, heads)


@register_prior
class SoftmaxPrior(Prior):
    """Queries and keys of `qk_dim` over `n_head` heads, with rotary positions unless `use_rope` is off."""

    NAME, ORDER = "softmax", 0
    row_params = frozenset({"q"})

    def __init__(self, config: FreeEnergyMixerConfig, widths: Widths) -> None:
        super().__init__(config, widths)
        self.param_widths = {"q": widths.qk_dim, "k": widths.qk_dim}

    def log_scores(self, params: Params, keep: Tensor) -> Tensor:
        q, k = dense_query_key(params, self.config)
        return torch.einsum("bthd,bihd->btih", q, k) / q.shape[-1] ** 0.5  # eq. 27

    def bind(self, params: Params, mask: Tensor | None) -> BoundSoftmax:
        return self.bind_rows(params, mask, slice(None))

    def bind_rows(self, params: Params, mask: Tensor | None, rows: slice) -> BoundSoftmax:
        q, k = query_key(params, self.config, rows=rows)
        return BoundSoftmax(q, k, mask, self.config.causal, self.config.softmax_backend, rows)

    def init_state(self, batch_size: int, value_width: int) -> KeyValueCache:
        heads = self.config.n_head
        return KeyValueCache(
            torch.zeros(batch_size, 0, heads, self.widths.qk_dim // heads),
            torch.zeros(batch_size, 0, heads, value_width),
        )

    def step(self, params: Params, values: Tensor, state: KeyValueCache) -> tuple[Tensor, KeyValueCache]:
        position = state.keys.shape[1]
        q, k = query_key({name: p.unsqueeze(1) for name, p in params.items()}, self.config, start=position)
        keys = torch.cat([state.keys.to(k), k], dim=1)
        stored = torch.cat([state.values.to(values), values.unsqueeze(1)], dim=1)
        scores = torch.einsum("bhd,bihd->bhi", q[:, 0], keys) / math.sqrt(q.shape[-1])
        mixed = torch.einsum("bhi,bihc->bhc", scores.softmax(-1), stored)
        return mixed, KeyValueCache(keys, stored)


def query_key(
    params: Params, config: FreeEnergyMixerConfig, start: int | Tensor = 0, rows: slice = slice(None)
) -> tuple[Tensor, Tensor]:
    """q, at `rows` only, and k in heads, (B, T, H, d_k), rotated by their positions, the first of which is `start`, a
    number or (B, 1)."""
    q, k = (params[name].unflatten(-1, (config.n_head, -1)) for name in ("q", "k"))
    if config.use_rope:
        first, _, stride = rows.indices(k.shape[1])
        q, k = rotate(q, config.rope_theta, start + first, stride), rotate(k, config.rope_theta, start)
    return q, k


def dense_query_key(params: Params, config: FreeEnergyMixerConfig, start: int | Tensor = 0) -> tuple[Tensor, Tensor]:
    """q and k in heads, (B, T, H, d_k), rotated as complex numbers: the definition of `query_key`."""
    q, k = (params[name].unflatten(-1, (config.n_head, -1)) for name in ("q", "k"))
    return (rotated(q, config.rope_theta, start), rotated(k, config.rope_theta, start)) if config.use_rope else (q, k)
