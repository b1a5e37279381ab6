"""Parts of a forecaster that forecasting, scoring and exporting it need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import torch

from femts.data.dataset import Dataset
from femts.data.preprocess import Preprocess
from femts.evaluation.intervals import Intervals
from femts.forecaster.run_folder import RunConfig
from femts.models.base import ForecastModel


class Parts(Protocol):
    """Attributes of `femts.forecaster.forecaster.Forecaster`, which describes them."""

    model: ForecastModel
    config: RunConfig
    preprocess: Preprocess
    freq: str | None
    data: Mapping[str, Any]
    intervals: Intervals | None

    @property
    def device(self) -> torch.device: ...
    @property
    def columns(self) -> tuple[str, ...]: ...
    @property
    def targets(self) -> tuple[str, ...]: ...
    def training_data(self) -> Dataset: ...
