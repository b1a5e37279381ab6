"""Weather readings at Jena."""

from __future__ import annotations

from femts.data.catalog.registry import DatasetCard, register_dataset

_SOURCE = "https://huggingface.co/datasets/thuml/Time-Series-Library/resolve/2b66e59ee19dac8f6f19fb5d4997f289fdfea357"

register_dataset(
    DatasetCard(
        name="Weather",
        filename="weather.csv",
        rows=52696,
        channels=21,
        freq="10min",
        season=144,
        description="21 weather readings at Jena, 2020; sentinels of -9999 and a repeated time stamp are kept as published.",
        url=f"{_SOURCE}/weather/weather.csv",
        sha256="34ee981d07313e51da2a50bb600072c8ae4a69cb4b0651f4cb93a069d7a2ba63",
    )
)
