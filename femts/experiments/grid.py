"""A table is a grid of cells; a cell is one training run, decided by what it says and by nothing else."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from femts.config.model import AUTO
from femts.data.protocols import check_protocol
from femts.errors import UsageError
from femts.experiments.job import Job, RecordForm
from femts.experiments.subject import Subject

if TYPE_CHECKING:
    from femts.data.dataset import Dataset

# Settings that change where and how fast a cell runs, or how long it may, but not what it is.
PLACE = ("device", "devices", "compile", "max_time", "eval_batch_size")
PLAIN = re.compile(r"[\w.+-]{0,19}\w", re.ASCII)  # a value that every system takes in a folder's name, at its end too
LONGEST = 80  # characters of settings in it; some systems allow 255 for a name


@dataclass(frozen=True)
class Cell(Job):
    """One run of the table, as it was asked for.

    Attributes:
        dataset: name of the catalogue, or of a file without its ending.
        model: registered name.
        pred_len: horizon in steps.
        seed: of weights, order and dropout.
        protocol: what fills in the look-back.
        seq_len: look-back in steps; None leaves it to the protocol.
        settings: `model.*` and `training.*` that differ from the model's own recipe.
        own: for a file, or a set of the catalogue that is read in one's own way, its `sha256` and the arguments of
            `load_dataset` that find it again, in plain types.
    """

    dataset: str
    model: str
    pred_len: int
    seed: int = 42
    protocol: str = "paper"
    seq_len: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    own: Mapping[str, Any] | None = None

    @property
    def variant(self) -> str:
        """The recipe as part of a path: the protocol, and where something differs from it what does,
        as `paper-training.max_steps=3000`, or a hash of that where it is long or not plain."""
        changes = {
            **({"seq_len": str(self.seq_len)} if self.seq_len else {}),
            **{k: str(v) for k, v in self.settings.items()},
        }
        if not changes:
            return self.protocol
        words = ",".join(f"{key}={value}" for key, value in sorted(changes.items()))
        plain = len(words) <= LONGEST and all(map(PLAIN.fullmatch, changes.values()))
        return f"{self.protocol}-{words if plain else _hash(changes)}"

    @property
    def path(self) -> str:
        """Path of its record in a folder of results, without suffix. The name of data of one's own
        has a hash of what they hold and of how they are read, so changed data make new cells; where
        their file lies makes no difference."""
        data = self.dataset
        if self.own is not None:
            data += f"-{_hash({key: value for key, value in self.own.items() if key != 'source'})}"
        return f"{self.variant}/{data}/{self.model}-{self.pred_len}-seed{self.seed}"

    @property
    def form(self) -> RecordForm:
        from femts.experiments.record_rules import FORM

        return FORM

    @property
    def source(self) -> str:
        return self.dataset

    def notes(self, data_root: Path | None) -> Sequence[str]:
        return self.load(data_root).notes

    def check_is_of(self, record: Mapping[str, Any]) -> None:
        from femts.experiments.record_rules import check_is_of

        check_is_of(record, self)

    def run(self, work: Path, device: str, data_root: str | None) -> dict[str, Any]:
        from femts.experiments.record import train_cell

        return train_cell(self, work, device, data_root)

    def summary(self, record: Mapping[str, Any]) -> str:
        return f"test MSE {record['test']['mse']:.4f}"

    def load(self, data_root: str | Path | None = None) -> Dataset:
        """The data.

        Raises:
            UsageError: it is not there, or a file of one's own has changed since the cell was made.
        """

        from femts.data.loading import load_dataset

        if self.own is None:
            return load_dataset(self.dataset, data_root)
        reading = {key: value for key, value in self.own.items() if key not in ("source", "sha256")}
        data = load_dataset(self.own["source"], data_root, **reading)
        if data.sha256 != self.own["sha256"]:
            raise UsageError(f"File {data.source} has changed since the table was begun; call 'femts table' again.")
        return data


def _hash(what: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:8]


@dataclass(frozen=True)
class Grid:
    """Axes of a table: its cells are all combinations.

    Attributes:
        datasets: names of the catalogue, and files.
        models: registered names.
        pred_lens: horizons in steps; empty for those that suit each data set.
        seeds: of weights, order and dropout.
        protocol: what fills in a look-back of None; itself None where each data set has its own.
        seq_lens: look-backs in steps, of which validation chooses; those that do not fit a data set are left out.
            `auto` offers each data set some that fit it.
        settings: `model.*` and `training.*` of all cells.
        reading: how data are read, arguments of `load_dataset`.
        choices: values of settings by key, of whose combinations validation chooses; a model that lacks a setting
            runs without it.
    """

    datasets: Sequence[str]
    models: Sequence[str]
    pred_lens: Sequence[int] = ()
    seeds: Sequence[int] = (42,)
    protocol: str | None = None
    seq_lens: Sequence[int | None] | Literal["auto"] = (None,)
    settings: Mapping[str, Any] = field(default_factory=dict)
    reading: Mapping[str, Any] = field(default_factory=dict)
    choices: Mapping[str, Sequence[Any]] = field(default_factory=dict)


def make_grid(grid: Grid, data_root: str | Path | None = None) -> list[Cell]:
    """All combinations, dataset by dataset and horizon by horizon, so that whole rows are finished first.

    Raises:
        UsageError: an unknown dataset, model, protocol or setting, a setting that only says where to run, data that
            cannot be read, or not by a model, two of one name, or a horizon that does not fit them.
    """
    _check_grid(grid)
    recipes = {model: _recipes(grid, model) for model in grid.models}
    subjects = _subjects(grid, data_root)
    cells = dict[str, Cell]()
    for data, pred_len in [(subject, steps) for subject in subjects for steps in grid.pred_lens or subject.horizons]:
        protocol = data.protocol(grid.protocol)
        look_backs = data.look_backs(grid.seq_lens, pred_len, protocol)
        every = [(model, recipe) for model in grid.models for recipe in recipes[model]]
        for seed, (model, recipe), (seq_len, steps) in product(grid.seeds, every, look_backs.items()):
            changes = _changes(model, recipe, seq_len=steps, pred_len=pred_len, n_channels=data.channels)
            cell = Cell(data.name, model, pred_len, seed, protocol, seq_len, changes, data.own)
            cells.setdefault(cell.path, cell)  # two recipes may say the same
    return list(cells.values())


def _check_grid(grid: Grid) -> None:
    """UsageError for what no data are needed to refuse."""
    from femts.training.resolve import check_past

    if grid.protocol is not None:  # a part of paths, also where a look-back is given
        check_protocol(grid.protocol)
    for model in grid.models:
        if model != AUTO:
            check_past(model, grid.reading.get("past", ()))
    for key in (*grid.settings, *grid.choices):
        if key.removeprefix("training.") in (*PLACE, "seed"):
            raise UsageError(f"Setting '{key}' is no part of a cell; it has an option of 'femts table', or none there.")
        if key in grid.settings and key in grid.choices:
            raise UsageError(f"Setting '{key}' is given to --set and to --choose; leave one of them out.")
    if "model.windows" in grid.choices:
        raise UsageError(
            "Setting 'model.windows' changes which windows are scored, so validation cannot choose it; give it one "
            "value, by --set."
        )
    if any(seed < 0 for seed in grid.seeds):
        raise UsageError(f"Seed {min(grid.seeds)} is negative; give whole numbers of at least 0.")


def _recipes(grid: Grid, model: str) -> list[dict[str, Any]]:
    """Settings of `model` for each combination of the choices that it has; one that no model has, it is refused by."""
    lacked = {key for key in grid.choices if _lacks(model, key) and not all(_lacks(each, key) for each in grid.models)}
    own = {key: values for key, values in grid.choices.items() if key not in lacked}
    every = [{**grid.settings, **dict(zip(own, values, strict=True))} for values in product(*own.values())]
    return [{key: _plain(value) for key, value in settings.items()} for settings in every]


def _plain(value: Any) -> Any:
    """`value` as JSON gives it back: of that a worker makes the cell again, and has to come to the same path."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value.item() if isinstance(value, np.generic) else value


