"""One model for many series."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import femts
from femts.data.loading import load_dataset
from femts.errors import GapWarning, UsageError
from femts.forecaster.forecaster import Forecaster

L, P = 14, 7
QUICK: dict[str, Any] = {"pred_len": P, "seq_len": L, "max_steps": 6, "device": "cpu"}
LENGTHS = {"long": 300, "short": 60, "young": 20, "tiny": 6}


def series(name: str, rows: int, begin: int = 0) -> pd.DataFrame:
    """A weekly wave with its own size, phase and first day."""
    rng = np.random.default_rng(len(name))
    day = np.arange(begin, begin + rows)
    values = 10 ** len(name) * (2 + np.sin(2 * np.pi * day / 7 + len(name)) + 0.1 * rng.normal(size=rows))
    return pd.DataFrame({"unique_id": name, "ds": pd.date_range("2020-01-01", periods=2000)[day], "y": values})


def with_columns(frame: pd.DataFrame) -> pd.DataFrame:
    """Add `promo`, which lifts each series by its size, `price` and `heat`."""
    rng = np.random.default_rng(3)
    promo = (rng.uniform(size=len(frame)) < 0.3) * 1.0
    size = frame.groupby("unique_id")["y"].transform("mean")
    heat, price = rng.normal(size=(2, len(frame)))
    return frame.assign(y=frame["y"] + promo * size, promo=promo, price=price, heat=heat)


def table() -> pd.DataFrame:
    parts = [series(name, rows, begin=10 * k) for k, (name, rows) in enumerate(LENGTHS.items())]
    return pd.concat(parts, ignore_index=True)


def trained(model: str, frame: pd.DataFrame | None = None, **more: Any) -> Forecaster:
    return femts.train(load_dataset(table() if frame is None else frame), model, **(QUICK | more))


ROLES: dict[str, dict[str, Any]] = {
    "none": {},
    "known": {"future_covariates": ["promo", "price"], "target": ["y"]},
    "calendar": {"calendar": True},
    "past": {"past_covariates": ["heat"]},
    "all": {"future_covariates": "promo", "past_covariates": "heat", "calendar": True},
    "several": {"target": ["y", "heat"], "future_covariates": "promo"},
}


@pytest.mark.parametrize(
    ("model", "roles"),
    [
        *((model, "none") for model in ("ridge", "seasonal_naive")),
        *(("fem_sm", roles) for roles in ROLES),
        ("dlinear", "calendar"),
    ],
)
def test_single_series_long_table_equals_wide_table(model: str, roles: str) -> None:
    one, reading = with_columns(series("only", 200)), ROLES[roles]
    listed = [each for each in reading.values() if each is not True]
    named = [name for each in listed for name in ([each] if isinstance(each, str) else each)]
    one = one[["unique_id", "ds", *dict.fromkeys(["y", *named])]].drop(index=[40, 41])
    same = one.drop(columns="unique_id").rename(columns={"ds": "date"})
    long, wide = (femts.train(load_dataset(frame, **reading), model, **QUICK) for frame in (one, same))
    for key in ("test", "val", "known"):
        assert long.metrics.get(key) == wide.metrics.get(key)
    for ours, theirs in zip(long.model.state_dict().values(), wide.model.state_dict().values(), strict=True):
        assert torch.equal(ours, theirs)
    assert long.intervals is not None and wide.intervals is not None
    np.testing.assert_array_equal(long.intervals.half_widths, wide.intervals.half_widths)
    ahead = (one[-P:], same[-P:]) if "future_covariates" in reading else (None, None)
    forecast = long.predict(one[:-P], level=[80], future=ahead[0])
    expected = wide.predict(same[:-P], level=[80], future=ahead[1])
    assert list(forecast.columns[2:]) == list(expected.columns[1:]) and list(forecast["ds"]) == list(expected["date"])
    np.testing.assert_array_equal(forecast[forecast.columns[2:]], expected[expected.columns[1:]])


@pytest.mark.parametrize("model", ["fem_sm", "ridge", "naive"])
def test_forecasts_start_at_the_end_of_each_series(model: str) -> None:
    forecast = trained(model).predict(table())
    assert list(forecast["unique_id"].unique()) == list(LENGTHS) and len(forecast) == P * len(LENGTHS)
    ends = table().groupby("unique_id")["ds"].max()
    for name, rows in forecast.groupby("unique_id"):
        assert list(rows["ds"]) == list(pd.date_range(ends[name], periods=P + 1)[1:])
        assert np.isfinite(rows["y"]).all()
        assert 0.5 < rows["y"].mean() / 10 ** len(str(name)) < 4, "in its own units"


def test_forecast_is_independent_of_other_series() -> None:
    forecaster = trained("fem_sm")
    together = forecaster.predict(table()).set_index("unique_id")
    for name in LENGTHS:
        alone = forecaster.predict(table().query("unique_id == @name"))
        np.testing.assert_allclose(alone["y"], together.loc[name, "y"], rtol=1e-5)


def test_new_series_is_scaled_by_its_own_rows() -> None:
    forecaster = trained("naive")
    new = series("stranger", 30)
    with pytest.warns(GapWarning, match="1 of 1 series is new, the first 'stranger'; each is scaled by its own rows"):
        forecast = forecaster.predict(new)
    np.testing.assert_allclose(forecast["y"], new["y"].iloc[-1], rtol=1e-6)


def test_panel_run_roundtrip(tmp_path: Path) -> None:
    path = tmp_path / "many.csv"
    table().to_csv(path, index=False)
    forecaster = femts.train(path, "dlinear", out=tmp_path / "run", **QUICK)
    again = Forecaster.load(tmp_path / "run")
    pd.testing.assert_frame_equal(again.predict(table(), level=[80]), forecaster.predict(table(), level=[80]))
    assert again.evaluate() == forecaster.metrics["test"]
    assert again.training_data().series == tuple(LENGTHS)
    assert not femts.audit(tmp_path / "run").failed


def test_scores_by_series_are_in_raw_units() -> None:
    forecaster = trained("naive")
    scores, data = forecaster.scores(by="series").set_index("series"), forecaster.training_data()
    for name, row in scores.iterrows():
        one = data[str(name)]
        low, high = one.split.test[0]
        errors = [one.values[o : o + P, 0] - one.values[o - 1, 0] for o in range(low, high - P + 1)]
        assert row["windows"] == len(errors)
        assert row["mae"] == pytest.approx(np.abs(errors).mean(), rel=1e-4)
        train_values = one.train_values[:, 0]
        if len(train_values) > 7:
            scale = np.abs(train_values[7:] - train_values[:-7]).mean()
            assert row["mase"] == pytest.approx(row["mae"] / scale, rel=1e-4)
    assert (scores["mase"].dropna() > 0).all() and "tiny" not in scores.index


def test_default_look_back_follows_the_median_length() -> None:
    parts = [series(f"s{k}", rows) for k, rows in enumerate((2000, 60, 61, 62, 63))]
    assert trained("naive", pd.concat(parts), seq_len=None).config.seq_len <= 42


def test_too_short_series_are_refused() -> None:
    with pytest.raises(UsageError, match="provide at least 4 rows"):
        trained("naive", series("tiny", 3))
