"""Weights of the closed-form forecasts ("experts") that `fem_zero` combines."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from femts.data.batch import Batch
from femts.models.fem_zero import FemZero
from femts.models.parts.experts import NAMES


def weights_of_experts(model: FemZero, batch: Batch, columns: Sequence[str]) -> pd.DataFrame:
    """Table of the weights behind the forecast of a single window.

    Args:
        model: the model.
        batch: the window.
        columns: names of the C channels.

    Returns:
        One row for each channel, step ahead (from 1) and expert: `channel`, `step`, `expert`, `weight`. The weights of
        a step sum to 1; the median forecast is the weighted mean of the experts' forecasts and an offset.
    """
    raw = batch if batch.raw is None else Batch(batch.raw.values)
    weights = model.expert_weights(raw)[0]  # (C, P, K)
    names = ["channel", "step", "expert"]
    rows = pd.MultiIndex.from_product([columns, range(1, weights.shape[1] + 1), NAMES], names=names)
    return rows.to_frame(index=False).assign(weight=weights.flatten().numpy())
