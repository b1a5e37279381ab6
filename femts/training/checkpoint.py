"""Where a training stands, as one file, and whether a folder can take a run: resuming from `last.ckpt` continues as if
nothing had happened."""

from __future__ import annotations

import hashlib
import io
import math
import pickle
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from itertools import takewhile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from femts.config.model import AUTO
from femts.errors import UsageError
from femts.files import write_file
from femts.forecaster.run_folder import CHECKPOINT, CONFIG, FORMAT, METRICS, REQUEST, RunConfig, check_new_folder
from femts.forecaster.saved_run import read_config, read_metrics, read_preprocess

MARGIN = 0.02  # of a validation error; on ETTh1 and ETTh2 lower ones by less do not mean lower test errors

_NAME = "femts checkpoint"
_HEAD = re.compile(_NAME.encode() + rb" (\d{1,9}) ([0-9a-f]{64})")


@dataclass
class TrainState:
    """State of a training.

    Attributes:
        step: optimiser steps done.
        progress: part of the budget that is spent, in [0, 1].
        losses: loss of each batch since the last validation, summed over its windows.
        windows: how many windows those are.
        model, optimizer: their state now; empty before the first step.
        average: running average of the weights; empty before the first step.
        best: this average at `best_step`.
        best_step: step (from 1) after which `best_loss` was lowest so far; None before the first validation.
        best_val: its scores.
        metric: name of that score which validations choose by.
        validations: one row for each validation, as in `metrics.csv`.
        stopped: why training stopped (`early`, `max_steps`, `max_time`, `interrupted`); None while it runs.
        seconds: time spent in training, over all sittings.
    """

    step: int = 0
    progress: float = 0.0
    losses: list[float] = field(default_factory=list)
    windows: int = 0
    model: dict[str, Tensor] = field(default_factory=dict)
    optimizer: dict[str, Any] = field(default_factory=dict)
    average: dict[str, Tensor] = field(default_factory=dict)
    best: dict[str, Tensor] = field(default_factory=dict)
    best_step: int | None = None
    best_val: dict[str, float] = field(default_factory=dict)
    metric: str = "mse"
    validations: list[dict[str, Any]] = field(default_factory=list)
    stopped: str | None = None
    seconds: float = 0.0

    @property
    def complete(self) -> bool:
        """True where no step is left."""
        return self.stopped in ("early", "max_steps", "max_time")

    def kept(self, keep: str) -> tuple[dict[str, Tensor], int | None]:
        """The weights that the run is scored with, and their step; `keep` as in `TrainingConfig`."""
        best = keep == "best" or self.worse_for(keep) > 0
        return (self.best, self.best_step) if best else (self.average, self.step or None)

    def worse_for(self, keep: str) -> int:
        """Last validations in a row that were no better than the best; with `keep` last, worse by
        more than `MARGIN`."""
        bound = self.best_loss * (1 if keep == "best" else 1 + MARGIN)
        later = [row[f"val_{self.metric}"] for row in self.validations if row["step"] > (self.best_step or 0)]
        return sum(1 for _ in takewhile(lambda loss: loss >= bound, reversed(later)))

    @property
    def best_mse(self) -> float:
        """Validation MSE at `best_step`; infinite before the first validation."""
        return self.best_val.get("mse", math.inf)

    @property
    def best_loss(self) -> float:
        """What validations are compared by, the lowest so far; infinite before the first validation."""
        return self.best_val.get(self.metric, math.inf)

    @property
    def words(self) -> str:
        """Words on the training for its line; nothing is read from the device."""
        if not self.validations:
            return f"step {self.step}"
        last = self.validations[-1]["val_mse"]
        return f"step {self.step}  val MSE {last:.4f}, best {self.best_mse:.4f} at step {self.best_step}"

    def save(self, path: Path) -> None:
        """Write atomically; RunFailure naming `path` when the disk refuses."""
        head = f"{_NAME} {FORMAT} {{}}\n"
        written = io.BytesIO()  # torch.save to a path turns a full disk into an error without a reason
        written.write(head.format("0" * 64).encode())
        begin = written.tell()
        torch.save({f.name: getattr(self, f.name) for f in fields(self)}, written)
        content = written.getbuffer()  # no copy, as of a large model it takes memory
        content[:begin] = head.format(hashlib.sha256(content[begin:]).hexdigest()).encode()
        write_file(path, content)

    @classmethod
    def load(cls, path: Path) -> TrainState:
        """Read what `save` wrote, with tensors on the CPU and no code executed; UsageError when it cannot be read."""
        try:
            head, _, content = path.read_bytes().partition(b"\n")
        except OSError as error:
            raise damaged(path) from error
        match = _HEAD.fullmatch(head)
        if match is None:
            raise damaged(path)
        if int(match[1]) != FORMAT:
            raise UsageError(
                f"Checkpoint {path} has format {int(match[1])}, but this femts reads format {FORMAT}; train again."
            )
        if hashlib.sha256(content).hexdigest() != match[2].decode():
            raise damaged(path)
        try:
            record = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
            return cls(**record)
        except (
            pickle.UnpicklingError,
            RuntimeError,
            EOFError,
            LookupError,
            TypeError,
            AttributeError,
            ValueError,
        ) as error:
            raise damaged(path) from error


