"""Outset of a training: data that are split, a model with its first weights, windows, and a folder to work in."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from femts.data.dataset import Dataset
from femts.data.preprocess import Preprocess
from femts.data.splits import PARTS, check_room
from femts.data.windows import Windows, check_windows, part_windows, training_rows
from femts.errors import UsageError
from femts.evaluation.memory import kept_memory
from femts.files import locked
from femts.forecaster.forecaster import Forecaster
from femts.forecaster.run_folder import RunConfig
from femts.mixers.ops.precision import full_precision
from femts.models.base import ForecastModel
from femts.models.registry import build_model
from femts.training.device import Place
from femts.training.resolve import horizon


@dataclass(frozen=True, eq=False)
class Outset:
    """All that a training begins with.

    Attributes:
        data: split as it is trained on.
        config: of the run.
        preprocess: fitted on the training rows.
        windows: by part, those of the training among them.
    """

    data: Dataset
    config: RunConfig
    preprocess: Preprocess
    windows: dict[str, Windows]

    @classmethod
    def of(
        cls, data: Dataset, config: RunConfig, parts: Sequence[str] = PARTS, units: Preprocess | None = None
    ) -> Outset:
        """The outset of a run of `config` on `data`, with windows of `parts`.

        Values keep the `units`, and static columns the codes, of the run by which this one was chosen: a penalty, a
        learning rate and errors mean the same in no others. None fits them to the training rows.

        Raises:
            UsageError: lengths that do not fit the data.
        """
        lengths, windows = (config.seq_len, config.pred_len), dict[str, Windows]()
        for part in parts:  # before many series are fitted
            check_windows(data, part, *lengths, config.reads_raw)
        preprocess = Preprocess.fit(data, units, config.reads).reading(config.reads_raw)
        for part in parts:
            windows[part] = part_windows(data, preprocess, part, *lengths, windows.get("train"))
        return cls(data, config, preprocess, windows)

    def forecaster(self) -> Forecaster:
        """A forecaster whose model has its first weights, which follow from the seed alone."""
        torch.manual_seed(self.config.training.seed)
        model, data = _initial_model(self.config), self.data
        made = Forecaster(model, self.config, self.preprocess, data.freq, data.record, _dataset=data)
        made.until, made.series_until = data.learned_last, tuple(data.learned_until(1))
        return made

    def fit_closed_form(self, model: ForecastModel) -> None:
        """Fit what `model` has in closed form to the training rows."""
        distance = max(self.config.seq_len, int(self.data.train_lengths.max()))
        model.prepare(*training_rows(self.data, self.windows["train"], distance))


def ready(data: Dataset, pred_len: int | str | None) -> Dataset:
    """The data, split for this horizon."""
    steps = horizon(data, pred_len).steps
    if not data.schema.panel and not data.fixed_split:
        check_room(data.rows, steps, data.name)
    return data.for_horizon(steps)


@contextmanager
def at_place(place: Place) -> Iterator[None]:
    """Around a training: memory is kept, and the caller's random state stays as it was."""
    devices = [torch.cuda.current_device()] if place.device == "cuda" else []
    with torch.random.fork_rng(devices=devices), kept_memory(place.device), full_precision(place.device):
        yield


@contextmanager
def working_folder(out: str | Path | None, place: Place) -> Iterator[Path | None]:
    """The run folder, held against others; several processes without one meet in a temporary folder."""
    if out is not None:
        with locked(Path(out)):
            yield Path(out)
    elif place.devices > 1:
        with tempfile.TemporaryDirectory(prefix="femts-") as folder:
            yield Path(folder)
    else:
        yield None


def _initial_model(config: RunConfig) -> ForecastModel:
    try:
        return build_model(config.model, config.model_config, config.quantiles)
    except UsageError:
        raise
    except ValueError as error:  # settings that each may be right, but not together
        raise UsageError(f"Model '{config.model}' cannot be built with these settings: {error}.") from error
