"""Names of the columns of a user's table, wide (`date` and one column a series) or long (`unique_id, ds, y`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from femts.errors import UsageError, suggest
from femts.text import shown

if TYPE_CHECKING:
    import pandas as pd


ROW = "row"  # what the numbers of rows are called in a table without stamps


@dataclass(frozen=True)
class ColumnNames:
    """Names of columns.

    Attributes:
        time: of the time stamps; None stands for `date` in a wide table and `ds` in a long one. A table that lacks the
            column `row` gets it, with the numbers of its rows.
        series: of the series' names in a long table; `A+B` for those that columns `A` and `B` make together.
        value: of the values in a long table.
    """

    time: str | None = None
    series: str = "unique_id"
    value: str = "y"

    @property
    def keys(self) -> tuple[str, ...]:
        """Columns whose cells together name a series, where there are several."""
        parts = tuple(self.series.split("+"))
        return parts if len(parts) > 1 and all(parts) else ()

    def is_long(self, frame: pd.DataFrame) -> bool:
        """Tell whether the table has one row for each series and stamp."""
        return len(frame.columns) == 3 and set(frame.columns) == {self.series, self.value, self.time or "ds"}

    def time_of(self, frame: pd.DataFrame) -> str:
        """The column of time stamps."""
        return self.time or ("ds" if self.is_long(frame) else "date")

    def to_long(self, wide: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
        """A wide table, `date` and then `columns`, each followed by as many bounds (`NAME-lo-80`), series by series."""
        import pandas as pd

        each = (wide.shape[1] - 1) // len(columns)
        parts = []
        for c, column in enumerate(columns):
            part = wide.iloc[:, 1 + each * c : 1 + each * (c + 1)]
            parts.append(part.set_axis([self.value + str(name).removeprefix(column) for name in part], axis=1))
        long = pd.concat(parts, ignore_index=True)
        long.insert(0, self.series, [c for c in columns for _ in range(len(wide))])
        long.insert(1, self.time or "ds", pd.concat([wide["date"]] * len(columns), ignore_index=True))
        return long

    def named(self) -> dict[str, str]:
        """As `of` takes it; in plain types for YAML."""
        return {key: name for key, name in asdict(self).items() if name is not None}

    @classmethod
    def of(cls, names: Mapping[str, str]) -> ColumnNames:
        """From names by `time`, `series` and `value`, as many as differ from the usual ones.

        Raises:
            UsageError: another key, or one name for two columns.
        """
        if not isinstance(names, Mapping) or not all(isinstance(name, str | None) for name in names.values()):
            raise UsageError("Argument 'columns' takes names of columns, as in columns={'time': 'when'}.")
        keys = list(cls.__dataclass_fields__)
        unknown = next((key for key in names if key not in keys), None)
        if unknown is not None:
            raise UsageError(f"Unknown kind of column '{shown(unknown)}'{suggest(unknown, keys)}")
        made = cls(**names)
        used = [name for name in asdict(made).values() if name is not None]
        twice = next((name for name in used if used.count(name) > 1), None)
        if twice is not None:
            raise UsageError(f"Column '{shown(twice)}' cannot be two of time, series and value; name another.")
        return made


USUAL = ColumnNames()
