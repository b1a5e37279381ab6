"""A table is a grid of cells; a cell is one training run, decided by what it says and by nothing else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from femts.errors import UsageError

# Settings that change where and how fast a cell runs, or how long it may, but not what it is.
PLACE = ("device", "devices", "compile", "max_time", "eval_batch_size")


@dataclass(frozen=True)
class Cell:
    """One run of the table, as it was asked for.

    Attributes:
        dataset: name of the catalogue.
        model: registered name.
        pred_len: horizon in steps.
        seed: of weights, order and dropout.
        protocol: what fills in the look-back.
        seq_len: look-back in steps; None leaves it to the protocol.
        settings: `model.*` and `training.*` that differ from the model's own recipe.
    """

    dataset: str
    model: str
    pred_len: int
    seed: int = 42
    protocol: str = "paper"
    seq_len: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def variant(self) -> str:
        """The recipe as part of a path: the protocol, and a hash of what differs from it where something does."""
        changes = {**({"seq_len": self.seq_len} if self.seq_len else {}), **{k: str(v) for k, v in self.settings.items()}}
        if not changes:
            return self.protocol
        return f"{self.protocol}-{hashlib.sha256(json.dumps(changes, sort_keys=True).encode()).hexdigest()[:8]}"

    @property
    def path(self) -> str:
        """Where its record lies in a folder of results, without suffix."""
        return f"{self.variant}/{self.dataset}/{self.model}-{self.pred_len}-seed{self.seed}"


def make_grid(
    datasets: Sequence[str],
    models: Sequence[str],
    pred_lens: Sequence[int],
    seeds: Sequence[int],
    protocol: str,
    seq_lens: Sequence[int | None],
    settings: Mapping[str, Any],
) -> list[Cell]:
    """All combinations, dataset by dataset and horizon by horizon, so that whole rows are finished first.

    Of several `seq_lens`, between which the table lets validation choose, those that do not fit a data set are left out.

    Raises:
        UsageError: an unknown dataset, model, protocol or setting, or a setting that only says where to run.
    """
    from femts.data.catalog import card
    from femts.data.protocols import default_seq_len

    for key in settings:
        if key.removeprefix("training.") in (*PLACE, "seed"):
            raise UsageError(f"Setting '{key}' is no part of a cell; it has an option of 'femts table', or none there.")
    cards = [card(name) for name in datasets]
    if any(seed < 0 for seed in seeds):
        raise UsageError(f"Seed {min(seeds)} is none; give whole numbers of at least 0.")
    cells = []
    for data, pred_len, seed, model, seq_len in product(cards, pred_lens, seeds, models, seq_lens):
        if len(seq_lens) > 1 and seq_len is not None and data.split.windows("train", seq_len, pred_len) < 1:
            continue
        first, stop = data.split.train
        steps = seq_len or default_seq_len(protocol, pred_len, stop - first)
        changes = _changes(model, settings, seq_len=steps, pred_len=pred_len, n_channels=data.channels)
        cells.append(Cell(data.name, model, pred_len, seed, protocol, seq_len, changes))
    return cells


def _changes(model: str, settings: Mapping[str, Any], **shape: int) -> dict[str, Any]:
    """Those of `settings` that are not the model's own anyway; UsageError for one that it cannot take."""
    from femts.models.registry import build_config
    from femts.training.prepare import resolve_training

    own = {"training": resolve_training(model, {}, {})[1], "model": build_config(model, **shape, settings={})}
    try:
        given, training = resolve_training(model, {}, settings)
        made = {"training": training, "model": build_config(model, **shape, settings=given)}
    except UsageError as error:
        raise UsageError(f"Model '{model}' cannot be set so: {error}") from error
    found = {}
    for key, value in settings.items():
        part, _, name = key.partition(".")
        if getattr(made[part], name) != getattr(own[part], name):
            found[key] = value
    return found
