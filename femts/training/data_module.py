"""Training data: split, scaled, and cut into windows of each split."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from inspect import signature
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from torch import Tensor

from femts.config.training import TrainingConfig
from femts.data.dataset import Dataset
from femts.data.loading import load_dataset
from femts.data.preprocess import Preprocess
from femts.data.resident import ScaledSeries
from femts.data.schema import Reading
from femts.data.splits import PARTS, check_room
from femts.data.windows import Windows, check_windows, part_windows, resident, training_rows
from femts.errors import UsageError, suggest
from femts.forecaster.run_folder import RunConfig
from femts.models.base import ForecastModel
from femts.text import arguments, quote
from femts.training.resolve import horizon

# Candidates and look-backs are tried on the same data, and fitting thousands of series takes minutes.
_FITTED = WeakKeyDictionary[Dataset, dict[Any, Preprocess]]()
_SHARED = WeakKeyDictionary[Dataset, dict[Any, ScaledSeries]]()


@contextmanager
def sharing(folds: Sequence[Dataset]) -> Iterator[None]:
    """Context in which several models are tried on `folds`, whose scaled rows are computed once for those that read them
    alike and follow one another."""
    _SHARED.update({fold: {} for fold in folds})
    try:
        yield
    finally:
        for fold in folds:
            _SHARED.pop(fold, None)


@dataclass(frozen=True, eq=False)
class DataModule:
    """Data of a training.

    Attributes:
        data: the split dataset.
        preprocess: preprocessing fitted to the training rows.
        windows: windows by split, including the training windows.
    """

    data: Dataset
    preprocess: Preprocess
    windows: dict[str, Windows]

    @classmethod
    def of(
        cls, data: Dataset, config: RunConfig, parts: Sequence[str] = PARTS, units: Preprocess | None = None
    ) -> DataModule:
        """Data of a run with `config`, with windows of `parts`.

        `units` keeps the scale and the codes of static covariates of the run on which the choices were made, since
        penalties, learning rates and errors depend on the scale. None fits them to the training rows.

        Raises:
            UsageError: The lengths do not fit the data.
        """
        lengths, windows = (config.seq_len, config.pred_len), dict[str, Windows]()
        for part in parts:  # checked before many series are fitted
            check_windows(data, part, *lengths, config.looks_within(data.season))
        fitted, asked = _FITTED.setdefault(data, {}), (units, config.reads, config.training.scaler)
        if asked not in fitted:
            fitted[asked] = Preprocess.fit(data, *asked)
        preprocess = fitted[asked].reading(config.reads_raw)
        kept, key = _SHARED.get(data), (*asked, config.reads_raw)
        rows = resident(data, preprocess) if kept is None or key not in kept else kept[key]
        if kept is not None:  # of one model at a time, as the rows may be large
            kept.clear()
            kept[key] = rows
        for part in parts:
            windows[part] = part_windows(data, preprocess, part, *lengths, rows)
        return cls(data, preprocess, windows)

    def fit_closed_form(self, model: ForecastModel) -> None:
        """Fit the closed-form parts of `model` to the training rows."""
        model.prepare(*self.rows_for(model))

    def rows_for(self, model: ForecastModel) -> tuple[Tensor, Tensor | None]:
        """Training rows to which closed-form parts of `model` are fitted; see `training_rows`."""
        return training_rows(
            self.data, self.windows["train"], max(model.config.seq_len, int(self.data.train_lengths.max()))
        )


def as_dataset(
    source: Any, data_root: str | Path | None, reading: Mapping[str, Any], caller: Callable[..., Any]
) -> Dataset:
    """A loaded dataset, or anything that `load_dataset` accepts, read with the keywords `reading`.

    Args:
        source: dataset or table.
        data_root: folder with the files of the catalogue.
        reading: further keywords that a user gave to the function `caller`.
        caller: function whose arguments messages suggest.

    Raises:
        UsageError: As in `load_dataset`; a keyword is unknown; or a loaded dataset is given with keywords.
    """
    unknown = next((name for name in reading if name not in Reading.__annotations__), None)
    if unknown is not None:
        if unknown in (each.name for each in fields(TrainingConfig)):
            settings = {"settings": {f"training.{unknown}": reading[unknown]}}
            text = f"Unknown argument '{unknown}'; pass it as {arguments(settings)}."
            raise UsageError(text, argument=unknown, value=reading[unknown], remedy={unknown: None, **settings})
        own = [name for name, each in signature(caller).parameters.items() if each.kind is not each.VAR_KEYWORD]
        if unknown == "horizon" and "pred_len" in own:  # what predict and the command line call it
            text = f"Unknown argument 'horizon'; pass it as {arguments({'pred_len': reading[unknown]})}."
            remedy = {unknown: None, "pred_len": reading[unknown]}
            raise UsageError(text, argument=unknown, value=reading[unknown], remedy=remedy)
        text = f"Unknown argument '{quote(unknown)}'{suggest(unknown, [*own, *Reading.__annotations__])}"
        raise UsageError(text, argument=unknown, value=reading[unknown], remedy={unknown: None})
    if not isinstance(source, Dataset):
        return load_dataset(source, data_root, **reading)  # type: ignore[misc]
    if reading:
        name, value = next(iter(reading.items()))
        text = f"Argument '{name}' says how to read a table, but the dataset is already loaded; give it to femts.load_dataset."
        raise UsageError(text, argument=name, value=value, remedy=dict.fromkeys(reading))
    return source


def split_for(data: Dataset, pred_len: int | str | None) -> Dataset:
    """The data, split for this horizon; raise UsageError if a table is too short for it."""
    steps = horizon(data, pred_len).steps
    if not data.fixed_split:
        check_room(data.rows, quote(data.name))
    return data.for_horizon(steps)
