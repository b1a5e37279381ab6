"""Regression effects of future covariates and calendar features."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from small_tables import small_table

from femts.data.effects import DateTerms, Effects
from femts.data.effects_fit import fit_effects, fit_own
from femts.data.loading import load_dataset
from femts.data.preprocess import Preprocess

ROWS = 2000


def driven(noise: float = 0.2, seed: int = 0) -> pd.DataFrame:
    """Hourly `load` driven by a daily cycle, a random walk and `cold` below 0; `idle` has no effect."""
    rng, hour = np.random.default_rng(seed), np.arange(ROWS)
    cold, idle = rng.normal(size=(2, ROWS)).cumsum(1) * 0.3 % 6 - 3
    walk = rng.normal(size=ROWS).cumsum() * 0.02
    load = 5 * np.sin(2 * np.pi * hour / 24) + walk + 3 * np.minimum(cold, 0) + noise * rng.normal(size=ROWS)
    dates = pd.date_range("2024-01-01", periods=ROWS, freq="h")
    return pd.DataFrame({"date": dates, "load": load, "cold": cold, "idle": idle})


def test_piecewise_linear_effect_is_recovered() -> None:
    data = load_dataset(driven(), target=["load"], future_covariates=["cold"])
    preprocess = Preprocess.fit(data)
    assert preprocess.effects is not None
    ladder = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    found = preprocess.effects.of(ladder, None)[:, 0] * preprocess.scaler.scale[0]
    assert found[1] - found[0] == pytest.approx(3, rel=0.15)  # 3 for each degree below 0
    assert found[3] - found[2] == pytest.approx(0, abs=0.3)
    assert preprocess.effects.explained[0] > 0.8


def test_irrelevant_column_has_no_effect() -> None:
    data = load_dataset(driven(), target=["load"], future_covariates=["idle"])
    effects = Preprocess.fit(data).effects
    assert effects is not None
    assert effects.explained.tolist() == [0.0]
    assert not effects.of(np.array([[-1.0], [2.0]]), None).any()


def test_effects_use_training_rows_only() -> None:
    frame = driven()
    usual = load_dataset(frame, target=["load"], future_covariates=["cold"])
    stop = usual.split.train[0, 1]
    frame.loc[stop:, ["load", "cold"]] = 1e6
    changed = load_dataset(frame, target=["load"], future_covariates=["cold"])
    ladder = np.linspace(-3, 3, 7)[:, None]
    first, second = (Preprocess.fit(data).effects for data in (usual, changed))
    assert first is not None and second is not None
    np.testing.assert_array_equal(first.of(ladder, None), second.of(ladder, None))


def test_calendar_captures_hour_of_week() -> None:
    frame = small_table(ROWS)[["date", "load"]]
    weekend = frame["date"].dt.dayofweek >= 5
    morning = frame["date"].dt.hour.between(6, 11)
    frame["load"] += 6.0 * (weekend & morning)
    data = load_dataset(frame, calendar=True)
    preprocess = Preprocess.fit(data)
    assert preprocess.effects is not None and data.stamps is not None
    effect = preprocess.effects.of(np.empty((ROWS, 0)), data.stamps)[:, 0] * preprocess.scaler.scale[0]
    apart = effect[weekend & morning].mean() - effect[~weekend & morning].mean()
    assert apart == pytest.approx(6, rel=0.2)


def test_missing_values_are_ignored() -> None:
    frame = driven()
    frame.loc[100:300, "load"] = np.nan
    holed = load_dataset(frame, target=["load"], future_covariates=["cold"])
    effects = Preprocess.fit(holed).effects
    assert effects is not None and effects.explained[0] > 0.8
    two = load_dataset(frame.assign(other=driven(seed=1)["load"]), target=["load", "other"], future_covariates=["cold"])
    both = Preprocess.fit(two).effects
    assert both is not None
    np.testing.assert_allclose(both.weight[:, 0], effects.weight[:, 0], rtol=1e-6)
    assert both.explained[1] == 0


def test_constant_target_has_no_effect() -> None:
    data = load_dataset(driven().assign(load=2.0), target=["load"], future_covariates=["cold"])
    effects = Preprocess.fit(data).effects
    assert effects is not None and effects.explained.tolist() == [0.0]


def test_binary_and_constant_columns() -> None:
    frame = driven()
    frame["open"] = (np.arange(ROWS) // 50 % 2).astype(float)
    frame["load"] += 4 * frame["open"]
    frame["same"] = 1.0
    effects = Preprocess.fit(load_dataset(frame, target=["load"], future_covariates=["open", "same"])).effects
    assert effects is not None
    assert effects.knots == ((), ())
    assert np.isfinite(effects.weight).all()
    assert np.diff(effects.of(np.array([[0.0, 1.0], [1.0, 1.0]]), None)[:, 0])[0] > 0


def test_effects_roundtrip() -> None:
    data = load_dataset(driven(), target=["load"], future_covariates=["cold"], calendar=True)
    preprocess = Preprocess.fit(data)
    again = Preprocess.from_dict(preprocess.to_dict()).effects
    assert isinstance(again, Effects) and preprocess.effects is not None and data.covariates is not None
    np.testing.assert_array_equal(
        again.of(data.covariates, data.stamps), preprocess.effects.of(data.covariates, data.stamps)
    )


def test_row_subsampling_keeps_the_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    data = load_dataset(driven(), target=["load"], future_covariates=["cold"])
    assert data.covariates is not None
    effects = Preprocess.fit(data).effects
    assert effects is not None
    whole = effects.of(data.covariates, None)
    monkeypatch.setattr("femts.data.effects.MOST_ROWS", 300)
    np.testing.assert_allclose(effects.of(data.covariates, None), whole)
    drawn = Preprocess.fit(replace(data)).effects
    assert drawn is not None and drawn.explained[0] > 0.7


@pytest.mark.parametrize("calendar", [False, True])
@pytest.mark.parametrize("gaps", [False, True])
def test_effects_of_series_fitted_in_blocks_equal_those_fitted_one_by_one(
    calendar: bool, gaps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("femts.data.effects_fit.MOST_ROWS", 5000)  # several blocks of one length
    rng, lengths = np.random.default_rng(0), np.tile([1600, 1700], 6)
    training = np.stack([lengths.cumsum() - lengths, lengths.cumsum()], axis=1)
    rows = int(lengths.sum())
    covariates = np.stack([rng.normal(size=rows), rng.integers(0, 2, rows), rng.integers(0, 4, rows)], axis=1)
    covariates[:1600, 0] = rng.integers(0, 3, 1600)  # fewer knots than the others
    scaled = rng.normal(size=(rows, 2))
    for number, (begin, stop) in enumerate(training.tolist()):
        scaled[begin:stop, 0] += covariates[begin:stop] @ [number - 6, 1, number % 3]
    if gaps:
        covariates[rng.random(covariates.shape) < 0.02] = np.nan
        scaled[rng.random(scaled.shape) < 0.02] = np.nan
    dates = pd.DatetimeIndex(np.concatenate([pd.date_range("2024-01-01", periods=n, freq="h") for n in lengths]))
    further = covariates, dates, 24
    shared = fit_effects(scaled.__getitem__, *further, DateTerms(calendar), training)
    own = fit_own(shared, scaled.__getitem__, *further, training, 2)
    assert len(own) > 6
    for number, (begin, stop) in enumerate(training.tolist()):
        if number not in own:
            continue
        part, alone = slice(begin, stop), np.array([[0, stop - begin]])
        single = fit_effects(scaled[part].__getitem__, covariates[part], dates[part], 24, DateTerms(calendar), alone)
        assert own[number].knots == single.knots
        for name in ("mean", "scale", "weight", "offset", "explained"):
            np.testing.assert_allclose(getattr(own[number], name), getattr(single, name), rtol=1e-9, atol=1e-12)
