"""Parts of a forecaster that forecasting, scoring and exporting it need."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import pandas as pd
import torch

from femts.data.dataset import Dataset
from femts.data.panel_preprocess import PanelPreprocess
from femts.data.preprocess import Preprocess
from femts.errors import UsageError
from femts.evaluation.intervals import Intervals
from femts.forecaster.run_folder import RunConfig
from femts.models.base import ForecastModel
from femts.text import shown

Source = Dataset | pd.DataFrame | str | Path  # of data, as `load_dataset` takes them


class Network(Protocol):
    """Attributes that every forecaster has; `femts.forecaster.forecaster.Forecaster` describes them."""

    model: ForecastModel
    config: RunConfig
    data: Mapping[str, Any]
    intervals: Intervals | None

    @property
    def device(self) -> torch.device: ...
    @property
    def columns(self) -> tuple[str, ...]: ...
    @property
    def targets(self) -> tuple[str, ...]: ...


class Parts(Network, Protocol):
    """Attributes of a forecaster of one series of channels."""

    preprocess: Preprocess
    freq: str | None
    until: str | None

    @property
    def scored(self) -> Parts | None: ...
    def training_data(self, data_root: str | Path | None = None) -> Dataset: ...


class PanelParts(Network, Protocol):
    """Attributes of `femts.forecaster.panel_forecaster.PanelForecaster`."""

    preprocess: PanelPreprocess
    freq: str


def check_device(device: object) -> torch.device:
    """`device` as one of torch; UsageError for what is none, or is not there."""
    try:
        place = torch.device(device)  # type: ignore[call-overload]
        torch.empty(0, device=place)
    except (RuntimeError, TypeError, ValueError, AssertionError, NotImplementedError) as error:
        raise UsageError(f"Device '{shown(device)}' is not there; take cpu, or one that femts doctor lists.") from error
    return place
