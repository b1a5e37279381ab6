"""A few forecasts of test windows, small enough for a record."""

from __future__ import annotations

from typing import Any

import numpy as np

from femts.data.dataset import Dataset
from femts.forecaster import Forecaster

WINDOWS = 2


def sample_forecasts(forecaster: Forecaster, data: Dataset) -> list[dict[str, Any]]:
    """The first and last test window in the last channel, which is the target of the ETT sets.

    Each has the row that the forecast begins at, and in raw units, with five digits, its recent past (at most as long as the
    horizon), what happened and what was forecast.
    """
    values, (first, stop) = data.values, data.split.test
    look_back, steps = forecaster.config.seq_len, forecaster.config.pred_len
    samples = []
    for row in np.linspace(first, stop - steps, WINDOWS).astype(int).tolist():
        forecast = forecaster.predict_array(values[None, row - look_back : row])[0]
        past = values[max(row - look_back, row - steps) : row]
        series = {"past": past, "truth": values[row : row + steps], "forecast": forecast}
        samples.append(
            {"row": row, "channel": forecaster.columns[-1], **{name: _short(x[:, -1]) for name, x in series.items()}}
        )
    return samples


def _short(values: np.ndarray) -> list[float]:
    return [float(f"{value:.5g}") for value in values]
