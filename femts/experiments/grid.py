"""The grid of a table: all combinations of datasets, models, horizons, seeds and other axes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np

from femts.config.model import AUTO
from femts.data.catalog import CATALOG, card
from femts.data.dataset import Dataset
from femts.data.describe import count
from femts.data.loading import is_path, load_dataset
from femts.data.protocols import (
    HORIZONS,
    LOOK_BACKS,
    check_protocol,
    default_horizon,
    default_look_back,
    default_protocol,
    look_back_choices,
)
from femts.data.splits import PARTS, Split, check_room, usual_split
from femts.data.windows import check_windows
from femts.errors import UsageError
from femts.experiments.cell import Cell, check_settings
from femts.models.registry import build_config, model_card
from femts.text import argument
from femts.training.request import FitRequest
from femts.training.resolve import check_past, resolve_training

LookBacks = Sequence[int | None] | Literal["auto"]


@dataclass(frozen=True)
class Grid:
    """Axes of a table, whose cells are all combinations.

    Attributes:
        datasets: catalogue names, and files.
        models: registered names.
        pred_lens: horizons in steps; empty for the default ones of each dataset.
        seeds: seeds of weights, order and dropout.
        protocol: protocol that fills in a look-back of None; None takes that of each dataset.
        seq_lens: candidate look-backs in steps, of which validation selects one; those that do not fit a dataset are
            ignored. `auto` proposes some for each dataset.
        settings: `model.*` and `training.*` settings of all cells.
        reading: keywords of `load_dataset`.
        param_grid: candidate values of settings by key, of whose combinations validation selects one; models without a
            setting run without it.
    """

    datasets: Sequence[str]
    models: Sequence[str]
    pred_lens: Sequence[int] = ()
    seeds: Sequence[int] = (42,)
    protocol: str | None = None
    seq_lens: LookBacks = (None,)
    settings: Mapping[str, Any] = field(default_factory=dict)
    reading: Mapping[str, Any] = field(default_factory=dict)
    param_grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)


def make_grid(grid: Grid, data_root: str | Path | None = None) -> list[Cell]:
    """All combinations, by dataset and then by horizon, so that whole rows are finished first.

    Raises:
        UsageError: A dataset, model, protocol or setting is unknown; a setting only affects where a cell runs; data
            cannot be read, or not by a model; two datasets have the same name; or a horizon does not fit.
    """
    _check_grid(grid)
    recipes = [(model, settings) for model in grid.models for settings in _recipes(grid, model)]
    sources = dict[str, str]()
    cells = dict[str, Cell]()
    for source in grid.datasets:
        data = DataShape.find(source, grid.reading, data_root)
        if sources.setdefault(data.name, source) != source:
            raise UsageError(
                f"Datasets '{sources[data.name]}' and '{source}' have the same name; leave one out, or rename a file."
            )
        protocol = default_protocol(data.published) if grid.protocol is None else grid.protocol
        for pred_len in grid.pred_lens or data.horizons:
            look_backs = data.look_backs(grid.seq_lens, pred_len, protocol)
            for seed, (model, settings), (seq_len, steps) in product(grid.seeds, recipes, look_backs.items()):
                changes = _changes(model, settings, seq_len=steps, pred_len=pred_len, n_channels=data.channels)
                cell = Cell(data.name, model, pred_len, seed, protocol, seq_len, changes, data.own)
                cells.setdefault(cell.path, cell)  # two recipes may be equivalent
    return list(cells.values())


def check_roll_out(cells: Sequence[Cell], roll_out: Sequence[int], data_root: str | Path | None = None) -> None:
    """Check that records of `cells` have comparable scores at the horizons `roll_out`.

    Raises:
        UsageError: No record is scored at a horizon, models are validated on different windows there, or the splits of
            a dataset depend on the horizon.
    """
    if not roll_out:
        return
    own, first = sorted({cell.pred_len for cell in cells}), HORIZONS[0]
    idle = [p for p in roll_out if p not in own and (p not in HORIZONS or p < own[0])]
    if idle:
        fault = f"No model of {_listed(own)} steps is scored recursively at {_listed(idle)}"
        raise UsageError(f"{fault}; give {argument('roll_out')} horizons of {_listed(HORIZONS)} above {own[0]}.")
    if first in roll_out and first in own and own[0] < first:
        raise UsageError(
            f"Models of {own[0]} and of {count(first, 'step')} are validated on different windows at {count(first, 'step')}, "
            f"so validation cannot choose between them; leave {first} out of "
            f"{argument('roll_out')}, or {own[0]} out of {argument('pred_lens')}."
        )
    splits: dict[str, list[Any]] = {}
    for cell in {(cell.dataset, cell.pred_len): cell for cell in cells if cell.own is not None and own[1:]}.values():
        data = cell.load(data_root)
        if not data.schema.panel:  # models of panels do not forecast recursively
            splits.setdefault(cell.dataset, []).append(data.split)
    for dataset, of_horizons in splits.items():
        if of_horizons.count(of_horizons[0]) < len(of_horizons):
            raise UsageError(
                f"The split of {dataset} depends on the horizon, because the table is short, so models of {_listed(own)} "
                "steps do not forecast the same rows; set it with "
                f"{argument('val_rows')} and {argument('test_rows')}, or omit {argument('roll_out')}."
            )


def scores_some(model: str) -> bool:
    """Return whether `model` scores only a subset of the windows of a split, according to its setting `windows`."""
    return model != AUTO and "windows" in model_card(model).default_settings()


def _check_grid(grid: Grid) -> None:
    """Raise UsageError for mistakes that can be detected without data."""
    if grid.protocol is not None:  # a part of paths, even if a look-back is given
        check_protocol(grid.protocol)
    for model in grid.models:
        if model != AUTO:
            check_past(model, grid.reading.get("past_covariates", ()))
    check_settings((*grid.settings, *grid.param_grid))
    for key in grid.settings:
        if key in grid.param_grid:
            text = f"Setting '{key}' is given both a value and a {argument('param_grid')}; remove one of them."
            raise UsageError(text, argument=key, value=grid.settings[key])
    if "model.windows" in grid.param_grid:
        text = (
            "Setting 'model.windows' changes which windows are scored, so validation cannot choose it; fix its value."
        )
        raise UsageError(text, argument="model.windows", value=grid.param_grid["model.windows"])
    if any(seed < 0 for seed in grid.seeds):
        raise UsageError(f"Seed {min(grid.seeds)} is negative; give whole numbers of at least 0.")


def _recipes(grid: Grid, model: str) -> list[dict[str, Any]]:
    """Settings of `model` for each combination of the candidate values that it has; raise UsageError for a setting that
    no model has."""
    lacked = {
        key for key in grid.param_grid if _lacks(model, key) and not all(_lacks(each, key) for each in grid.models)
    }
    own = {key: values for key, values in grid.param_grid.items() if key not in lacked}
    every = [{**grid.settings, **dict(zip(own, values, strict=True))} for values in product(*own.values())]
    return [{key: _plain(value) for key, value in settings.items()} for settings in every]


def _plain(value: Any) -> Any:
    """`value` after a JSON round trip, so that it gives the same path."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value.item() if isinstance(value, np.generic) else value


