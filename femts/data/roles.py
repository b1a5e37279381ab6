"""Role of each column of a table: to be forecast, read up to now, or known for the steps to come as well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from femts.errors import UsageError, suggest
from femts.text import quote

if TYPE_CHECKING:
    import pandas as pd

    from femts.data.column_names import ColumnNames


# Fields of `Roles` that name columns, and the arguments and options that set them.
NAMED = {
    "target": "target",
    "past": "past_covariates",
    "future": "future_covariates",
    "static": "static_covariates",
}


@dataclass(frozen=True)
class Roles:
    """Names of columns by what they are for.

    Attributes:
        target: to be forecast and scored; empty stands for all that are neither past nor future.
        past: known up to now, such as a measurement beside the target: models read them.
        future: known for the steps to come as well, such as holidays or prices: their effect on the targets is fitted.
        calendar: whether the stamps themselves are such a known thing: hour of the week and season of the year.
        static: the same in all rows of a series of a panel, such as its region: numbers or words.
    """

    target: tuple[str, ...] = ()
    past: tuple[str, ...] = ()
    future: tuple[str, ...] = ()
    calendar: bool = False
    static: tuple[str, ...] = ()

    @property
    def any(self) -> bool:
        """True where something differs from forecasting every column from itself and the others."""
        return bool(self.target or self.past or self.future or self.calendar or self.static)

    @property
    def in_advance(self) -> bool:
        """True where something is known for the steps to come."""
        return bool(self.future or self.calendar)

    def to_dict(self) -> dict[str, Any]:
        """Plain types for YAML; empty where nothing differs."""
        named = {key: list(names) for key, names in asdict(self).items() if key != "calendar" and names}
        return named | ({"calendar": True} if self.calendar else {})

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Roles:
        """The inverse of `to_dict`."""
        names = {key: tuple(record.get(key, ())) for key in NAMED}
        return cls(**names, calendar=bool(record.get("calendar", False)))

    def narrow(self, frame: pd.DataFrame, form: ColumnNames, where: str) -> pd.DataFrame:
        """A user's table without the columns that have no role, where targets are named; a long one as it is.

        Raises:
            UsageError: a name that is no column, or one with two roles; or static columns, which a panel alone has.
        """
        self._refuse_static()
        if not self.target or form.is_long(frame):
            return frame
        columns = {form.time_of(frame), *self.check([str(column) for column in frame.columns], where)}
        return frame[[column for column in frame.columns if str(column) in columns]]

    def sorted_out(self, columns: Sequence[str], name: str) -> Roles:
        """The same with every target named, for a table `name` with these `columns`.

        Raises:
            UsageError: a name that is no column, or one with two roles, or nothing left to forecast.
        """
        self._refuse_static()
        seen = self.check(columns, f"'{name}'")
        targets = self.target or tuple(c for c in columns if c not in seen)
        if not targets:
            raise UsageError(
                f"No column of '{quote(name)}' is left to forecast; name fewer of them in --past-covariates "
                "and --future-covariates."
            )
        return replace(self, target=targets)

    def check(self, columns: Sequence[str], where: str) -> dict[str, str]:
        """The role of each column that is named; UsageError for a name that is no column, or has two roles."""
        seen: dict[str, str] = {}
        for role in NAMED:
            for column in getattr(self, role):
                if column not in columns:
                    raise UsageError(
                        f"{where} has no column '{quote(column)}' for {option_of(role)}{suggest(column, columns)}"
                    )
                if column in seen:
                    raise UsageError(
                        f"Column '{quote(column)}' is named by {option_of(seen[column])} and by {option_of(role)}; give "
                        "it one role."
                    )
                seen[column] = role
        return seen

    def _refuse_static(self) -> None:
        if self.static:
            raise UsageError(
                f"A single table has no static columns, such as '{quote(self.static[0])}'; leave out "
                "--static-covariates, or read a long table as a panel (--panel)."
            )


NO_ROLES = Roles()


def to_arguments(record: Mapping[str, Any]) -> dict[str, Any]:
    """What `Roles.to_dict` gives, by the names of the arguments of `load_dataset`."""
    return {NAMED.get(key, key): value for key, value in record.items()}


def option_of(role: str) -> str:
    """The option of the command line that names the columns of a role."""
    return f"--{NAMED[role].replace('_', '-')}"


def names_of(given: object, role: str) -> tuple[str, ...]:
    """Names of columns, of which one may stand alone; UsageError for anything else."""
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise UsageError(f"Argument '{role}' is a {type(given).__name__}; give names of columns, as in {role}=['OT'].")
    return tuple(names)
