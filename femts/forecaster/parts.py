"""Parts of a forecaster that forecasting, scoring and exporting it need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import torch

from femts.data.dataset import Dataset
from femts.data.panel_preprocess import PanelPreprocess
from femts.data.preprocess import Preprocess
from femts.evaluation.intervals import Intervals
from femts.forecaster.run_folder import RunConfig
from femts.models.base import ForecastModel


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

    def training_data(self) -> Dataset: ...


class PanelParts(Network, Protocol):
    """Attributes of `femts.forecaster.panel_forecaster.PanelForecaster`."""

    preprocess: PanelPreprocess
    freq: str
