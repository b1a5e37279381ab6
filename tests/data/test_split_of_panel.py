"""Splits of a panel as a user wishes them, where its series have ends of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import femts
from femts.cli import main
from femts.data.splits import Split
from femts.errors import UsageError

# Begins and rows of months: no date is within all.
SERIES = {
    "early": ("2000-01-01", 60),
    "long": ("2000-01-01", 240),
    "late": ("2017-06-01", 30),
    "few": ("2016-09-01", 8),
}


def panel() -> pd.DataFrame:
    parts = []
    for k, (name, (first, rows)) in enumerate(SERIES.items()):
        dates, wave = pd.date_range(first, periods=rows, freq="MS"), np.sin(np.arange(rows) * np.pi / 6)
        noise = np.random.default_rng(k).normal(0, 0.1, rows)
        parts.append(pd.DataFrame({"unique_id": name, "ds": dates, "y": 10 + wave + noise}))
    return pd.concat(parts, ignore_index=True)


@pytest.mark.parametrize(
    ("wish", "splits"),
    [
        (
            {"test_from": "2017-01-01"},
            {
                "early": Split((0, 60), (60, 60), (60, 60)),
                "long": Split((0, 168), (168, 204), (204, 240)),
                "late": Split((0, 0), (0, 0), (0, 30)),
                "few": Split((0, 3), (3, 4), (4, 8)),
            },
        ),
        (
            {"test_rows": 12},
            {
                "early": Split((0, 36), (36, 48), (48, 60)),
                "late": Split((0, 14), (14, 18), (18, 30)),
                "few": Split((0, 8), (8, 8), (8, 8)),
            },
        ),
        ({"test_rows": 6}, {"few": Split((0, 2), (2, 2), (2, 8)), "late": Split((0, 18), (18, 24), (24, 30))}),
        (
            {"split": [0.8, 0.1, 0.1]},
            {"few": Split((0, 8), (8, 8), (8, 8)), "late": Split((0, 24), (24, 27), (27, 30))},
        ),
    ],
)
def test_a_series_that_the_wish_leaves_without_test_has_none(wish: dict[str, Any], splits: dict[str, Split]) -> None:
    data = femts.load_dataset(panel(), **wish, panel=True)
    assert {name: data[name].split for name in splits} == splits


@pytest.mark.parametrize(
    ("wish", "says"),
    [
        (
            {"test_from": "2030-01-01"},
            "No series of 'frame' has rows to learn .*, split as test_from 2030-01-01; change",
        ),
        (
            {"test_from": "1990-01-01"},
            "No series of 'frame' has rows to learn .*, split as test_from 1990-01-01; change",
        ),
        ({"test_rows": 240}, "No series of 'frame' has rows to learn .*, split as test_rows 240; change it"),
        ({"test_from": "soon"}, "'soon' cannot be read; write it as --test-from 2024-01-31"),
    ],
)
def test_a_split_without_any_test_is_refused(wish: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        femts.load_dataset(panel(), **wish, panel=True)


def test_the_message_of_a_series_begins_so() -> None:
    numbered = panel().assign(ds=lambda table: table.groupby("unique_id").cumcount())
    with pytest.raises(UsageError, match=r"^Series 'early' has no dates, so --test-from 2017 says nothing"):
        femts.load_dataset(numbered, test_from="2017", panel=True)


@pytest.mark.parametrize("wish", ["--test-from 2017-01-01", "--test-rows 12"])
@pytest.mark.parametrize("model", ["ridge", "fem_sm --max-steps 2", "seasonal_naive"])
def test_it_is_trained_scored_and_forecast(
    wish: str, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    panel().to_csv("many.csv", index=False)
    assert main(f"train --dataset many.csv --model {model} --pred-len 4 --seq-len 12 --out run {wish}".split()) == 0
    forecaster = femts.load("run")
    assert np.isfinite(forecaster.evaluate()["mse"])
    history = panel().query("ds < '2016-01-01'")  # none of it is in the test part
    assert np.isfinite(forecaster.predict(history)["y"]).all()
    assert main("predict run many.csv -o out.csv".split()) == 0
    assert set(pd.read_csv("out.csv")["unique_id"]) == set(SERIES)
