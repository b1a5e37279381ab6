"""The pinball loss and models that learn quantiles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import mean_pinball_loss

from femts.config.model import ModelConfig
from femts.data.batch import Batch
from femts.errors import UsageError
from femts.models.base import ForecastModel
from femts.models.parts.quantiles import mean_pinball, pinball
from femts.models.registry import build_config, build_model, model_card, model_names

QUANTILES = (0.1, 0.5, 0.75)
B, L, P, C, Q = 3, 24, 6, 2, len(QUANTILES)
SMALL = {"d_model": 16, "d_ff": 16, "n_layers": 1, "n_heads": 2, "dropout": 0.0}
LEARNING = ("dlinear", "itransformer", "patchtst", "fem_mamba")


def make(name: str, quantiles: tuple[float, ...] = QUANTILES) -> ForecastModel:
    torch.manual_seed(0)
    settings = {key: value for key, value in SMALL.items() if key in model_card(name).default_settings()}
    config = build_config(name, seq_len=L, pred_len=P, n_channels=C, settings=settings)
    return build_model(name, config, quantiles).eval()


def draws(seed: int = 1) -> Batch:
    x, y = torch.randn(B, L + P, C, generator=torch.Generator().manual_seed(seed)).split([L, P], dim=1)
    return Batch(x, future=y)


def test_matches_sklearn() -> None:
    rng = np.random.default_rng(0)
    target, forecast = rng.normal(size=(B, P, C)), rng.normal(size=(B, P, Q, C))
    expected = np.mean(
        [mean_pinball_loss(target.ravel(), forecast[:, :, q].ravel(), alpha=alpha) for q, alpha in enumerate(QUANTILES)]
    )
    outputs, y = torch.from_numpy(forecast).flatten(1, 2), torch.from_numpy(target)
    assert float(mean_pinball(outputs, y, QUANTILES)) == pytest.approx(expected, rel=1e-6)
    assert float(mean_pinball(outputs.mT, y.mT, QUANTILES, dim=-1)) == pytest.approx(expected, rel=1e-6)


def test_gradient_vanishes_at_the_quantile() -> None:
    """The derivative is the share of targets below the forecast minus the level."""
    target = torch.linspace(0, 1, 101)[:, None, None]
    for start in (0.305, 0.705):
        forecast = torch.full((1, 1, Q, 1), start, requires_grad=True)
        pinball(forecast, target, QUANTILES).mean(0).sum().backward()
        below = (target < start).float().mean()
        assert forecast.grad is not None
        torch.testing.assert_close(forecast.grad.flatten(), below - torch.tensor(QUANTILES))


@pytest.mark.parametrize("dim", [-2, -1])
def test_missing_values_are_ignored(dim: int) -> None:
    y = draws().target
    seen = torch.rand(y.shape, generator=torch.Generator().manual_seed(2)) < 0.6
    outputs = (
        torch.randn(B, P * Q, C, generator=torch.Generator().manual_seed(3)) if dim == -2 else torch.randn(B, P, C * Q)
    )
    damaged = torch.where(seen, y, 1e6)
    found = mean_pinball(outputs, damaged, QUANTILES, seen, dim)
    each = pinball(outputs.unflatten(dim, (-1, Q)), y, QUANTILES, dim).mean(dim)
    torch.testing.assert_close(found, each[seen].mean())
    assert float(mean_pinball(outputs, y, QUANTILES, torch.zeros_like(seen), dim)) == 0


@pytest.mark.parametrize("name", LEARNING)
def test_quantiles_are_sorted_and_the_median_is_the_forecast(name: str) -> None:
    model, batch = make(name), draws()
    outputs = model(batch)
    assert outputs.shape == (B, P * Q, C)
    crossed = outputs.unflatten(1, (P, Q)).diff(dim=2) < 0
    assert crossed.any(), "nothing crosses here: this proves nothing"
    for steps in (1, P, 2 * P + 1):
        whole = model.rolled_out(batch, steps)
        assert whole.shape == (B, steps, Q, C)
        assert (whole.diff(dim=2) >= 0).all()
        assert torch.equal(model.forecast(batch, steps), whole[:, :, 1])
    first = model.forecast(batch, P)
    fed_back = model.rolled_out(batch.after(first), P)
    torch.testing.assert_close(model.rolled_out(batch, 2 * P)[:, P:], fed_back)


def test_pinball_supervises_earlier_segments() -> None:
    model: Any = make("fem_sm")
    batch = draws()
    y = batch.target
    segments, mean, std = model._segments(batch.past)
    predicted = model._predict(segments)
    assert predicted.shape == (B, C, L // P, P * Q)
    last = (predicted[:, :, -1] * std + mean).mT
    earlier = predicted[:, :, :-1].unflatten(-1, (P, Q))
    expected = pinball(last.unflatten(1, (P, Q)), y, QUANTILES).mean()
    expected = (
        expected
        + torch.stack(
            [
                pinball(earlier[..., q : q + 1], segments[:, :, 1:], [level], -1).mean()
                for q, level in enumerate(QUANTILES)
            ]
        ).mean()
    )
    torch.testing.assert_close(model.loss(batch), expected)


def test_unsupported_models_are_refused() -> None:
    cannot = {name for name in model_names() if not model_card(name).model_class.supports.quantiles}
    classics = {name for name in model_names() if model_card(name).model_class.supports.raw}
    assert cannot == {"naive", "seasonal_naive", "ridge"} | classics
    for name in sorted(cannot):
        with pytest.raises(UsageError, match=rf"^Model '{name}' does not support training\.loss=pinball"):
            build_model(name, ModelConfig(L, P, C), QUANTILES)
