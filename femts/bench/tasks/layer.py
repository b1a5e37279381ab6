"""Mixers by name, and the smallest network around one: a linear map before it and one after."""

from __future__ import annotations

from torch import Tensor, nn

from femts.errors import UsageError, suggest
from femts.mixers import FreeEnergyMixer, FreeEnergyMixerConfig, component_flags
from femts.models.fem import SegmentForecaster
from femts.models.registry import model_card, model_names


def mixer_names() -> list[str]:
    """Names of `femts models` that stand for a mixer: FEM on a prior, or the prior alone."""
    cards = [model_card(name) for name in model_names()]
    return [card.name for card in cards if card.model_class is SegmentForecaster and card.name != "lintrans"]


def check_mixer(name: str) -> None:
    """UsageError with the nearest right name where `name` is no mixer."""
    names = mixer_names()
    if name not in names:
        raise UsageError(f"Unknown mixer '{name}'{suggest(name, names)}")


def mixer_layer(name: str, width: int, heads: int, *, causal: bool = True, rope: bool = False) -> FreeEnergyMixer:
    """The layer of the mixer `name`, (B, T, `width`) -> (B, T, `width`).

    Its two large maps begin with a deviation of `width`^-1/2. The paper's .02 is that of a width of
    2,500, and at the small ones here every mixer would spend its first steps on growing.

    Raises:
        UsageError: an unknown name, or sizes that no layer can have.
    """
    check_mixer(name)
    settings = model_card(name).default_settings()
    flags = component_flags(settings["components"])
    config = FreeEnergyMixerConfig(width, heads, settings["prior"], causal=causal, use_rope=rope, **flags)
    layer = FreeEnergyMixer(config)
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
        y: Tensor = self.out(self.mixer(self.embed(x), rows=slice(-1, None))[:, -1])
        return y
