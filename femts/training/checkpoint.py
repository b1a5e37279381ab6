"""The training state in one file, and checks whether a folder can hold a run: resuming from `last.ckpt` continues
exactly where training stopped."""

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
from femts.text import argument
from femts.training.constants import MARGIN

_NAME = "femts checkpoint"
_HEAD = re.compile(_NAME.encode() + rb" (\d{1,9}) ([0-9a-f]{64})")


@dataclass
class TrainState:
    """State of a training.

    Attributes:
        step: completed optimiser steps.
        progress: share of the budget that is spent, in [0, 1].
        losses: loss of each batch since the last validation, summed over its windows.
        windows: number of these windows.
        model, optimizer: current state dictionaries; empty before the first step.
        average: running average of the weights; empty before the first step.
        best: this average at `best_step`.
        best_step: step (from 1) with the lowest `best_loss` so far; None before the first validation.
        best_val: its scores.
        metric: name of the score by which validations are compared.
        validations: one row for each validation, as in `metrics.csv`.
        stopped: why training stopped (`early`, `max_steps`, `max_time`, `interrupted`); None while it runs.
        seconds: total training time, over all resumed sessions.
        replayed: number of steps that were replayed from a CUDA graph.
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
    replayed: int = 0

    @property
    def complete(self) -> bool:
        """Whether no steps remain."""
        return self.stopped in ("early", "max_steps", "max_time")

    def kept(self, keep: str) -> tuple[dict[str, Tensor], int | None]:
        """The weights with which the run is scored, and their step; `keep` as in `TrainingConfig`."""
        best = keep == "best" or self.worse_for(keep) > 0
        return (self.best, self.best_step) if best else (self.average, self.step or None)

    def worse_for(self, keep: str) -> int:
        """Number of latest consecutive validations that did not improve on the best; with `keep` last, that were worse
        by more than `MARGIN`."""
        bound = self.best_loss * (1 if keep == "best" else 1 + MARGIN)
        later = [row[f"val_{self.metric}"] for row in self.validations if row["step"] > (self.best_step or 0)]
        return sum(1 for _ in takewhile(lambda loss: loss >= bound, reversed(later)))

    @property
    def best_mse(self) -> float:
        """Validation MSE at `best_step`; infinite before the first validation."""
        return self.best_val.get("mse", math.inf)

    @property
    def best_loss(self) -> float:
        """Lowest validation score so far; infinite before the first validation."""
        return self.best_val.get(self.metric, math.inf)

    @property
    def words(self) -> str:
        """Text of the progress line; does not read from the device."""
        if not self.validations:
            return f"step {self.step}"
        last = self.validations[-1]["val_mse"]
        return f"step {self.step}  val MSE {last:.4f}, best {self.best_mse:.4f} at step {self.best_step}"

    def save(self, path: Path) -> None:
        """Write atomically; raise RunFailure naming `path` if the disk fails."""
        head = f"{_NAME} {FORMAT} {{}}\n"
        written = io.BytesIO()  # torch.save to a path does not report a full disk as such
        written.write(head.format("0" * 64).encode())
        begin = written.tell()
        torch.save({f.name: getattr(self, f.name) for f in fields(self)}, written)
        content = written.getbuffer()  # not a copy, which would need memory for a large model
        content[:begin] = head.format(hashlib.sha256(content[begin:]).hexdigest()).encode()
        write_file(path, content)

    @classmethod
    def load(cls, path: Path) -> TrainState:
        """Read a file written by `save`, with tensors on the CPU and without executing code; raise UsageError if it
        cannot be read."""
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
    """Error for a damaged checkpoint."""
    return UsageError(f"Checkpoint {path} is damaged and cannot be resumed; train again in a new folder.")


# Settings that may change on resuming: they affect where and for how long a run trains, but not the result.
_FREE = {
    *("training.max_time", "training.device", "training.devices", "training.graph", "training.eval_batch_size"),
}


class Finished(Exception):
    """The run to resume is already finished, with the same settings and data."""


def find_state(config: RunConfig, preprocess: Mapping[str, Any], out: Path | None, resume: bool) -> TrainState:
    """State to start from: the initial state, or with `resume` that of the run in `out`, if there is one. Writes
    nothing.

    Raises:
        UsageError: `out` holds another run, or with `resume` one with other settings or data.
        Finished: With `resume`, the run in `out` is already finished.
    """
    if out is None:
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
    """Raise UsageError if a run is to be resumed without a folder."""
    if resume and out is None:
        text = f"To resume, name the run folder with {argument('out=FOLDER')}."
        raise UsageError(text, argument="resume", value=True, remedy={"resume": None})


def changed_data(dataset: str, out: Path) -> UsageError:
    """Error for a run in `out` that was started with other data."""
    return UsageError(f"The data '{dataset}' changed since run {out} was started; train again in a new folder.")


def check_same(before: Mapping[str, Any], now: Mapping[str, Any], out: Path) -> None:
    """Raise UsageError for the first setting of the run in `out` that differed `before`; both as in
    `RunConfig.to_dict`."""
    old, new = ({"refit": False, **_flat(record)} for record in (before, now))
    for key in old | new:
        # The same file may have two names; its hash is compared instead.
        if key in _FREE or key == "dataset.source" or old.get(key) == new.get(key):
            continue
        value = new.get(key)
        other = argument(f"{key}={value}") if isinstance(value, bool) else value
        raise UsageError(
            f"Run {out} was started with {argument(f'{key}={old.get(key)}')}, not {other}; resume it with the same value, or choose "
            "another folder."
        )


def _flat(record: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in record.items():
        flat.update(_flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {prefix + key: value})
    return flat
