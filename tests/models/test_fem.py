"""The autoregressive segment model."""

from __future__ import annotations

import copy
import dataclasses
import itertools
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from femts.data.batch import Batch
from femts.errors import UsageError
from femts.mixers import FreeEnergyMixer
from femts.models.fem import SegmentForecaster
from femts.models.registry import build_config, build_model, model_card, model_names

HOSTED = [name for name in model_names() if model_card(name).model_class is SegmentForecaster]


def make(
    name: str = "fem_sm", seq_len: int = 50, pred_len: int = 12, n_channels: int = 4, **settings: Any
) -> SegmentForecaster:
    torch.manual_seed(0)
    config = build_config(name, seq_len=seq_len, pred_len=pred_len, n_channels=n_channels, settings=settings)
    model = build_model(name, config)
    assert isinstance(model, SegmentForecaster)
    return model


def test_ablation_name_removes_one_component() -> None:
    for letter, left in {"c": "LTG", "l": "CG", "t": "CLG", "g": "CLT"}.items():
        assert make(f"fem_sm_no_{letter}").config == dataclasses.replace(make("fem_sm").config, components=left)


@pytest.mark.parametrize(("name", "seq_len"), list(zip(HOSTED, itertools.cycle([1, 11, 12, 13, 50]), strict=False)))
def test_forecast_shape_and_gradients(name: str, seq_len: int) -> None:
    model = make(name, seq_len=seq_len)
    x, y = torch.randn(3, seq_len, 4), torch.randn(3, 12, 4)
    assert model(Batch(x)).shape == (3, 12, 4)
    model.loss(Batch(x, future=y)).backward()
    without = [n for n, p in model.named_parameters() if p.grad is None or not torch.isfinite(p.grad).all()]
    assert without == []


def test_width_by_number_of_channels() -> None:
    for channels, width in {1: 32, 7: 64, 21: 128, 137: 352}.items():
        assert make(n_channels=channels).config.width == width


def test_number_of_segments() -> None:
    for pred_len, seq_len, segments in ((96, 1024, 11), (192, 2048, 11), (336, 2048, 7), (720, 4096, 6)):
        assert make("sm", seq_len=seq_len, pred_len=pred_len, n_channels=7).config.n_segments == segments


def test_shift_and_scale_equivariance() -> None:
    model = make().double().eval()
    x = torch.randn(2, 50, 4, dtype=torch.float64) * 10
    scale, shift = torch.tensor([0.5, 2.0, 7.0, 30.0]), torch.tensor([-3.0, 0.0, 5.0, 100.0])
    torch.testing.assert_close(model(Batch(x * scale + shift)), model(Batch(x)) * scale + shift, rtol=1e-4, atol=1e-4)


def test_partial_window_std_is_only_shift_equivariant() -> None:
    model, x = make(window_std=0.5).eval(), torch.randn(2, 50, 4)
    torch.testing.assert_close(model(Batch(x + 7)), model(Batch(x)) + 7)
    assert (model(Batch(3 * x)) - 3 * model(Batch(x))).abs().max() > 1e-3


def test_window_std_interpolates_with_training_std() -> None:
    x = 3 * torch.randn(2, 50, 4)
    own, half, none = (make(window_std=share)._segments(x)[2] for share in (1.0, 0.5, 0.0))
    torch.testing.assert_close(half**2, (own**2 + 1) / 2, rtol=1e-4, atol=0)
    torch.testing.assert_close(none, torch.ones(2, 4, 1), rtol=1e-4, atol=0)
    with pytest.raises(UsageError, match=r"'model.window_std' takes a number in \[0, 1\], not 1.5"):
        make(window_std=1.5)


def test_constant_window_is_forecast_as_constant() -> None:
    forecast = make().eval()(Batch(torch.full((1, 50, 4), 3.5)))
    torch.testing.assert_close(forecast, torch.full_like(forecast, 3.5), rtol=0, atol=1e-4)


def test_channels_interact_only_through_the_context_token() -> None:
    model = make().eval()
    x = torch.randn(1, 50, 4)
    other = x.clone()
    other[..., 0] = torch.randn(1, 50)
    assert (model(Batch(x))[..., 1] - model(Batch(other))[..., 1]).abs().max() > 1e-6
    with torch.no_grad():
        model.context_channels.weight.copy_(torch.eye(4))
    torch.testing.assert_close(model(Batch(x))[..., 1:], model(Batch(other))[..., 1:], rtol=0, atol=1e-6)


