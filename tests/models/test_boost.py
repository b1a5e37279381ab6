"""Gradient-boosted trees."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor
from torch import Tensor

import femts
from femts.config.training import TrainingConfig
from femts.data.batch import Batch
from femts.data.resident import ScaledSeries
from femts.data.windows import Windows
from femts.errors import GapWarning, UsageError
from femts.models import boost
from femts.models.boost import (
    BEST,
    FORMS,
    MOST_RECURSIVE,
    ROWS_A_SECOND,
    TRIED,
    WITHIN,
    Boost,
    Ensemble,
    Form,
    Past,
    Rows,
    seasons_before,
)
from femts.models.parts.trees import Trees
from femts.models.registry import build_config, build_model

L, P, C, SEASON = 28, 7, 2, 7
BOTH = "promo", "kind"
FEW: dict[str, Any] = {"model.rounds": 20, "model.rows": 5000}


def make(quantiles: tuple[float, ...] = (), **settings: Any) -> Boost:
    pred_len = settings.pop("pred_len", P)
    given = {"season": SEASON, "rounds": 20, **settings}
    config = build_config("boost", seq_len=L, pred_len=pred_len, n_channels=C, settings=given)
    model = build_model("boost", config, quantiles)
    assert isinstance(model, Boost)
    return model


def weekly(rows: int = 300, seed: int = 0) -> Tensor:
    noise = np.random.default_rng(seed).normal(size=(rows, C)) * 0.3
    return torch.from_numpy(np.sin(2 * np.pi * np.arange(rows) / SEASON)[:, None] * [1.0, 2.0] + noise).float()


def weekly_frame() -> pd.DataFrame:
    values = {name: weekly()[:, number].numpy() for number, name in enumerate("ab")}
    return pd.DataFrame({"date": pd.date_range("2024-01-01", periods=300), **values})


def trained(model: Boost, seed: int = 0, val: Windows | None = None, **training: Any) -> Boost:
    model.learn(Windows(weekly(), L, P), val or Windows(weekly(seed=1), L, P), TrainingConfig(seed=seed, **training))
    return model


def panel(series: int = 12, rows: int = 160, columns: tuple[str, ...] = ()) -> pd.DataFrame:
    """Series of three kinds, on which `promo` has a positive, negative or no effect."""
    draws, frames = np.random.default_rng(0), list[pd.DataFrame]()
    for number in range(series):
        kind, promo = "abc"[number % 3], (draws.random(rows) < 0.1).astype(float)
        effect = {"a": 4.0, "b": 0.0, "c": -4.0}[kind] * promo
        y = 50 + 2 * np.sin(2 * np.pi * np.arange(rows) / 7) + effect + draws.normal(size=rows) * 0.2
        days = pd.date_range("2024-01-01", periods=rows)
        frames.append(pd.DataFrame({"unique_id": f"s{number:02d}", "ds": days, "y": y, "promo": promo, "kind": kind}))
    return pd.concat(frames, ignore_index=True)[["unique_id", "ds", "y", *columns]]


def evaluated(trees: Trees, table: NDArray[np.float32]) -> NDArray[np.float64]:
    """Sums of `trees` for the rows of `table`."""
    return trees(list(torch.from_numpy(table.T))).numpy()


@pytest.mark.parametrize(
    ("loss", "leaves"), [("squared_error", 31), ("absolute_error", 31), ("quantile", 31), ("squared_error", 70)]
)
def test_trees_match_sklearn(loss: str, leaves: int) -> None:
    draws = np.random.default_rng(0)
    x = draws.normal(size=(3000, 5)).astype(np.float32)
    x[:, 3] = draws.integers(0, 4, 3000)
    x[draws.random(x.shape) < 0.1] = np.nan
    y = np.nan_to_num(x[:, 0] * x[:, 1]) + np.isnan(x[:, 2]) + np.nan_to_num(x[:, 3])
    quantile = 0.8 if loss == "quantile" else None
    grown = HistGradientBoostingRegressor(
        loss=loss, quantile=quantile, max_iter=30, max_leaf_nodes=leaves, early_stopping=False
    ).fit(x, y)
    trees = Trees(40, leaves)
    nodes = [each[0].nodes for each in grown._predictors]
    trees.take(float(np.ravel(grown._baseline_prediction)[0]), nodes)
    np.testing.assert_allclose(evaluated(trees, x), grown.predict(x), rtol=0, atol=1e-5)
    other = Trees(40, leaves)
    assert (evaluated(other, x) == 0).all()
    other.load_state_dict(trees.state_dict())
    assert np.array_equal(evaluated(other, x), evaluated(trees, x))
    edges = np.unique(np.concatenate([each["num_threshold"][each["is_leaf"] == 0] for each in nodes]))
    at = np.nan_to_num(np.tile(x[:1], (len(edges), 1)))
    for column in range(5):  # also where a value is the float32 nearest to a bound
        at[:, column] = edges.astype(np.float32)
        np.testing.assert_allclose(evaluated(trees, at), grown.predict(at), rtol=0, atol=1e-5)


def test_shared_features_are_evaluated_as_in_every_row() -> None:
    draws = np.random.default_rng(0)
    x, y = draws.normal(size=(2, 2000, 4))
    grown = HistGradientBoostingRegressor(max_iter=20, early_stopping=False).fit(x, y[:, 0] + x[:, 0] * x[:, 3])
    trees = Trees(20, 31)
    trees.take(0.0, [each[0].nodes for each in grown._predictors])
    shapes = (5, 1, 3), (1, 4, 1), (5, 4, 1), (5, 4, 3)  # the second one is evaluated within the third
    columns = [torch.from_numpy(draws.normal(size=shape)).float() for shape in shapes]
    columns[1][:, 1] = torch.nan
    table = torch.stack([each.expand(5, 4, 3).flatten() for each in columns], dim=1).numpy()
    assert np.array_equal(trees(columns).flatten().numpy(), evaluated(trees, table))


def test_empty_ensemble_is_constant() -> None:
    trees = Trees(3, 4)
    trees.take(1.5, [])
    assert evaluated(trees, np.zeros((2, 1), np.float32)).tolist() == [1.5, 1.5]


def test_rolling_statistics_ignore_missing_values() -> None:
    values, seen = weekly()[None, :L], torch.rand(1, L, C, generator=torch.Generator().manual_seed(0)) > 0.3
    seen[:, -3:, 0] = False
    past = Past(Batch(values, seen), torch.zeros(1, 1, dtype=torch.int64), 1)
    frames = values[0].masked_fill(~seen[0], torch.nan)
    torch.testing.assert_close(past.mean(9)[0], frames[-9:].nanmean(0))
    torch.testing.assert_close(past.mean(5, before=4)[0], frames[-9:-4].nanmean(0))
    expected = torch.tensor([np.nanstd(frames[-9:, c].numpy()) for c in range(C)])
    torch.testing.assert_close(past.deviation(9)[0], expected, rtol=1e-5, atol=1e-6)
    assert past.mean(3)[0, 0].isnan() and past.deviation(3)[0, 0].isnan()


def test_seasonal_lags() -> None:
    rows = torch.arange(10.0)[None, :, None]
    steps = torch.arange(7)[None]
    assert seasons_before(rows, steps, 3).flatten().tolist() == [7, 8, 9, 7, 8, 9, 7]
    assert seasons_before(rows, steps, 3, cycle=1).flatten().tolist() == [4, 5, 6, 4, 5, 6, 4]
    shifted = seasons_before(rows, steps, 3, shift=1).flatten()
    assert shifted.isnan().tolist() == [False, False, True, False, False, True, False]
    assert seasons_before(rows, steps[:, :1], 10, shift=-1).isnan().all()


def test_same_seed_is_bit_identical() -> None:
    one, same, other = (trained(make(rows=500), seed).state_dict() for seed in (3, 3, 4))
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("gaps", [False, True])
def test_forecast_is_independent_of_the_batch(gaps: bool) -> None:
    model, x = trained(make()), weekly(60, seed=2)
    past, seen = torch.stack([x[i : i + L] for i in range(20)]), torch.ones(20, L, C, dtype=torch.bool)
    seen[::3, 5:12] = False
    batch = Batch(past, seen if gaps else None)
    whole = model(batch)
    assert whole.shape == (20, P, C)
    assert torch.equal(torch.cat([model(batch.some(torch.tensor([i]))) for i in range(20)]), whole)
    assert model.forecast(batch, 3 * P + 1).shape == (20, 3 * P + 1, C)


def test_missing_look_back_values_are_ignored() -> None:
    model, x = trained(make()), weekly(L, seed=2)[None]
    seen = torch.ones_like(x, dtype=torch.bool)
    seen[:, 5:12] = False
    filled = [Batch(x.masked_fill(~seen, value), seen) for value in (0.0, 99.0)]
    assert torch.equal(model(filled[0]), model(filled[1]))
    assert model(Batch(x, torch.zeros_like(seen))).isfinite().all()


def test_missing_targets_are_ignored() -> None:
    rows, seen = weekly(), torch.rand(300, C, generator=torch.Generator().manual_seed(0)) > 0.2
    seen[:L] = True
    states = []
    for value in (0.0, 1e3):
        filled = rows.masked_fill(~seen, value)
        filled[L:] = filled[L:].where(seen[L:], value)
        windows = Windows(ScaledSeries(filled, seen), L, P)
        drawn = make().ensembles[0].drawn(windows, 2000, torch.Generator().manual_seed(0))
        states.append(drawn)
    assert len(states[0].y) == len(states[1].y) < 0.9 * 2000
    blank = Windows(ScaledSeries(rows, torch.zeros_like(seen)), L, P)
    with pytest.raises(UsageError, match=r"^The sampled windows contain no value to train on"):
        trained(make(), val=blank)


def test_rounds_are_selected_on_validation() -> None:
    usual = trained(make(rounds=200))
    assert 0 < int(usual.ensembles[0].trees[0].count) < 200
    again = make(rounds=200)
    again.learn(Windows(weekly(400), L, P), None, TrainingConfig(), usual)
    assert len(again.ensembles) == len(usual.ensembles)
    for mine, other in zip(again.ensembles, usual.ensembles, strict=True):
        assert mine.form == other.form and int(mine.trees[0].count) == int(other.trees[0].count)


def test_target_transform_is_selected_on_validation() -> None:
    walk = torch.randn(600, C, generator=torch.Generator().manual_seed(0)).cumsum(0) * 0.1
    train, val = Windows(walk[:400], L, P), Windows(walk[350:], L, P)
    model = make()
    model.learn(train, val, TrainingConfig())
    assert model.ensembles[0].form.base != "phase"  # of a random walk, the last value
    assert trained(make()).ensembles[0].form.base == "phase"  # of noise about a season, its mean


def test_forecast_is_the_mean_of_the_best_forms() -> None:
    windows = Windows(weekly(seed=1), L, P)
    model = trained(make(), val=windows)
    assert 1 < len(model.ensembles) <= BEST and len({each.form for each in model.ensembles}) == len(model.ensembles)
    batch = windows.batch(torch.arange(5))
    torch.testing.assert_close(model(batch), torch.stack([each(batch) for each in model.ensembles]).mean(0))
    errors = dict.fromkeys(range(len(FORMS)), 2.0) | {3: 1.0, 7: 0.99 * WITHIN, 8: 1.01 * WITHIN}
    alone = make()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boost, "sampled_error", lambda ensemble, *_: errors[int(ensemble.number)])
        trained(alone, val=windows)
    assert [int(each.number) for each in alone.ensembles] == [3, 7]
    other = make()
    other.load_state_dict(alone.state_dict())
    assert torch.equal(other(batch), alone(batch))


def driven() -> pd.DataFrame:
    """An AR(1) series driven by a future covariate."""
    draws, y = np.random.default_rng(0), np.zeros(500)
    push = draws.normal(size=500)
    for row in range(1, 500):
        y[row] = 0.9 * y[row - 1] + push[row]
    return pd.DataFrame({"date": pd.date_range("2024-01-01", periods=500), "y": y, "push": push})


@pytest.mark.parametrize(
    ("loss", "pred_len", "recursive"), [("mse", 7, True), ("pinball", 7, False), ("mse", MOST_RECURSIVE + 1, False)]
)
def test_recursive_form_is_selected_on_validation(loss: str, pred_len: int, recursive: bool) -> None:
    data, settings = (
        femts.load_dataset(driven(), future_covariates="push"),
        {**FEW, "training.loss": loss, "training.covariates": "model", "training.quantiles": "0.5"},
    )
    model = femts.train(data, "boost", pred_len, seq_len=28, refit=False, settings=settings).model
    assert isinstance(model, Boost) and model.ensembles[0].form.recursive == recursive


@pytest.mark.parametrize("base", ["last", "level", "zero"])
def test_recursive_forecast_feeds_back(base: str) -> None:
    model = make().ensembles[0]
    model.number.fill_(FORMS.index(Form(base, recursive=True)))
    model.grow(Windows(weekly(), L, P), None, 5000, TrainingConfig(), [20])
    batch = Batch(weekly(L, seed=2)[None])
    made = model(batch)
    for step in range(P):
        torch.testing.assert_close(model.forecast_steps(batch, model.past(batch, 1))[:, 0], made[:, step])
        batch = batch.after(made[:, step : step + 1])


def test_one_step_horizon() -> None:
    model, windows = make(pred_len=1, season=L), Windows(weekly(), L, 1)
    model.learn(windows, windows, TrainingConfig())
    assert model(Batch(weekly(L, seed=2)[None])).shape == (1, 1, C)


def test_time_limit_reduces_training_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    model, windows, sizes = make(), Windows(weekly(3000), L, P), list[int]()
    drawn = Ensemble.drawn

    def counted(ensemble: Ensemble, *given: Any) -> Rows:
        sizes.append(given[1])
        return drawn(ensemble, *given)

    monkeypatch.setattr(Ensemble, "drawn", counted)
    model.learn(windows, windows, TrainingConfig(max_time="1s"))
    assert sizes[0] == ROWS_A_SECOND // TRIED <= max(sizes) <= ROWS_A_SECOND, (
        "the final fit takes as many rows as the trials leave time for"
    )
    assert int(model.grown) == sizes[-2]
    rows = drawn(model.ensembles[0], windows, 5000, torch.Generator())
    assert 4000 < len(rows.x) == len(rows.y) <= 5000


def test_quantile_and_mae_losses() -> None:
    model = trained(make((0.1, 0.5, 0.9), rows=2000), loss="pinball")
    made = model.rolled_out(Batch(weekly(L, seed=2)[None]), P)
    assert made.shape == (1, P, 3, C) and (made.diff(dim=2) >= 0).all()
    windows = Windows(weekly(seed=1), L, P)
    batch = windows.batch(torch.arange(len(windows)))
    below = (batch.target[:, :, None] <= model.rolled_out(batch, P)).float().mean((0, 1, 3))
    assert below.tolist() == pytest.approx([0.1, 0.5, 0.9], abs=0.12)
    absolute, squared = (trained(make(rows=500), loss=loss)(batch) for loss in ("mae", "mse"))
    assert not torch.equal(absolute, squared)


def test_future_covariates_interact() -> None:
    draws = np.random.default_rng(0)
    one, other = draws.random((2, 600)) < 0.5
    y = 50 + 5 * (one ^ other) + draws.normal(size=600) * 0.2
    days = pd.date_range("2022-01-01", periods=600)
    frame = pd.DataFrame({"date": days, "y": y, "one": one.astype(float), "other": other.astype(float)})
    data = femts.load_dataset(frame, future_covariates=["one", "other"])
    maes = [
        femts.train(data, name, 7, seq_len=28, refit=False, settings=settings).metrics["test"]["mae"]
        for name, settings in (("boost", FEW), ("ridge", {}))
    ]
    assert maes[0] < 0.3 * maes[1]


@pytest.mark.slow
def test_static_categories_interact_with_covariates() -> None:
    settings = {**FEW, "training.covariates": "model"}
    run: dict[str, Any] = {"seq_len": 7, "refit": False, "settings": settings}
    tables = [
        femts.load_dataset(panel(columns=BOTH), future_covariates="promo", static_covariates="kind"),
        femts.load_dataset(panel(columns=("promo",)), future_covariates="promo"),
    ]
    maes = [femts.train(data, "boost", 7, **run).metrics["test"]["mae"] for data in tables]
    assert maes[0] < 0.85 * maes[1]


def test_covariate_lags() -> None:
    ensemble, windows = make(n_known=1, n_static=1, rows=500).ensembles[0], Windows(weekly(), L, P)
    draws = torch.Generator().manual_seed(0)
    known, static = torch.randn(1, L + P + 3, 1, generator=draws), torch.zeros(1, 1)
    batch = replace(windows.batch(torch.tensor([0])), known=known, static=static)
    usual = ensemble.table(batch, torch.arange(P)[None])[0]
    for row, alters in ((L - 1, True), (L - SEASON, True), (L, True), (L + P - 1, True), (L + P, False), (0, False)):
        other = known.clone()
        other[:, row] += 1
        table = ensemble.table(replace(batch, known=other), torch.arange(P)[None])[0]
        assert table.nan_to_num(-9.0).equal(usual.nan_to_num(-9.0)) != alters


def test_run_with_gaps_passes_the_audit() -> None:
    frame = weekly_frame()
    frame.loc[frame.index % 13 == 5, "a"] = np.nan
    audit = femts.audit(femts.train(frame, "boost", 7, seq_len=28, settings=FEW))
    assert audit.failed == ()


def test_onnx_export_is_refused(tmp_path: Path) -> None:
    says = r"^Model 'boost' uses decision trees outside of torch, which ONNX does not support; export another, such as ridge\.$"
    one = femts.train(weekly_frame(), "boost", 7, seq_len=28, settings=FEW)
    with pytest.raises(UsageError, match=says):
        one.export(tmp_path / "model.onnx")
    mean = femts.mean_of([one, femts.train(weekly_frame(), "naive", 7, seq_len=28)])
    with pytest.raises(UsageError, match=r"^Model 'mean', by its members 'boost', uses decision trees"):
        mean.export(tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_run_roundtrip_and_refit(tmp_path: Path) -> None:
    frame = panel(6, 120, BOTH)
    frame.loc[frame.index % 17 == 3, "y"] = np.nan
    frame.to_csv(tmp_path / "sales.csv", index=False)
    data = femts.load_dataset(
        tmp_path / "sales.csv", future_covariates="promo", static_covariates="kind", calendar=True
    )
    made = femts.train(data, "boost", 7, seq_len=28, out=tmp_path / "run", refit=True, settings=FEW)
    loaded = femts.load(tmp_path / "run")
    for one, other in ((made, loaded), (made.scored, loaded.scored)):
        assert one is not None and other is not None
        states = one.model.state_dict(), other.model.state_dict()
        assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    ahead = frame.groupby("unique_id").tail(7)[["unique_id", "ds", "promo"]]
    ahead = ahead.assign(ds=ahead["ds"] + pd.Timedelta(days=7))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GapWarning)
        forecasts = [each.predict(frame, level=[80], future=ahead) for each in (made, loaded)]
    pd.testing.assert_frame_equal(*forecasts, check_exact=True)
    assert loaded.evaluate("test") == made.metrics["test"]
    assert made.scored is not None
    counts = [each.model.state_dict()["members.0.outputs.0.count"] for each in (made, made.scored)]
    assert counts[0] == counts[1] > 0
    assert not any(path.suffix in (".pkl", ".pickle", ".joblib") for path in (tmp_path / "run").rglob("*"))
    again = femts.train(data, "boost", 7, seq_len=28, refit=False, settings=FEW)
    assert again.metrics["test"] == made.metrics["test"]


def test_boost_in_a_mean(tmp_path: Path) -> None:
    data = femts.load_dataset(panel(6, 120))
    runs = [
        femts.train(data, name, 7, seq_len=28, settings=FEW if name == "boost" else {}) for name in ("boost", "ridge")
    ]
    mean = femts.mean_of(runs)
    mean.save(tmp_path / "mean")
    history = panel(6, 120)
    forecasts = [each.predict(history)["y"].to_numpy() for each in (*runs, mean, femts.load(tmp_path / "mean"))]
    np.testing.assert_allclose(forecasts[2], (forecasts[0] + forecasts[1]) / 2, rtol=1e-6)
    assert np.array_equal(forecasts[2], forecasts[3])


def test_unused_inputs_are_ignored() -> None:
    model, x = trained(make()), weekly(L, seed=2)[None]
    inputs = replace(Batch(x), known=torch.randn(1, L + P, 2), static=torch.randn(1, 3))
    assert torch.equal(model(inputs), model(Batch(x)))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"model.leaves": 1}, r"^Setting 'model\.leaves' takes a whole number of at least 2, not 1\."),
        ({"model.season": 99}, r"^A season of 99 steps does not fit into a look-back of 28"),
        ({"training.loss": "huber"}, r"^Unknown loss 'huber'; choose from mae, mse"),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=says):
        femts.train(panel(3, 120), "boost", 7, seq_len=28, settings=settings, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
