"""Windows that a report carries: packed small, and back again."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
from packed import unpack

from femts.analysis.report.samples import MOST_VALUES, pack, sample_windows
from femts.data.loading import load_dataset
from femts.training.train import train


def test_packed_numbers_come_back() -> None:
    rows = np.array([[1.0, np.nan, 3.0, -2.5], [7.0] * 4, [np.nan] * 4, [-9999.0, 20.0, np.inf, 0.0]])
    back = unpack(pack(rows))
    np.testing.assert_allclose(back[:3], rows[:3], atol=5e-5)
    np.testing.assert_allclose(back[3], [-9999, 20, np.nan, 0], atol=0.1)


def test_many_channels_stay_small() -> None:
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(1000, 400)), columns=[f"c{i}" for i in range(400)])
    frame.insert(0, "date", pd.date_range("2024-01-01", periods=1000, freq="10min"))
    data = load_dataset(frame)
    samples = sample_windows(train(data, "naive", 100, seq_len=300, device="cpu"), data)
    assert samples["past"] == 288  # two days
    values = 288 + 200 + 4 * 100  # history, truth and forecast, and two ends of two levels
    assert (samples["channels"], len(samples["windows"])) == (MOST_VALUES // (4 * values), 4) == (197, 4)
    assert len(json.dumps(samples)) < 2.3e6
