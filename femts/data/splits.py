"""Training, validation and test splits of each series."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from femts.data.describe import count as counted
from femts.data.protocols import SHORT
from femts.errors import UsageError, unknown

Rows = NDArray[np.int64]
Part = Literal["train", "val", "test"]
PARTS: tuple[str, ...] = get_args(Part)
ENOUGH = 20  # horizons in a series from which on the 70/10/20 split is used
FEW = 8  # horizons in a series from which on validation and test get two each instead of one
SHORTEST = 4  # fewest training rows of series that keep whole horizons, and fewest rows of a table


@dataclass(frozen=True, eq=False)
class Split:
    """Ranges of rows forecast by each split, for S series, counted from the first row of each.

    Attributes:
        rows: (S, 3, 2), first row and one past the last of training, validation and test. Scaler and model are fitted
            on the training rows, which also contain the look-backs of training windows; look-backs of the other splits
            reach into the rows before them.
    """

    rows: Rows

    @classmethod
    def of(cls, train: tuple[int, int], val: tuple[int, int], test: tuple[int, int]) -> Split:
        """Create the split of a single series."""
        return cls(np.array([[train, val, test]], dtype=np.int64))

    @classmethod
    def at(cls, train: Rows, test: Rows, stop: Rows) -> Split:
        """Create contiguous splits from ends and starts (S,): training up to `train`, test from `test` to `stop`."""
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
        """Ranges (S, 2) of the split `name`; UsageError if there is no such split."""
        if name not in PARTS:
            raise unknown("split", name, PARTS, "part")
        return self.rows[:, PARTS.index(name)]

    def short(self, pred_len: int) -> bool:
        """Return whether no series has room for a whole forecast of `pred_len` steps in its test split, in fewer than
        about `SHORT` horizons of rows; see `usual_split`."""
        return bool(((self.test[:, 1] - self.test[:, 0] < pred_len) & (self.test[:, 1] < SHORT * pred_len + 2)).all())

    def overhang(self, part: str, pred_len: int) -> Rows:
        """Steps (S,) by which a forecast may extend past the rows of `part`; nonzero only for short training splits and
        for short series.

        Few windows, or none, would fit otherwise, and a window with a single value is still useful. Values past the
        rows are ignored.
        """
        if part == "train":
            short = self.train[:, 1] - self.train[:, 0] < SHORT * pred_len
        else:
            start, stop = self.part(part).T
            short = (start < stop) & self.short(pred_len)
        return np.where(short, pred_len - 1, 0)

    def windows(self, part: str, seq_len: int, pred_len: int) -> Rows:
        """Windows of stride 1 that forecast rows of `part`, by series.

        Returns:
            (S, 4): first row and one past the last row that the windows of a series may see, the row at which the first
            window begins (negative if the look-back is longer than the rows before the forecast), and the number of
            windows.

        Raises:
            UsageError: The split is unknown.
        """
        start, stop = self.part(part).T
        if part == "train":
            young, last = stop <= seq_len, stop + self.overhang(part, pred_len) - seq_len - pred_len
            if (young | (last < start)).all():  # no whole window fits, so forecasts go past the rows
                young = last < start
            begin = np.where(young, start + 1 - seq_len, start)
            last = np.where(young, stop - 1 - seq_len, last)
            return np.stack([start, stop, begin, np.maximum(0, last - begin + 1)], axis=1)
        last = stop + self.overhang(part, pred_len) - pred_len
        count = np.where(start > 0, np.maximum(0, last - start + 1), 0)
        return np.stack([np.zeros_like(stop), stop, start - seq_len, count], axis=1)

    def longest_look_back(self, part: str, pred_len: int) -> int:
        """Longest look-back in steps for `part` that fits into the first series; 0 or less if none does."""
        start, stop = self.part(part)[0].tolist()
        return int(stop - start + self.overhang(part, pred_len)[0] - pred_len) if part == "train" else start

    def fits(self, part: str, seq_len: int, pred_len: int) -> bool:
        """Return whether a window of `part` fits into the first series."""
        _, _, begin, windows = self.windows(part, seq_len, pred_len)[0].tolist()
        return begin >= 0 and windows > 0

    def check_fits(self, name: str, part: str, seq_len: int, pred_len: int) -> None:
        """Raise UsageError if no window of `part` fits into the single series `name`; the message says which lengths
        do."""
        start, stop = self.part(part)[0].tolist()
        rows, overhang = stop - start, int(self.overhang(part, pred_len)[0])
        room_for_forecast = pred_len if overhang else rows - 1 if part == "train" else rows
        if pred_len > room_for_forecast:
            remedy = f"the longest that fits is {room_for_forecast}" if room_for_forecast > 0 else "provide more rows"
            mended = {"pred_len": room_for_forecast} if room_for_forecast > 0 else None
            text = f"A forecast of {counted(pred_len, 'step')} does not fit the {counted(rows, f'{part} row')} of '{name}'; {remedy}."
            raise UsageError(text, argument="pred_len", value=pred_len, remedy=mended)
        room_for_lookback = self.longest_look_back(part, pred_len)
        if seq_len > room_for_lookback:
            where = (
                f"the {counted(rows, 'train row')}"
                if part == "train"
                else f"the {counted(start, 'row')} before the {part} rows"
            )
            fault = f"A look-back of {counted(seq_len, 'step')} with a forecast of {pred_len} does not fit {where} of '{name}'"
            text = f"{fault}; the longest look-back that fits is {room_for_lookback}."
            raise UsageError(text, argument="seq_len", value=seq_len, remedy={"seq_len": room_for_lookback})


def ett_split(rows_per_hour: int) -> Split:
    """Split of the ETT files: 12, 4 and 4 months of 30 days; later rows are unused."""
    month = 30 * 24 * rows_per_hour
    return Split.of(train=(0, 12 * month), val=(12 * month, 16 * month), test=(16 * month, 20 * month))


def ratio_split(rows: int | Rows) -> Split:
    """70/10/20 split of `rows`, a number or one per series: the first int(.7 n) rows are for training, the last int(.2
    n) for the test."""
    # The products are floating-point as in the public code, whose numbers of windows all published tables share.
    rows = np.atleast_1d(np.asarray(rows, dtype=np.int64))
    return Split.at((rows * 0.7).astype(np.int64), rows - (rows * 0.2).astype(np.int64), rows)


def usual_split(rows: Rows, pred_len: int, season: int = 1) -> Split:
    """Default split of series with `rows` (S,) for forecasts of `pred_len` steps.

    It is `ratio_split`, but short series keep whole horizons at their end for validation and test. Series too short for
    all three splits have no validation split, and if necessary no test split.

    If all series are too short, or keep no whole season for training although they hold two, validation and test get
    equal shares of the rows that are left: training keeps at least half of the rows, and a season and one row if there
    are two seasons or, of series that are too short, more than one, as far as one row is left for each. Forecasts of
    these splits extend past their ends (`Split.overhang`). Series of fewer than `SHORTEST` rows are used for training
    only.

    Args:
        rows: number of rows of each series.
        pred_len: P, steps.
        season: number of steps in a season, 1 for none.
    """
    too_short = rows < 2 * pred_len + SHORTEST
    holds = (rows >= 2 * season) | (too_short & (rows > season))
    whole_seasons = np.where((season > 1) & holds, np.minimum(season + 1, rows - 2), 0)
    if (rows < 2 * pred_len + np.maximum(SHORTEST, whole_seasons)).all():
        least = np.maximum(np.maximum(whole_seasons, (rows + 1) // 2), SHORTEST // 2)
        each = np.clip((rows - least) // 2, 0, pred_len)
        return Split.at(rows - 2 * each, rows - each, rows)
    usual, each = ratio_split(rows).rows, np.where(rows >= FEW * pred_len, 2, 1) * pred_len
    whole = Split.at(rows - 2 * each, rows - each, rows).rows
    train = np.where(rows > pred_len, rows - pred_len, rows)
    two = Split.at(train, train, rows).rows
    enough, three = (rows >= ENOUGH * pred_len)[:, None, None], (rows >= 2 * pred_len + SHORTEST)[:, None, None]
    return Split(np.where(three, np.where(enough, usual, whole), two))


def check_room(rows: int, name: str) -> None:
    """Raise UsageError if `rows` rows are too few for training, validation and test."""
    if rows < SHORTEST:
        raise UsageError(
            f"'{name}' has {counted(rows, 'row')}, but training, validation and test require {SHORTEST}; provide at least "
            f"{SHORTEST} rows."
        )
