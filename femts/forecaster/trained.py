"""A trained model with what every forecaster has, whatever data it forecasts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import pandas as pd
import torch

from femts.config.arguments import check_path
from femts.data.catalog import CATALOG
from femts.data.dataset import Dataset
from femts.data.panel import Panel
from femts.data.panel_preprocess import PanelPreprocess
from femts.data.preprocess import Preprocess
from femts.errors import UsageError
from femts.evaluation.intervals import Intervals
from femts.files import locked
from femts.forecaster import run_folder
from femts.forecaster.describe import describe
from femts.forecaster.restore import Restored, weights_bytes
from femts.forecaster.run_folder import INTERVALS, PREPROCESS, SCORED, SCORED_WEIGHTS, WEIGHTS, RunConfig
from femts.models.base import ForecastModel
from femts.text import shown

Source = Dataset | pd.DataFrame | str | Path  # of data, as `load_dataset` takes them

P = TypeVar("P", Preprocess, PanelPreprocess)
D = TypeVar("D", Dataset, Panel)


@dataclass(eq=False, repr=False)
class Trained(ABC, Generic[P, D]):
    """A model with everything it needs to forecast new data in raw units.

    Attributes:
        model: the network, in scaled units.
        config: what was trained, and how.
        preprocess: what turns raw values into what the model reads; fitted on the training rows, and never again.
        freq: step between stamps, a pandas frequency; None for data without dates.
        data: hash and split of the training data, to know it again.
        metrics: scores and circumstances of the training, as in `metrics.json`.
        validations: one row for each validation, as in `metrics.csv`.
        intervals: what bounds a forecast, calibrated on the validation part; None for a run that has none.
        until: stamp of the last row that was learned from, as text; None without stamps.
        series_until: by name of a panel's series, the stamp of its last row that was learned from or chosen on.
        scored: the one that scores and errors for intervals are of, beside one that learned from all rows; else None.
    """

    model: ForecastModel
    config: RunConfig
    preprocess: P
    freq: str | None
    data: Mapping[str, Any]
    metrics: Mapping[str, Any] = field(default_factory=dict)
    validations: Sequence[Mapping[str, Any]] = ()
    intervals: Intervals | None = None
    until: str | None = None
    series_until: Mapping[str, str] = field(default_factory=dict)
    scored: Self | None = None
    _dataset: D | None = None

    def __repr__(self) -> str:
        return describe(self.config, self.subject, self.freq, self.metrics, self.intervals)

    @property
    @abstractmethod
    def subject(self) -> str:
        """Series or columns that are forecast, in words."""

    @property
    def device(self) -> torch.device:
        """Device of the model's weights, trained or fitted; the CPU for one without."""
        weights = chain(self.model.parameters(), self.model.buffers())
        return next((weight.device for weight in weights), torch.device("cpu"))

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the C channels, in the model's order."""
        return self.preprocess.columns

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of the T columns that are forecast."""
        return self.columns[: len(self.columns) - len(self.config.schema.roles.past)]

    @property
    def season(self) -> int:
        """Steps in the season of the training data."""
        entry, schema = CATALOG.get(self.config.source or ""), self.config.schema
        return entry.season if entry is not None and not schema.season else schema.season_of(self.freq)

    @property
    def members(self) -> tuple[Self, ...]:
        """Forecasters whose mean this one is, in order, each as it was before; empty for any other model."""
        from femts.forecaster.members import members_of  # it reads models, which take long to import

        return members_of(self)

    def to(self, device: torch.device | str) -> Self:
        """Move the model to `device` and return the forecaster; UsageError where that is not there."""
        place = check_device(device)
        self.model.to(place)
        if self.scored is not None:
            self.scored.to(place)
        return self

    def training_data(self, data_root: str | Path | None = None) -> D:
        """The data of the training, loaded again by its name or path.

        Args:
            data_root: where a data set of the catalogue is looked for.

        Returns:
            The data, the same object at every call.

        Raises:
            UsageError: it is gone, has changed, or was passed as an object, which a run does not keep.
        """
        if self._dataset is None:
            self._dataset = self._load_again(data_root)
        return self._dataset

    @abstractmethod
    def _load_again(self, data_root: str | Path | None) -> D:
        """As `training_data`, at the first call."""

    @abstractmethod
    def _own_data(self, dataset: object, data_root: str | Path | None = None) -> D:
        """Data to score it on: `dataset`, or its own where that is None; UsageError where they do not fit."""

    def save(self, folder: str | Path) -> None:
        """Write a run to `folder`, for `load`; UsageError where it is not empty, RunFailure where the disk refuses."""
        place = check_path(folder, "The run folder")
        with locked(place):
            run_folder.check_new_folder(place)
            self.write(place)

    def write(self, folder: Path) -> None:
        """As `save`, over whatever `folder` holds; within it the run of the one that is scored."""
        preprocess, folder = self.preprocess_record(), check_path(folder, "The run folder")
        files = {WEIGHTS: weights_bytes(self.model, preprocess), PREPROCESS: run_folder.json_bytes(preprocess)}
        files |= {} if self.intervals is None else {INTERVALS: self.intervals.to_bytes()}
        if self.scored is not None:
            run_folder.unfinish(folder)  # before its other half changes
            self.scored.write(folder / SCORED)
            files[SCORED_WEIGHTS] = (folder / SCORED_WEIGHTS).read_bytes()
        config = replace(self.config, final=self.scored is not None)
        run_folder.write_run(folder, config, files, self.validations, self.metrics)

    def preprocess_record(self) -> dict[str, Any]:
        """Record of what turns raw data into the model's input, in plain types; `preprocess.json`."""
        until: dict[str, Any] = {} if self.until is None or self.freq is None else {"until": self.until}
        until |= {"series_until": dict(self.series_until)} if self.series_until else {}
        return {**self.preprocess.to_dict(), "freq": self.freq, "data": dict(self.data), **until}

    @classmethod
    def _restored(cls, run: Restored[P]) -> Self:
        """The forecaster of a `run` that was read from its folder, and that which is scored beside it."""
        return cls(**run.fields(), scored=None if run.scored is None else cls(**run.scored.fields()))


Single = Trained[Preprocess, Dataset]
Many = Trained[PanelPreprocess, Panel]


def check_device(device: object) -> torch.device:
    """`device` as one of torch; UsageError for what is none, or is not there."""
    try:
        place = torch.device(device)  # type: ignore[call-overload]
        torch.empty(0, device=place)
    except (RuntimeError, TypeError, ValueError, AssertionError, NotImplementedError) as error:
        raise UsageError(f"Device '{shown(device)}' is not there; take cpu, or one that femts doctor lists.") from error
    return place
