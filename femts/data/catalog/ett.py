"""Electricity transformer temperature (ETT): two stations, hourly and every 15 minutes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from femts.data.catalog.registry import DatasetCard, register_dataset

if TYPE_CHECKING:
    from femts.data.splits import Split

_SOURCE = "https://raw.githubusercontent.com/zhouhaoyi/ETDataset/1d16c8f4f943005d613b5bc962e9eeb06058cf07/ETT-small"


def _split(rows: int) -> Split:
    from femts.data.splits import ett_split  # importing numpy is slow

    return ett_split(rows // 17420)


def _register(name: str, place: str, sha256: str) -> None:
    hourly = name.startswith("ETTh")
    card = DatasetCard(
        name=name,
        filename=f"{name}.csv",
        rows=17420 if hourly else 69680,
        channels=7,
        freq="h" if hourly else "15min",
        season=24 if hourly else 96,
        split_rule=_split,
        description=f"Oil temperature and six loads of {place} electricity transformer, 2016-2018.",
        url=f"{_SOURCE}/{name}.csv",
        sha256=sha256,
    )
    register_dataset(card)


_register("ETTh1", "one", "f18de3ad269cef59bb07b5438d79bb3042d3be49bdeecf01c1cd6d29695ee066")
_register("ETTh2", "another", "a3dc2c597b9218c7ce1cd55eb77b283fd459a1d09d753063f944967dd6b9218b")
_register("ETTm1", "one", "6ce1759b1a18e3328421d5d75fadcb316c449fcd7cec32820c8dafda71986c9e")
_register("ETTm2", "another", "db973ca252c6410a30d0469b13d696cf919648d0f3fd588c60f03fdbdbadd1fd")