def _lacks(model: str, key: str) -> bool:
    part, _, name = key.partition(".")
    return part == "model" and (model == AUTO or name not in model_card(model).default_settings())


def _changes(model: str, settings: Mapping[str, Any], **shape: int) -> dict[str, Any]:
    """The `settings` that differ from the model's defaults; raise UsageError for one that it does not accept."""
    if model == AUTO:
        FitRequest.of(model, {}, settings, 0.0)
        return dict(settings)
    own = {"training": resolve_training(model, {}, {})[1], "model": build_config(model, **shape, settings={})}
    try:
        given, training = resolve_training(model, {}, settings)
        made = {"training": training, "model": build_config(model, **shape, settings=given)}
    except UsageError as error:
        text = f"Model '{model}' does not accept these settings: {error.marked}"
        raise UsageError(text, argument=error.argument, value=error.value) from error
    parts = {key: key.partition(".")[::2] for key in settings}
    return {
        key: settings[key]
        for key, (part, name) in parts.items()
        if getattr(made[part], name) != getattr(own[part], name)
    }


@dataclass(frozen=True)
class DataShape:
    """Properties of a dataset that are needed to create its cells.

    Attributes:
        name: catalogue name, or file name without suffix.
        split: row ranges of the three splits.
        channels: number of channels.
        season: natural season length in steps.
        horizons: default horizons: the published ones for the catalogue, otherwise one by the step.
        published: whether it is from the catalogue, however it is read.
        own: as in `Cell`.
        fixed: whether the split is independent of the horizon.
        series: the data if they are a panel, otherwise None.
    """

    name: str
    split: Split
    channels: int
    season: int
    horizons: tuple[int, ...]
    published: bool
    own: Mapping[str, Any] | None
    fixed: bool = True
    series: Dataset | None = None

    @classmethod
    def find(cls, source: str, reading: Mapping[str, Any], data_root: str | Path | None) -> DataShape:
        """Properties of the data that `load_dataset` loads for `source` with keywords `reading`; raise UsageError if it
        fails."""
        if not reading and not is_path(source):  # its card suffices, so its file need not exist
            entry = card(source)
            return cls(entry.name, entry.split, entry.channels, entry.season, HORIZONS, True, None)
        data = load_dataset(source, data_root, **reading)
        panel, published = bool(data.schema.panel), data.source in CATALOG
        own = {"source": data.source, "sha256": data.sha256, **reading, **({"panel": True} if panel else {})}
        return cls(
            data.name,
            data.split,
            len(data.columns),
            data.season,
            HORIZONS if published else (default_horizon(data.freq, data.rows, False).steps,),
            published,
            json.loads(json.dumps(own)),
            data.fixed_split,
            data if panel else None,
        )

    def look_backs(self, seq_lens: LookBacks, pred_len: int, protocol: str) -> dict[int | None, int]:
        """The `seq_lens` that fit, with their steps; raise UsageError if there are none. `auto` stands for the
        look-backs of the published tables if they exist for the data, otherwise for some around that of the
        protocol."""
        if self.series is not None:  # any look-back fits, since it may begin before its series
            data = self.series.for_horizon(pred_len)
            steps = self._steps(seq_lens, pred_len, protocol, data.typical_rows)
            for part in PARTS:
                check_windows(data, part, min(steps.values()), pred_len)
            return steps
        rows = self.split.test[:, 1]
        if not self.fixed:
            check_room(int(rows[0]), self.name)
        split = self.split if self.fixed else usual_split(rows, pred_len, self.season)
        steps = self._steps(seq_lens, pred_len, protocol, int(split.train[0, 1] - split.train[0, 0]))
        fitting = {s: n for s, n in steps.items() if all(split.fits(part, n, pred_len) for part in PARTS)}
        if not fitting:
            for part in PARTS:
                split.check_fits(self.name, part, min(steps.values()), pred_len)
        return fitting

    def _steps(self, seq_lens: LookBacks, pred_len: int, protocol: str, rows: int) -> dict[int | None, int]:
        """Steps of each look-back, given the number of training `rows`."""
        if seq_lens == "auto":
            seq_lens = LOOK_BACKS if self.published else look_back_choices(protocol, pred_len, rows, self.season)
        usual = default_look_back(protocol, pred_len, rows, self.season).steps
        return {seq_len: seq_len or usual for seq_len in seq_lens}


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
