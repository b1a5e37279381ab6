"""User-defined splits: by fractions, by numbers of rows, or from a date on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from femts.config.values import whole_number
from femts.data.describe import count as counted
from femts.errors import UsageError, blamed, reads
from femts.text import argument, arguments, quote

if TYPE_CHECKING:
    import pandas as pd

    from femts.data.splits import Rows, Split


@dataclass(frozen=True)
class SplitRule:
    """The split requested by the user; by default 70/10/20, or whole horizons of short series.

    Attributes:
        shares: fractions of the rows for training, validation and test; empty if given by rows or a date.
        val_rows: number of validation rows, before the test rows.
        test_rows: number of test rows, at the end.
        test_from: first time stamp of the test split, as text.
    """

    shares: tuple[float, ...] = ()
    val_rows: int | None = None
    test_rows: int | None = None
    test_from: str | None = None

    @property
    def given(self) -> bool:
        """Whether the user requested anything."""
        return self != SplitRule()

    @classmethod
    def of(cls, split: object, val_rows: object, test_rows: object, test_from: object) -> SplitRule:
        """Create the rule from arguments of `load_dataset`.

        Raises:
            UsageError: Fractions or numbers of rows are invalid, or the same thing is given twice.
        """
        shares = _shares(split)
        counts = {"val_rows": val_rows, "test_rows": test_rows}
        numbers = dict[str, int]()
        for name, value in counts.items():
            with blamed(name, value):
                number = 1 if value is None else whole_number(value, f"Argument '{name}'")
                if number is None or number < 1:
                    raise UsageError(f"Argument '{name}' is {quote(value)}; give a whole number of rows, at least 1.")
            numbers |= {} if value is None else {name: number}
        if shares and (numbers or test_from is not None):
            text = "The split is given both as fractions and as rows or a date; use only one of them."
            raise UsageError(text, argument="split", value=split, remedy={"split": None})
        if "test_rows" in numbers and test_from is not None:
            both = f"by {argument('test_rows')} and by {argument('test_from')}"
            text = f"The test split is given both {both}; use only one of them."
            raise UsageError(text, argument="test_from", value=test_from, remedy={"test_from": None})
        return cls(
            shares, numbers.get("val_rows"), numbers.get("test_rows"), None if test_from is None else str(test_from)
        )

    def split(self, stamps: pd.Index | None, spans: Rows, where: str) -> Split:
        """Split the series with rows in `spans` (S, 2) of a table with these `stamps`.

        If there are several series, those that are too short have no validation split, and if necessary no test split.
        Series that end before the date of the test are used for training only. Series that begin after it are not used
        at all, because they have no look-back to be tested with.

        Raises:
            UsageError: The date is invalid, outside a single series, or leaves one of its splits empty.
        """
        import numpy as np  # slow to import, and the command line parses rules without it

        from femts.data.splits import Split, ratio_split

        rows = spans[:, 1] - spans[:, 0]
        if not self.given:
            return ratio_split(rows)
        train, val, test = self._counts(stamps, spans, rows, where)
        if len(rows) == 1:
            self._check_single(stamps, int(rows[0]), [int(each[0]) for each in (train, val, test)], where)
            return Split.at(train, rows - test, rows)
        after = (test == rows) & (self.test_from is not None)
        tested = (test > 0) & (test < rows)
        train = np.where(tested, np.where(np.minimum(train, val) < 1, rows - test, train), rows)
        stop = np.where(after, 0, np.where(tested, rows - test, rows))
        return Split.at(np.where(after, 0, train), stop, rows)

    def _check_single(self, stamps: pd.Index | None, rows: int, counts: Sequence[int], where: str) -> None:
        if stamps is not None and self.test_from is not None and not 0 < counts[2] < rows:
            text = (
                f"The date {self.test_from} is outside {where}, {stamps[0]} to {stamps[-1]}; give a date in this range."
            )
            raise UsageError(text, argument="test_from", value=self.test_from, remedy={"test_from": None})
        for part, count in zip(("training", "validation", "test"), counts, strict=True):
            if count < 1:
                raise UsageError(
                    f"{where} has {counted(rows, 'row')}, and none are left for the {part} split; change the split."
                )

    def _counts(self, stamps: pd.Index | None, spans: Rows, rows: Rows, where: str) -> tuple[Rows, Rows, Rows]:
        """Numbers of rows (S,) for training, validation and test, which may be too small."""
        import numpy as np

        if self.shares:
            train, test = ((rows * self.shares[k]).astype(np.int64) for k in (0, 2))
            return train, rows - train - test, test
        if self.test_from is not None:
            test = self._rows_from(stamps, spans, where)
        else:
            test = (rows * 0.2).astype(np.int64) if self.test_rows is None else np.full_like(rows, self.test_rows)
        val = np.minimum(test, (rows - test) // 4) if self.val_rows is None else np.full_like(rows, self.val_rows)
        return rows - val - test, val, test

    def _rows_from(self, stamps: pd.Index | None, spans: Rows, where: str) -> Rows:
        """Number of rows (S,) from `test_from` on."""
        import numpy as np
        import pandas as pd

        from femts.data.wall_clock import instants

        if not isinstance(stamps, pd.DatetimeIndex):
            text = f"{where} has no dates, so {arguments({'test_from': self.test_from})} cannot be used; use {argument('test_rows=N')}."
            raise UsageError(text, argument="test_from", value=self.test_from, remedy={"test_from": None})
        try:
            first = pd.Timestamp(self.test_from)
            if stamps.tz is not None and first.tz is None:
                first = instants(pd.DatetimeIndex([first]), stamps.tz)[0]
            later = np.pad(np.cumsum(stamps >= first), (1, 0))
        except (TypeError, ValueError, OverflowError) as error:
            text = f"The date '{quote(self.test_from)}' cannot be read; write it as {arguments({'test_from': '2024-01-31'})}."
            raise UsageError(text, argument="test_from", value=self.test_from) from error
        return np.asarray(later[spans[:, 1]] - later[spans[:, 0]], dtype=np.int64)

    def to_dict(self) -> dict[str, Any]:
        """Arguments of `of` that differ from the defaults, in plain types."""
        said = {"split": list(self.shares), **{name: value for name, value in asdict(self).items() if name != "shares"}}
        return {name: value for name, value in said.items() if value}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> SplitRule:
        """The inverse of `to_dict`."""
        return cls(
            tuple(record.get("split", ())), *(record.get(name) for name in ("val_rows", "test_rows", "test_from"))
        )


USUAL_SPLIT = SplitRule()


@reads("split")
def _shares(given: object) -> tuple[float, ...]:
    if given is None or (isinstance(given, Sequence) and not len(given)):
        return ()
    parts = given.split(",") if isinstance(given, str) else given
    try:
        shares = tuple(float(part) for part in parts)  # type: ignore[attr-defined]
    except (TypeError, ValueError) as error:
        raise UsageError(f"Split '{quote(given)}' is not three numbers; write .8,.1,.1.") from error
    if len(shares) != 3 or not all(0 < share < 1 for share in shares) or abs(sum(shares) - 1) > 1e-6:
        raise UsageError(f"Split '{quote(given)}' is not three fractions that sum to 1; write .8,.1,.1.")
    return shares
