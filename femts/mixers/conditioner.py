"""C: the time-decay conditioner, a low-rank causal convolution with O(1) state (appendix I)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from femts.mixers.ops.scan import decayed_sum, reversed_decayed_sum


class TimeDecayConditioner(nn.Module):
    """Local features of the tokens; the layer adds their `out_proj` to its own projection (eq. 33 and 34).

    Args:
        n_embd: width D of the tokens.
        hidden: width H_c of the convolution.
        n_out: width of the modulated projection; `out_proj` is initialised to zero, so a new layer is unconditioned.
        norm_first: LayerNorm on the tokens.
        causal: False adds the mirror image of the convolution.
    """

    def __init__(self, n_embd: int, hidden: int, n_out: int, norm_first: bool = True, causal: bool = True) -> None:
        super().__init__()
        self.norm_in = nn.LayerNorm(n_embd) if norm_first else nn.Identity()
        self.in_proj = nn.Linear(n_embd, 3 * hidden, bias=False)  # W_f, W_x, W_s
        self.norm_hidden = nn.LayerNorm(hidden)
        self.out_proj = nn.Linear(hidden, n_out, bias=False)
        self.causal, self.hidden = causal, hidden
        nn.init.normal_(self.in_proj.weight, std=0.02)
        nn.init.zeros_(self.out_proj.weight)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """`x` (B, T, D) -> features h (B, T, H_c); tokens with a False `mask` (B, T) are treated as absent."""
        log_decay, u, shortcut = self._convolved(x)
        if mask is not None:
            u = u.masked_fill(~mask.unsqueeze(-1), 0.0)
            log_decay = log_decay.masked_fill(~mask.unsqueeze(-1), 0.0)
        h = decayed_sum(u, log_decay)
        if not self.causal:
            h = h + reversed_decayed_sum(u, log_decay)
        return self._gated(h, shortcut)

    def init_state(self, batch_size: int) -> Tensor:
        """Initial state of the convolution, (B, H_c), at least in float32, like `decayed_sum`."""
        weight = self.out_proj.weight
        return weight.new_zeros(batch_size, self.hidden, dtype=torch.promote_types(weight.dtype, torch.float32))

    def step(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Process one token `x` (B, D): its features (B, H_c) and the next state."""
        log_decay, u, shortcut = self._convolved(x)
        state = log_decay.to(torch.promote_types(u.dtype, state.dtype)).exp() * state + u
        return self._gated(state.to(u.dtype), shortcut), state

    def _convolved(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        # Contiguous, otherwise softplus is not vectorised.
        s, u, a = (part.contiguous() for part in self.in_proj(self.norm_in(x)).chunk(3, dim=-1))
        return -F.softplus(s), u, F.softplus(a)

    def _gated(self, h: Tensor, shortcut: Tensor) -> Tensor:
        return F.silu(F.normalize(shortcut, dim=-1)) * self.norm_hidden(h)
