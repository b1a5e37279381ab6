"""Output of solar plants."""

from __future__ import annotations

from femts.data.catalog.registry import DatasetCard, plain_matrix, register_dataset

register_dataset(
    DatasetCard(
        name="Solar",
        filename="solar_AL.txt.gz",
        rows=52560,
        channels=137,
        freq="10min",
        season=144,
        description="Output of 137 solar plants in Alabama, 2006; no header and no dates.",
        read=plain_matrix,
        url="https://raw.githubusercontent.com/laiguokun/multivariate-time-series-data/master/solar-energy/solar_AL.txt.gz",
        git_blob="08a1f235546b3708309ff4fb544a54bb82e4f5e7",
    )
)
