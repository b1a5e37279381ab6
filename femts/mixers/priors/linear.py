"""Linear attention priors with positive features: plain (`linear`) and with a gated decay (`gla`, appendix H.2)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from femts.mixers.budget import Widths
from femts.mixers.config import FreeEnergyMixerConfig
from femts.mixers.kernels import chosen
from femts.mixers.ops.dense import path_sums
from femts.mixers.ops.gradients import READ, bounded
from femts.mixers.ops.scan import decayed_sum, reversed_decayed_sum
from femts.mixers.priors.base import (
    BoundPrior,
    Params,
    Prior,
    at_least_float32,
    divide,
    readable,
    visible,
    weigh,
    without_autocast,
)
from femts.mixers.priors.registry import register_prior
from femts.mixers.priors.softmax import dense_query_key, query_key

DENSE_UP_TO = 128  # tokens; below it a (T, T) product beats the chunked form
CHUNK = 64


class BoundLinear(BoundPrior):
    """`s_t(i) = (prod of decays between i and t) <phi(q_t), phi(k_i)>` (eq. 28); O(T) beyond a short sequence.

    Args:
        q, k: positive features (B, T, H, d_k); `k` is 0 for tokens that nobody may read.
        log_decay: (B, T, H), g <= 0, or None for no decay.
        rows: indices of the tokens of `q` and `support`; a subset only in the dense form.
        mask: (B, T), True for tokens that may be read, or None for all.
    """

    def __init__(
        self,
        q: Tensor,
        k: Tensor,
        log_decay: Tensor | None,
        causal: bool,
        support: Tensor | None,
        dense: bool | None = None,
        rows: slice = slice(None),
        mask: Tensor | None = None,
    ) -> None:
        super().__init__(support, (k.shape[0], k.shape[1], k.shape[2]), q)
        self.q, self.k, self.log_decay, self.causal, self.rows = q, k, log_decay, causal, rows
        self.mask = mask
        self.dense = is_dense(k) if dense is None else dense

    def mix(self, values: Tensor) -> Tensor:
        with without_autocast(self.q):
            v = readable(values.to(self.q.dtype), self.mask)
            mixed = self._mix_dense(v) if self.dense else self._mix_chunked(v)
        return mixed.to(values.dtype)

    def _mix_dense(self, v: Tensor) -> Tensor:
        q, k, v = (x.transpose(1, 2).flatten(0, 1) for x in (self.q, self.k, v))  # (B H, T, .)
        scores = torch.bmm(q, k.mT).unflatten(0, (-1, self.shape[2]))
        if self.log_decay is not None:
            scores = bounded(
                scores * decay_matrix(self.log_decay, self.causal)[:, self.rows].transpose(1, 2).contiguous()
            )
        elif self.causal and self.rows == slice(None):
            scores = scores.tril()
        elif self.causal:
            scores = scores * scores.new_ones(scores.shape[-1], scores.shape[-1]).tril()[self.rows]
        support = None if self.support is None else self.support[:, None]
        mass = scores.sum(-1, keepdim=True)
        p = bounded(scores * divide(torch.ones_like(mass), mass, support)).flatten(0, 1)
        return weigh(p, v).unflatten(0, (-1, self.shape[2])).transpose(1, 2)

    def _mix_chunked(self, v: Tensor) -> Tensor:
        v = torch.cat([v, torch.ones_like(v[..., :1])], dim=-1)
        # The scale of q cancels; this keeps it close to 1.
        q, k, g = self.q / self.q.sum(-1, keepdim=True), self.k, self.log_decay
        if self.causal and chosen("linear", q.device, q.dtype) == "fla":
            from femts.mixers.kernels.linear_fla import scores_fla

            scores = scores_fla(q, k, v, g)
        elif self.causal:
            scores = chunked_scores(q, k, v, g)
        elif g is None:
            scores = torch.einsum("bthd,bhdc->bthc", q, torch.einsum("bihd,bihc->bhdc", k, v))
        else:
            ahead = chunked_scores(q.flip(1), k.flip(1), v.flip(1), g.flip(1), strict=True).flip(1)
            scores = chunked_scores(q, k, v, g) + ahead
        return divide(bounded(scores[..., :-1], READ), scores[..., -1:], self.support)


def is_dense(k: Tensor) -> bool:
    """Return whether the dense form is used for the tokens of `k` (B, T, ...)."""
    return k.shape[1] <= DENSE_UP_TO


def first_place(mask: Tensor) -> Tensor:
    """Position (B, 1) of the first token such that the first token kept by `mask` (B, T) has position 0.

    Features depend on the absolute position, so padding on the left must not shift it.
    """
    return -(mask.cumsum(1) == 0).sum(1, keepdim=True)


def decay_matrix(log_decay: Tensor, causal: bool = True) -> Tensor:
    """Product of the decays between two tokens: (B, T, H) -> (B, T query, H, T key), 0 for keys that are not
    visible."""
    length = log_decay.shape[1]
    eye = torch.eye(length, device=log_decay.device, dtype=log_decay.dtype)[None, :, None, :]
    eye = eye.expand(log_decay.shape[0], length, log_decay.shape[2], length)
    matrix = decayed_sum(eye, log_decay.unsqueeze(-1))
    return matrix if causal else matrix + reversed_decayed_sum(eye, log_decay.unsqueeze(-1))


def chunked_scores(q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor | None, strict: bool = False) -> Tensor:
    """`sum_{i<=t} s_t(i) v_i` (B, T, H, c) in O(T): dense inside chunks, with one decayed state between them (eq. 29).

    `strict` excludes the diagonal i = t.
    """
    batch, length, heads, _ = q.shape
    pad = -length % CHUNK
    n_chunks = (length + pad) // CHUNK
    q, k, v = (F.pad(x, (0, 0, 0, 0, 0, pad)).unflatten(1, (n_chunks, CHUNK)).flatten(0, 1) for x in (q, k, v))
    g = q.new_zeros(batch, length, heads) if log_decay is None else log_decay
    g = F.pad(g, (0, 0, 0, pad)).unflatten(1, (n_chunks, CHUNK)).flatten(0, 1)
    matrix = decay_matrix(g)
    reach = matrix[..., 0] * g[:, :1].exp()  # decay from before the chunk to each of its tokens
    to_end = matrix[:, -1].transpose(1, 2)  # (B n, key, H)
    if strict:
        matrix = matrix * (1 - torch.eye(CHUNK, device=q.device, dtype=q.dtype)[None, :, None, :])
    scores = bounded(torch.einsum("bthd,bihd->bthi", q, k) * matrix)
    inside = torch.einsum("bthi,bihc->bthc", scores, v)
    state = torch.einsum("bihd,bihc->bhdc", bounded(k * to_end.unsqueeze(-1)), v).unflatten(0, (batch, n_chunks))
    through = g.sum(1).unflatten(0, (batch, n_chunks))[..., None, None]
    state = decayed_sum(state, through)
    before = torch.cat([torch.zeros_like(state[:, :1]), state[:, :-1]], dim=1).flatten(0, 1)
    across = torch.einsum("bthd,bhdc->bthc", bounded(q * reach.unsqueeze(-1)), before)
    return (inside + across).unflatten(0, (batch, n_chunks)).flatten(1, 2)[:, :length]


class LinearState(NamedTuple):
    """`memory` (B, H, d_k, c + 1): decayed sum of phi(k) outer [v, 1]; `position`: number of tokens seen."""

    memory: Tensor
    position: int


@register_prior
class LinearPrior(Prior):
    """Features `relu(x) + eps` of rotated queries and keys, without decay."""

    NAME, ORDER, operation = "linear", 1, "linear"
    row_params = frozenset({"q"})

    def __init__(self, config: FreeEnergyMixerConfig, widths: Widths) -> None:
        super().__init__(config, widths)
        self.param_widths = {"q": widths.qk_dim, "k": widths.qk_dim}

    def log_decay(self, params: Params) -> Tensor | None:
        """Logarithm g <= 0 of the decay of each token and head, (..., H), or None."""
        return None

    def _features(self, params: Params, start: int | Tensor = 0, rows: slice = slice(None)) -> tuple[Tensor, Tensor]:
        q, k = query_key(params, self.config, start, rows)
        # In the memory layout of their product, so that their gradients have it, too.
        q, k = q.transpose(1, 2).contiguous().transpose(1, 2), k.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
        return tuple(F.relu(at_least_float32(x)) + self.config.eps for x in (q, k))  # type: ignore[return-value]

    def log_scores(self, params: Params, keep: Tensor) -> Tensor:
        q, k = (F.relu(x) + self.config.eps for x in dense_query_key(params, self.config, first_place(keep[..., 0])))
        scores = torch.einsum("bthd,bihd->btih", q, k).log()
        g = self.log_decay(params)
        return scores if g is None else scores + path_sums(keep * g, self.config.causal)  # eq. 28

    def bind(self, params: Params, mask: Tensor | None) -> BoundLinear:
        return self._bind(params, mask, slice(None))

    def bind_rows(self, params: Params, mask: Tensor | None, rows: slice) -> BoundPrior:
        if is_dense(params["k"]):
            return self._bind(params, mask, rows)
        q = torch.ones_like(params["k"])  # the chunked form reads at every token; queries at the others are arbitrary
        q[:, rows] = params["q"]
        return super().bind_rows({**params, "q": q}, mask, rows)

    def _bind(self, params: Params, mask: Tensor | None, rows: slice) -> BoundLinear:
        q, k = self._features(params, 0 if mask is None else first_place(mask), rows)
        g = self.log_decay(params)
        if mask is not None:  # tokens that nobody may read count as absent: no mass and no decay
            k = k.masked_fill(~mask[:, :, None, None], 0.0)
            g = None if g is None else g.masked_fill(~mask[:, :, None], 0.0)
        support = visible(mask, self.config.causal)
        support = None if support is None else support[:, rows]
        return BoundLinear(q, k, g, self.config.causal, support, rows=rows, mask=mask)

    def init_state(self, batch_size: int, value_width: int) -> LinearState:
        heads = self.config.n_head
        return LinearState(torch.zeros(batch_size, heads, self.widths.qk_dim // heads, value_width + 1), 0)

    def step(self, params: Params, values: Tensor, state: LinearState) -> tuple[Tensor, LinearState]:
        params = {name: p.unsqueeze(1) for name, p in params.items()}
        q, k = (x[:, 0] for x in self._features(params, start=state.position))
        v = torch.cat([values, torch.ones_like(values[..., :1])], dim=-1).to(k.dtype)
        g = self.log_decay(params)
        memory = state.memory.to(k) if g is None else state.memory.to(k) * g[:, 0, :, None, None].exp()
        memory = memory + k.unsqueeze(-1) * v.unsqueeze(-2)
        with without_autocast(k):
            scores = torch.einsum("bhd,bhdc->bhc", q, memory)
        return (scores[..., :-1] / scores[..., -1:]).to(values.dtype), LinearState(memory, state.position + 1)
