"""Split of a table as a user wishes it: by shares, by numbers of rows, or from a date on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from femts.config.values import whole_number
from femts.data.splits import Split, ratio_split
from femts.errors import UsageError
from femts.text import shown

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class SplitRule:
    """Wishes of a user for the split of a table; without any it is .7, .1, .2, or whole horizons of a short one.

    Attributes:
        shares: of the rows for training, validation and test; empty where rows or a date are named.
        val_rows: rows for validation, before those of the test.
        test_rows: the last rows, for the test.
        test_from: first stamp of the test, as text.
    """

    shares: tuple[float, ...] = ()
    val_rows: int | None = None
    test_rows: int | None = None
    test_from: str | None = None

    @property
    def given(self) -> bool:
        """True where there is any wish."""
        return self != SplitRule()

    @classmethod
    def of(cls, split: object, val_rows: object, test_rows: object, test_from: object) -> SplitRule:
        """The rule by the arguments of `load_dataset`.

        Raises:
            UsageError: no shares, no numbers of rows, or two ways to say one thing.
        """
        shares = _shares(split)
        counts = {"val_rows": val_rows, "test_rows": test_rows}
        numbers = {
            name: whole_number(value, f"Argument '{name}'") for name, value in counts.items() if value is not None
        }
        for name, number in numbers.items():
            if number is None or number < 1:
                raise UsageError(
                    f"Argument '{name}' is {shown(counts[name])}; give a whole number of rows, at least 1."
                )
        if shares and (numbers or test_from is not None):
            raise UsageError("The split is given by shares and by rows or a date as well; give one of them.")
        if "test_rows" in numbers and test_from is not None:
            raise UsageError("The test part is given by test_rows and by test_from; give one of them.")
        return cls(
            shares, numbers.get("val_rows"), numbers.get("test_rows"), None if test_from is None else str(test_from)
        )

    def split(self, dates: pd.Index | None, rows: int, where: str) -> Split:
        """Row ranges for a table of `rows` rows with the stamps `dates`.

        Raises:
            UsageError: a part would be left without rows, or the date is none, or not within the stamps.
        """
        if not self.given:
            return ratio_split(rows)
        train, val, test = self._counts(dates, rows, where)
        if dates is not None and self.test_from is not None and not 0 < test < rows:
            raise UsageError(
                f"The date {self.test_from} is not within {where}, {dates[0]} to {dates[-1]}; give one that is."
            )
        for part, count in {"training": train, "validation": val, "test": test}.items():
            if count < 1:
                raise UsageError(
                    f"{where} has {rows} rows, of which the split leaves none for the {part} part; change it."
                )
        return Split(train=(0, train), val=(train, rows - test), test=(rows - test, rows))

    def split_series(self, dates: pd.Index | None, rows: int, where: str) -> Split:
        """As `split`, for a series of a panel: one that is too short has no validation, and then no test.

        A series that ends before the date of the test is for training alone; nothing is learned
        from one that begins after it, and no look-back would be there to test it by.

        Raises:
            UsageError: the date is none, or the stamps are no dates.
        """
        if not self.given:
            return ratio_split(rows)
        train, val, test = self._counts(dates, rows, where)
        if self.test_from is not None and test == rows:
            return Split(train=(0, 0), val=(0, 0), test=(0, rows))
        if not 0 < test < rows:
            test, train = 0, rows
        elif min(train, val) < 1:
            train = rows - test
        return Split(train=(0, train), val=(train, rows - test), test=(rows - test, rows))

    def _counts(self, dates: pd.Index | None, rows: int, where: str) -> tuple[int, int, int]:
        """Rows for training, validation and test, which may be too few."""
        if self.shares:
            train, test = int(rows * self.shares[0]), int(rows * self.shares[2])
            return train, rows - train - test, test
        later = self._rows_from(dates, where)
        test = self.test_rows or (int(rows * 0.2) if later is None else later)
        val = self.val_rows or min(test, (rows - test) // 4)
        return rows - val - test, val, test

    def _rows_from(self, dates: pd.Index | None, where: str) -> int | None:
        """Rows from `test_from` on; None where no date is named."""
        if self.test_from is None:
            return None
        import pandas as pd

        if not isinstance(dates, pd.DatetimeIndex):
            raise UsageError(
                f"{where} has no dates, so --test-from {shown(self.test_from)} says nothing; give --test-rows N."
            )
        try:
            first = pd.Timestamp(self.test_from)
            first = first.tz_localize(dates.tz) if dates.tz is not None and first.tz is None else first
            return int((dates >= first).sum())
        except (TypeError, ValueError, OverflowError) as error:
            raise UsageError(
                f"The date '{shown(self.test_from)}' cannot be read; write it as --test-from 2024-01-31."
            ) from error

    def to_dict(self) -> dict[str, Any]:
        """Arguments of `of` that say something, in plain types."""
        said = {"split": list(self.shares), **{name: value for name, value in asdict(self).items() if name != "shares"}}
        return {name: value for name, value in said.items() if value}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> SplitRule:
        """The inverse of `to_dict`."""
        return cls(
            tuple(record.get("split", ())), *(record.get(name) for name in ("val_rows", "test_rows", "test_from"))
        )


USUAL_SPLIT = SplitRule()


def _shares(given: object) -> tuple[float, ...]:
    if given is None or (isinstance(given, Sequence) and not len(given)):
        return ()
    parts = given.split(",") if isinstance(given, str) else given
    try:
        shares = tuple(float(part) for part in parts)  # type: ignore[attr-defined]
    except (TypeError, ValueError) as error:
        raise UsageError(f"Split '{shown(given)}' is not three numbers; write .8,.1,.1.") from error
    if len(shares) != 3 or not all(0 < share < 1 for share in shares) or abs(sum(shares) - 1) > 1e-6:
        raise UsageError(f"Split '{shown(given)}' is not three shares that add up to 1; write .8,.1,.1.")
    return shares
