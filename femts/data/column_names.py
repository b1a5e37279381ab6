"""Column names of a user's table, wide (`date` and one column per series) or long (`unique_id, ds, y`)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from femts.config.arguments import check_text
from femts.config.values import whole_number
from femts.errors import UsageError, reads, suggest
from femts.text import arguments, quote

if TYPE_CHECKING:
    import pandas as pd


_KEYS = ("time", "series", "value", "dates")
MOST_SKIPPED = 10_000  # lines before a header
ROW = "row"  # name of the row numbers in a table without time stamps
_BOUND = re.compile(r"(.+)-(?:lo|hi|q)-\d+(?:\.\d+)?", re.DOTALL)


class Categories(NamedTuple):
    """Categories of a text covariate.

    Attributes:
        column: name of the column.
        values: categories in the training data; the first is the baseline, for which all indicators are 0.
    """

    column: str
    values: tuple[str, ...]

    @property
    def indicators(self) -> tuple[str, ...]:
        """Names of the indicator columns."""
        return tuple(f"{self.column} = {value}" for value in self.values[1:])


@dataclass(frozen=True)
class Layout:
    """Where a table is in its file.

    Attributes:
        sheet: name of the sheet of a workbook; None chooses the one that looks most like a table.
        skip_rows: number of lines, or rows of a sheet, before the header; 0 infers it.
        drop: names of columns that are left out.
    """

    sheet: str | None = None
    skip_rows: int = 0
    drop: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain types for YAML, without defaults."""
        given = {"sheet": self.sheet, "skip_rows": self.skip_rows, "drop": list(self.drop)}
        return {name: value for name, value in given.items() if value}

    @classmethod
    def of(cls, sheet: object = None, skip_rows: object = None, drop: object = ()) -> Layout:
        """Create from what a user gives; UsageError if a value is invalid."""
        names = (drop,) if isinstance(drop, str) else drop
        if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
            text = f"Argument 'drop' is a {type(names).__name__}; give column names, as in {arguments({'drop': ['flag']})}."
            raise UsageError(text, argument="drop", value=drop)
        rows = 0 if skip_rows is None else whole_number(skip_rows, "Argument 'skip_rows'")
        if rows is None or not 0 <= rows <= MOST_SKIPPED:
            text = f"Argument 'skip_rows' takes a number of lines from 0 to {MOST_SKIPPED}, not '{quote(skip_rows)}'."
            raise UsageError(text, argument="skip_rows", value=skip_rows, remedy={"skip_rows": None})
        return cls(None if sheet is None else check_text(sheet, "sheet"), rows, tuple(names))


@dataclass(frozen=True)
class ColumnNames:
    """Column names.

    Attributes:
        time: time stamps; None means `date` in a wide table and `ds` in a long one. If it is `row` and the table has no
            such column, one is added with the row numbers.
        series: series names in a long table; `A+B` joins the columns `A` and `B`.
        value: values in a long table.
        categories: categories of text covariates, found during loading.
        dates: dates by which rows are numbered if `time` is `row`, found during loading.
        layout: where the table is in its file.
        missing: words of cells without a value, given by the user or found during loading.
        units: names and units of columns whose cells are numbers with a unit, found during loading.
    """

    time: str | None = None
    series: str = "unique_id"
    value: str = "y"
    categories: tuple[Categories, ...] = ()
    dates: str | None = None
    layout: Layout = Layout()
    missing: tuple[str, ...] = ()
    units: tuple[tuple[str, str], ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """Columns that together name a series, if there are several."""
        parts = tuple(self.series.split("+"))
        return parts if len(parts) > 1 and all(parts) else ()

    def is_long(self, frame: pd.DataFrame) -> bool:
        """Return whether the table has one row per series and time stamp, with no columns other than keys and value."""
        columns = [name for name in frame.columns if name not in self.keys]
        return len(columns) == 3 and set(columns) == {self.series, self.value, self.time or "ds"}

    def time_of(self, frame: pd.DataFrame) -> str:
        """Name of the time stamp column."""
        return self.time or ("ds" if self.is_long(frame) else "date")

    def time_among(self, columns: Sequence[str]) -> str:
        """Name of the time stamp column of a table with these columns, which may be long with further ones."""
        return self.time or ("ds" if {self.series, "ds"} <= set(columns) else "date")

    def written(self, panel: bool) -> str:
        """Name of the time stamp column of a table that is made from data."""
        return self.time or ("ds" if panel else "date")

    def to_long(self, wide: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
        """Convert a wide table, `date` and then `columns`, each followed by the same number of bounds (`NAME-lo-80`),
        to a long one."""
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
        """The names as accepted by `of`, in plain types for YAML."""
        names = {key: getattr(self, key) for key in _KEYS if getattr(self, key) is not None}
        categories = {each.column: list(each.values) for each in self.categories}
        found = {"categories": categories, "units": dict(self.units)}
        return names | {key: each for key, each in found.items() if each}

    def given(self) -> dict[str, Any]:
        """The names that differ from the defaults, as in `named`."""
        return {key: name for key, name in self.named().items() if getattr(USUAL, key) != name}

    @classmethod
    @reads("columns", place=1)
    def of(cls, names: Mapping[str, Any]) -> ColumnNames:
        """Create from names by `time`, `series` and `value`, where they differ from the defaults, and the extra keys of
        `named`.

        Raises:
            UsageError: A key is unknown, or two columns have the same name.
        """
        given = dict(names) if isinstance(names, Mapping) else {"": names}
        found, units = given.pop("categories", {}), given.pop("units", {})
        listed = isinstance(found, Mapping) and all(isinstance(each, list) for each in found.values())
        listed &= isinstance(units, Mapping) and all(isinstance(unit, str) for unit in units.values())
        if not listed or not all(isinstance(name, str | None) for name in given.values()):
            raise UsageError(
                f"Argument 'columns' takes column names, as in {arguments({'columns': {'time': 'when'}})}."
            )
        unknown = next((key for key in given if key not in _KEYS), None)
        if unknown is not None:
            raise UsageError(f"Unknown kind of column '{quote(unknown)}'{suggest(unknown, _KEYS[:3])}")
        categories = tuple(Categories(column, tuple(map(str, values))) for column, values in found.items())
        made = cls(**given, categories=categories, units=tuple((str(name), unit) for name, unit in units.items()))
        used = [name for name in (made.time, made.series, made.value) if name is not None]
        twice = next((name for name in used if used.count(name) > 1), None)
        if twice is not None:
            raise UsageError(
                f"Column '{quote(twice)}' is used for two of time, series and value; use different columns."
            )
        return made


USUAL = ColumnNames()


def bounded(name: str, columns: Collection[str]) -> str | None:
    """The one of `columns` of whose forecast `name` would be a bound, as `x-lo-80` is of `x`, if any."""
    bound = _BOUND.fullmatch(name)
    return bound[1] if bound is not None and bound[1] in columns else None


def check_bound_names(targets: Sequence[str], others: Iterable[str | None] = ()) -> None:
    """Refuse targets whose forecasts could not be told from the bounds of others.

    Args:
        targets: columns to forecast.
        others: further columns of a forecast, such as that of time stamps; None for those that it lacks.

    Raises:
        UsageError: A name is that of a bound of a target, such as `x-lo-80` beside `x`.
    """
    for name in (*targets, *others):
        of = None if name is None else bounded(name, targets)
        if of is not None:
            raise UsageError(
                f"Column '{quote(name)}' has the name of a bound of the forecast of '{quote(of)}', and one table cannot "
                "hold both; rename one of the columns."
            )
