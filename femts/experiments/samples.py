"""A few forecasts of test windows, small enough for a record."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from femts.analysis.audit.checks import scored_forecasts
from femts.data.dataset import Dataset
from femts.forecaster.forecaster import Forecaster
from femts.forecaster.scoring import score_windows

WINDOWS = 2


def sample_forecasts(forecaster: Forecaster, data: Dataset) -> list[dict[str, Any]]:
    """The first and last test window in the last target, which is the one of the ETT sets.

    Each has the row that the forecast begins at, and in raw units, with five digits, its recent
    past (at most as long as the horizon), what happened (None where that is not known) and what was
    forecast; of a panel the name of its series, too.
    """
    look_back, steps, channel = forecaster.config.seq_len, forecaster.config.pred_len, data.n_targets - 1
    windows = score_windows(forecaster, "test", None, data)
    numbers = torch.linspace(0, len(windows) - 1, WINDOWS).long()
    scaled = scored_forecasts(forecaster.model, windows, numbers).points.cpu().double().numpy()
    units = forecaster.preprocess.at(windows.series_of(numbers).cpu().numpy())
    samples = []
    for number, forecast in zip(numbers.tolist(), units.inverse(scaled), strict=True):
        place, row = windows.place(number)
        values = data.values[slice(*data.spans[place])]
        said = {"series": data.series[place]} if data.schema.panel else dict[str, Any]()
        values = values[:, channel]
        series = {
            "past": values[max(row - look_back, row - steps, 0) : row],
            "truth": values[row : row + steps],
            "forecast": forecast[:, channel],
        }
        shortened = {name: _short(x) for name, x in series.items()}
        samples.append({"row": row, "channel": data.columns[channel], **said, **shortened})
    return samples


def _short(values: np.ndarray) -> list[float | None]:
    return [None if np.isnan(value) else float(f"{value:.5g}") for value in values]
