"""Splits as a user wishes them, and what is done for short tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

import femts
from femts.data.dataset import for_horizon
from femts.data.split_rule import SplitRule
from femts.data.splits import Split, horizon_split, ratio_split
from femts.data.windows import Windows
from femts.errors import UsageError


def monthly(rows: int) -> pd.DataFrame:
    month = np.arange(rows)
    dates = pd.date_range("2000-01-01", periods=rows, freq="MS")
    return pd.DataFrame(
        {"date": dates, "y": 10 + np.sin(month * np.pi / 6) + np.random.default_rng(0).normal(0, 0.1, rows)}
    )


@pytest.mark.parametrize(
    ("wish", "split"),
    [
        ({}, ((0, 84), (84, 96), (96, 120))),
        ({"split": ".8,.1,.1"}, ((0, 96), (96, 108), (108, 120))),
        ({"split": [0.5, 0.25, 0.25]}, ((0, 60), (60, 90), (90, 120))),
        ({"test_rows": 12}, ((0, 96), (96, 108), (108, 120))),
        ({"test_rows": "12", "val_rows": 30}, ((0, 78), (78, 108), (108, 120))),
        ({"val_rows": 6}, ((0, 90), (90, 96), (96, 120))),
        ({"test_from": "2008-07-01"}, ((0, 84), (84, 102), (102, 120))),
    ],
)
def test_a_split_is_what_was_asked_for(wish: dict[str, object], split: tuple[tuple[int, int], ...]) -> None:
    data = femts.load_dataset(monthly(120), **wish)  # type: ignore[arg-type]
    assert data.split == Split(*split)
    assert data.schema.split.given == bool(wish)
    assert for_horizon(data, 12).split == (data.split if wish else horizon_split(data.split, 12))


@pytest.mark.parametrize(
    ("wish", "says"),
    [
        ({"split": ".8,.2"}, "'.8,.2' is not three shares that add up to 1; write .8,.1,.1"),
        ({"split": ".8,.1,.2"}, "not three shares"),
        ({"split": "most,.1,.1"}, "not three numbers"),
        ({"split": 3}, "'3' is not three numbers"),
        ({"test_rows": 0}, "'test_rows' is 0; give a whole number"),
        ({"test_rows": "few"}, "'test_rows' is few; give"),
        ({"test_rows": 12, "test_from": "2008-07-01"}, "by test_rows and by test_from; give one"),
        ({"split": ".8,.1,.1", "val_rows": 3}, "by shares and by rows or a date as well"),
        ({"test_rows": 120}, "none for the training part"),
        ({"test_from": "2030-01-01"}, "2030-01-01 is not within 'frame', 2000-01-01 .* to 2009-12-01"),
        ({"test_from": "soon"}, "'soon' cannot be read; write it as --test-from 2024-01-31"),
        ({"splitt": 1}, "Unknown argument 'splitt' of the data; did you mean 'split'"),
    ],
)
def test_a_split_that_leaves_nothing_is_refused(wish: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        femts.load_dataset(monthly(120), **wish)  # type: ignore[arg-type]


def test_numbers_have_no_date_to_begin_from() -> None:
    with pytest.raises(UsageError, match="has no dates, so --test-from 2008 says nothing; give --test-rows N"):
        femts.load_dataset(monthly(60).assign(date=range(60)), test_from="2008")


def test_a_rule_is_stored_and_read_again() -> None:
    for rule in (SplitRule(), SplitRule((0.8, 0.1, 0.1)), SplitRule(val_rows=3, test_from="2020")):
        assert SplitRule.from_dict(rule.to_dict()) == rule


@pytest.mark.parametrize("rows", range(28, 260))
def test_a_short_table_keeps_whole_horizons_of_its_end(rows: int) -> None:
    split = horizon_split(ratio_split(rows), 12)
    assert all(split.windows(part, 3, 12) >= 1 for part in ("train", "val", "test"))
    assert split.train[1] == split.val[0] and split.val[1] == split.test[0] and split.test[1] == rows
    if rows >= 240:
        assert split == ratio_split(rows)


def test_windows_beyond_short_training_rows_count_only_within_them() -> None:
    series = torch.arange(10.0)[:, None]
    windows = Windows(series, 4, 6, 0, 10, overhang=5)
    assert len(windows) == 6
    x, y = windows.gather(torch.arange(6))
    seen = windows.seen(torch.arange(6))
    assert seen is not None and seen.shape == (6, 10, 1)
    for number in range(6):
        assert x[number, :, 0].tolist() == list(range(number, number + 4))
        there = [row for row in range(number + 4, number + 10) if row < 10]
        assert y[number, : len(there), 0].tolist() == there
        assert seen[number, 4:, 0].tolist() == [row < 10 for row in range(number + 4, number + 10)]


@pytest.mark.parametrize(
    "model", ["fem_sm", "ridge", "fem_sm_ridge", "dlinear", "seasonal_naive", "naive", "sm", "patchtst"]
)
def test_three_years_of_months_train_every_kind_of_model(model: str) -> None:
    settings = {"model.patch_len": 4, "model.stride": 2} if model == "patchtst" else {}
    run = femts.train(
        monthly(36),
        model,
        12,
        seq_len=11,
        max_steps=4,
        device="cpu",
        settings=settings | ({"model.season": 11} if model == "seasonal_naive" else {}),
    )
    assert run.data["split"] == {"train": [0, 12], "val": [12, 24], "test": [24, 36]}
    assert run.metrics["test"]["windows"] == run.metrics["val"]["windows"] == 1
    forecast = run.predict(monthly(36))
    assert len(forecast) == 12 and np.isfinite(forecast["y"]).all()


def test_what_lies_beyond_the_training_rows_teaches_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of validation and test do not reach the weights, though windows reach out to them."""
    table = monthly(36)
    other = table.assign(y=table["y"].where(table.index < 12, 1000.0))
    for model in ("ridge", "dlinear", "fem_sm"):
        weights = [
            femts.train(each, model, 12, seq_len=6, max_steps=4, device="cpu", settings={"training.keep": "last"}).model
            for each in (table, other)
        ]
        for one, two in zip(weights[0].state_dict().values(), weights[1].state_dict().values(), strict=True):
            assert torch.equal(one, two), model
