"""Rows for training, validation and test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from femts.errors import UsageError, suggest

Part = Literal["train", "val", "test"]
PARTS: tuple[str, ...] = get_args(Part)


@dataclass(frozen=True)
class Split:
    """Half-open row ranges of the values that each part forecasts.

    Attributes:
        train: rows that the scaler and the model are fitted on; its windows take their look-back from the same rows.
        val: rows forecast for validation; a look-back reaches into the rows before them.
        test: rows forecast for the test, likewise.
    """

    train: tuple[int, int]
    val: tuple[int, int]
    test: tuple[int, int]

    def rows(self, part: str, seq_len: int) -> tuple[int, int]:
        """Half-open range of rows that the windows of `part` touch, look-back included; it may start below 0.

        Raises:
            UsageError: no such part.
        """
        if part not in PARTS:
            raise UsageError(f"Unknown part '{part}'{suggest(part, PARTS)}")
        start, stop = {"train": self.train, "val": self.val, "test": self.test}[part]
        return (start, stop) if part == "train" else (start - seq_len, stop)

    def windows(self, part: str, seq_len: int, pred_len: int) -> int:
        """Number of windows of stride 1 in `part`; 0 when `seq_len` or `pred_len` (steps) does not fit."""
        start, stop = self.rows(part, seq_len)
        return max(0, stop - start - seq_len - pred_len + 1) if start >= 0 else 0

    def check(self, name: str, part: str, seq_len: int, pred_len: int) -> None:
        """UsageError when the windows of `part` do not fit the data set `name`; the text says which length would."""
        start, stop = self.rows(part, seq_len)
        first = start if part == "train" else start + seq_len
        rows = stop - first
        room_for_forecast = rows - 1 if part == "train" else rows
        if pred_len > room_for_forecast:
            remedy = f"the longest that fits is {room_for_forecast}" if room_for_forecast > 0 else "bring more rows"
            raise UsageError(f"A forecast of {pred_len} steps does not fit the {rows} {part} rows of '{name}'; {remedy}.")
        room_for_lookback = rows - pred_len if part == "train" else first
        if seq_len > room_for_lookback:
            where = f"the {rows} train rows" if part == "train" else f"the {first} rows before the {part} rows"
            raise UsageError(
                f"A look-back of {seq_len} steps with a forecast of {pred_len} does not fit {where} of '{name}'; "
                f"the longest look-back that fits is {room_for_lookback}."
            )


def ett_split(rows_per_hour: int) -> Split:
    """The split of the ETT files: 12, 4 and 4 months of 30 days; rows after those 20 months stay unused."""
    month = 30 * 24 * rows_per_hour
    return Split(train=(0, 12 * month), val=(12 * month, 16 * month), test=(16 * month, 20 * month))


def ratio_split(rows: int) -> Split:
    """The first int(.7 n) rows for training, the last int(.2 n) for the test, those between for validation."""
    # The products stay in floating point, as in the public code whose window counts every published table rests on.
    train, test = int(rows * 0.7), int(rows * 0.2)
    return Split(train=(0, train), val=(train, rows - test), test=(rows - test, rows))
