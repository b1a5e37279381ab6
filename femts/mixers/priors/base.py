"""The interface between selection priors and the free-energy read.

A prior is a normalised linear read over time: it turns its share of the layer's projection into weights `p_t(i) >= 0`
that sum to one over the tokens i visible to token t, and applies them to any stack of value channels. The read does not
depend on anything else. A new prior is one file in this folder that subclasses `Prior` and registers itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from femts.mixers.budget import Widths
from femts.mixers.config import FreeEnergyMixerConfig
from femts.mixers.ops.scan import running_max

Params = dict[str, Tensor]


class BoundPrior(ABC):
    """A prior bound to an input.

    Attributes:
        support: None if every row sees some token, otherwise (B, T), False for rows that see nothing and mix to 0.
        shape: (B, T, H).
        like: a tensor with the device and dtype that the prior computes in.
    """

    def __init__(self, support: Tensor | None, shape: tuple[int, int, int], like: Tensor) -> None:
        self.support, self.shape, self.like = support, shape, like

    @abstractmethod
    def mix(self, values: Tensor) -> Tensor:
        """Sum of `values` (B, T, H, c) weighted by `p_t(i)`, in the same shape; tokens that nobody reads may be NaN."""

    def weights(self) -> Tensor:
        """The dense p (B, H, T, T), query by key, obtained by mixing one-hot values."""
        batch, length, heads = self.shape
        eye = torch.eye(length, device=self.like.device, dtype=self.like.dtype)
        return self.mix(eye[None, :, None, :].expand(batch, length, heads, length)).transpose(1, 2)


class RowsOfBound(BoundPrior):
    """The requested rows of another bound prior, taken from all of its rows."""

    def __init__(self, bound: BoundPrior, rows: slice) -> None:
        super().__init__(None if bound.support is None else bound.support[:, rows], bound.shape, bound.like)
        self._bound, self._rows = bound, rows

    def mix(self, values: Tensor) -> Tensor:
        return self._bound.mix(values)[:, self._rows]


class Prior(nn.Module):
    """Module that creates a `BoundPrior`; subclasses hold the prior's own parameters.

    Attributes:
        param_widths: name -> width of the inputs per token that the layer's projection must provide.
        row_params: names among them that only reading tokens need, such as a query.
        per_channel: one weight per channel instead of one per head; such a prior has a single head.
        operation: operation of `femts.mixers.kernels` that it uses; None for plain torch.
        NO_WEIGHT_DECAY: names of own parameters without weight decay, see `undecayed`.
    """

    NAME: ClassVar[str]
    ORDER: ClassVar[int] = 100  # sort key in lists of names
    per_channel: ClassVar[bool] = False
    operation: ClassVar[str | None] = None
    NO_WEIGHT_DECAY: ClassVar[tuple[str, ...]] = ()
    param_widths: dict[str, int]
    row_params: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, config: FreeEnergyMixerConfig, widths: Widths) -> None:
        super().__init__()
        self.config, self.widths = config, widths

    @classmethod
    def weight_count(cls, config: FreeEnergyMixerConfig, fem_dim: int, qk_dim: int) -> int:
        """Weights of the linear maps for `config`, `fem_dim`, `qk_dim` (appendix H.7), including q and k or one key."""
        return config.n_embd * (fem_dim if cls.per_channel else 2 * qk_dim)

    def log_scores(self, params: Params, keep: Tensor) -> Tensor:
        """Define the prior in dense form, as used by `femts.mixers.reference`.

        Args:
            params: as in `bind`.
            keep: (B, T, 1); no time passes at tokens that are not kept.

        Returns:
            `log s_t(i)` before any mask, (B, T, T, H or E), query before key.

        Raises:
            TypeError: The prior does not define it.
        """
        raise TypeError(f"{type(self).__name__} does not define log_scores")

    def bind(self, params: Params, mask: Tensor | None) -> BoundPrior:
        """Bind the prior to an input.

        Args:
            params: (B, T, width) by name.
            mask: (B, T), True for tokens that may be read; None for all.

        Returns:
            The bound prior, whose `mix` returns (B, T, H, c).

        Raises:
            TypeError: The prior does not define it.
        """
        raise TypeError(f"{type(self).__name__} does not define bind")

    def bind_rows(self, params: Params, mask: Tensor | None, rows: slice) -> BoundPrior:
        """Bind the prior to an input that is read at some tokens only.

        By default, all tokens are mixed, and `bind` must not use `row_params`; priors may override this.

        Args:
            params: as in `bind`.
            mask: as in `bind`.
            rows: indices of the Q tokens; `row_params` are given for these, (B, Q, width).

        Returns:
            The bound prior, whose `mix` returns (B, Q, H, c).
        """
        return RowsOfBound(self.bind(params, mask), rows)

    def init_state(self, batch_size: int, value_width: int) -> Any:
        """Initial state of streams, before the first token.

        Args:
            batch_size: number of streams.
            value_width: value channels per head.

        Returns:
            State for `step`.

        Raises:
            TypeError: The prior does not define it.
        """
        raise TypeError(f"{type(self).__name__} does not define init_state")

    def step(self, params: Params, values: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Process one token.

        Args:
            params: (B, width) by name.
            values: (B, H, c).
            state: state after the previous tokens.

        Returns:
            Mixed values (B, H, c), and the next state.

        Raises:
            TypeError: The prior does not define it.
        """
        raise TypeError(f"{type(self).__name__} does not define step")

    def post_read(self, read: Tensor, params: Params) -> Tensor:
        """Apply a prior-specific step to `read` (B, ..., E) by `params`; the identity by default."""
        return read


