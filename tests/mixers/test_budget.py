"""Every variant spends what a softmax attention block does: 4 D^2 weights (section 2.3.3)."""

from __future__ import annotations

import dataclasses
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


def counted(layer: FreeEnergyMixer) -> int:
    """Weights of the layer without biases, norms, conditioner and the temperature vector, counted on the parameters."""
    skipped = ("conditioner.", "beta_raw")
    counts = {n: p.numel() for n, p in layer.named_parameters() if not n.startswith(skipped)}
    return sum(count for name, count in counts.items() if not name.endswith(("bias", "skip")))


@over_priors
@pytest.mark.parametrize("d,heads", CASES, ids=[f"D{d}-H{h}" for d, h in CASES])
def test_every_variant_matches_the_budget(prior: str, d: int, heads: int) -> None:
    """5 % at D = 64, 2 % from D = 128 on, with and without rotary positions."""
    target, tolerance = 4 * d * d, 0.05 if d == 64 else 0.02
    for components in ALL_COMPONENTS:
        for rope in (True, False):
            config = FreeEnergyMixerConfig(d, heads, prior, use_rope=rope, **component_flags(components))
            widths = resolve_widths(config)
            weights = weight_count(config, widths.fem_dim, widths.qk_dim)
            assert abs(weights / target - 1) <= tolerance, (components, rope, weights, target)


@over_priors
@pytest.mark.parametrize("components", ALL_COMPONENTS, ids=lambda c: c or "prior-alone")
def test_the_rule_counts_what_the_layer_has(prior: str, components: str) -> None:
    config = FreeEnergyMixerConfig(64, 4, prior, **component_flags(components))
    layer, widths = FreeEnergyMixer(config), resolve_widths(config)
    expected = weight_count(config, widths.fem_dim, widths.qk_dim)
    assert abs(counted(layer) - expected) <= widths.fem_dim, "up to the skip of the state space"


@pytest.mark.parametrize("d", [64, 128, 512])
def test_paper_defaults_fall_out_for_softmax(d: int) -> None:
    """fem_ratio 1/2 and |q| + |k| = 4 E, exactly."""
    for heads in HEADS[d]:
        widths = resolve_widths(FreeEnergyMixerConfig(d, heads, "softmax", **component_flags("CLTG")))
        assert (widths.fem_dim, widths.qk_dim) == (d // 2, d)
        given = FreeEnergyMixerConfig(d, heads, "softmax", fem_ratio=0.5, p_t_to_fem_ratio=4.0)
        assert resolve_widths(given) == widths


@pytest.mark.parametrize("d", [64, 128, 352, 512, 768])
def test_softmax_alone_is_the_standard_attention_block(d: int) -> None:
    config = FreeEnergyMixerConfig(d, 4, "softmax", **component_flags(""))
    widths = resolve_widths(config)
    assert (widths.fem_dim, widths.qk_dim, weight_count(config, d, d)) == (d, d, 4 * d * d)


@over_priors
@pytest.mark.parametrize("d", [64, 128, 352, 512, 768])
def test_conditioner_is_a_sixteenth_of_the_value_width(prior: str, d: int) -> None:
    widths = resolve_widths(FreeEnergyMixerConfig(d, 4, prior, **component_flags("CLTG")))
    assert widths.conv_hidden == max(4, widths.fem_dim // 16)


def test_given_widths_win() -> None:
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
        ({"value_logexp_cap": float("nan")}, "value_logexp_cap=nan"),
        ({"value_logexp_cap": -1.0}, "value_logexp_cap=-1.0"),
        ({"value_logexp_cap": 0.0}, "value_logexp_cap=0.0"),
        ({"rope_theta": 0.0}, "rope_theta=0.0 is not above 0"),
        ({"rope_theta": -1.0}, "rope_theta=-1.0"),
        ({"eps": -1.0}, "eps=-1.0 is too small for float32"),
        ({"eps": "small"}, "eps='small' is not a number"),
        ({"eps": None}, "eps=None is not a number"),
        ({"eps": 1e-20}, "eps=1e-20 is too small for float32; give 1e-12 or more"),
        ({"n_head": None}, "n_head=None is not a whole number"),
        ({"n_embd": "64"}, "n_embd='64' is not a whole number"),
        ({"n_embd": 64.0}, "n_embd=64.0 is not a whole number"),
        ({"n_head": True}, "n_head=True is not a whole number"),
        ({"qk_dim": 8.5}, "qk_dim=8.5 is not a whole number"),
        ({"dropout": 1.0}, "dropout=1.0"),
        ({"dropout": -0.1}, "dropout=-0.1"),
        ({"use_lse": False}, "use_temperature"),
        ({"mamba_normalize": False}, "mamba_normalize"),
        ({"softmax_backend": "sdpa"}, "softmax_backend 'sdpa'.*auto, flash"),
        ({"conv_bidirectional": True}, "conv_bidirectional"),
        ({"prior_type": "softmx"}, "softmax"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_settings_are_named(settings: Any, word: str) -> None:
    with pytest.raises(UsageError, match=word) as caught:
        FreeEnergyMixer(FreeEnergyMixerConfig(**{"n_embd": 64, "n_head": 4, **settings}))
    assert str(caught.value).count(". ") == 0, "one sentence"


@pytest.mark.parametrize("components", ["X", "CLTGG", "T", "CT", "TG", "LLT"])
def test_bad_component_sets_are_named(components: str) -> None:
    with pytest.raises(UsageError, match=components):
        component_flags(components)


def test_component_sets_in_any_order_and_case() -> None:
    assert component_flags("gtlc") == component_flags("CLTG")
    assert not any(component_flags("").values())


@over_priors
def test_temperature_starts_at_1953_without_weight_decay(prior: str) -> None:
    layer = FreeEnergyMixer(FreeEnergyMixerConfig(64, 4, prior))
    read: Any = layer.read(torch.zeros(1, 2, 64))
    torch.testing.assert_close(read.beta, torch.full_like(read.beta, 1.9529), rtol=0, atol=1e-4)
    assert "beta_raw" in undecayed(layer)
    assert (layer.beta_raw == 0).all()
    assert layer.conditioner is not None
    assert torch.equal(layer.conditioner.out_proj.weight, torch.zeros_like(layer.conditioner.out_proj.weight))


def test_parameters_have_the_same_names_for_every_component_set() -> None:
    """Components only add parameters, so that a name always means the same thing."""
    for prior in PRIORS:
        full = {n for n, _ in FreeEnergyMixer(FreeEnergyMixerConfig(64, 4, prior)).named_parameters()}
        for components in ALL_COMPONENTS:
            config = FreeEnergyMixerConfig(64, 4, prior, **component_flags(components))
            assert {n for n, _ in FreeEnergyMixer(config).named_parameters()} <= full


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"p_t_to_fem_ratio": 4.0}, "give fem_dim or fem_ratio too"),
        ({"fem_dim": 0}, "fem_dim=0 is not positive"),
        ({"conv_hidden": -1}, "conv_hidden=-1 is not positive"),
        ({"ssm_rank": 0}, "ssm_rank=0 is not positive"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_widths_that_would_be_ignored_are_refused(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        resolve_widths(FreeEnergyMixerConfig(n_embd=64, n_head=8, **given))
