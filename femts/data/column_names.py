"""Names of the columns of a user's table, wide (`date` and one column a series) or long (`unique_id, ds, y`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from femts.errors import UsageError, suggest
from femts.text import quote

if TYPE_CHECKING:
    import pandas as pd


_KEYS = ("time", "series", "value", "dates")
ROW = "row"  # what the numbers of rows are called in a table without stamps


class Categories(NamedTuple):
    """Categories of a covariate of text.

    Attributes:
        column: its name.
        values: the categories of the training data; the first is the baseline, which has 0 in every indicator.
    """

    column: str
    values: tuple[str, ...]

    @property
    def indicators(self) -> tuple[str, ...]:
        """Names of the indicator columns."""
        return tuple(f"{self.column} = {value}" for value in self.values[1:])


@dataclass(frozen=True)
class ColumnNames:
    """Names of columns.

    Attributes:
        time: of the time stamps; None stands for `date` in a wide table and `ds` in a long one. A table that lacks the
            column `row` gets it, with the numbers of its rows.
        series: of the series' names in a long table; `A+B` for those that columns `A` and `B` make together.
        value: of the values in a long table.
        categories: of the covariates of text, which loading finds.
        dates: of the dates in whose order rows are numbered, where `time` is `row`; loading finds it.
    """

    time: str | None = None
    series: str = "unique_id"
    value: str = "y"
    categories: tuple[Categories, ...] = ()
    dates: str | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """Columns whose cells together name a series, where there are several."""
        parts = tuple(self.series.split("+"))
        return parts if len(parts) > 1 and all(parts) else ()

    def is_long(self, frame: pd.DataFrame) -> bool:
        """Tell whether the table has one row for each series and stamp, and nothing beside a value but its keys."""
        columns = [name for name in frame.columns if name not in self.keys]
        return len(columns) == 3 and set(columns) == {self.series, self.value, self.time or "ds"}

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

    def named(self) -> dict[str, Any]:
        """As `of` takes it; in plain types for YAML."""
        names = {key: getattr(self, key) for key in _KEYS if getattr(self, key) is not None}
        categories = {each.column: list(each.values) for each in self.categories}
        return names | ({"categories": categories} if categories else {})

    @classmethod
    def of(cls, names: Mapping[str, Any]) -> ColumnNames:
        """From names by `time`, `series` and `value`, as many as differ from the usual ones, and what `named` adds.

        Raises:
            UsageError: another key, or one name for two columns.
        """
        given = dict(names) if isinstance(names, Mapping) else {"": names}
        found = given.pop("categories", {})
        listed = isinstance(found, Mapping) and all(isinstance(each, list) for each in found.values())
        if not listed or not all(isinstance(name, str | None) for name in given.values()):
            raise UsageError("Argument 'columns' takes names of columns, as in columns={'time': 'when'}.")
        unknown = next((key for key in given if key not in _KEYS), None)
        if unknown is not None:
            raise UsageError(f"Unknown kind of column '{quote(unknown)}'{suggest(unknown, _KEYS[:3])}")
        categories = tuple(Categories(column, tuple(map(str, values))) for column, values in found.items())
        made = cls(**given, categories=categories)
        used = [name for name in (made.time, made.series, made.value) if name is not None]
        twice = next((name for name in used if used.count(name) > 1), None)
        if twice is not None:
            raise UsageError(f"Column '{quote(twice)}' cannot be two of time, series and value; name another.")
        return made


USUAL = ColumnNames()
