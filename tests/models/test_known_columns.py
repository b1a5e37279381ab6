"""Models that read future and static covariates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from model_cases import of_each_class
from small_tables import small_table
from torch import Tensor

import femts
from femts.data.batch import Batch
from femts.errors import UsageError
from femts.models.base import ForecastModel
from femts.models.registry import build_config, build_model, model_card, model_names
from femts.models.tide import TiDE

B, L, P, C, K, E = 3, 20, 6, 4, 5, 2
SMALL = {"d_model": 16, "n_heads": 2, "n_layers": 1, "hidden": 16, "dropout": 0.0}
SUPPORTS = {name: model_card(name).model_class.supports for name in model_names()}
# `boost` reads those rows of the look-back alone that lie a season before a step (test_boost.py).
READING = [name for name, each in SUPPORTS.items() if each.known and each.static and name != "boost"]
QUANTILES = (0.1, 0.5, 0.9)


def make(name: str, quantiles: tuple[float, ...] = (), **inputs: int) -> ForecastModel:
    """A small model with nonzero weights, in float64."""
    torch.manual_seed(0)
    settings = {key: value for key, value in SMALL.items() if key in model_card(name).default_settings()}
    config = build_config(name, seq_len=L, pred_len=P, n_channels=C, settings=settings | inputs)
    model = build_model(name, config, quantiles).double().eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.05 * torch.randn_like(weight))
    return model


def draws(rows: int = L + P) -> Batch:
    def draw(*shape: int) -> Tensor:
        return torch.randn(B, *shape, generator=generator, dtype=torch.float64)

    generator = torch.Generator().manual_seed(1)
    return Batch(draw(L, C), known=draw(rows, K), static=draw(E), future=draw(P, C))


def changed(values: Tensor, rows: slice) -> Tensor:
    other = values.clone()
    other[:, rows] += 1
    return other


@pytest.mark.parametrize(
    ("inputs", "quantiles"),
    [({"n_known": K}, ()), ({"n_static": E}, QUANTILES), ({"n_known": K, "n_static": E}, QUANTILES)],
    ids=str,
)
@pytest.mark.parametrize("name", ["tide", "nhits", "fem_sm"])
def test_forecast_shape_and_gradients(name: str, inputs: dict[str, int], quantiles: tuple[float, ...]) -> None:
    model, batch = make(name, quantiles, **inputs), draws()
    batch = replace(
        batch,
        known=batch.known if "n_known" in inputs else None,
        static=batch.static if "n_static" in inputs else None,
    )
    assert model(batch).shape == (B, P * max(1, len(quantiles)), C)
    model.loss(batch).backward()
    for key, weight in model.named_parameters():
        assert weight.grad is not None and weight.grad.isfinite().all() and weight.grad.any(), key


@pytest.mark.parametrize("name", of_each_class(READING))
def test_only_rows_of_the_window_are_read(name: str) -> None:
    model, batch = make(name, n_known=K, n_static=E), draws(L + P + 3)
    assert batch.known is not None and batch.static is not None
    forecast = model(batch)
    for rows in (slice(2, 3), slice(L, L + 1), slice(L + P - 1, L + P)):  # look-back, first and last step to come
        assert not torch.equal(model(replace(batch, known=changed(batch.known, rows))), forecast)
    beyond = replace(batch, known=changed(batch.known, slice(L + P, None)))
    assert torch.equal(model(beyond), forecast) and torch.equal(model.loss(beyond), model.loss(batch))
    assert not torch.equal(model(replace(batch, static=changed(batch.static, slice(None)))), forecast)


@pytest.mark.parametrize("name", ["tide", "nhits", "fem_sm"])
def test_covariate_gradients_are_exact(name: str) -> None:
    model, batch = make(name, n_known=K, n_static=E), draws()
    assert batch.known is not None

    def loss(known: Tensor) -> Tensor:
        return model.loss(replace(batch, known=known))

    assert torch.autograd.gradcheck(loss, batch.known.requires_grad_(), fast_mode=True)


def test_tide_matches_the_paper() -> None:
    model, batch = make("tide", n_known=K, n_static=E), draws()
    assert isinstance(model, TiDE) and model.narrow is not None and batch.known is not None and batch.static is not None

    def block(module: Any, x: Tensor) -> Tensor:
        first, _, second, _ = module.dense
        hidden = (x @ first.weight.T + first.bias).clamp(min=0) @ second.weight.T + second.bias
        return module.norm(hidden + x @ module.skip.weight.T + module.skip.bias)

    series = batch.past[0, :, 1]
    mean, deviation = series.mean(), (series.var(correction=0) + 1e-5).sqrt()
    normal = (series - mean) / deviation
    features = [block(model.narrow, row) for row in batch.known[0]]
    x = torch.cat([normal, *features, batch.static[0]])
    for module in model.dense:
        x = block(module, x)
    steps = [block(model.temporal, torch.cat(pair)) for pair in zip(x.chunk(P), features[L:], strict=True)]
    expected = torch.cat(steps) + model.linear.weight @ normal + model.linear.bias
    torch.testing.assert_close(model(batch)[0, :, 1], expected * deviation + mean)


@pytest.mark.parametrize(
    ("name", "reading", "named"),
    [
        ("dlinear", {"future_covariates": "open"}, "open"),
        ("dlinear", {"calendar": True}, "the calendar"),
        ("itransformer", {"future_covariates": "open"}, "open"),
    ],
)
def test_unsupported_covariate_inputs_are_refused(name: str, reading: dict, named: str, tmp_path: Path) -> None:
    data = femts.load_dataset(small_table(columns=("load", "open")), target="load", **reading)
    sentence = (
        rf"^Model '{name}' cannot read '?{named}'? over the forecast horizon; use one that can, such as fem_sm or tide"
    )
    with pytest.raises(UsageError, match=sentence) as refused:
        femts.train(data, name, 12, seq_len=24, settings={"training.covariates": "model"}, out=tmp_path / "run")
    assert "\n" not in str(refused.value) and not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("name", "reading", "covariates", "reads", "regressed"),
    [
        ("tide", {"future_covariates": "open", "calendar": True}, "auto", True, True),
        ("tide", {"future_covariates": "open", "calendar": True}, "regress", False, True),
        ("itransformer", {"calendar": True}, "model", True, False),
        ("dlinear", {"future_covariates": "open", "calendar": True}, "auto", False, True),
    ],
)
def test_covariates_are_inputs_or_regressed(
    name: str, reading: dict, covariates: str, reads: bool, regressed: bool
) -> None:
    data = femts.load_dataset(small_table(columns=("load", "open")), target="load", **reading)
    settings = {"training.covariates": covariates}
    forecaster = femts.train(data, name, 12, seq_len=24, max_steps=1, settings=settings, device="cpu")
    assert bool(getattr(forecaster.model.config, "n_known", 0)) == reads
    assert (forecaster.preprocess.effects is not None) == regressed


HOURLY = small_table(600)
DAILY = small_table(900).assign(date=pd.date_range("2021-01-01", periods=900))


@pytest.mark.parametrize(
    ("name", "frame", "reading", "features"),
    [
        ("boost", HOURLY, {}, 4),  # hour and weekday, and the days of the month and of the year
        ("boost", DAILY, {}, 3),
        ("boost", HOURLY, {"calendar": True}, 4),
        ("boost", HOURLY, {"calendar": False}, 0),
        ("boost", HOURLY.assign(date=range(600)), {}, 0),
        ("tide", HOURLY, {}, 0),
        ("fem_sm", HOURLY, {"calendar": True}, 4),
    ],
)
def test_trees_read_the_calendar_by_default(
    name: str, frame: pd.DataFrame, reading: dict, features: int, tmp_path: Path
) -> None:
    data = femts.load_dataset(frame, **reading)
    settings = {"model.rounds": 5} if name == "boost" else {}
    run = femts.train(data, name, 12, seq_len=24, max_steps=1, settings=settings, out=tmp_path / "run")
    assert run.config.reads.calendar == features and getattr(run.model.config, "n_known", 0) == 2 * features
    assert (run.preprocess.effects is not None) == bool(reading.get("calendar")), "no linear effect is fitted unasked"
    made, again = (each.predict(frame) for each in (run, femts.load(tmp_path / "run")))
    pd.testing.assert_frame_equal(made, again)
    if features and not reading:
        with pytest.raises(UsageError, match=r"^predict_array takes values alone, but this model also reads"):
            run.predict_array(frame.drop(columns="date").to_numpy()[None, -24:])
        shifted = frame.assign(date=frame["date"] + pd.Timedelta(hours=7))
        assert frame is DAILY or not made["load"].equals(run.predict(shifted)["load"])


def test_members_of_a_mean_read_inputs_of_their_own() -> None:
    frame = small_table(400, columns=("load", "open"))
    data = femts.load_dataset(frame, target="load", future_covariates="open")
    settings = {"boost": {"model.rounds": 5}, "tide": {}, "dlinear": {}}
    runs = [
        femts.train(data, name, 12, seq_len=24, max_steps=1, settings=given, refit=False)
        for name, given in settings.items()
    ]
    mean = femts.mean_of(runs)
    history, future = frame[:300], frame.loc[300:311, ["date", "open"]]
    apart = [each.predict(history, future=future)["load"].to_numpy() for each in (*runs, mean)]
    np.testing.assert_allclose(apart[3], np.mean(apart[:3], axis=0), rtol=1e-5)
    for member, run in zip(mean.members, runs, strict=True):
        assert member.config.reads == run.config.reads
        assert member.predict(history, future=future).equals(run.predict(history, future=future))
