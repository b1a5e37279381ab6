"""Cells of a second or two, and the command that runs them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from femts.data.catalog import CATALOG
from femts.data.synthetic import synthetic_frame
from femts.experiments.cell import Cell
from femts.experiments.grid import Grid, make_grid

SETTINGS = {"training.max_epochs": "2", "training.schedule": "exponential", "training.batch_size": "512"}
COMMAND = (
    "table --datasets synthetic --models naive,dlinear --horizons 12,24 --seq-len 48 --jobs 2 --device cpu"
    " --set training.max_epochs=2 --set training.schedule=exponential --set training.batch_size=512"
).split()


def small_grid(models: tuple[str, ...] = ("naive", "dlinear"), seeds: tuple[int, ...] = (42,)) -> list[Cell]:
    return make_grid(Grid(("synthetic",), models, (12, 24), seeds, "paper", (48,), SETTINGS))


def record(
    cell: Cell, mse: float, mae: float = 0.5, seq_len: int = 48, training: Any = None, **changes: Any
) -> dict[str, Any]:
    """A record of `cell` with the same number for all scores."""
    scores, steps = {"mse": mse, "mae": mae, "windows": 9}, cell.seq_len or seq_len
    shape = {"seq_len": steps, "pred_len": cell.pred_len}
    settings = {key.partition(".")[2]: value for key, value in cell.settings.items()}
    source = {"name": cell.dataset, "source": cell.dataset, "na": [], "columns": {}, "roles": {}}
    config = {
        "format": 1,
        "dataset": source,
        "model": {"name": cell.model, **shape, "n_channels": 7},
        **shape,
        "protocol": cell.protocol,
        "training": {"seed": cell.seed, "device": "cpu", **settings, **(training or {})},
    }
    return {
        "format": 1,
        "cell": cell.to_dict(),
        **{name: dict(scores) for name in ("test", "val")},
        "rolled": {},
        "kept_step": 10,
        "steps": 10,
        "stopped": "max_steps",
        "seconds": 1.0,
        "config": config,
        "data": {"sha256": "0" * 64, "split": {"train": [0, 70], "val": [70, 80], "test": [80, 100]}},
        "parameters": 4,
        "history": [{"step": 10, "train_loss": 1.0, "val_mse": mse, "val_mae": mae, "lr": 0.0, "seconds": 1.0}],
        "samples": [{"row": 80, "channel": "OT", "past": [1.0, None], "truth": [2.0], "forecast": [3.0]}],
        "kernels": {},
        "place": {
            **{"device": "cpu", "name": "any", "threads": 1, "precision": "32", "system": "any", "python": "3"},
            "libraries": {"femts": "0", "torch": "0", "numpy": "0"},
        },
        "commit": None,
        **changes,
    }


def without_times(record: dict[str, Any]) -> dict[str, Any]:
    """The reproducible part of a record."""
    kept = {key: value for key, value in record.items() if key != "seconds"}
    return {**kept, "history": [{k: v for k, v in row.items() if k != "seconds"} for row in record["history"]]}


@contextmanager
def two_columns() -> Iterator[None]:
    """Leave two of the six columns of `synthetic`, for cells of this process that score long horizons."""
    made = replace(CATALOG["synthetic"], make=lambda: synthetic_frame().iloc[:, :3], channels=2)
    with patch.dict(CATALOG, {"synthetic": made}):
        yield
