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
    from femts.models.registry import model_card
    from femts.training.prepare import resolve_training

    for key in settings:
        if key.removeprefix("training.") in (*PLACE, "seed"):
            raise UsageError(f"Setting '{key}' is no part of a cell; it has an option of 'femts table', or none there.")
    cards = [card(name) for name in datasets]
    for model in models:
        model_card(model)
        resolve_training(model, {}, settings)
    for pred_len in pred_lens:
        default_seq_len(protocol, pred_len, 10**9)
    if any(seed < 0 for seed in seeds):
        raise UsageError(f"Seed {min(seeds)} is none; give whole numbers of at least 0.")
    return [
        Cell(data.name, model, pred_len, seed, protocol, seq_len, settings)
        for data, pred_len, seed, model, seq_len in product(cards, pred_lens, seeds, models, seq_lens)
        if len(seq_lens) == 1 or seq_len is None or data.split.windows("train", seq_len, pred_len) > 0
    ]
