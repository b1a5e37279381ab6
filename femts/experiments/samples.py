"""A few forecasts of test windows, small enough for a record."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from femts.analysis.audit.checks import scored_forecasts
from femts.data.dataset import Dataset
from femts.data.panel import Panel
from femts.data.windows import PanelWindows
from femts.forecaster.scoring import score_windows
from femts.forecaster.trained import Trained

WINDOWS = 2


def sample_forecasts(forecaster: Trained[Any, Any], data: Dataset | Panel) -> list[dict[str, Any]]:
    """The first and last test window in the last target, which is the one of the ETT sets.

    Each has the row that the forecast begins at, and in raw units, with five digits, its recent
    past (at most as long as the horizon), what happened (None where that is not known) and what was
    forecast; of a panel the name of its series, too.
    """
    look_back, steps, channel = forecaster.config.seq_len, forecaster.config.pred_len, data.targets - 1
    windows = score_windows(forecaster, "test", None, data)
    numbers = torch.linspace(0, len(windows) - 1, WINDOWS).long()
    scaled = scored_forecasts(forecaster.model, windows, numbers).points.cpu().double().numpy()
    samples = []
    for number, forecast in zip(numbers.tolist(), scaled, strict=True):
        said = dict[str, Any]()
        if isinstance(data, Panel):
            assert isinstance(windows, PanelWindows)
            name, row = windows.place(number)
            values, preprocess, said = data.series[name].values, forecaster.preprocess.series[name], {"series": name}
        else:
            values, preprocess, row = data.values, forecaster.preprocess, data.split.test[0] + number
        values = values[:, channel]
        series = {
            "past": values[max(row - look_back, row - steps, 0) : row],
            "truth": values[row : row + steps],
            "forecast": preprocess.inverse(forecast)[:, channel],
        }
        shortened = {name: _short(x) for name, x in series.items()}
        samples.append({"row": row, "channel": data.columns[channel], **said, **shortened})
    return samples


def _short(values: np.ndarray) -> list[float | None]:
    return [None if np.isnan(value) else float(f"{value:.5g}") for value in values]
