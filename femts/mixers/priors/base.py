"""The narrow door between a selection prior and the free-energy read.

A prior is a normalised linear read over time: it turns its share of the layer's projection into
weights `p_t(i) >= 0` that sum to one over the tokens i that token t may see, and applies them to
any stack of value channels. The read knows nothing else of it. A new prior is one file in this
folder that subclasses `Prior` and registers itself.
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

Params = dict[str, Tensor]


class BoundPrior(ABC):
    """A prior that has seen its input.

    Attributes:
        support: None where every row sees something, else (B, T), False for rows that see nothing: those rows mix to 0.
        shape: (B, T, H).
        like: a tensor of the device and type that the prior computes in.
    """

    def __init__(self, support: Tensor | None, shape: tuple[int, int, int], like: Tensor) -> None:
        self.support, self.shape, self.like = support, shape, like

    @abstractmethod
    def mix(self, values: Tensor) -> Tensor:
        """Sum of `values` (B, T, H, c) by `p_t(i)`, of one shape; what no token reads may be anything, NaN too."""

    def weights(self) -> Tensor:
        """The dense p (B, H, T, T), query by key: what the prior makes of one-hot values."""
        batch, length, heads = self.shape
        eye = torch.eye(length, device=self.like.device, dtype=self.like.dtype)
        return self.mix(eye[None, :, None, :].expand(batch, length, heads, length)).transpose(1, 2)


class RowsOfBound(BoundPrior):
    """The rows of another bound prior that are wanted, taken from all of them."""

    def __init__(self, bound: BoundPrior, rows: slice) -> None:
        super().__init__(None if bound.support is None else bound.support[:, rows], bound.shape, bound.like)
        self._bound, self._rows = bound, rows

    def mix(self, values: Tensor) -> Tensor:
        return self._bound.mix(values)[:, self._rows]


class Prior(nn.Module):
    """Module that makes a `BoundPrior`; subclasses hold the prior's own parameters.

    Attributes:
        param_widths: name -> width of what the layer's projection must provide for each token.
        row_params: names among them that only a token that reads needs, such as a query.
        per_channel: one weight a channel instead of one a head; such a prior has a single head.
        operation: what `femts.mixers.kernels` computes for it, None where torch has it.
        NO_WEIGHT_DECAY: names of own parameters that weight decay leaves alone, see `undecayed`.
    """

    NAME: ClassVar[str]
    ORDER: ClassVar[int] = 100  # among the names that are listed
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
        """Weights of the linear maps by `config`, `fem_dim`, `qk_dim` (appendix H.7); of q and k, or one key."""
        return config.n_embd * (fem_dim if cls.per_channel else 2 * qk_dim)

    def log_scores(self, params: Params, keep: Tensor) -> Tensor:
        """Define the prior, dense; `femts.mixers.reference` reads by it.

        Args:
            params: as in `bind`.
            keep: (B, T, 1); a token that is not kept lets no time pass.

        Returns:
            `log s_t(i)` before any mask, (B, T, T, H or E), query before key.

        Raises:
            TypeError: a prior that does not define it.
        """
        raise TypeError(f"{type(self).__name__} does not define log_scores")

    def bind(self, params: Params, mask: Tensor | None) -> BoundPrior:
        """Make the prior of an input.

        Args:
            params: (B, T, width) by name.
            mask: (B, T), True where a token may be read; None for all.

        Returns:
            The prior, whose `mix` gives (B, T, H, c).

        Raises:
            TypeError: a prior that does not define it.
        """
        raise TypeError(f"{type(self).__name__} does not define bind")

    def bind_rows(self, params: Params, mask: Tensor | None, rows: slice) -> BoundPrior:
        """Make the prior of an input that is read at some tokens alone.

        Unless a prior knows better, it mixes for every token; its `bind` then may not read `row_params`.

        Args:
            params: as in `bind`.
            mask: as in `bind`.
            rows: the Q tokens; `row_params` are theirs (B, Q, width).

        Returns:
            The prior, whose `mix` gives (B, Q, H, c).
        """
        return RowsOfBound(self.bind(params, mask), rows)

    def init_state(self, batch_size: int, value_width: int) -> Any:
        """State of streams before the first token.

        Args:
            batch_size: how many there are.
            value_width: channels of the values of a head.

        Returns:
            What `step` takes.

        Raises:
            TypeError: a prior that does not define it.
        """
        raise TypeError(f"{type(self).__name__} does not define init_state")

    def step(self, params: Params, values: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Take one token.

        Args:
            params: (B, width) by name.
            values: (B, H, c).
            state: what was read before.

        Returns:
            Mixed values (B, H, c), and the next state.

        Raises:
            TypeError: a prior that does not define it.
        """
        raise TypeError(f"{type(self).__name__} does not define step")

    def post_read(self, read: Tensor, params: Params) -> Tensor:
        """Apply what the prior alone does to `read` (B, ..., E) by `params` afterwards; most do nothing."""
        return read


def visible(mask: Tensor | None, causal: bool) -> Tensor | None:
    """Mask of the rows that see any token at all (B, T) by `mask` and `causal`, or None when there is no mask."""
    if mask is None:
        return None
    return torch.cummax(mask.int(), dim=1).values.bool() if causal else mask.any(dim=1, keepdim=True).expand_as(mask)


def readable(values: Tensor, mask: Tensor | None) -> Tensor:
    """`values` (B, T, H, c), 0 for tokens that nobody may read: a weight of 0 would not keep NaN out of a sum."""
    return values if mask is None else values.masked_fill(~mask[:, :, None, None], 0.0)


def weigh(p: Tensor, v: Tensor) -> Tensor:
    """`p v` for many short sequences: weights (n, T, T), values (n, T, c) -> (n, T, c).

    Transposed twice: on a CPU the product of two wide matrices takes half the time of that of a
    square one and a narrow one.
    """
    return torch.bmm(v.mT, p.mT).mT


def divide(numerator: Tensor, denominator: Tensor, support: Tensor | None) -> Tensor:
    """numerator / denominator, and 0 in rows without support; `support` has their first dimensions, or 1 for them."""
    if support is None:
        return numerator / denominator
    empty = ~support.reshape(*support.shape, *([1] * (numerator.dim() - support.dim())))
    return (numerator / denominator.masked_fill(empty, 1.0)).masked_fill(empty, 0.0)


class PerChannelBound(BoundPrior):
    """A prior with a weight for each channel and token: values are (B, T, 1, k E) and every E
    channels are weighed alike.

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
    """`x` in the type that sums over time are formed in."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def without_autocast(x: Tensor) -> AbstractContextManager[Any]:
    """No autocast on the device of `x` inside, where there is any: not on `meta`, which only knows shapes."""
    kind = x.device.type
    return torch.autocast(kind, enabled=False) if torch.amp.is_autocast_available(kind) else nullcontext()
