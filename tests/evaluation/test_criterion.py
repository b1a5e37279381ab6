"""Selection criteria of `auto`: MASE and WQL."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from femts import UsageError, load_dataset, train
from femts.evaluation.criterion import losses, units

RNG = np.random.default_rng(0)


def test_wql_is_the_pinball_loss_of_symmetric_intervals() -> None:
    error = RNG.normal(size=(40, 3, 2))
    error[0, 0, 0] = np.nan
    levels = np.arange(1, 10) / 10
    widths = np.nanquantile(np.abs(error), np.abs(2 * levels - 1), axis=(0, 1))
    past = -error - (np.sign(levels - 0.5)[:, None] * widths)[:, None, None]  # of targets at 0 beyond each quantile
    by_hand = 2 * np.maximum(levels[:, None, None, None] * past, (levels - 1)[:, None, None, None] * past).mean(0)
    np.testing.assert_allclose(losses("wql", error), by_hand)


def test_units_of_mase_and_wql() -> None:
    stamps = pd.date_range("2020-01-01", periods=120, freq="D")
    table = pd.concat(
        pd.DataFrame({"id": name, "date": stamps, "y": size * (10 + RNG.normal(size=120))})
        for name, size in (("small", 1.0), ("large", 50.0))
    )
    data = load_dataset(table).for_horizon(7)
    fc = train(data, "seasonal_naive", 7)
    scale, mean = fc.preprocess.scaler.scale[:, :1], fc.preprocess.scaler.mean[:, :1]
    series, raw = np.array([1, 0]), np.stack([np.full((7, 1), 500.0), np.full((7, 1), 10.0)])
    targets = (raw - mean[series][:, None]) / scale[series][:, None]
    for number, (first, stop) in enumerate(data.part("train")):
        change = np.abs(data.values[first:stop][7:, 0] - data.values[first:stop][:-7, 0]).mean()
        np.testing.assert_allclose(
            units("mase", data, fc.preprocess, np.array([number]), targets)[0], [scale[number] / change]
        )
    np.testing.assert_allclose(
        units("wql", data, fc.preprocess, series, targets)[:, 0], scale[series] / np.abs(raw).mean()
    )


@pytest.mark.parametrize("metric", ["mase", "wql"])
def test_auto_uses_the_given_metric(metric: str) -> None:
    stamps = pd.date_range("2020-01-01", periods=60, freq="MS")
    table = pd.DataFrame({"date": stamps, "y": 10 + np.arange(60) % 12 + RNG.normal(size=60)})
    made = train(table, "auto", 6, time_limit="5s", settings={"training.metric": metric}, refit=False)
    assert made.metrics["auto"]["metric"] == metric and made.metrics["auto"]["error"] > 0
    with pytest.raises(UsageError, match=f"'{metric}' requires model='auto'"):
        train(table, "ridge", 6, settings={"training.metric": metric})
