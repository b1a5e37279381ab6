"""Large tables in pieces, so that what is computed from them need not be in memory at once."""

from __future__ import annotations

from collections.abc import Iterator

ROWS, CELLS = 2**18, 2**22  # at a time


def slices(length: int) -> Iterator[slice]:
    """Slices of at most `ROWS` rows that cover the `length` rows of an array."""
    return (slice(first, min(first + ROWS, length)) for first in range(0, length, ROWS))


def columns_at_once(rows: int) -> int:
    """How many columns of `rows` rows have at most `CELLS` cells together, at least 1."""
    return max(1, CELLS // max(1, rows))