def _lacks(model: str, key: str) -> bool:
    from femts.models.registry import model_card

    part, _, name = key.partition(".")
    return part == "model" and (model == AUTO or name not in model_card(model).default_settings())


def _subjects(grid: Grid, data_root: str | Path | None) -> list[Subject]:
    """The data sets of the grid; UsageError where two have one name."""
    subjects = [Subject.find(name, grid.reading, data_root) for name in grid.datasets]
    sources = dict[str, str]()
    for source, subject in zip(grid.datasets, subjects, strict=True):
        if sources.setdefault(subject.name, source) != source:
            raise UsageError(
                f"Data sets '{sources[subject.name]}' and '{source}' have one name; leave one out, or rename a file."
            )
    return subjects


def _changes(model: str, settings: Mapping[str, Any], **shape: int) -> dict[str, Any]:
    """Those of `settings` that are not the model's own anyway; UsageError for one that it cannot take."""
    from femts.models.registry import build_config
    from femts.training.fit import FitRequest
    from femts.training.resolve import resolve_training

    if model == AUTO:
        FitRequest.of(model, {}, settings, 0.0)
        return dict(settings)
    own = {"training": resolve_training(model, {}, {})[1], "model": build_config(model, **shape, settings={})}
    try:
        given, training = resolve_training(model, {}, settings)
        made = {"training": training, "model": build_config(model, **shape, settings=given)}
    except UsageError as error:
        raise UsageError(f"Model '{model}' cannot be set so: {error}") from error
    changes = {}
    for key, value in settings.items():
        part, _, name = key.partition(".")
        if getattr(made[part], name) != getattr(own[part], name):
            changes[key] = value
    return changes
