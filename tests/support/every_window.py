"""All windows in one batch."""

from __future__ import annotations

import torch
from torch import Tensor

from femts.data.batch import Batch
from femts.data.windows import Windows


def every_window(windows: Windows) -> tuple[Batch, Tensor]:
    """The batch of all windows, and the targets (B, P, C)."""
    batch = windows.batch(torch.arange(len(windows)))
    return batch, batch.target
