"""User-defined splits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import femts
from femts.cli import main
from femts.data.split_rule import SplitRule
from femts.data.splits import usual_split
from femts.errors import UsageError

# Begins and rows of months: no date is within all.
SERIES = {
    "early": ("2000-01-01", 60),
    "long": ("2000-01-01", 240),
    "late": ("2017-06-01", 30),
    "few": ("2016-09-01", 8),
}


def monthly(rows: int, first: str = "2000-01-01", seed: int = 0) -> pd.DataFrame:
    dates, wave = pd.date_range(first, periods=rows, freq="MS"), np.sin(np.arange(rows) * np.pi / 6)
    return pd.DataFrame({"date": dates, "y": 10 + wave + np.random.default_rng(seed).normal(0, 0.1, rows)})


def several_series() -> pd.DataFrame:
    parts = [
        monthly(rows, first, k).rename(columns={"date": "ds"}).assign(unique_id=name)
        for k, (name, (first, rows)) in enumerate(SERIES.items())
    ]
    return pd.concat(parts, ignore_index=True)


def test_requested_split_is_applied() -> None:
    cases: list[tuple[Any, ...]] = [
        ({}, [84, 96, 120]),
        ({"split": ".8,.1,.1"}, [96, 108, 120]),
        ({"split": [0.5, 0.25, 0.25]}, [60, 90, 120]),
        ({"test_rows": 12}, [96, 108, 120]),
        ({"test_rows": "12", "val_rows": 30}, [78, 108, 120]),
        ({"val_rows": 6}, [90, 96, 120]),
        ({"test_from": "2008-07-01"}, [84, 102, 120]),
    ]
    for wish, ends in cases:
        data = femts.load_dataset(monthly(120), **wish)
        assert data.split.rows[0].tolist() == [[0, ends[0]], ends[:2], ends[1:]]
        assert data.schema.split.given == bool(wish)
        assert data.for_horizon(12).split == (data.split if wish else usual_split(data.lengths, 12))


def test_requested_split_per_series() -> None:
    cases: list[tuple[Any, ...]] = [
        (
            {"test_from": "2017-01-01"},
            {"early": [60, 60, 60], "long": [168, 204, 240], "late": [0, 0, 30], "few": [3, 4, 8]},
        ),
        ({"test_rows": 12}, {"early": [36, 48, 60], "late": [14, 18, 30], "few": [8, 8, 8]}),
        ({"test_rows": 6}, {"few": [2, 2, 8], "late": [18, 24, 30]}),
        ({"split": [0.8, 0.1, 0.1]}, {"few": [8, 8, 8], "late": [24, 27, 30]}),
    ]
    for wish, ends in cases:
        data = femts.load_dataset(several_series(), **wish)
        assert {name: data[name].split.rows[0, :, 1].tolist() for name in ends} == ends


def test_invalid_split_is_refused() -> None:
    cases: list[tuple[Any, ...]] = [
        ({"split": ".8,.2"}, "'.8,.2' is not three fractions that sum to 1; write .8,.1,.1"),
        ({"split": ".8,.1,.2"}, "not three fractions"),
        ({"split": "most,.1,.1"}, "not three numbers"),
        ({"split": 3}, "'3' is not three numbers"),
        ({"test_rows": 0}, "'test_rows' is 0; give a whole number"),
        ({"test_rows": "few"}, "'test_rows' is few; give"),
        ({"test_rows": 12, "test_from": "2008-07-01"}, "both by test_rows and by test_from; use only one"),
        ({"split": ".8,.1,.1", "val_rows": 3}, "both as fractions and as rows or a date"),
        ({"test_rows": 120}, "none are left for the training split"),
        ({"test_from": "2030-01-01"}, "2030-01-01 is outside 'frame', 2000-01-01 .* to 2009-12-01"),
        ({"test_from": "soon"}, "'soon' cannot be read; write it as test_from='2024-01-31'"),
        ({"splitt": 1}, "Unknown argument 'splitt' of the data; did you mean 'split'"),
    ]
    for wish, says in cases:
        with pytest.raises(UsageError, match=says):
            femts.load_dataset(monthly(120), **wish)


def test_split_without_any_test_series_is_refused() -> None:
    cases: list[Any] = [{"test_from": "2030-01-01"}, {"test_from": "1990-01-01"}, {"test_rows": 240}]
    for wish in cases:
        said = " ".join(f"{name} {value}" for name, value in wish.items())
        with pytest.raises(
            UsageError, match=f"No series of 'frame' has both training and test rows with the split {said}; change"
        ):
            femts.load_dataset(several_series(), **wish)


def test_test_from_needs_dates() -> None:
    says = "has no dates, so test_from='2008' cannot be used; use test_rows=N"
    for table in (
        monthly(60).assign(date=range(60)),
        several_series().assign(ds=several_series().groupby("unique_id").cumcount()),
    ):
        with pytest.raises(UsageError, match=says):
            femts.load_dataset(table, test_from="2008")


def test_split_rule_roundtrip() -> None:
    for rule in (SplitRule(), SplitRule((0.8, 0.1, 0.1)), SplitRule(val_rows=3, test_from="2020")):
        assert SplitRule.from_dict(rule.to_dict()) == rule


@pytest.mark.parametrize("model", ["fem_sm_ridge", "dlinear", "seasonal_naive", "patchtst"])
def test_three_years_of_months_suffice(model: str) -> None:
    settings = {"patchtst": {"model.patch_len": 4, "model.stride": 2}}
    quick: dict[str, Any] = {"seq_len": 12, "max_steps": 4, "device": "cpu", "settings": settings.get(model, {})}
    run = femts.train(monthly(36), model, 12, **quick)
    assert run.data["split"] == {"train": [0, 18], "val": [18, 27], "test": [27, 36]}
    assert run.metrics["test"]["windows"] == run.metrics["val"]["windows"] == 9
    forecast = run.predict(monthly(36))
    assert len(forecast) == 12 and np.isfinite(forecast["y"]).all()


@pytest.mark.parametrize("model", ["ridge", "fem_sm"])
def test_validation_and_test_rows_do_not_affect_weights(model: str) -> None:
    def spoilt(frame: pd.DataFrame, rows: Any) -> pd.DataFrame:
        return frame.assign(y=frame["y"].mask(rows, 1000.0))

    later = several_series().groupby("unique_id").cumcount(ascending=False) < 4
    tables = [
        (monthly(36), spoilt(monthly(36), np.arange(36) >= 18), 12),
        (several_series(), spoilt(several_series(), later), 4),
    ]
    for table, other, steps in tables:
        quick: dict[str, Any] = {"seq_len": 6, "max_steps": 4, "device": "cpu", "settings": {"training.keep": "last"}}
        one, two = (femts.train(each, model, steps, **quick).model.state_dict().values() for each in (table, other))
        assert all(torch.equal(*pair) for pair in zip(one, two, strict=True))


@pytest.mark.parametrize(
    ("model", "wish"), [("fem_sm --max-steps 2", "--test-from 2017-01-01"), ("ridge", "--test-rows 12")]
)
def test_panel_with_a_requested_split(wish: str, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    several_series().to_csv("many.csv", index=False)
    assert main(f"train --dataset many.csv --model {model} --horizon 4 --seq-len 12 --out run {wish}".split()) == 0
    forecaster = femts.load("run")
    assert np.isfinite(forecaster.evaluate()["mse"])
    history = several_series().query("ds < '2016-01-01'")  # none of it is in the test part
    assert np.isfinite(forecaster.predict(history)["y"]).all()
    assert main("predict run many.csv -o out.csv".split()) == 0
    assert set(pd.read_csv("out.csv")["unique_id"]) == set(SERIES)
