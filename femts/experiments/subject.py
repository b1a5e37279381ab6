"""Data of a table: sets of the catalogue as they are, or read in one's own way, and files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from femts.data.catalog import card
from femts.data.dataset import is_path, load_dataset
from femts.data.protocols import default_seq_len
from femts.data.splits import PARTS, Split


@dataclass(frozen=True)
class Subject:
    """Data of some cells: as much as it takes to make these.

    Attributes:
        name: of the catalogue, or of a file without its ending.
        split: row ranges of the three parts.
        channels: how many there are.
        own: as in `Cell`.
    """

    name: str
    split: Split
    channels: int
    own: Mapping[str, Any] | None

    @classmethod
    def find(cls, source: str, reading: Mapping[str, Any], data_root: str | Path | None) -> Subject:
        """The data that `load_dataset` finds by `source` with the arguments `reading`; UsageError
        where it finds none."""
        if not reading and not is_path(source):  # its card says all, and its file need not be there
            entry = card(source)
            return cls(entry.name, entry.split, entry.channels, None)
        data = load_dataset(source, data_root, **reading)
        own = {"source": data.source, "sha256": data.sha256, **reading}
        return cls(data.name, data.split, len(data.columns), json.loads(json.dumps(own)))

    def look_backs(self, seq_lens: Sequence[int | None], pred_len: int, protocol: str) -> dict[int | None, int]:
        """Those of `seq_lens` that fit, with their steps; UsageError where none does."""
        first, stop = self.split.train
        steps = {seq_len: seq_len or default_seq_len(protocol, pred_len, stop - first) for seq_len in seq_lens}
        fitting = {s: n for s, n in steps.items() if all(self.split.windows(part, n, pred_len) for part in PARTS)}
        if not fitting:
            for part in PARTS:
                self.split.check(self.name, part, min(steps.values()), pred_len)
        return fitting
