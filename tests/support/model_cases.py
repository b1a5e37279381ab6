"""What must hold of every model, by its name: each registered one is held to it, and one that a test adds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

import femts
from femts.data.batch import Batch
from femts.data.dataset import Dataset
from femts.data.loading import load_dataset
from femts.data.resident import ScaledSeries
from femts.data.synthetic import synthetic_frame
from femts.data.windows import Windows
from femts.evaluation.evaluator import evaluate, evaluate_horizons
from femts.forecaster.forecaster import Forecaster
from femts.models.base import ForecastModel
from femts.models.registry import build_config, build_model, model_card
from femts.training.train import train

L, P, C, ROWS, START = 24, 6, 3, 80, 10
HORIZONS = (6, 25, 4, 12, 19)  # in no order; below, at and beyond P, and what no whole number of forecasts fills
SHORT = {"season": 5, "longest": 13, "patch_len": 8, "stride": 4}
NARROW = {"d_model": 16, "d_ff": 16, "n_layers": 1, "n_heads": 2, "longest": 24, "rounds": 5, "rows": 500}
DATA = load_dataset(synthetic_frame(600))


def of_each_class(names: Iterable[str]) -> list[str]:
    """One name of each model class."""
    return list({model_card(name).model_class: name for name in names}.values())


def _settable(name: str, settings: dict[str, int]) -> dict[str, int]:
    """Those of `settings` that the model has."""
    return {key: value for key, value in settings.items() if key in model_card(name).default_settings()}


def make_model(name: str, quantiles: Sequence[float] = (), pred_len: int = P, n_channels: int = C) -> ForecastModel:
    """A model for look-backs of L steps."""
    torch.manual_seed(0)
    config = build_config(name, seq_len=L, pred_len=pred_len, n_channels=n_channels, settings=_settable(name, SHORT))
    return build_model(name, config, quantiles).eval()


def make_prepared(name: str, quantiles: Sequence[float] = ()) -> ForecastModel:
    """A model after its closed-form fit."""
    model = make_model(name, quantiles)
    model.prepare(series(seed=1))
    return model


def series(seed: int = 0) -> Tensor:
    return torch.randn(ROWS, C, generator=torch.Generator().manual_seed(seed))


def windows(steps: int, **more: Any) -> Windows:
    spans = torch.tensor([[START, ROWS, START, ROWS - START - L - steps + 1]])
    return Windows(ScaledSeries(series(), **more), L, steps, spans)


def compare_horizons(model: ForecastModel, batch_size: int = 16, **more: Any) -> None:
    """Joint scores at all `HORIZONS` equal separate scores."""
    found = evaluate_horizons(model, [windows(steps, **more) for steps in HORIZONS], batch_size)
    assert tuple(found) == HORIZONS
    for steps, scores in found.items():
        alone = evaluate(model, windows(steps, **more), batch_size)
        assert scores["windows"] == alone["windows"] == ROWS - START - L - steps + 1
        assert scores == pytest.approx(alone, rel=1e-5)


def check_card(name: str) -> None:
    """Check the summary and the settings of a model."""
    card = model_card(name)
    assert card.summary and "\n" not in card.summary
    assert not {"seq_len", "pred_len", "n_channels"} & set(card.default_settings())


def check_horizons(name: str) -> None:
    """Short forecasts are prefixes of long ones, and joint scores equal separate ones."""
    model = make_prepared(name)
    x = Batch(series(2)[None, :L])
    long = model.forecast(x, max(HORIZONS))
    for steps in HORIZONS:
        torch.testing.assert_close(model.forecast(x, steps), long[:, :steps], rtol=1e-5, atol=1e-5)
    compare_horizons(model)


def check_gaps_are_left_out(name: str) -> None:
    """The loss does not depend on missing values."""
    model = make_model(name, pred_len=12, n_channels=2)
    x, y = torch.randn(3, L, 2), torch.randn(3, 12, 2)
    before, after = torch.rand(3, L, 2) > 0.3, torch.rand(3, 12, 2) > 0.3
    gappy = Batch(x, before, future=y, future_observed=after)
    assert torch.equal(model.loss(gappy), model.loss(replace(gappy, future=y.masked_fill(~after, 1e6))))
    whole = replace(gappy, past_observed=torch.ones_like(before), future_observed=torch.ones_like(after))
    torch.testing.assert_close(model.loss(whole), model.loss(Batch(x, future=y)))
    assert not torch.equal(model.loss(gappy), model.loss(whole))


def check_single_channels(name: str, gaps: bool) -> None:
    """Single-channel losses and gradients average to the whole."""
    torch.manual_seed(0)
    channels = 4
    model = (
        build_model(name, build_config(name, seq_len=40, pred_len=8, n_channels=channels, settings={})).double().eval()
    )
    x, y = torch.randn(3, 40, channels).double(), torch.randn(3, 8, channels).double()
    batch = Batch(x, future=y)
    if gaps:  # the same ones in each channel, so that each weighs as much
        before, after = (torch.rand(3, 48, 1) > 0.3).expand(-1, -1, channels).split([40, 8], dim=1)
        batch = replace(batch, past_observed=before, future_observed=after)
    whole = model.loss(batch)
    single = torch.stack([model.loss(batch, torch.tensor([c])) for c in range(channels)])
    torch.testing.assert_close(single.mean(), whole, rtol=1e-12, atol=0)
    pair = model.loss(batch, torch.tensor([1, 3]))
    torch.testing.assert_close(pair, single[[1, 3]].mean(), rtol=1e-12, atol=0)
    parameters = [p for p in model.parameters() if p.requires_grad]
    grads = [torch.autograd.grad(loss, parameters, allow_unused=True) for loss in (whole, single.mean())]
    for one, other in zip(*grads, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(other, one, rtol=1e-9, atol=1e-12)


def quick_run(name: str, data: Dataset = DATA) -> Forecaster:
    """A trained small model: one epoch, look-back 24, horizon 12."""
    settings = {f"model.{key}": value for key, value in _settable(name, NARROW).items()}
    recipe = {"training.batch_size": 400, "training.max_epochs": 1}
    return train(data, name, 12, seq_len=24, device="cpu", settings={**settings, **recipe})


def check_audit(name: str) -> None:
    """The audit passes and skips only checks that do not apply."""
    forecaster = quick_run(name)
    audit = femts.audit(forecaster)
    assert audit.failed == ()
    unchecked = {check.name for check in audit.checks if check.passed is None}
    fitted = type(forecaster.model).prepare is not ForecastModel.prepare
    claims = {"other channels": forecaster.model.supports.channels == 1, "closed-form weights": fitted}
    assert unchecked == {name for name, claimed in claims.items() if not claimed}
    assert audit.scores[0].mse == pytest.approx(forecaster.metrics["test"]["mse"], rel=1e-6)
