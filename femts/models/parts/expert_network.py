"""The network: a mixer over patches of forecasts and values, which weighs the experts and gives quantiles."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from femts.config.records import RecordError
from femts.errors import UsageError
from femts.mixers.config import FreeEnergyMixerConfig, component_flags
from femts.mixers.layer import FreeEnergyMixer
from femts.mixers.ops.precision import mlp
from femts.models.parts.experts import NAMES, Forecasts, median

LEVELS = tuple(round(0.1 * i, 1) for i in range(1, 10))
GLOBALS = 8


@dataclass(frozen=True)
class NetworkConfig:
    """Sizes and parts of the network.

    Attributes:
        patch: steps of a token P.
        width: of a token D.
        layers: blocks of a mixer and an MLP.
        heads: of the mixer.
        expansion: width of the MLP over that of a token.
        prior: of the mixer.
        components: of the mixer, letters of CLTG.
        read_experts: whether tokens hold the experts' forecasts and their errors.
        weigh_experts: whether the forecast starts from weights over the experts instead of their median.
        every_origin: whether a causal network forecasts from every origin, so that each teaches, or a network that sees
            all past tokens forecasts from the last.
        context: rows before the last origin that become tokens.
    """

    patch: int = 16
    width: int = 160
    layers: int = 3
    heads: int = 4
    expansion: int = 3
    prior: str = "softmax"
    components: str = "CLTG"
    read_experts: bool = True
    weigh_experts: bool = True
    every_origin: bool = True
    context: int = 512

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Read the sizes of a file of weights; raise RecordError if they are not such a record."""
        try:
            return cls(**record)
        except TypeError as error:
            raise RecordError("network", record, "the sizes of a network") from error


@dataclass(frozen=True)
class Tokens:
    """Input of the network for B series, O origins and F patches of P steps ahead of each.

    Attributes:
        queries: what is known of a patch at its origin, (B, O, F, W).
        targets: what came, (B, O, F, A); 0 where that is not known.
        valid: whether an origin has a history, (B, O).
        experts: forecasts (B, O, F P, K), around `centre` in units of `unit`.
        centre: their median, (B, O, F P).
        unit: (B, O, F P).
        error: of the median forecast in units of `unit`, 0 where nothing is observed, (B, O, F P).
        observed: which steps ahead are observed, (B, O, F P).
        weight: `unit` over the mean absolute seasonal difference, (B, O, F P).
    """

    queries: Tensor
    targets: Tensor
    valid: Tensor
    experts: Tensor
    centre: Tensor
    unit: Tensor
    error: Tensor
    observed: Tensor
    weight: Tensor

    def to(self, device: torch.device) -> Self:
        """The tokens on `device`."""
        return type(self)(*(getattr(self, each.name).to(device) for each in fields(self)))


