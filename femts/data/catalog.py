"""The data sets that femts knows by name, each pinned by a hash of its published file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from femts.data.splits import Split, ett_split, ratio_split
from femts.errors import UsageError, suggest

_ETT = "https://raw.githubusercontent.com/zhouhaoyi/ETDataset/1d16c8f4f943005d613b5bc962e9eeb06058cf07/ETT-small"
_TSLIB = "https://huggingface.co/datasets/thuml/Time-Series-Library/resolve/2b66e59ee19dac8f6f19fb5d4997f289fdfea357"
_LSTNET = "https://raw.githubusercontent.com/laiguokun/multivariate-time-series-data/master"


@dataclass(frozen=True)
class DatasetCard:
    """Card of a data set: what is known before its file is opened.

    Attributes:
        name: the name users type (in any case).
        filename: the file's name in the data root; empty for built-in data.
        rows: time steps in the file.
        channels: value columns.
        freq: the nominal step, a pandas frequency.
        split_rule: `ett` (12, 4, 4 months) or `ratio` (.7, .1, .2).
        season: steps in a day.
        description: one line for people.
        url: public source of the file, or None when there is none to download.
        sha256: hash of the file, or None where no published hash is known.
        git_blob: git's own hash of the file; pins a file whose sha256 nobody published.
        most_bytes: largest size that a download of the file may have.
        dated: whether the file has a header and a `date` column.
    """

    name: str
    filename: str
    rows: int
    channels: int
    freq: str
    split_rule: Literal["ett", "ratio"]
    season: int
    description: str
    url: str | None = None
    sha256: str | None = None
    git_blob: str | None = None
    most_bytes: int = 2**26
    dated: bool = True

    @property
    def split(self) -> Split:
        """Row ranges of the three parts."""
        return ett_split(self.season // 24) if self.split_rule == "ett" else ratio_split(self.rows)


def _ett(name: str, rows: int, freq: str, season: int, sha256: str, place: str) -> DatasetCard:
    return DatasetCard(
        name, f"{name}.csv", rows, 7, freq, "ett", season,
        f"Oil temperature and six loads of {place} electricity transformer, 2016-2018.",
        url=f"{_ETT}/{name}.csv", sha256=sha256,
    )  # fmt: skip


_CARDS = (
    _ett("ETTh1", 17420, "h", 24, "f18de3ad269cef59bb07b5438d79bb3042d3be49bdeecf01c1cd6d29695ee066", "one"),
    _ett("ETTh2", 17420, "h", 24, "a3dc2c597b9218c7ce1cd55eb77b283fd459a1d09d753063f944967dd6b9218b", "another"),
    _ett("ETTm1", 69680, "15min", 96, "6ce1759b1a18e3328421d5d75fadcb316c449fcd7cec32820c8dafda71986c9e", "one"),
    _ett("ETTm2", 69680, "15min", 96, "db973ca252c6410a30d0469b13d696cf919648d0f3fd588c60f03fdbdbadd1fd", "another"),
    DatasetCard(
        "Weather", "weather.csv", 52696, 21, "10min", "ratio", 144,
        "21 weather readings at Jena, 2020; sentinels of -9999 and one repeated stamp stay as published.",
        url=f"{_TSLIB}/weather/weather.csv",
        sha256="34ee981d07313e51da2a50bb600072c8ae4a69cb4b0651f4cb93a069d7a2ba63",
    ),
    DatasetCard(
        "Solar", "solar_AL.txt.gz", 52560, 137, "10min", "ratio", 144,
        "Output of 137 solar plants in Alabama, 2006; no header and no dates.",
        url=f"{_LSTNET}/solar-energy/solar_AL.txt.gz", git_blob="08a1f235546b3708309ff4fb544a54bb82e4f5e7", dated=False,
    ),
    DatasetCard(
        "synthetic", "", 8760, 6, "h", "ratio", 24,
        "Built in: seeded daily and weekly cycles, trend breaks and cross-channel lags; nothing to download.",
    ),
)  # fmt: skip

CATALOG: dict[str, DatasetCard] = {c.name: c for c in _CARDS}


def card(name: str | DatasetCard) -> DatasetCard:
    """The card of `name`, in whatever case it is written; a card is returned as it is.

    Raises:
        UsageError: the catalogue has no such name; the text gives the nearest one.
    """
    if isinstance(name, DatasetCard):
        return name
    by_lower = {known.lower(): found for known, found in CATALOG.items()}
    if name.lower() not in by_lower:
        raise UsageError(f"Unknown dataset '{name}', neither in the catalogue nor a file{suggest(name, CATALOG)}")
    return by_lower[name.lower()]
