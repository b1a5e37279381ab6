"""What the widths of intervals depend on."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import femts
from femts.evaluation.difficulty import KINDS
from femts.forecaster.forecaster import Forecaster


def hourly(rows: int = 3000) -> pd.DataFrame:
    """Hours of which the later ones of a day are five times as uncertain."""
    hour = np.arange(rows) % 24
    noise = np.random.default_rng(0).standard_normal(rows) * np.where(hour < 12, 0.2, 1)
    return pd.DataFrame({"date": pd.date_range("2024-01-01", periods=rows, freq="h"), "y": 5 + noise})


@pytest.fixture(scope="module")
def fc() -> Forecaster:
    return femts.train(hourly(), "ridge", 72, seq_len=96)


@pytest.mark.parametrize("windows", [None, 64])
def test_the_season_is_found_in_a_part_of_the_windows(fc: Forecaster, windows: int | None) -> None:
    """64 windows span several horizons, although they are fewer than the steps of two."""
    fc.model.most_windows = windows
    made = fc.calibrate(dataset=hourly()).intervals
    assert made is not None
    assert made.windows == windows or windows is None
    assert [KINDS[kind] for kind in made.difficulty.kinds] == ["phase"]