def origins_of(length: int, horizon: int, context: int) -> list[int]:
    """Rows at which forecasts start: the end of the `length` rows, and a horizon apart before it over the context."""
    count = min(math.ceil(context / horizon), (length - 1) // horizon)
    return [length - horizon * back for back in range(count, -1, -1)]


def tokens_of(
    config: NetworkConfig,
    forecasts: Forecasts,
    x: Tensor,
    observed: Tensor,
    starts: Sequence[int],
    season: int,
    second: int,
) -> Tokens:
    """Tokens of all origins.

    Args:
        config: of the network.
        forecasts: of the experts at the origins.
        x: values (T, B) up to the end of the last horizon.
        observed: which are observed, (T, B); none of the last horizon in use.
        starts: the O origins.
        season, second: steps of the seasons.
    """
    horizon, patch = forecasts.experts.shape[1], config.patch
    origins = torch.tensor(starts)
    rows = (origins[:, None] + torch.arange(horizon)).reshape(-1)
    shape = (len(origins), horizon, x.shape[1])
    y, seen = x.index_select(0, rows).view(shape), observed.index_select(0, rows).view(shape)
    centre = median(forecasts.experts, -1)
    scale = forecasts.scale[:, None]
    unit = torch.minimum(torch.maximum(forecasts.residual, 0.01 * scale), 3 * scale)
    experts = (forecasts.experts - centre[..., None]) / unit[..., None]
    error = torch.where(seen, (y - centre) / unit, 0.0)

    def patches(v: Tensor) -> Tensor:  # (O, H, B, ...) -> (B, O, F, P * ...)
        return v.unflatten(1, (-1, patch)).movedim(3, 0).flatten(3)

    fitted = [patches(_asinh((centre - forecasts.location[:, None]) / scale))]
    sizes = torch.stack([torch.log(unit / scale), torch.log(unit / forecasts.seasonal[:, None])], -1)
    fitted.append(sizes.unflatten(1, (-1, patch)).mean(2).movedim(2, 0))
    if config.read_experts:
        fitted += [patches(_asinh(experts)), _track_record(experts, error, seen, patch)]
    ahead = torch.arange(horizon // patch, dtype=x.dtype)
    leads = torch.stack([torch.log1p(ahead), torch.log1p(ahead.flip(0))], -1)
    known = _globals(forecasts, x, observed, origins, season, second, horizon)
    fitted += [
        leads.expand(x.shape[1], len(origins), -1, -1),
        known[:, :, None].expand(-1, -1, horizon // patch, -1),
    ]
    level = torch.where(seen, _asinh((y - forecasts.location[:, None]) / scale), 0.0)
    targets = torch.cat([patches(_asinh(error)), patches(level), patches(seen.to(x))], -1)
    return Tokens(
        torch.cat(fitted, -1),
        targets,
        (forecasts.seen >= 4).T,
        *(v.movedim(2, 0) for v in (experts, centre, unit, error, seen, unit / forecasts.seasonal[:, None])),
    )


def _asinh(x: Tensor) -> Tensor:
    """`torch.asinh`, which takes eight times as long on a CPU."""
    return torch.sign(x) * torch.log(x.abs() + torch.sqrt(x * x + 1))


def _track_record(experts: Tensor, error: Tensor, seen: Tensor, patch: int) -> Tensor:
    """Mean absolute error of each expert at a patch over the earlier origins, and how many steps it is from;
    (B, O, F, K + 1)."""
    missed = ((error[..., None] - experts).abs() * seen[..., None]).unflatten(1, (-1, patch)).sum(2)
    count = seen.unflatten(1, (-1, patch)).sum(2)[..., None]
    missed, count = (v.cumsum(0) - v for v in (missed, count))  # (O, F, B, K or 1)
    record = torch.where(count > 0, torch.log(missed / count.clamp(min=1) + 0.05), 0.0)
    return torch.cat([record, torch.log1p(count) / 4], -1).movedim(2, 0)


def _globals(
    forecasts: Forecasts, x: Tensor, observed: Tensor, origins: Tensor, season: int, second: int, horizon: int
) -> Tensor:
    """What holds for all patches of an origin, (B, O, GLOBALS)."""
    step = F.pad(((x[1:] - x[:-1]).abs() * (observed[1:] & observed[:-1])).double().cumsum(0), (0, 0, 2, 0))
    seen = forecasts.seen.clamp(min=1)
    roughness = step.index_select(0, origins).to(x) / seen
    values = [
        torch.full_like(seen, math.log(season) / 3),
        torch.full_like(seen, math.log(second / season)),
        torch.log(forecasts.seasonal / forecasts.scale),
        torch.log(seen / season + 1) / 2,
        torch.log(seen) / 4,
        torch.full_like(seen, math.log(horizon) / 4),
        torch.log(roughness / forecasts.scale + 1e-3) / 2,
        seen / forecasts.age,
    ]
    return torch.stack(values, -1).movedim(1, 0)


class Block(nn.Module):
    """A mixer and an MLP, each added to its input."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        width = config.width
        mixer = FreeEnergyMixerConfig(
            n_embd=width,
            n_head=config.heads,
            prior_type=config.prior,
            causal=config.every_origin,
            **component_flags(config.components),
        )
        self.norm, self.mixer = nn.LayerNorm(width), FreeEnergyMixer(mixer)
        hidden = config.expansion * width
        self.mlp_norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))

    def forward(self, x: Tensor, mask: Tensor | None, rows: slice = slice(None)) -> Tensor:
        """The output (B, Q, D) of the Q tokens `rows` of `x` (B, T, D)."""
        x = x[:, rows] + self.mixer(self.norm(x), mask, rows)
        return x + mlp(self.mlp_norm(x), self.mlp)


class Network(nn.Module):
    """Quantiles of the steps ahead from tokens.

    A query token holds what is known of a patch at its origin; a context token holds the same and the values that
    came. The queries of an origin precede its context tokens, so a causal mixer reads for each query what came of the
    earlier ones, and never its own values.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        patch, width = config.patch, config.width
        experts = len(NAMES)
        inputs = 4 * patch + 2 + 2 + GLOBALS + config.read_experts * (patch * experts + experts + 1)
        self.embedding = nn.Sequential(nn.Linear(inputs, width), nn.GELU(), nn.Linear(width, width))
        self.shortcut = nn.Linear(inputs, width)
        self.token_type = nn.Parameter(torch.randn(2, width) * 0.02)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(width)
        self.head_hidden = nn.Sequential(nn.Linear(width, width), nn.GELU())
        self.head = nn.Linear(width, patch * (config.weigh_experts * experts + len(LEVELS)))
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)
        with torch.no_grad():
            normal = torch.special.ndtri(torch.tensor(LEVELS)) * 0.8
            self.head.bias.view(patch, -1)[:, -len(LEVELS) :] = normal

    def forward(self, tokens: Tokens, last: bool = False) -> Tensor:
        """Quantiles (B, O, H, 9) around `tokens.centre` in units of `tokens.unit`, not sorted; O is 1, the last origin,
        if only the `last` one is wanted, or without `every_origin`."""
        out = self.outputs(tokens, last)
        if not self.config.weigh_experts:
            return out
        weights = out[..., : -len(LEVELS)].softmax(-1)
        experts = tokens.experts[:, -out.shape[1] :]
        return (weights * experts).sum(-1, keepdim=True) + out[..., -len(LEVELS) :]

    def expert_weights(self, tokens: Tokens) -> Tensor:
        """Weights of the experts in the forecast from the last origin, (B, H, K); each step's sum to 1.

        Raises:
            UsageError: The network does not weigh the experts.
        """
        if not self.config.weigh_experts:
            raise UsageError("This network does not weigh the experts, so it has no weights to show.")
        return self.outputs(tokens, last=True)[:, -1, :, : -len(LEVELS)].softmax(-1)

    def outputs(self, tokens: Tokens, last: bool = False) -> Tensor:
        """Logits of the experts, if they are weighed, and offsets of the quantiles, (B, O, H, K + 9); see `forward`."""
        config, patches = self.config, tokens.queries.shape[2]
        queries = torch.cat([tokens.queries, torch.zeros_like(tokens.targets)], -1)
        context = torch.cat([tokens.queries, tokens.targets], -1)[:, :-1]
        valid = tokens.valid[:, :, None].expand(-1, -1, patches)
        if config.every_origin:
            query, context = self._embed(queries, 0), self._embed(context, 1)
            pairs = torch.stack([query[:, :-1], context], 2).flatten(1, 3)
            x = torch.cat([pairs, query[:, -1]], 1)
            before = torch.stack([valid[:, :-1]] * 2, 2).flatten(1, 3)
        else:
            query, context = self._embed(queries[:, -1], 0), self._embed(context, 1)
            x, before = torch.cat([context.flatten(1, 2), query], 1), valid[:, :-1].flatten(1, 2)
        # A graph cannot depend on values, so it always has the mask.
        whole = not torch.compiler.is_exporting() and bool(tokens.valid.all())
        mask = None if whole else torch.cat([before, valid[:, -1]], 1)
        *earlier, final = self.blocks
        for block in earlier:
            x = block(x, mask)
        x = final(x, mask, slice(x.shape[1] - patches, None) if last else slice(None))
        made = x[:, None, -patches:]
        if config.every_origin and not last:
            past = x[:, :-patches].unflatten(1, (-1, 2, patches))[:, :, 0]
            made = torch.cat([past, made], 1)
        x = self.norm(made)
        return self.head(x + mlp(x, self.head_hidden)).unflatten(-1, (config.patch, -1)).flatten(2, 3)

    def _embed(self, tokens: Tensor, kind: int) -> Tensor:
        return mlp(tokens, self.embedding) + self.shortcut(tokens) + self.token_type[kind]
