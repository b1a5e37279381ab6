"""The Free Energy Mixer: any selection prior over time, read through a per-channel log-sum-exp (section 2.3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils._pytree import tree_map_only

from femts.errors import UsageError
from femts.mixers.budget import resolve_widths
from femts.mixers.conditioner import TimeDecayConditioner
from femts.mixers.config import FreeEnergyMixerConfig
from femts.mixers.kernels import chosen
from femts.mixers.masks import as_mask, check_tokens, harmless
from femts.mixers.ops.dropout import Dropout
from femts.mixers.priors.base import BoundPrior
from femts.mixers.priors.registry import prior_class
from femts.mixers.projection import ALL, project
from femts.mixers.read import FreeEnergyRead, free_energy_read, outer_gate
from femts.mixers.temperature import hidden_selection

Parts = dict[str, Tensor]  # the projection's outputs by name


class MixerState(NamedTuple):
    """State passed between calls of `step`: that of the conditioner (None without C) and that of the prior."""

    conditioner: Tensor | None
    prior: Any


class Selection(NamedTuple):
    """Selection by Q of T tokens: `prior` p (B, Q, T, H, d_v or 1), `posterior` q (B, Q, T, H, d_v), `beta`
    (B, Q, H, d_v)."""

    prior: Tensor
    posterior: Tensor
    beta: Tensor


class FreeEnergyMixer(nn.Module):
    """A drop-in replacement for self-attention, (B, T, D) -> (B, T, D), at the cost of its prior.

    A single projection of the tokens gives values, gates and the inputs of the prior. The conditioner modulates that
    projection as a whole: it scales the values (eq. 34b) and is added to the rest before its activation (eq. 34a), so
    that the inner gate stays in [0, 1].

    The contents of masked tokens do not matter. A NaN in other tokens propagates: causal `rnn_softmax`, `rnn_decay` and
    `mamba` keep it from earlier tokens, but the dense products of the other priors do not. Second derivatives and
    `torch.func` are supported; for second derivatives through `softmax` over more than 32 tokens, run it under
    `sdpa_kernel(SDPBackend.MATH)`.

    Args:
        config: see `FreeEnergyMixerConfig`.

    Raises:
        UsageError: Widths do not fit the heads, or a backend cannot run.

    Examples:
        >>> layer = FreeEnergyMixer(FreeEnergyMixerConfig(n_embd=64, n_head=8, prior_type="gla"))
        >>> layer(torch.zeros(2, 128, 64)).shape
        torch.Size([2, 128, 64])
    """

    NO_WEIGHT_DECAY = ("beta_raw",)

    def __init__(self, config: FreeEnergyMixerConfig) -> None:
        super().__init__()
        self.config, self.widths = config, resolve_widths(config)
        width, heads = self.widths.fem_dim, config.heads
        self.prior = prior_class(config.prior_type)(config, self.widths)
        self.split_sizes = {"v": width}
        if config.use_temperature:
            self.split_sizes["lam"] = width
        if config.use_outer_gate:
            self.split_sizes["g"] = width
        self.split_sizes |= self.prior.param_widths
        total = sum(self.split_sizes.values())
        self.in_proj = nn.Linear(config.n_embd, total, bias=config.bias)
        self.out_proj = nn.Linear(width, config.n_embd, bias=config.bias)
        sizes = (config.n_embd, self.widths.conv_hidden, total)
        order = (config.conv_norm_first, config.causal)
        self.conditioner = TimeDecayConditioner(*sizes, *order) if config.use_conv else None
        if config.use_lse:
            self.beta_raw = nn.Parameter(torch.zeros(heads, width // heads))
        self.dropout = Dropout(config.dropout)
        for linear in (self.in_proj, self.out_proj):  # appendix K
            nn.init.normal_(linear.weight, std=0.02)
            if config.bias:
                nn.init.zeros_(linear.bias)

    def forward(self, x: Tensor, attention_mask: Tensor | None = None, rows: slice = ALL) -> Tensor:
        """Mix tokens.

        Args:
            x: (B, T, D); B or T may be 0.
            attention_mask: (B, T), True (or 1) for tokens that may be read; None means all. Padding on either side does
                not affect the other tokens; tokens masked in between keep their positions.
            rows: indices of the Q tokens whose outputs are wanted; queries, gates and outputs are computed for these
                only.

        Returns:
            (B, Q, D), empty if `x` is; rows that see no token are 0.

        Raises:
            ValueError: Tokens or mask have another shape or dtype, or a float mask has values other than 0 and 1.
            UsageError: The layer uses L in float16, whose range is too small for its exponentials.
        """
        by_kernel = self.config.use_lse and chosen("read", x.device, x.dtype) == "triton"
        whole = x.device.type != "cpu" or by_kernel or self.config.softmax_backend == "flash"  # kernels read every row
        late, rows = (rows, ALL) if whole else (ALL, rows)
        parts, bound = self._prepare(x, attention_mask, rows)
        y = self._output(self._gated_read(bound.mix, parts, bound.support), parts)
        y = y if bound.support is None else y.masked_fill(~bound.support.unsqueeze(-1), 0.0)
        return y if late == ALL else y[:, late]

    def init_state(self, batch_size: int) -> MixerState:
        """Initial state of streams, before their first token.

        Args:
            batch_size: number B of streams.

        Returns:
            State for `step`, on the device of the layer.
        """
        value_width = (1 + self.config.use_lse) * self.widths.fem_dim // self.config.heads
        condition = None if self.conditioner is None else self.conditioner.init_state(batch_size)
        state = MixerState(condition, self.prior.init_state(batch_size, value_width))
        moved: MixerState = tree_map_only(Tensor, lambda s: s.to(self.in_proj.weight.device), state)
        return moved

    def step(self, x: Tensor, state: MixerState) -> tuple[Tensor, MixerState]:
        """Process one token of each stream; equals `forward` token by token.

        Args:
            x: (B, D).
            state: from `init_state` or the previous step.

        Returns:
            (B, D), and the next state.

        Raises:
            ValueError: Tokens have another shape or dtype, or the layer is not causal and hence cannot stream.
        """
        if not self.config.causal:
            raise ValueError("step needs a causal layer; this one was made with causal=False.")
        check_tokens(x, "B, D", self.in_proj.weight)
        features, condition = None, None
        if self.conditioner is not None and state.conditioner is not None:
            features, condition = self.conditioner.step(x, state.conditioner)
        parts = self._parts(x, features)
        prior_state = state.prior

        def mix(values: Tensor) -> Tensor:
            nonlocal prior_state
            mixed, prior_state = self.prior.step(parts, values, prior_state)
            return mixed

        y = self._output(self._gated_read(mix, parts, None), parts)
        return y, MixerState(condition, prior_state)

    def bind(self, x: Tensor, attention_mask: Tensor | None = None) -> BoundPrior:
        """Bind the prior to an input.

        Args:
            x, attention_mask: as in `forward`.

        Returns:
            The bound prior, which can `mix` values and return its dense `weights`.
        """
        return self._prepare(x, attention_mask)[1]

    def read(self, x: Tensor, attention_mask: Tensor | None = None) -> FreeEnergyRead:
        """The parts of the read, before the output projection.

        Args:
            x, attention_mask: as in `forward`.

        Returns:
            Mean `mu`, log-sum-exp `f_max`, read `f`, gates `lam`, `gate` (B, T, H, d_v); `beta` (H, d_v); None for
            disabled components.
        """
        parts, bound = self._prepare(x, attention_mask)
        return self._read(bound.mix, parts, bound.support)

    def weights(self, x: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """The prior p, in O(T^2).

        Args:
            x, attention_mask: as in `forward`.

        Returns:
            Query by key: (B, H, T, T), or (B, T, T, E) for priors with one weight per channel.
        """
        return self.bind(x, attention_mask).weights()

    def hidden_temperature(self, x: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """The inverse temperature at which the free energy is the read (proposition G.2), in O(T^2).

        Args:
            x, attention_mask: as in `forward`.

        Returns:
            beta* (B, T, H, d_v), 0 where the read is the mean.

        Raises:
            UsageError: As in `selection`.
        """
        return self.selection(x, attention_mask).beta

    def posterior(self, x: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Posterior selection of each channel: q of eq. 5 at the hidden temperature, in O(T^2).

        Args:
            x, attention_mask: as in `forward`.

        Returns:
            (B, T query, T key, H, d_v), which sums to 1 over the keys.

        Raises:
            UsageError: As in `selection`.
        """
        return self.selection(x, attention_mask).posterior

    def selection(self, x: Tensor, attention_mask: Tensor | None = None, queries: slice = slice(None)) -> Selection:
        """Prior, posterior and hidden temperature at once, in O(Q T) in addition to the prior's O(T^2).

        Args:
            x, attention_mask: as in `forward`.
            queries: indices of the Q query tokens; all by default.

        Returns:
            See `Selection`; computed from the capped values where `value_logexp_cap` applies.

        Raises:
            UsageError: The read mixes the mean of values beyond the cap with their capped free energy, and lies outside
                the range of the latter.
        """
        p, parts, bound = self._dense(x, attention_mask)
        p, v, read = p[:, queries], self._values(parts), self._read(bound.mix, parts, bound.support)
        if read.beta is None:
            return Selection(p, p.expand(*p.shape[:4], v.shape[-1]), torch.zeros_like(v[:, queries]))
        lam = torch.ones_like(v) if read.lam is None else read.lam
        q, beta = hidden_selection(p, v, read.beta, lam[:, queries], self.config.value_logexp_cap)
        return Selection(p, q, beta)

    def _dense(self, x: Tensor, attention_mask: Tensor | None) -> tuple[Tensor, Parts, BoundPrior]:
        """The dense p (B, T query, T key, H, d_v or 1), with the parts and the bound prior that it is computed from."""
        parts, bound = self._prepare(x, attention_mask)
        p = bound.weights()
        return p.unsqueeze(3) if self.config.per_channel else p.permute(0, 2, 3, 1).unsqueeze(-1), parts, bound

    def _prepare(self, x: Tensor, attention_mask: Tensor | None, rows: slice = ALL) -> tuple[Parts, BoundPrior]:
        check_tokens(x, "B, T, D", self.in_proj.weight)
        mask = as_mask(attention_mask, x)
        parts = self._project(harmless(x, mask), mask, rows)
        params = {name: parts[name] for name in self.prior.param_widths}
        return parts, self.prior.bind(params, mask) if rows == ALL else self.prior.bind_rows(params, mask, rows)

    def _project(self, x: Tensor, mask: Tensor | None, rows: slice = ALL) -> Parts:
        return self._parts(x, None if self.conditioner is None else self.conditioner(x, mask), rows)

    def _parts(self, x: Tensor, features: Tensor | None, rows: slice = ALL) -> Parts:
        """The projection by name, modulated by the conditioner's `features`; see `project`."""
        outer = None if self.conditioner is None else self.conditioner.out_proj
        return project(x, features, self.in_proj, outer, self.split_sizes, rows, {"lam", "g"} | self.prior.row_params)

    def _values(self, parts: Parts) -> Tensor:
        return self._heads(parts["v"])

    def _heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.config.heads, -1))

    def _beta(self, v: Tensor) -> Tensor:
        if v.dtype == torch.float16:
            raise UsageError("float16 cannot represent exp(40) of the log-sum-exp read; use bfloat16 or float32.")
        return F.softplus(self.beta_raw + 1.8)

    def _read(self, mix: Callable[[Tensor], Tensor], parts: Parts, support: Tensor | None) -> FreeEnergyRead:
        v = self._values(parts)
        beta = self._beta(v) if self.config.use_lse else None
        lam = self._heads(torch.sigmoid(parts["lam"])) if self.config.use_temperature else None
        gate = self._heads(outer_gate(parts["g"], self.config.eps)) if self.config.use_outer_gate else None
        return free_energy_read(mix, v, beta, lam, gate, self.config.value_logexp_cap, support)

    def _gated_read(self, mix: Callable[[Tensor], Tensor], parts: Parts, support: Tensor | None) -> Tensor:
        """The read times its outer gate, (..., H, d_v)."""
        v = self._values(parts)
        if self.config.use_lse and chosen("read", v.device, v.dtype) == "triton" and v.numel():
            from femts.mixers.kernels.read_triton import gated_read_triton

            lam, gate = (parts[name].view_as(v) if name in parts else None for name in ("lam", "g"))
            cap, eps = self.config.value_logexp_cap, self.config.eps
            return gated_read_triton(mix, v, self._beta(v), lam, gate, cap, eps, support)
        read = self._read(mix, parts, support)
        return read.f if read.gate is None else read.gate * read.f

    def _output(self, o: Tensor, parts: Parts) -> Tensor:
        y: Tensor = self.out_proj(self.dropout(self.prior.post_read(o.flatten(-2), parts)))
        return y
