"""Pictures of forecasts as files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from femts.files import write_file
from femts.plotting import forecast_picture, picture_format


def plot_forecast(history: pd.DataFrame, forecast: pd.DataFrame, path: Path, *more: Any, **options: Any) -> Path:
    """Write a picture of a forecast as the command does, `more` and `options` as in `forecast_picture`."""
    kind = picture_format(path)
    write_file(path, forecast_picture(history, forecast, *more, **options).to_bytes(kind))
    return path
