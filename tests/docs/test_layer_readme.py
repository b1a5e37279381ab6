"""Every call of the authors' layer README works with `from femts.mixers import ...`, and means what it says."""

from __future__ import annotations

import pytest
import torch
from combinations import in_turn

from femts.mixers import FreeEnergyMixer, FreeEnergyMixerConfig

B, T, D, H = 2, 128, 512, 8


def base_cfg(
    prior_type: str,
    fem_ratio: float,
    p_t_to_fem_ratio: float,
    qk_dim: int | None = None,
    use_temperature: bool = True,
    use_lse: bool = True,
    use_outer_gate: bool = True,
    use_rope: bool = True,
    use_conv: bool = True,
) -> FreeEnergyMixerConfig:
    """The README's helper, field by field."""
    return FreeEnergyMixerConfig(
        n_embd=D,
        n_head=H,
        fem_dim=None,
        fem_ratio=fem_ratio,
        qk_dim=qk_dim,
        p_t_to_fem_ratio=p_t_to_fem_ratio,
        prior_type=prior_type,
        softmax_backend="auto",
        dropout=0.0,
        causal=True,
        bias=True,
        use_temperature=use_temperature,
        use_lse=use_lse,
        use_outer_gate=use_outer_gate,
        value_logexp_cap=40.0,
        eps=1e-6,
        use_rope=use_rope,
        rope_theta=10000.0,
        use_conv=use_conv,
        conv_hidden=64,
        conv_norm_first=True,
        conv_bidirectional=False,
        ssm_rank=16,
        mamba_normalize=True,
    )


PRESETS = {
    "softmax": base_cfg("softmax", 0.5, 4.0, qk_dim=None),
    "linear": base_cfg(prior_type="linear", fem_ratio=0.5, p_t_to_fem_ratio=4.0),
    "gla": base_cfg(prior_type="gla", fem_ratio=0.5, p_t_to_fem_ratio=4.0),
    "rnn_softmax": base_cfg(prior_type="rnn_softmax", fem_ratio=1, p_t_to_fem_ratio=2.0),
    "mamba": FreeEnergyMixerConfig(
        n_embd=D,
        n_head=H,
        fem_dim=None,
        fem_ratio=0.5,
        prior_type="mamba",
        dropout=0.0,
        causal=True,
        bias=True,
        use_temperature=True,
        use_lse=True,
        use_outer_gate=True,
        use_rope=False,
        use_conv=True,
        conv_hidden=64,
        ssm_rank=16,
        mamba_normalize=True,
    ),
}


def test_quickstart_layer_runs() -> None:
    x = torch.randn(B, T, D)
    cfg = FreeEnergyMixerConfig(
        n_embd=D,
        n_head=H,
        prior_type="softmax",
        softmax_backend="auto",
        fem_ratio=2 / 3,
        p_t_to_fem_ratio=2.0,
        use_temperature=True,
        use_lse=True,
        use_outer_gate=True,
        use_conv=True,
        use_rope=True,
    )
    layer = FreeEnergyMixer(cfg).to(device="cpu", dtype=torch.float32)
    with torch.no_grad():
        y = layer(x)
    assert y.shape == (B, T, D) and torch.isfinite(y).all()
    assert layer.widths.fem_dim == 344, "2/3 of 512, aligned to 8 heads"


@in_turn(name=tuple(PRESETS), dtype=(torch.float32, torch.bfloat16))
def test_presets_run_with_and_without_a_mask(name: str, dtype: torch.dtype) -> None:
    fem, x = FreeEnergyMixer(PRESETS[name]).to(dtype=dtype).eval(), torch.randn(1, T, D, dtype=dtype)
    with torch.no_grad():
        y = fem(x, attention_mask=None)
        masked = fem(x, attention_mask=torch.rand(1, T) > 0.1)
    assert y.shape == masked.shape == (1, T, D)
    assert y.dtype == dtype and torch.isfinite(y).all() and torch.isfinite(masked).all()


def test_preset_widths() -> None:
    for name, config in PRESETS.items():
        layer = FreeEnergyMixer(config)
        assert layer.widths.fem_dim == (512 if name == "rnn_softmax" else 256)
        assert layer.widths.conv_hidden == 64
        if name in ("softmax", "linear", "gla"):
            assert layer.widths.qk_dim == D, "|Q| + |K| = 4 fem_dim = 2 D"


@pytest.mark.parametrize("prior", ["softmax", "mamba"])
def test_documented_options_run(prior: str) -> None:
    """Pure mean, log-sum-exp alone, no conditioner and no rope."""
    x = torch.randn(1, 16, 32)
    for flags in (
        {"use_temperature": False, "use_lse": False},
        {"use_temperature": False, "use_lse": True},
        {"use_conv": False, "use_rope": False},
        {"use_outer_gate": False},
        {"causal": False},
        {"causal": False, "conv_bidirectional": True},
        {"bias": False},
        {"qk_dim": 16, "fem_dim": 16},
        {"conv_norm_first": False},
        {"dropout": 0.1},
    ):
        layer = FreeEnergyMixer(FreeEnergyMixerConfig(n_embd=32, n_head=2, prior_type=prior, **flags))
        assert torch.isfinite(layer(x)).all(), flags
        read = layer.read(x)
        assert (read.f_max is None) == (flags.get("use_lse") is False)


def test_layer_is_exported_at_top_level() -> None:
    import femts

    assert femts.FreeEnergyMixer is FreeEnergyMixer
    assert femts.FreeEnergyMixerConfig is FreeEnergyMixerConfig
