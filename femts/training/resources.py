"""Checks, before training on a CPU starts, whether memory and time suffice, by measuring one window.

A system that overcommits memory kills the process without raising an error that could be caught.
"""

from __future__ import annotations

import math
import time

import torch
from torch import Tensor

from femts.config.training import TrainingConfig
from femts.data.windows import Windows
from femts.environment import available_memory
from femts.errors import RunFailure
from femts.models.base import ForecastModel
from femts.training.constants import COPIES, FEWEST_SCORED, HOPELESS_RATIO, SHORT_TRAINING, STEP_RATIO, STEP_TIMINGS


def check_resources(model: ForecastModel, windows: Windows, training: TrainingConfig, limit: float | None) -> None:
    """Raise RunFailure if training `model` on `windows` needs more memory than is available, or if one step and minimal
    scoring take far longer than `limit` seconds."""
    channels, drawn, was_training = windows.rows.shape[1], training.channels, model.training
    model.eval()
    memory, seconds = _of_a_window(model, windows, drawn)
    forecast = seconds
    if drawn is not None:
        forecast += (channels - drawn) * max(0.0, seconds - _of_a_window(model, windows, 1)[1]) / max(1, drawn - 1)
    model.train(was_training)
    weights = sum(each.untyped_storage().nbytes() for each in model.parameters())
    needed, free = COPIES * weights + training.batch_size * memory, available_memory()
    if needed > free:
        raise RunFailure(
            f"Out of memory: this training needs about {needed >> 20:,} MiB, but only {free >> 20:,} MiB are free; "
            "use fewer columns, a smaller model or training.batch_size, or a machine with more memory."
        )
    least = STEP_RATIO * training.batch_size * seconds + 2 * FEWEST_SCORED * forecast
    if limit is not None and least > HOPELESS_RATIO * max(limit, SHORT_TRAINING):
        raise RunFailure(
            f"Not enough time: one training step and a few scores would take {least:,.0f} s on this machine, but only "
            f"{max(0.0, limit):,.0f} s are left; use fewer columns, a smaller model, or a longer time limit."
        )


def _of_a_window(model: ForecastModel, windows: Windows, drawn: int | None) -> tuple[int, float]:
    """Bytes that the loss of one window saves for its backward pass, and its duration in seconds."""
    own = {each.untyped_storage().data_ptr() for each in model.parameters()}
    held, quickest = dict[int, int](), math.inf

    def note(kept: Tensor) -> Tensor:
        held[kept.untyped_storage().data_ptr()] = kept.untyped_storage().nbytes()
        return kept

    index, channels = torch.zeros(1, dtype=torch.long), None if drawn is None else torch.arange(drawn)
    batch = windows.batch(index)
    for _ in range(STEP_TIMINGS):
        held.clear()
        began = time.monotonic()
        with torch.autograd.graph.saved_tensors_hooks(note, lambda kept: kept):
            model.loss(batch, channels)
        quickest = min(quickest, time.monotonic() - began)
    return sum(size for place, size in held.items() if place not in own), quickest
