"""Calls of the reference layer's README work with `femts.mixers`."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from combinations import in_turn

import femts
from femts.mixers import FreeEnergyMixer, FreeEnergyMixerConfig

D, H = 512, 8
COMMON: dict[str, Any] = {"n_embd": D, "n_head": H, "fem_dim": None, "softmax_backend": "auto", "conv_hidden": 64}
PRESETS: dict[str, dict[str, Any]] = {
    "softmax": {"fem_ratio": 0.5, "p_t_to_fem_ratio": 4.0, "qk_dim": None},
    "linear": {"fem_ratio": 0.5, "p_t_to_fem_ratio": 4.0},
    "gla": {"fem_ratio": 0.5, "p_t_to_fem_ratio": 4.0},
    "rnn_softmax": {"fem_ratio": 1, "p_t_to_fem_ratio": 2.0},
    "mamba": {"fem_ratio": 0.5, "use_rope": False, "ssm_rank": 16, "mamba_normalize": True},
}


def make_preset(name: str) -> FreeEnergyMixer:
    return FreeEnergyMixer(FreeEnergyMixerConfig(**COMMON, prior_type=name, **PRESETS[name]))


def test_quickstart_layer_runs() -> None:
    config = FreeEnergyMixerConfig(n_embd=D, n_head=H, prior_type="softmax", fem_ratio=2 / 3, p_t_to_fem_ratio=2.0)
    layer, x = FreeEnergyMixer(config).to(device="cpu", dtype=torch.float32), torch.randn(2, 128, D)
    with torch.no_grad():
        y = layer(x)
    assert y.shape == x.shape and torch.isfinite(y).all()
    assert layer.widths.fem_dim == 344, "2/3 of 512, aligned to 8 heads"
    assert femts.FreeEnergyMixer is FreeEnergyMixer and femts.FreeEnergyMixerConfig is FreeEnergyMixerConfig


@in_turn(name=tuple(PRESETS), dtype=(torch.float32, torch.bfloat16))
def test_presets_run_with_and_without_a_mask(name: str, dtype: torch.dtype) -> None:
    layer, x = make_preset(name).to(dtype=dtype).eval(), torch.randn(1, 128, D, dtype=dtype)
    with torch.no_grad():
        y = layer(x, attention_mask=None)
        masked = layer(x, attention_mask=torch.rand(1, 128) > 0.1)
    assert y.shape == masked.shape == x.shape
    assert y.dtype == dtype and torch.isfinite(y).all() and torch.isfinite(masked).all()
    assert layer.widths.fem_dim == (512 if name == "rnn_softmax" else 256)
    assert layer.widths.conv_hidden == 64
    if name in ("softmax", "linear", "gla"):
        assert layer.widths.qk_dim == D, "|Q| + |K| = 4 fem_dim = 2 D"


@pytest.mark.parametrize("prior", ["softmax", "mamba"])
def test_documented_options_run(prior: str) -> None:
    x = torch.randn(1, 16, 32)
    options: list[dict[str, Any]] = [
        {"use_temperature": False, "use_lse": False},
        {"use_temperature": False, "use_lse": True},
        {"use_conv": False, "use_rope": False},
        {"use_outer_gate": False},
        {"causal": False, "conv_bidirectional": True},
        {"bias": False},
        {"qk_dim": 16, "fem_dim": 16},
        {"conv_norm_first": False},
        {"dropout": 0.1},
    ]
    for flags in options:
        layer = FreeEnergyMixer(FreeEnergyMixerConfig(n_embd=32, n_head=2, prior_type=prior, **flags))
        assert torch.isfinite(layer(x)).all(), flags
        assert (layer.read(x).f_max is None) == (flags.get("use_lse") is False)
