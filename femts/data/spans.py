"""Rows and windows of a series that windows may begin before, and windows picked at even distances."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from femts.data.splits import PARTS, Split


class Span(NamedTuple):
    """Rows of one series of a panel, and the windows over them.

    Attributes:
        first: its first row.
        stop: one past its last row that a window may see.
        begin: row at which its first window begins; it may be before `first`.
        windows: how many, each one row further than the one before.
    """

    first: int
    stop: int
    begin: int
    windows: int


def span(split: Split, part: str, seq_len: int, pred_len: int) -> Span:
    """Rows of `part` in a series that begins with row 0, and its windows; none of an unknown part."""
    start, stop = split.rows(part, seq_len) if part in PARTS else (0, 0)
    if part == "train":
        young = stop <= seq_len
        begin = start + 1 - seq_len if young else start
        last = stop - 1 - seq_len if young else stop + split.overhang(part, pred_len) - seq_len - pred_len
        return Span(start, stop, begin, max(0, last - begin + 1))
    first = start + seq_len
    count = stop - first - pred_len + 1 if first > 0 else 0
    return Span(0, stop, first - seq_len, max(0, count))


def spread(count: int, most: int | None) -> Tensor:
    """Numbers of all of `count` things, or of `most` at even distances, the first and the last among them."""
    if most is None or count <= most:
        return torch.arange(count)
    return torch.linspace(0, count - 1, most, dtype=torch.float64).round().long()
