"""Rows for training, validation and test, of each series."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from femts.data.protocols import SHORT
from femts.errors import UsageError, suggest

Rows = NDArray[np.int64]
Part = Literal["train", "val", "test"]
PARTS: tuple[str, ...] = get_args(Part)
ENOUGH = 20  # horizons in a table that the usual split serves
FEW = 8  # horizons in one of which only a single one each is kept for validation and test; from there on, two
SHORTEST = 4  # rows to learn from


@dataclass(frozen=True, eq=False)
class Split:
    """Rows that each part forecasts, of S series, counted from the first row of each.

    Attributes:
        rows: (S, 3, 2), first row and one past the last one of training, validation and test. Scaler and model are
            fitted on the training rows, and their windows take their look-back from the same rows; look-backs of the
            other parts reach into the rows before them.
    """

    rows: Rows

    @classmethod
    def of(cls, train: tuple[int, int], val: tuple[int, int], test: tuple[int, int]) -> Split:
        """The split of one series."""
        return cls(np.array([[train, val, test]], dtype=np.int64))

    @classmethod
    def at(cls, train: Rows, test: Rows, stop: Rows) -> Split:
        """Parts (S,) without rows between them: training up to `train`, the test from `test` to `stop`."""
        ends = np.stack([np.zeros_like(stop), train, test, stop], axis=1)
        return cls(np.stack([ends[:, :-1], ends[:, 1:]], axis=2))

    @property
    def train(self) -> Rows:
        """Ranges of the training rows, (S, 2)."""
        return self.rows[:, 0]

    @property
    def val(self) -> Rows:
        """Ranges of the validation rows, (S, 2)."""
        return self.rows[:, 1]

    @property
    def test(self) -> Rows:
        """Ranges of the test rows, (S, 2)."""
        return self.rows[:, 2]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Split) and np.array_equal(self.rows, other.rows)

    def part(self, name: str) -> Rows:
        """Ranges (S, 2) of the part of that name; UsageError where there is none."""
        if name not in PARTS:
            raise UsageError(f"Unknown part '{name}'{suggest(name, PARTS)}")
        return self.rows[:, PARTS.index(name)]

    def overhang(self, part: str, pred_len: int) -> Rows:
        """Steps (S,) by which a forecast of `part` may end after its rows, which counts for nothing: in short training
        rows alone.

        Few windows, or none, would lie within these; each that forecasts one of their values teaches something.
        """
        short = (self.train[:, 1] - self.train[:, 0] < SHORT * pred_len) & (part == "train")
        return np.where(short, pred_len - 1, 0)

    def windows(self, part: str, seq_len: int, pred_len: int) -> Rows:
        """Windows of stride 1 that forecast rows of `part`, by series.

        Returns:
            (S, 4): the first row and one past the last row that the windows of a series may see, the row at which the
            first window begins, which is before row 0 where the look-back is longer than what precedes the forecast,
            and how many windows there are.

        Raises:
            UsageError: unknown part.
        """
        start, stop = self.part(part).T
        if part == "train":
            young = stop <= seq_len
            begin = np.where(young, start + 1 - seq_len, start)
            last = np.where(young, stop - 1 - seq_len, stop + self.overhang(part, pred_len) - seq_len - pred_len)
            return np.stack([start, stop, begin, np.maximum(0, last - begin + 1)], axis=1)
        count = np.where(start > 0, np.maximum(0, stop - start - pred_len + 1), 0)
        return np.stack([np.zeros_like(stop), stop, start - seq_len, count], axis=1)

    def longest_look_back(self, part: str, pred_len: int) -> int:
        """Steps of the longest look-back of `part` that begins within the first series; 0 or less for none."""
        start, stop = self.part(part)[0].tolist()
        return int(stop - start + self.overhang(part, pred_len)[0] - pred_len) if part == "train" else start

    def fits(self, part: str, seq_len: int, pred_len: int) -> bool:
        """Tell whether a window of `part` lies within the first series."""
        _, _, begin, windows = self.windows(part, seq_len, pred_len)[0].tolist()
        return begin >= 0 and windows > 0

    def check_fits(self, name: str, part: str, seq_len: int, pred_len: int) -> None:
        """UsageError when no window of `part` lies within the only series, of `name`; the text says which do."""
        start, stop = self.part(part)[0].tolist()
        rows, overhang = stop - start, int(self.overhang(part, pred_len)[0])
        room_for_forecast = pred_len if overhang else rows - 1 if part == "train" else rows
        if pred_len > room_for_forecast:
            remedy = f"the longest that fits is {room_for_forecast}" if room_for_forecast > 0 else "provide more rows"
            raise UsageError(
                f"A forecast of {pred_len} steps does not fit the {rows} {part} rows of '{name}'; {remedy}."
            )
        room_for_lookback = self.longest_look_back(part, pred_len)
        if seq_len > room_for_lookback:
            where = f"the {rows} train rows" if part == "train" else f"the {start} rows before the {part} rows"
            raise UsageError(
                f"A look-back of {seq_len} steps with a forecast of {pred_len} does not fit {where} of '{name}'; "
                f"the longest look-back that fits is {room_for_lookback}."
            )


def ett_split(rows_per_hour: int) -> Split:
    """The split of the ETT files: 12, 4 and 4 months of 30 days; rows after those 20 months stay unused."""
    month = 30 * 24 * rows_per_hour
    return Split.of(train=(0, 12 * month), val=(12 * month, 16 * month), test=(16 * month, 20 * month))


def ratio_split(rows: int | Rows) -> Split:
    """Split of `rows`, a number or one for each series: the first int(.7 n) train, the last int(.2 n) are for the test,
    those between validate."""
    # The products stay in floating point, as in the public code whose window counts every published table rests on.
    rows = np.atleast_1d(np.asarray(rows, dtype=np.int64))
    return Split.at((rows * 0.7).astype(np.int64), rows - (rows * 0.2).astype(np.int64), rows)


def usual_split(rows: Rows, pred_len: int) -> Split:
    """Split of series of `rows` (S,) for forecasts of `pred_len` steps where nobody has said otherwise.

    It is `ratio_split`, or where a series is short, whole horizons of its end for the later parts. One that is too
    short for three parts has no validation, and then no test.
    """
    usual, each = ratio_split(rows).rows, np.where(rows >= FEW * pred_len, 2, 1) * pred_len
    whole = Split.at(rows - 2 * each, rows - each, rows).rows
    train = np.where(rows > pred_len, rows - pred_len, rows)
    two = Split.at(train, train, rows).rows
    enough, three = (rows >= ENOUGH * pred_len)[:, None, None], (rows >= 2 * pred_len + SHORTEST)[:, None, None]
    return Split(np.where(three, np.where(enough, usual, whole), two))


def check_room(rows: int, pred_len: int, name: str) -> None:
    """UsageError where `rows` rows have no room for two forecasts, to validate and to test by, and to learn."""
    if rows < 2 * pred_len + SHORTEST:
        longest = (rows - SHORTEST) // 2
        remedy = f"the longest that fits is {longest}" if longest > 0 else "provide more rows"
        raise UsageError(
            f"A forecast of {pred_len} steps does not fit twice into the {rows} rows of '{name}', "
            f"once for validation and once for the test, with {SHORTEST} rows left to train on; {remedy}."
        )
