"""Networks around a mixer: one layer between linear maps, and stacks of blocks as in GPT-2 and DeiT or with SwiGLU."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from femts.errors import UsageError
from femts.mixers import FreeEnergyMixer, FreeEnergyMixerConfig, component_flags
from femts.models.registry import model_card

Stack = Callable[[], nn.Sequential]


def mixer_layer(name: str, width: int, heads: int, *, causal: bool = True, rope: bool = False) -> FreeEnergyMixer:
    """The layer of a mixer, a name of `femts models` such as `fem_sm` or `sm`: (B, T, `width`) -> (B, T, `width`).

    Its two large maps begin with a deviation of `width`^-1/2. The paper's .02 is that of a width of
    2,500, and at the small ones here every mixer would spend its first steps on growing.

    Raises:
        UsageError: no such model, one that is no mixer, or sizes that no layer can have.
    """
    settings = model_card(name).default_settings()
    if settings.get("prior") in (None, "lintrans"):
        raise UsageError(f"Model '{name}' is no mixer; take one such as fem_sm, sm, fem_gla or gla.")
    flags = component_flags(settings["components"])
    layer = FreeEnergyMixer(
        FreeEnergyMixerConfig(width, heads, settings["prior"], causal=causal, use_rope=rope, **flags)
    )
    for linear in (layer.in_proj, layer.out_proj):
        nn.init.normal_(linear.weight, std=width**-0.5)
    return layer


class OneLayer(nn.Module):
    """A linear map, one mixer, and a linear map of its last token: (B, T, `n_in`) -> (B, `n_out`)."""

    def __init__(self, mixer: FreeEnergyMixer, n_in: int, n_out: int) -> None:
        super().__init__()
        width = mixer.config.n_embd
        self.embed, self.mixer, self.out = nn.Linear(n_in, width), mixer, nn.Linear(width, n_out)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.mixer(self.embed(x), rows=slice(-1, None))[:, -1])


class SwiGLU(nn.Module):
    """MLP of the synthetic suite, with as many weights as the one of a width four times as large."""

    def __init__(self, width: int) -> None:
        super().__init__()
        hidden = 8 * width // 3
        self.gate, self.up, self.down = nn.Linear(width, hidden), nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


def gelu_mlp(width: int) -> nn.Module:
    """MLP of GPT-2 and DeiT."""
    return nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))


class Block(nn.Module):
    """Pre-norm block, as in GPT-2 and DeiT: mixer, then MLP, each with its residual."""

    def __init__(self, mixer: FreeEnergyMixer, mlp: nn.Module) -> None:
        super().__init__()
        width = mixer.config.n_embd
        self.mixer_norm, self.mixer, self.mlp_norm, self.mlp = nn.LayerNorm(width), mixer, nn.LayerNorm(width), mlp

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.mixer(self.mixer_norm(x))
        return x + self.mlp(self.mlp_norm(x))


def stack(
    mixer: str, width: int, heads: int, layers: int, mlp: Callable[[int], nn.Module] = gelu_mlp, **how: bool
) -> nn.Sequential:
    """`layers` blocks and the norm after them, (B, T, `width`) -> (B, T, `width`); `how` as `mixer_layer` takes it."""
    blocks = (Block(mixer_layer(mixer, width, heads, **how), mlp(width)) for _ in range(layers))
    return nn.Sequential(*blocks, nn.LayerNorm(width))


class Reader(nn.Module):
    """Tokens to classes at every place: (B, T) -> (B, T, `classes`); with `positions`, each place has a learned one."""

    def __init__(self, blocks: Stack, width: int, classes: int, positions: int = 0) -> None:
        super().__init__()
        self.embed = nn.Embedding(classes, width)
        self.position = nn.Parameter(0.02 * torch.randn(positions, width)) if positions else None
        self.blocks, self.out = blocks(), nn.Linear(width, classes)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens)
        x = x if self.position is None else x + self.position[: x.shape[1]]
        return self.out(self.blocks(x))


class Compressor(nn.Module):
    """A stack whose last token, with the vector of each place, goes through an MLP: (B, T) -> (B, T, classes)."""

    def __init__(self, blocks: Stack, width: int, classes: int, length: int) -> None:
        super().__init__()
        self.embed, self.blocks = nn.Embedding(classes, width), blocks()
        self.place = nn.Parameter(torch.randn(length, width))
        self.decoder = nn.Sequential(gelu_mlp(width), nn.Linear(width, classes))

    def forward(self, tokens: Tensor) -> Tensor:
        last = self.blocks(self.embed(tokens))[:, -1:]
        return self.decoder(last + self.place)


class Encoder(nn.Module):
    """Patches and a class token with learned places: (B, T, n_in) -> (B, classes)."""

    def __init__(self, blocks: Stack, width: int, n_in: int, length: int, classes: int) -> None:
        super().__init__()
        self.embed, self.blocks = nn.Linear(n_in, width), blocks()
        self.token = nn.Parameter(0.02 * torch.randn(1, 1, width))
        self.position = nn.Parameter(0.02 * torch.randn(length + 1, width))
        self.out = nn.Linear(width, classes)

    def forward(self, patches: Tensor) -> Tensor:
        x = torch.cat([self.token.expand(len(patches), -1, -1), self.embed(patches)], dim=1)
        return self.out(self.blocks(x + self.position)[:, 0])
