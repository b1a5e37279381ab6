"""Rows for training, validation and test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from femts.errors import UsageError, suggest

Part = Literal["train", "val", "test"]
PARTS: tuple[str, ...] = get_args(Part)
ENOUGH = 20  # horizons in a table that the usual split serves
FEW = 8  # horizons in one of which only a single one each is kept for validation and test; from there on, two
SHORT = 4  # horizons in training rows whose windows may forecast beyond them
SHORTEST = 4  # rows to learn from


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

    def overhang(self, part: str, pred_len: int) -> int:
        """Steps by which a forecast of `part` may end after its rows, which counts for nothing: in
        short training rows alone.

        Few windows, or none, would lie within these; each that forecasts one of their values teaches something.
        """
        short = part == "train" and self.train[1] - self.train[0] < SHORT * pred_len
        return pred_len - 1 if short else 0

    def windows(self, part: str, seq_len: int, pred_len: int) -> int:
        """Number of windows of stride 1 in `part`; 0 when `seq_len` or `pred_len` (steps) does not fit."""
        start, stop = self.rows(part, seq_len)
        within = stop + self.overhang(part, pred_len) - start
        return max(0, within - seq_len - pred_len + 1) if start >= 0 else 0

    def longest(self, part: str, pred_len: int) -> int:
        """Steps of the longest look-back of `part` that does not begin before the rows; 0 or less for none."""
        start, stop = self.rows(part, 0)
        return stop - start + self.overhang(part, pred_len) - pred_len if part == "train" else start

    def check(self, name: str, part: str, seq_len: int, pred_len: int) -> None:
        """UsageError when the windows of `part` do not fit the data set `name`; the text says which length would."""
        start, stop = self.rows(part, seq_len)
        first = start if part == "train" else start + seq_len
        rows = stop - first
        room_for_forecast = pred_len if self.overhang(part, pred_len) else rows - 1 if part == "train" else rows
        if pred_len > room_for_forecast:
            remedy = f"the longest that fits is {room_for_forecast}" if room_for_forecast > 0 else "bring more rows"
            raise UsageError(
                f"A forecast of {pred_len} steps does not fit the {rows} {part} rows of '{name}'; {remedy}."
            )
        room_for_lookback = rows + self.overhang(part, pred_len) - pred_len if part == "train" else first
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
    """Split of `rows`: the first int(.7 n) train, the last int(.2 n) are for the test, those between validate."""
    # The products stay in floating point, as in the public code whose window counts every published table rests on.
    train, test = int(rows * 0.7), int(rows * 0.2)
    return Split(train=(0, train), val=(train, rows - test), test=(rows - test, rows))


def check_room(rows: int, pred_len: int, name: str) -> None:
    """UsageError where `rows` rows have no room for two forecasts, to validate and to test by, and to learn."""
    if rows < 2 * pred_len + SHORTEST:
        longest = (rows - SHORTEST) // 2
        remedy = f"the longest that fits is {longest}" if longest > 0 else "bring more rows"
        raise UsageError(
            f"A forecast of {pred_len} steps does not fit twice into the {rows} rows of '{name}', "
            f"to validate and to test by, with {SHORTEST} to learn from; {remedy}."
        )


def horizon_split(split: Split, pred_len: int) -> Split:
    """`split`, or where the table is short for forecasts of `pred_len` steps, whole horizons of its
    end for the later parts."""
    rows = split.test[1]
    if rows >= ENOUGH * pred_len or rows < 2 * pred_len + SHORTEST:
        return split
    each = (2 if rows >= FEW * pred_len else 1) * pred_len
    return Split(train=(0, rows - 2 * each), val=(rows - 2 * each, rows - each), test=(rows - each, rows))
