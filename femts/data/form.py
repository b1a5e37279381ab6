"""What a user's table calls its columns, wide (`date` and one column a series) or long (`unique_id, ds, y`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from femts.errors import UsageError, suggest

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Form:
    """Names of columns.

    Attributes:
        time: of the time stamps; None stands for `date` in a wide table and `ds` in a long one.
        series: of the series' names in a long table.
        value: of the values in a long table.
    """

    time: str | None = None
    series: str = "unique_id"
    value: str = "y"

    def is_long(self, frame: pd.DataFrame) -> bool:
        """Whether the table has one row for each series and stamp."""
        return set(frame.columns) == {self.series, self.value, self.time or "ds"}

    def time_of(self, frame: pd.DataFrame) -> str:
        """The column of time stamps."""
        return self.time or ("ds" if self.is_long(frame) else "date")

    def to_long(self, wide: pd.DataFrame) -> pd.DataFrame:
        """A wide table with `date` as a long one, series by series."""
        long = wide.melt(id_vars="date", var_name=self.series, value_name=self.value)
        return long.rename(columns={"date": self.time or "ds"})[[self.series, self.time or "ds", self.value]]

    def named(self) -> dict[str, str]:
        """As `Form.of` takes it; in plain types for YAML."""
        return {key: name for key, name in asdict(self).items() if name is not None}

    @classmethod
    def of(cls, names: Mapping[str, str]) -> Form:
        """From names by `time`, `series` and `value`, as many as differ from the usual ones.

        Raises:
            UsageError: another key, or one name for two columns.
        """
        keys = ("time", "series", "value")
        for key in names:
            if key not in keys:
                raise UsageError(f"Unknown kind of column '{key}'{suggest(key, keys)}")
        form = cls(**names)
        used = [name for name in (form.time, form.series, form.value) if name is not None]
        twice = next((name for name in used if used.count(name) > 1), None)
        if twice is not None:
            raise UsageError(f"Column '{twice}' cannot be two of time, series and value; name another.")
        return form


USUAL = Form()
