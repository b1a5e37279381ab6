"""All that training knows, as one file: resuming from `last.ckpt` continues as if nothing had happened."""

from __future__ import annotations

import io
import math
import pickle
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from femts.errors import UsageError
from femts.runs import FORMAT, atomic_write


@dataclass
class TrainState:
    """Where training stands.

    Attributes:
        epoch: epochs finished and validated.
        batch: batches done of the epoch after those; above 0 when stopped in the middle of it.
        losses: loss of each of those batches, summed over its windows.
        model, optimizer, scheduler: their state now; empty before the first step.
        average: running average of the weights; empty before the first step.
        best: this average at `best_epoch`.
        best_epoch: epoch (from 1) with the lowest `best_loss` so far; None before the first validation.
        best_val: its scores.
        history: one row for each finished epoch, as in `metrics.csv`.
        stopped: why training stopped (`early`, `max_epochs`, `max_time`, `interrupted`); None while it runs.
        seconds: time spent in training, over all sittings.
    """

    epoch: int = 0
    batch: int = 0
    losses: list[float] = field(default_factory=list)
    model: dict[str, Tensor] = field(default_factory=dict)
    optimizer: dict[str, Any] = field(default_factory=dict)
    scheduler: dict[str, Any] = field(default_factory=dict)
    average: dict[str, Tensor] = field(default_factory=dict)
    best: dict[str, Tensor] = field(default_factory=dict)
    best_epoch: int | None = None
    best_val: dict[str, float] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)
    stopped: str | None = None
    seconds: float = 0.0

    @property
    def best_mse(self) -> float:
        """Validation MSE at `best_epoch`; infinite before the first validation."""
        return self.best_val.get("mse", math.inf)

    @property
    def best_loss(self) -> float:
        """What epochs are chosen by: the lowest validation MSE so far, or with quantiles the lowest pinball loss."""
        return self.best_val.get("pinball", self.best_mse)

    def save(self, path: Path) -> None:
        """Write atomically; RunFailure naming `path` when the disk refuses."""
        content = io.BytesIO()  # torch.save to a path turns a full disk into an error without a reason
        torch.save({"format": FORMAT, **{f.name: getattr(self, f.name) for f in fields(self)}}, content)
        atomic_write(path, content.getvalue())

    @classmethod
    def load(cls, path: Path) -> TrainState:
        """Read what `save` wrote, with tensors on the CPU and no code executed; UsageError when it cannot be read."""
        try:
            record = torch.load(path, map_location="cpu", weights_only=True)
            found = record.pop("format")
            state = cls(**record) if found == FORMAT else None
        except (pickle.UnpicklingError, RuntimeError, EOFError, KeyError, TypeError, AttributeError, OSError) as error:
            raise UsageError(f"Checkpoint {path} is damaged and cannot be resumed; train again in a new folder.") from error
        if state is None:
            raise UsageError(f"Checkpoint {path} has format {found}, but this femts reads format {FORMAT}; train again.")
        return state
