"""Data of a table: sets of the catalogue as they are, or read in one's own way, and files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from femts.data.catalog import CATALOG, card
from femts.data.loading import is_path
from femts.data.panel import Panel, panel_for_horizon
from femts.data.panel_preprocess import panel_spans
from femts.data.protocols import HORIZONS, default_horizon, default_protocol, default_seq_len
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

    def look_backs(self, seq_lens: Sequence[int | None], pred_len: int, protocol: str) -> dict[int | None, int]:
        """Those of `seq_lens` that fit, with their steps; UsageError where none does."""
        if isinstance(self.split, Panel):
            return self._panel_look_backs(self.split, seq_lens, pred_len, protocol)
        if not self.fixed:
            check_room(self.split.test[1], pred_len, self.name)
        split = self.split if self.fixed else horizon_split(self.split, pred_len)
        first, stop = split.train
        steps = {
            seq_len: seq_len or default_seq_len(protocol, pred_len, stop - first, self.season) for seq_len in seq_lens
        }
        fitting = {s: n for s, n in steps.items() if all(split.windows(part, n, pred_len) for part in PARTS)}
        if not fitting:
            for part in PARTS:
                split.check(self.name, part, min(steps.values()), pred_len)
        return fitting

    def _panel_look_backs(
        self, panel: Panel, seq_lens: Sequence[int | None], pred_len: int, protocol: str
    ) -> dict[int | None, int]:
        """As `look_backs`; each fits, for a look-back may begin before its series."""
        panel = panel_for_horizon(panel, pred_len)
        rows = panel.typical_rows
        steps = {seq_len: seq_len or default_seq_len(protocol, pred_len, rows, self.season) for seq_len in seq_lens}
        for part in PARTS:
            panel_spans(panel, part, min(steps.values()), pred_len)
        return steps
