"""Weight budgets: 4 D^2 weights as in softmax attention (section 2.3.3)."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import pytest
import torch
from mixer_cases import PRIORS, over_priors

from femts.errors import UsageError
from femts.mixers import FreeEnergyMixer, FreeEnergyMixerConfig, component_flags
from femts.mixers.budget import resolve_widths, weight_count
from femts.mixers.weight_decay import undecayed

ALL_COMPONENTS = ("", "L", "LT", "G", "LG", "LTG", "C", "CL", "CLT", "CG", "CLG", "CLTG")
HEADS = {64: (1, 2, 4, 8), 128: (2, 4, 8), 352: (4, 8), 512: (4, 8), 768: (8, 12)}
CASES = [(d, heads) for d, several in HEADS.items() for heads in several]


def count_weights(layer: FreeEnergyMixer) -> int:
    """Number of weights without biases, norms, conditioner and temperature."""
    skipped = ("conditioner.", "beta_raw")
    counts = {n: p.numel() for n, p in layer.named_parameters() if not n.startswith(skipped)}
    return sum(count for name, count in counts.items() if not name.endswith(("bias", "skip")))


@over_priors
def test_every_variant_matches_the_weight_budget(prior: str) -> None:
    """Within 5 % at D = 64 and 2 % from D = 128 on."""
    for (d, heads), components, rope in itertools.product(CASES, ALL_COMPONENTS, (True, False)):
        config = FreeEnergyMixerConfig(d, heads, prior, use_rope=rope, **component_flags(components))
        widths = resolve_widths(config)
        weights, target = weight_count(config, widths.fem_dim, widths.qk_dim), 4 * d * d
        assert abs(weights / target - 1) <= (0.05 if d == 64 else 0.02), (config, weights, target)
        if "C" in components:
            assert widths.conv_hidden == max(4, widths.fem_dim // 16)


@over_priors
def test_weight_count_matches_the_layer(prior: str) -> None:
    for components in ALL_COMPONENTS:
        config = FreeEnergyMixerConfig(64, 4, prior, **component_flags(components))
        layer, widths = FreeEnergyMixer(config), resolve_widths(config)
        expected = weight_count(config, widths.fem_dim, widths.qk_dim)
        assert abs(count_weights(layer) - expected) <= widths.fem_dim, (
            f"{components}: up to the skip of the state space"
        )


def test_softmax_defaults_match_the_paper() -> None:
    """fem_ratio 1/2 and |q| + |k| = 4 E; without components, the standard attention block."""
    for d, heads in CASES:
        alone = FreeEnergyMixerConfig(d, heads, "softmax", **component_flags(""))
        widths = resolve_widths(alone)
        assert (widths.fem_dim, widths.qk_dim, weight_count(alone, d, d)) == (d, d, 4 * d * d)
    for d, heads in CASES:
        if d in (64, 128, 512):
            widths = resolve_widths(FreeEnergyMixerConfig(d, heads, "softmax", **component_flags("CLTG")))
            assert (widths.fem_dim, widths.qk_dim) == (d // 2, d)
            given = FreeEnergyMixerConfig(d, heads, "softmax", fem_ratio=0.5, p_t_to_fem_ratio=4.0)
            assert resolve_widths(given) == widths


def test_explicit_widths_are_used() -> None:
    config = FreeEnergyMixerConfig(64, 4, fem_dim=24, qk_dim=40, conv_hidden=7)
    assert dataclasses.astuple(resolve_widths(config)) == (24, 40, 7)
    ratio = FreeEnergyMixerConfig(512, 8, fem_ratio=2 / 3, p_t_to_fem_ratio=2.0)
    widths = resolve_widths(ratio)
    assert abs(widths.fem_dim / 512 - 2 / 3) < 0.01 and abs(2 * widths.qk_dim / widths.fem_dim - 2) < 0.05


@pytest.mark.parametrize(
    "settings,word",
    [
        ({"n_embd": 30, "n_head": 4}, "n_head=4"),
        ({"n_embd": 0, "n_head": 1}, "n_embd=0"),
        ({"fem_dim": 30}, "fem_dim=30"),
        ({"qk_dim": 12}, "qk_dim=12"),
        ({"value_logexp_cap": 400.0}, "value_logexp_cap=400.0 is not supported in float32"),
        ({"value_logexp_cap": 0.0}, "value_logexp_cap=0.0"),
        ({"eps": "small"}, "eps='small' is not a number"),
        ({"eps": 1e-20}, "eps=1e-20 is too small for float32; give 1e-12 or more"),
        ({"n_head": None}, "n_head=None is not a whole number"),
        ({"n_head": True}, "n_head=True is not a whole number"),
        ({"qk_dim": 8.5}, "qk_dim=8.5 is not a whole number"),
        ({"use_lse": False}, "use_temperature"),
        ({"softmax_backend": "sdpa"}, "softmax_backend 'sdpa'.*auto, flash"),
        ({"prior_type": "softmx"}, "softmax"),
        ({"p_t_to_fem_ratio": 4.0}, "give fem_dim or fem_ratio too"),
        ({"fem_dim": 0}, "fem_dim=0 is not positive"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_invalid_settings_are_refused(settings: Any, word: str) -> None:
    with pytest.raises(UsageError, match=word) as caught:
        FreeEnergyMixer(FreeEnergyMixerConfig(**{"n_embd": 64, "n_head": 4, **settings}))
    assert str(caught.value).count(". ") == 0, "one sentence"


def test_invalid_component_sets_are_refused() -> None:
    for components in ["X", "CLTGG", "TG"]:
        with pytest.raises(UsageError, match=components):
            component_flags(components)


def test_component_sets_ignore_order_and_case() -> None:
    assert component_flags("gtlc") == component_flags("CLTG")
    assert not any(component_flags("").values())


@pytest.mark.parametrize("prior", ["softmax", "mamba"])
def test_initial_temperature(prior: str) -> None:
    layer = FreeEnergyMixer(FreeEnergyMixerConfig(64, 4, prior))
    read: Any = layer.read(torch.zeros(1, 2, 64))
    torch.testing.assert_close(read.beta, torch.full_like(read.beta, 1.9529), rtol=0, atol=1e-4)
    assert "beta_raw" in undecayed(layer)
    assert (layer.beta_raw == 0).all()
    assert layer.conditioner is not None
    assert torch.equal(layer.conditioner.out_proj.weight, torch.zeros_like(layer.conditioner.out_proj.weight))


def test_parameter_names_do_not_depend_on_components() -> None:
    for prior in PRIORS:
        full = {n for n, _ in FreeEnergyMixer(FreeEnergyMixerConfig(64, 4, prior)).named_parameters()}
        for components in ALL_COMPONENTS:
            config = FreeEnergyMixerConfig(64, 4, prior, **component_flags(components))
            assert {n for n, _ in FreeEnergyMixer(config).named_parameters()} <= full
