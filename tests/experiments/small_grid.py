"""Cells of a second or two, and the command that runs them."""

from __future__ import annotations

from typing import Any

from femts.experiments.grid import Cell, make_grid

SETTINGS = {"training.max_epochs": "2", "training.schedule": "exponential", "training.batch_size": "512"}
COMMAND = (
    "table --datasets synthetic --models naive,dlinear --pred-lens 12,24 --seq-len 48 --jobs 2 --device cpu"
    " --set training.max_epochs=2 --set training.schedule=exponential --set training.batch_size=512"
).split()


def small_grid(models: tuple[str, ...] = ("naive", "dlinear"), seeds: tuple[int, ...] = (42,)) -> list[Cell]:
    return make_grid(("synthetic",), models, (12, 24), seeds, "paper", (48,), SETTINGS)


def record(mse: float, mae: float = 0.5, seq_len: int = 48) -> dict[str, Any]:
    """As much of a record as a table reads."""
    scores = {"mse": mse, "mae": mae, "windows": 9}
    return {"format": 1, "val": scores, "test": scores, "rolled": {}, "config": {"seq_len": seq_len}, "seconds": 1.0}


def without_times(record: dict[str, Any]) -> dict[str, Any]:
    """What must be equal in two runs of one cell."""
    kept = {key: value for key, value in record.items() if key != "seconds"}
    return {**kept, "history": [{k: v for k, v in row.items() if k != "seconds"} for row in record["history"]]}
