"""Data that femts makes itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from femts.data.catalog.registry import DatasetCard, register_dataset

if TYPE_CHECKING:
    import pandas as pd

_ROWS = 8760


def _make() -> pd.DataFrame:
    from femts.data.synthetic import synthetic_frame

    return synthetic_frame(_ROWS)


register_dataset(
    DatasetCard(
        name="synthetic",
        make=_make,
        rows=_ROWS,
        channels=6,
        freq="h",
        season=24,
        description="Built in: seeded daily and weekly cycles, trend breaks, cross-channel lags; nothing to download.",
    )
)
