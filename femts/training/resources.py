"""Room for a training on a CPU: whether memory and time will do is told before it begins, from one window.

A system that gives out more memory than it has ends the process without a word, so there may be no error to catch.
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
from femts.training.schedule import FEWEST

COPIES = 10  # of the weights: gradients, two moments, average and best ones, and the last four and themselves as saved
STEP = 3.0  # times that a step takes as long as its forecasts
TIMED = 3  # times that a forecast is timed, of which the quickest counts
SHORT = 30.0  # seconds that a training is given in any case
HOPELESS = 4.0  # times that there is, which nothing but a guess that is wrong would leave room for


def check_resources(model: ForecastModel, windows: Windows, training: TrainingConfig, limit: float | None) -> None:
    """RunFailure where `model` would need more memory to be trained on `windows` than there is, or, for one step and
    the fewest scores, far more time than `limit`, in seconds."""
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
    least = STEP * training.batch_size * seconds + 2 * FEWEST * forecast
    if limit is not None and least > HOPELESS * max(limit, SHORT):
        raise RunFailure(
            f"Not enough time: one training step and a few scores would take {least:,.0f} s on this machine, but only "
            f"{max(0.0, limit):,.0f} s are left; use fewer columns, a smaller model, or a longer time limit."
        )


def _of_a_window(model: ForecastModel, windows: Windows, drawn: int | None) -> tuple[int, float]:
    """Bytes that the loss of one window keeps for its gradient, and seconds that it takes."""
    own = {each.untyped_storage().data_ptr() for each in model.parameters()}
    held, quickest = dict[int, int](), math.inf

    def note(kept: Tensor) -> Tensor:
        held[kept.untyped_storage().data_ptr()] = kept.untyped_storage().nbytes()
        return kept

    index, channels = torch.zeros(1, dtype=torch.long), None if drawn is None else torch.arange(drawn)
    batch = windows.batch(index)
    for _ in range(TIMED):
        held.clear()
        began = time.monotonic()
        with torch.autograd.graph.saved_tensors_hooks(note, lambda kept: kept):
            model.loss(batch, channels)
        quickest = min(quickest, time.monotonic() - began)
    return sum(size for place, size in held.items() if place not in own), quickest
