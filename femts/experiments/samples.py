"""A few forecasts of test windows, small enough for a record."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from femts.analysis.audit.checks import scored_forecasts
from femts.data.dataset import Dataset
from femts.data.windows import part_windows
from femts.forecaster.forecaster import Forecaster

WINDOWS = 2


def sample_forecasts(forecaster: Forecaster, data: Dataset) -> list[dict[str, Any]]:
    """The first and last test window in the last target, which is the one of the ETT sets.

    Each has the row that the forecast begins at, and in raw units, with five digits, its recent
    past (at most as long as the horizon), what happened (None where that is not known) and what was
    forecast.
    """
    look_back, steps, channel = forecaster.config.seq_len, forecaster.config.pred_len, data.targets - 1
    values, first = data.values[:, channel], data.split.test[0]
    windows = part_windows(data, forecaster.preprocess, "test", look_back, steps).to(forecaster.device)
    numbers = torch.linspace(0, len(windows) - 1, WINDOWS).long()
    scaled = scored_forecasts(forecaster.model, windows, numbers).cpu().double().numpy()
    samples = []
    for number, forecast in zip(numbers.tolist(), forecaster.preprocess.inverse(scaled), strict=True):
        row = first + number
        past = values[max(row - look_back, row - steps) : row]
        series = {"past": past, "truth": values[row : row + steps], "forecast": forecast[:, channel]}
        samples.append(
            {"row": row, "channel": data.columns[channel], **{name: _short(x) for name, x in series.items()}}
        )
    return samples


def _short(values: np.ndarray) -> list[float | None]:
    return [None if np.isnan(value) else float(f"{value:.5g}") for value in values]