def damaged(path: Path) -> UsageError:
    """Error that is said of a checkpoint that cannot be one."""
    return UsageError(f"Checkpoint {path} is damaged and cannot be resumed; train again in a new folder.")


# What may differ when a run goes on: how far and where, never what is learned from what.
_FREE = {"training.max_time", "training.device", "training.devices", "training.eval_batch_size"}


class Finished(Exception):
    """The run that was to go on is finished; it is of the same settings and data."""


def find_state(
    config: RunConfig, preprocess: Mapping[str, Any], out: Path | None, resume: bool, overwrite: bool = False
) -> TrainState:
    """State to start from: the beginning, or with `resume` where the run in `out` stands, if one has begun there.
    Nothing is written; with `overwrite` what is there does not matter.

    Raises:
        UsageError: `out` holds another run, or with `resume` one of other settings or data.
        Finished: with `resume`, it holds this one, and there is nothing left to do.
    """
    if out is None or overwrite:
        check_resumable(out, resume)
        return TrainState()
    begun, finished = (out / CHECKPOINT).is_file(), (out / METRICS).is_file()
    if resume and ("auto" in read_metrics(out) if finished else (out / REQUEST).is_file()):
        check_same({"model": {"name": AUTO}}, {"model": {"name": config.model}}, out)
    if not resume or not (out / CONFIG).is_file():
        check_new_folder(out)
        return TrainState()
    check_same(read_config(out).to_dict(), config.to_dict(), out)
    if (begun or finished) and read_preprocess(out)["data"] != preprocess["data"]:
        raise changed_data(config.dataset, out)
    state = TrainState.load(out / CHECKPOINT) if begun else TrainState()
    if finished and (not state.model or state.complete):
        raise Finished
    return state


def check_resumable(out: Path | None, resume: bool) -> None:
    """UsageError where a run is to go on that is kept nowhere."""
    if resume and out is None:
        raise UsageError("To resume, name the run folder with --out (out= in Python).")


def changed_data(dataset: str, out: Path) -> UsageError:
    """Error that is said where the run in `out` began with other data."""
    return UsageError(f"The data '{dataset}' changed since run {out} was started; train again in a new folder.")


def check_same(before: Mapping[str, Any], now: Mapping[str, Any], out: Path) -> None:
    """UsageError for the first setting of the run in `out` that was another `before`; both as `RunConfig.to_dict`."""
    old, new = ({"refit": False, **_flat(record)} for record in (before, now))
    for key in old | new:
        # The same file may be named in two ways; its hash is compared instead.
        if key in _FREE or key == "dataset.source" or old.get(key) == new.get(key):
            continue
        raise UsageError(
            f"Run {out} was started with {key}={old.get(key)}, not {new.get(key)}; resume it with the same value, or "
            "choose another folder."
        )


def _flat(record: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in record.items():
        flat.update(_flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {prefix + key: value})
    return flat