def test_segment_predictions_are_causal() -> None:
    model = make(seq_len=48).double().eval()
    segments = torch.randn(2, 4, 4, 12, dtype=torch.float64)
    changed = segments.clone()
    changed[:, :, 3] = 100.0
    before, after = model._predict(segments), model._predict(changed)
    torch.testing.assert_close(before[:, :, :3], after[:, :, :3], rtol=0, atol=1e-12)
    assert (before[:, :, 3] - after[:, :, 3]).abs().max() > 1e-6


def test_loss_adds_next_segment_errors() -> None:
    model = make(seq_len=36, dropout=0.0)
    x, y = torch.randn(2, 36, 4), torch.randn(2, 12, 4)
    mean = x[:, -12:].mean(1, keepdim=True)
    std = x.var(1, keepdim=True, correction=0).sqrt() + 1e-5
    pieces = ((x - mean) / std).transpose(1, 2).reshape(2, 4, 3, 12)
    expected = F.mse_loss(model(Batch(x)), y) + F.mse_loss(model._predict(pieces)[:, :, :2], pieces[:, :, 1:])
    torch.testing.assert_close(model.loss(Batch(x, future=y)), expected)


@pytest.mark.parametrize("patch_len", [4, 5, 16])
def test_patch_len_differs_from_the_horizon(patch_len: int) -> None:
    model, seq_len = make(seq_len=40, dropout=0.0, patch_len=patch_len), 40
    x, y = torch.randn(2, seq_len, 4), torch.randn(2, 12, 4)
    count = -(-seq_len // patch_len)
    mean = x[:, -12:].mean(1, keepdim=True)
    std = x.var(1, keepdim=True, correction=0).sqrt() + 1e-5
    padded = F.pad((x - mean) / std, (0, 0, count * patch_len - seq_len, 0))
    whole = torch.cat([padded, (y - mean) / std], dim=1).mT
    pieces = padded.mT.reshape(2, 4, count, patch_len)
    ends = range(patch_len, count * patch_len, patch_len)
    following = torch.stack([whole[..., end : end + 12] for end in ends], dim=2)
    assert model(Batch(x)).shape == (2, 12, 4)
    expected = F.mse_loss(model(Batch(x)), y) + F.mse_loss(model._predict(pieces)[:, :, :-1], following)
    torch.testing.assert_close(model.loss(Batch(x, future=y)), expected)
    seen = torch.rand(2, seq_len + 12, 4) > 0.3
    padded = F.pad(seen[:, :seq_len].double(), (0, 0, count * patch_len - seq_len, 0))
    whole = torch.cat([padded, seen[:, seq_len:].double()], dim=1).mT
    real = torch.stack([whole[..., end : end + 12] for end in ends], dim=2).bool()
    errors = (model._predict(pieces)[:, :, :-1] - following) ** 2
    expected = ((model(Batch(x)) - y) ** 2)[seen[:, seq_len:]].mean() + errors[real].mean()
    torch.testing.assert_close(
        model.loss(Batch(x, seen[:, :seq_len], future=y, future_observed=seen[:, seq_len:])), expected
    )


def with_known(name: str, **settings: Any) -> tuple[SegmentForecaster, SegmentForecaster, Batch]:
    """A model, the same with 3 future covariates, and a batch for both, in float64."""
    plain, reading = (make(name, dropout=0.0, n_known=n, **settings).double().eval() for n in (0, 3))
    found = reading.load_state_dict(plain.state_dict(), strict=False)
    assert not found.unexpected_keys and {key.split(".")[0] for key in found.missing_keys} == {
        "known_decoder",
        "known_in",
    }
    generator = torch.Generator().manual_seed(3)
    x, y, known = (
        torch.randn(2, *shape, generator=generator, dtype=torch.float64) for shape in ((50, 4), (12, 4), (62, 3))
    )
    return plain, reading, Batch(x, future=y, known=known)


@pytest.mark.parametrize(("name", "patch_len"), [("fem_sm", None), ("fem_mamba", 5), ("lintrans", None)])
def test_covariates_have_no_effect_at_initialization(name: str, patch_len: int | None) -> None:
    plain, reading, batch = with_known(name, patch_len=patch_len)
    without = Batch(batch.past, future=batch.future)
    assert torch.equal(reading(batch), plain(without)) and torch.equal(reading.loss(batch), plain.loss(without))
    assert torch.equal(plain(batch), plain(without)), "one that reads none does not mind them"


@pytest.mark.parametrize("name", ["fem_sm", "lintrans"])
def test_covariate_decoder_receives_gradients(name: str) -> None:
    _, reading, batch = with_known(name)
    reading.loss(batch).backward()
    for key, weight in reading.named_parameters():
        if key.startswith("known_") and key.split(".")[1] == "out":
            assert weight.grad is not None and weight.grad.abs().sum() > 0, key


def test_covariate_decoder_matches_its_formula() -> None:
    _, reading, batch = with_known("fem_sm")
    decoder = reading.known_decoder
    assert decoder is not None and batch.known is not None
    nn.init.normal_(decoder.out.weight)
    predicted, token = torch.randn(2, 4, 5, 12).double(), torch.randn(2, 4, 5, reading.config.width).double()
    known = reading._known_after(batch)
    assert known is not None and known.shape == (2, 5, 12, 3)  # 50 rows are 5 segments of 12, padded by 10
    torch.testing.assert_close(known[:, 4], batch.known[:, 50:])
    torch.testing.assert_close(known[:, 1], batch.known[:, 14:26])
    made = decoder(predicted, token, known)
    for b, c, n, p in ((0, 0, 0, 0), (1, 3, 4, 11), (1, 2, 1, 5)):
        hidden = decoder.known(known[b, n, p]) + decoder.token(token[b, c, n])
        hidden = hidden + decoder.forecast.weight[:, 0] * predicted[b, c, n, p]
        expected = predicted[b, c, n, p] + decoder.out(F.gelu(hidden))[0]
        torch.testing.assert_close(made[b, c, n, p], expected)


@pytest.mark.parametrize("name", ["fem_sm", "lintrans"])
def test_channel_permutation_equivariance(name: str) -> None:
    _, model, batch = with_known(name)
    assert model.known_decoder is not None
    nn.init.normal_(model.known_decoder.out.weight)
    order = torch.tensor([2, 0, 3, 1])
    moved = copy.deepcopy(model)
    with torch.no_grad():
        moved.channel_position.copy_(model.channel_position[order])
        moved.context_channels.weight.copy_(model.context_channels.weight[order][:, order])
        moved.context_channels.bias.copy_(model.context_channels.bias[order])
    reordered = batch.of_channels(order)
    torch.testing.assert_close(moved(reordered), model(batch)[..., order], rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(moved.loss(reordered), model.loss(batch), rtol=1e-9, atol=1e-9)


def test_mixers_have_equal_weight_budgets() -> None:
    def weights(name: str) -> int:
        block: Any = make(name, n_channels=21).blocks[0].mixer
        named = {name: m.weight for name, m in block.named_modules() if isinstance(m, nn.Linear)}
        named |= {name: p for name, p in block.named_parameters() if name.endswith(("A_log", "skip"))}
        return sum(weight.numel() for name, weight in named.items() if "conditioner" not in name)

    assert {name: weights(name) for name in HOSTED} == pytest.approx(dict.fromkeys(HOSTED, 4 * 128**2), rel=0.025)


def test_initial_weights_follow_the_protocol() -> None:
    model: Any = make(n_channels=21)
    assert model.main_in.weight.std().item() == pytest.approx(0.02, rel=0.1)
    assert model.blocks[0].mlp[2].weight.std().item() == pytest.approx(0.02 / 6**0.5, rel=0.1)
    mixer = model.blocks[0].mixer
    assert isinstance(mixer, FreeEnergyMixer)
    assert mixer.out_proj.weight.std().item() == pytest.approx(0.02 / 6**0.5, rel=0.1)
    assert mixer.conditioner is not None and mixer.conditioner.out_proj.weight.abs().max() == 0


@pytest.mark.parametrize(
    ("name", "settings", "sentence"),
    [
        ("fem_sm", {"components": "CX"}, "Component set 'CX' is unknown"),
        ("lintrans", {"components": "L"}, "does not support components"),
        ("fem_sm", {"n_heads": "7"}, r"'model\.d_model' \(\d+\) takes a multiple of 'model\.n_heads' \(7\)"),
        ("fem_sm", {"dropout": "1.5"}, "dropout=1.5"),
        ("fem_sm", {"prior": "sofmax"}, "did you mean 'softmax'"),
    ],
)
def test_invalid_settings_are_refused(name: str, settings: dict, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence) as caught:
        make(name, **settings)
    assert str(caught.value).count("\n") == 0
