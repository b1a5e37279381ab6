"""A data set in a few lines, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from femts.data.splits import PARTS
from femts.text import shown

if TYPE_CHECKING:
    import pandas as pd

    from femts.data.dataset import Dataset

MOST_NAMES = 6  # of columns


def describe(data: Dataset) -> str:
    """Lines on what the data are: rows, columns, step, gaps and split."""
    rows, channels = data.values.shape
    lines = [f"Dataset '{shown(data.name)}': {count(rows, 'row')} of {count(channels, 'column')}"]
    lines.append(f"  columns: {names(data.columns)}")
    roles = data.schema.roles
    for role, listed in (("past", roles.past), ("known in advance", roles.future)):
        lines += [f"  {role}: {names(listed)}"] * bool(listed)
    if data.dates is not None:
        season = f", season {count(data.season, 'step')}" * (data.season > 1)
        lines.append(f"  step: {data.freq}, from {stamp(data.dates, 0)} to {stamp(data.dates, -1)}{season}")
    missing = 0 if data.observed is None else int((~data.observed).sum())
    lines.append(f"  gaps: {f'{missing} of {data.values.size} values' if missing else 'none'}")
    parts = ((part, getattr(data.split, part)) for part in PARTS)
    lines.append("  split: " + ", ".join(f"{part} {stop - start}" for part, (start, stop) in parts) + " rows")
    return "\n".join(lines)


def count(number: int, noun: str) -> str:
    """`1 row`, `2 rows`."""
    return f"{number} {noun}{'s' * (number != 1)}"


def names(columns: tuple[str, ...]) -> str:
    """The first names, and how many more there are."""
    rest = len(columns) - MOST_NAMES
    return ", ".join(map(shown, columns[:MOST_NAMES])) + (f" and {rest} more" if rest > 0 else "")


def stamp(dates: pd.Index, row: int) -> str:
    """One stamp as it is shown; midnight is a day."""
    return str(dates[row]).removesuffix(" 00:00:00")
