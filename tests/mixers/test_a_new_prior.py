"""A new prior needs one file and one registration."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
import torch
from mixer_cases import make_input, make_layer

import femts
from femts.cli import main
from femts.mixers import FreeEnergyMixerConfig, component_flags
from femts.mixers.budget import resolve_widths, weight_count
from femts.mixers.priors import registry
from femts.mixers.reference import reference
from femts.models import registry as models
from femts.models.fem import SegmentForecaster

_FILE = """
import torch
from torch import nn

from femts.mixers.priors.base import BoundPrior, Prior, visible
from femts.mixers.priors.registry import register_prior


class BoundFading(BoundPrior):
    def __init__(self, p, support):
        super().__init__(support, (p.shape[0], p.shape[2], p.shape[1]), p)
        self.p = p

    def mix(self, values):
        return torch.einsum("bhti,bihc->bthc", self.p, values.to(self.p.dtype)).to(values.dtype)


@register_prior
class Fading(Prior):
    NAME = "fading_for_test"

    def __init__(self, config, widths):
        super().__init__(config, widths)
        self.param_widths = {"score": config.n_head}
        self.rate = nn.Parameter(torch.linspace(-4.0, 0.0, config.n_head))

    @classmethod
    def weight_count(cls, config, fem_dim, qk_dim):
        return config.n_embd * config.n_head

    def log_scores(self, params, keep):
        length = params["score"].shape[1]
        ago = torch.arange(length)[:, None] - torch.arange(length)
        return params["score"].tanh().unsqueeze(1) - self.rate.exp() * ago.abs()[None, :, :, None]

    def bind(self, params, mask):
        logits = self.log_scores(params, None).permute(0, 3, 1, 2)
        if self.config.causal:
            logits = logits.masked_fill(torch.ones(logits.shape[-2:], dtype=torch.bool).triu(1), -torch.inf)
        if mask is not None:
            logits = logits.masked_fill(~mask[:, None, None], -torch.inf)
        return BoundFading(logits.softmax(-1).nan_to_num(), visible(mask, self.config.causal))

    def init_state(self, batch_size, value_width):
        return self.rate.new_zeros(batch_size, len(self.rate), value_width + 1)

    def step(self, params, values, state):
        seen = torch.cat([values, torch.ones_like(values[..., :1])], dim=-1) * params["score"].tanh().exp()[..., None]
        state = state * torch.exp(-self.rate.exp())[:, None] + seen
        return state[..., :-1] / state[..., -1:], state
"""


@pytest.fixture
def fading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Name of a prior in its own file."""
    registry.prior_names()
    models.model_names()
    with patch.dict(registry.PRIORS), patch.dict(models.MODELS):
        (tmp_path / "fading_for_test.py").write_text(_FILE)
        monkeypatch.syspath_prepend(tmp_path)
        importlib.import_module("fading_for_test")
        yield "fading_for_test"
        del sys.modules["fading_for_test"]


@pytest.mark.parametrize("components", ["", "LT", "CLTG"])
@pytest.mark.parametrize("causal", [True, False])
def test_new_prior_matches_its_definition(fading: str, components: str, causal: bool) -> None:
    layer, x = make_layer(fading, components, causal=causal), make_input()
    mask = torch.ones(2, 9, dtype=torch.bool)
    mask[0, 2], mask[1, 0] = False, False
    for given in (None, mask):
        torch.testing.assert_close(layer(x, given), reference(layer, x, given).y, rtol=1e-9, atol=1e-10)
    torch.testing.assert_close(layer.weights(x).sum(-1), torch.ones(2, 2, 9, dtype=torch.float64))


def test_new_prior_is_causal_and_streams(fading: str) -> None:
    layer, x = make_layer(fading), make_input()
    whole, changed = layer(x), x.clone()
    changed[:, 5:] += 1.0
    assert torch.equal(layer(changed)[:, :5], whole[:, :5])
    state = layer.init_state(2)
    for t in range(9):
        token, state = layer.step(x[:, t], state)
        torch.testing.assert_close(token, whole[:, t], rtol=1e-9, atol=1e-10)


def test_new_prior_weight_count(fading: str) -> None:
    config = FreeEnergyMixerConfig(64, 4, prior_type=fading, bias=False, **component_flags("LTG"))
    widths = resolve_widths(config)
    layer = femts.FreeEnergyMixer(config)
    maps = sum(p.numel() for name, p in layer.named_parameters() if "proj" in name)
    assert weight_count(config, widths.fem_dim, widths.qk_dim) == maps
    assert abs(maps / (4 * 64**2) - 1) < 0.1


def test_new_prior_trains_and_is_listed(fading: str, capsys: pytest.CaptureFixture[str]) -> None:
    models.register("fem_fading", "Free Energy Mixer on a fading memory", prior=fading)(SegmentForecaster)
    trained = femts.train("synthetic", "fem_fading", 24, seq_len=96, max_steps=2, device="cpu")
    assert trained.metrics["test"]["mse"] > 0
    assert main(["models"]) == 0
    assert "fem_fading " in capsys.readouterr().out
    assert main(["doctor"]) == 0
    assert f"\n{fading} " in capsys.readouterr().out