def visible(mask: Tensor | None, causal: bool) -> Tensor | None:
    """Mask (B, T) of the rows that see any token, given `mask` and `causal`, or None without a mask."""
    if mask is None:
        return None
    return running_max(mask.int()).bool() if causal else mask.any(dim=1, keepdim=True).expand_as(mask)


def readable(values: Tensor, mask: Tensor | None) -> Tensor:
    """`values` (B, T, H, c), set to 0 for tokens that nobody may read, because a weight of 0 does not keep NaN out of a
    sum."""
    return values if mask is None else values.masked_fill(~mask[:, :, None, None], 0.0)


def weigh(p: Tensor, v: Tensor) -> Tensor:
    """`p v` for many short sequences: weights (n, T, T), values (n, T, c) -> (n, T, c).

    Transposed twice: on a CPU, the product of two wide matrices takes half the time of that of a square and a narrow
    one.
    """
    return torch.bmm(v.mT, p.mT).mT


def divide(numerator: Tensor, denominator: Tensor, support: Tensor | None) -> Tensor:
    """numerator / denominator, and 0 in rows without support; `support` has their leading dimensions, or 1 in place of
    them."""
    if support is None:
        return numerator / denominator
    empty = ~support.reshape(*support.shape, *([1] * (numerator.dim() - support.dim())))
    return (numerator / denominator.masked_fill(empty, 1.0)).masked_fill(empty, 0.0)


class PerChannelBound(BoundPrior):
    """A prior with a weight for each channel and token: values are (B, T, 1, k E), and each block of E channels has the
    same weights.

    `accumulate` applies the raw scores s_t(i) to columns (B, T, k, E); applied to ones it gives the normaliser
    (proposition 2.9).
    """

    def __init__(
        self, accumulate: Callable[[Tensor], Tensor], like: Tensor, mask: Tensor | None, support: Tensor | None
    ) -> None:
        super().__init__(support, (like.shape[0], like.shape[1], 1), like)
        self._accumulate, self._mask = accumulate, mask

    def mix(self, values: Tensor) -> Tensor:
        columns = values.unflatten(-1, (-1, self.like.shape[-1])).squeeze(2)  # (B, T, k, E)
        columns = torch.cat([columns.to(self.like.dtype), torch.ones_like(self.like).unsqueeze(2)], dim=2)
        columns = readable(columns, self._mask)
        scores = self._accumulate(columns)
        mixed = divide(scores[:, :, :-1], scores[:, :, -1:], self.support)
        return mixed.flatten(2).unsqueeze(2).to(values.dtype)

    def weights(self) -> Tensor:
        """The dense p (B, T, T, E), query by key, of each channel."""
        batch, length, width = self.like.shape
        eye = torch.eye(length, device=self.like.device, dtype=self.like.dtype)
        values = eye[None, :, None, :, None].expand(batch, length, 1, length, width).flatten(3)
        return self.mix(values).unflatten(-1, (length, width)).squeeze(2)


def at_least_float32(x: Tensor) -> Tensor:
    """`x` in the dtype in which sums over time are computed, at least float32."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def without_autocast(x: Tensor) -> AbstractContextManager[Any]:
    """Disable autocast on the device of `x`; does nothing on `meta`, which has none."""
    kind = x.device.type
    return torch.autocast(kind, enabled=False) if torch.amp.is_autocast_available(kind) else nullcontext()
