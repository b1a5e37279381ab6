"""Data of a table: sets of the catalogue as they are, or read in one's own way, and files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from femts.data.catalog import CATALOG, card
from femts.data.dataset import Dataset
from femts.data.loading import is_path, load_dataset
from femts.data.protocols import (
    HORIZONS,
    LOOK_BACKS,
    default_horizon,
    default_look_back,
    default_protocol,
    look_back_choices,
)
from femts.data.splits import PARTS, Split, check_room, usual_split
from femts.data.windows import check_windows


@dataclass(frozen=True)
class Subject:
    """Data of some cells: as much as it takes to make these.

    Attributes:
        name: of the catalogue, or of a file without its ending.
        split: row ranges of the three parts.
        channels: how many there are.
        season: steps in the natural one.
        horizons: those to train for where none are asked for: the published ones of the catalogue,
            else one by the step.
        published: of the catalogue, in whatever way it is read.
        own: as in `Cell`.
        fixed: whether the split does not depend on the horizon.
        data: the series of a long table; None for others.
    """

    name: str
    split: Split
    channels: int
    season: int
    horizons: tuple[int, ...]
    published: bool
    own: Mapping[str, Any] | None
    fixed: bool = True
    data: Dataset | None = None

    @classmethod
    def find(cls, source: str, reading: Mapping[str, Any], data_root: str | Path | None) -> Subject:
        """The data that `load_dataset` finds by `source` with the arguments `reading`; UsageError
        where it finds none."""
        if not reading and not is_path(source):  # its card says all, and its file need not be there
            entry = card(source)
            return cls(entry.name, entry.split, entry.channels, entry.season, HORIZONS, True, None)
        data = load_dataset(source, data_root, **reading)
        own = {"source": data.source, "sha256": data.sha256, **reading}
        published, season = data.source in CATALOG, data.season
        horizons = HORIZONS if published else (default_horizon(data.freq, data.rows, False).steps,)
        plain = json.loads(json.dumps({**own, "panel": True} if data.schema.panel else own))
        shape = len(data.columns), season, horizons, published, plain, data.fixed_split
        return cls(data.name, data.split, *shape, data if data.schema.panel else None)

    def protocol(self, asked: str | None) -> str:
        """The protocol that was asked for, or that of the data."""
        return default_protocol(self.published) if asked is None else asked

    def look_backs(
        self, seq_lens: Sequence[int | None] | Literal["auto"], pred_len: int, protocol: str
    ) -> dict[int | None, int]:
        """Those of `seq_lens` that fit, with their steps; UsageError where none does. `auto` stands
        for those of the tables, for data that they are published of, else for some around the protocol's own."""
        if self.data is not None:  # any fits, for a look-back may begin before its series
            data = self.data.for_horizon(pred_len)
            steps = self._steps(seq_lens, pred_len, protocol, data.typical_rows)
            for part in PARTS:
                check_windows(data, part, min(steps.values()), pred_len)
            return steps
        rows = self.split.test[:, 1]
        if not self.fixed:
            check_room(int(rows[0]), pred_len, self.name)
        split = self.split if self.fixed else usual_split(rows, pred_len)
        first, stop = split.train[0].tolist()
        steps = self._steps(seq_lens, pred_len, protocol, stop - first)
        fitting = {s: n for s, n in steps.items() if all(_fits(split, part, n, pred_len) for part in PARTS)}
        if not fitting:
            for part in PARTS:
                split.check_fits(self.name, part, min(steps.values()), pred_len)
        return fitting

    def _steps(
        self, seq_lens: Sequence[int | None] | Literal["auto"], pred_len: int, protocol: str, rows: int
    ) -> dict[int | None, int]:
        """Steps of each look-back, of `rows` that are trained on."""
        if seq_lens == "auto":
            seq_lens = LOOK_BACKS if self.published else look_back_choices(protocol, pred_len, rows, self.season)
        usual = default_look_back(protocol, pred_len, rows, self.season).steps
        return {seq_len: seq_len or usual for seq_len in seq_lens}


def _fits(split: Split, part: str, seq_len: int, pred_len: int) -> bool:
    """Tell whether a part of a single series has a window that lies within it."""
    _, _, begin, windows = split.windows(part, seq_len, pred_len)[0].tolist()
    return begin >= 0 and windows > 0
