"""Long arrays in pieces, so that what is computed from them need not be in memory at once."""

from __future__ import annotations

from collections.abc import Iterator

ROWS = 2**18


def slices(length: int) -> Iterator[slice]:
    """Slices of at most `ROWS` rows that cover the `length` rows of an array."""
    return (slice(first, min(first + ROWS, length)) for first in range(0, length, ROWS))
