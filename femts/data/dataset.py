"""A data set in memory: values, stamps, names and split, from the catalogue, a CSV file or a DataFrame."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.data.catalog import CATALOG
from femts.data.describe import count, names, stamp
from femts.data.schema import PLAIN, Schema
from femts.data.splits import PARTS, Split, horizon_split
from femts.text import shown


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Everything that training needs to know of its data.

    Attributes:
        name: catalogue name, or the file's name without its ending.
        values: (rows, C) float64, raw units, NaN where a value is missing; rows after the test part stay in it.
        dates: one stamp a row, a date or a whole number, or None when the data has none.
        columns: C names.
        freq: the step between stamps, a pandas frequency or a number; None without stamps.
        split: row ranges of the three parts.
        sha256: of the file, or of the values where there is no file.
        season: steps in the natural season, for `seasonal_naive`.
        notes: what a user should be told once.
        source: what `load_dataset` finds it by again, a catalogue name or a path; None for a table in memory.
        schema: how it was read; where columns have roles, every target is named.
        covariates: (rows, K) float64, the columns `schema.roles.future` in raw units; None where nothing
            is known for the steps to come.
    """

    name: str
    values: NDArray[np.float64]
    dates: pd.Index | None
    columns: tuple[str, ...]
    freq: str | None
    split: Split
    sha256: str
    season: int
    notes: tuple[str, ...] = ()
    source: str | None = None
    schema: Schema = PLAIN
    covariates: NDArray[np.float64] | None = None

    @cached_property
    def observed(self) -> NDArray[np.bool_] | None:
        """Observed mask of the values, (rows, C); None where none is missing."""
        observed = ~np.isnan(self.values)
        return None if observed.all() else observed

    @property
    def targets(self) -> int:
        """Number of the columns, the first ones, that are to be forecast and scored; after them
        come those known up to now."""
        return len(self.columns) - len(self.schema.roles.past)

    @property
    def fixed_split(self) -> bool:
        """True where the split is the user's or the catalogue's, and does not depend on the horizon."""
        return self.schema.split.given or self.source in CATALOG

    @property
    def record(self) -> dict[str, Any]:
        """Record that identifies the data of a training: hash and split, in plain types."""
        split = {part: list(getattr(self.split, part)) for part in PARTS}
        return {"sha256": self.sha256, "split": split}

    @property
    def train_values(self) -> NDArray[np.float64]:
        """The training rows, (rows, C): what a scaler may see."""
        return self.values[slice(*self.split.train)]

    @property
    def learned_until(self) -> str | None:
        """Stamp of the last training row, as text; None without stamps."""
        return None if self.dates is None else str(self.dates[self.split.train[1] - 1])

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.values)

    @property
    def train_rows(self) -> int:
        """Number of training rows."""
        return self.split.train[1] - self.split.train[0]

    @property
    def typical_rows(self) -> int:
        """Number of training rows of a typical series, which here is one."""
        return self.train_rows

    @property
    def common_rows(self) -> int:
        """Number of training rows that each series has, which here is one."""
        return self.train_rows

    def fingerprint(self) -> str:
        """SHA-256 of names, stamps and values."""
        stamps = b"" if self.dates is None else "\n".join(map(str, self.dates)).encode()
        content = "\n".join(self.columns).encode() + stamps + self.values.tobytes()
        return hashlib.sha256(content).hexdigest()

    def __repr__(self) -> str:
        rows, channels = self.values.shape
        lines = [f"Dataset '{shown(self.name)}': {count(rows, 'row')} of {count(channels, 'column')}"]
        lines.append(f"  columns: {names(self.columns)}")
        roles = self.schema.roles
        for role, listed in (("past", roles.past), ("known in advance", roles.future)):
            lines += [f"  {role}: {names(listed)}"] * bool(listed)
        if self.dates is not None:
            season = f", season {count(self.season, 'step')}" * (self.season > 1)
            lines.append(f"  step: {self.freq}, from {stamp(self.dates, 0)} to {stamp(self.dates, -1)}{season}")
        missing = 0 if self.observed is None else int((~self.observed).sum())
        lines.append(f"  gaps: {f'{missing} of {self.values.size} values' if missing else 'none'}")
        parts = ((part, getattr(self.split, part)) for part in PARTS)
        lines.append("  split: " + ", ".join(f"{part} {stop - start}" for part, (start, stop) in parts) + " rows")
        return "\n".join(lines)

    def frame(self) -> pd.DataFrame:
        """A wide table in raw units: the stamps under their own name, where there are some, the
        columns, and what is known."""
        table = pd.DataFrame(self.values, columns=list(self.columns))
        if self.covariates is not None:
            table[list(self.schema.roles.future)] = self.covariates
        if self.dates is not None:
            table.insert(0, self.schema.form.time or "date", self.dates)
        return table


def for_horizon(data: Dataset, pred_len: int) -> Dataset:
    """`data`, with a split that leaves whole horizons for validation and test where a short table
    of one's own has none."""
    return data if data.fixed_split else replace(data, split=horizon_split(data.split, pred_len))
