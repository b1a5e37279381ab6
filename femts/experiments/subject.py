"""Data of a table: sets of the catalogue as they are, or read in one's own way, and files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from femts.data.catalog import CATALOG, card
from femts.data.loading import is_path
from femts.data.panel import Panel, panel_for_horizon
from femts.data.panel_preprocess import panel_spans
from femts.data.protocols import (
    HORIZONS,
    LOOK_BACKS,
    default_horizon,
    default_look_back,
    default_protocol,
    look_back_choices,
)
from femts.data.schema import Schema
from femts.data.source import load_source
from femts.data.splits import PARTS, Split, check_room, horizon_split


@dataclass(frozen=True)
class Subject:
    """Data of some cells: as much as it takes to make these.

    Attributes:
        name: of the catalogue, or of a file without its ending.
        split: row ranges of the three parts; the series of a panel, which each have their own.
        channels: how many there are.
        season: steps in the natural one.
        horizons: those to train for where none are asked for: the published ones of the catalogue,
            else one by the step.
        published: of the catalogue, in whatever way it is read.
        own: as in `Cell`.
        fixed: whether the split does not depend on the horizon.
    """

    name: str
    split: Split | Panel
    channels: int
    season: int
    horizons: tuple[int, ...]
    published: bool
    own: Mapping[str, Any] | None
    fixed: bool = True

    @classmethod
    def find(cls, source: str, reading: Mapping[str, Any], data_root: str | Path | None) -> Subject:
        """The data that `load_dataset` finds by `source` with the arguments `reading`; UsageError
        where it finds none."""
        if not reading and not is_path(source):  # its card says all, and its file need not be there
            entry = card(source)
            return cls(entry.name, entry.split, entry.channels, entry.season, HORIZONS, True, None)
        data = load_source(source, data_root, Schema.of(**reading))
        own = {"source": data.source, "sha256": data.sha256, **reading}
        published, season = data.source in CATALOG, data.season
        horizons = HORIZONS if published else (default_horizon(data.freq, data.rows, False).steps,)
        if isinstance(data, Panel):
            plain = json.loads(json.dumps({**own, "panel": True}))
            return cls(data.name, data, len(data.columns), season, horizons, published, plain)
        plain = json.loads(json.dumps(own))
        return cls(data.name, data.split, len(data.columns), season, horizons, published, plain, data.fixed_split)

    def protocol(self, asked: str | None) -> str:
        """The protocol that was asked for, or that of the data."""
        return default_protocol(self.published) if asked is None else asked

    def look_backs(
        self, seq_lens: Sequence[int | None] | Literal["auto"], pred_len: int, protocol: str
    ) -> dict[int | None, int]:
        """Those of `seq_lens` that fit, with their steps; UsageError where none does. `auto` stands
        for those of the tables, for data that they are published of, else for some around the protocol's own."""
        if isinstance(self.split, Panel):  # any fits, for a look-back may begin before its series
            panel = panel_for_horizon(self.split, pred_len)
            steps = self._steps(seq_lens, pred_len, protocol, panel.typical_rows)
            for part in PARTS:
                panel_spans(panel, part, min(steps.values()), pred_len)
            return steps
        if not self.fixed:
            check_room(self.split.test[1], pred_len, self.name)
        split = self.split if self.fixed else horizon_split(self.split, pred_len)
        first, stop = split.train
        steps = self._steps(seq_lens, pred_len, protocol, stop - first)
        fitting = {s: n for s, n in steps.items() if all(split.windows(part, n, pred_len) for part in PARTS)}
        if not fitting:
            for part in PARTS:
                split.check(self.name, part, min(steps.values()), pred_len)
        return fitting

    def _steps(
        self, seq_lens: Sequence[int | None] | Literal["auto"], pred_len: int, protocol: str, rows: int
    ) -> dict[int | None, int]:
        """Steps of each look-back, of `rows` that are trained on."""
        if seq_lens == "auto":
            seq_lens = LOOK_BACKS if self.published else look_back_choices(protocol, pred_len, rows, self.season)
        usual = default_look_back(protocol, pred_len, rows, self.season).steps
        return {seq_len: seq_len or usual for seq_len in seq_lens}
