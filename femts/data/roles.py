"""Column roles: targets, and past, future and static covariates."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from femts.errors import TableFault, UsageError, nearest, suggest
from femts.text import argument, arguments, quote

# Fields of `Roles` that name columns, and the arguments that set them.
NAMED = {
    "target": "target",
    "past": "past_covariates",
    "future": "future_covariates",
    "static": "static_covariates",
}


@dataclass(frozen=True)
class Roles:
    """Column names by role.

    Attributes:
        target: columns to forecast and score; if empty, all that are not covariates.
        past: past covariates, known only up to the forecast origin; models read them.
        future: future covariates, also known over the horizon, such as holidays or prices; their effect on the targets
            is fitted.
        calendar: whether to add hour-of-week and time-of-year features; None leaves this to the model: trees read them,
            and for all others there are none.
        static: static covariates, constant within each series of a panel, such as a region; numbers or text.
        holidays: whose public holidays to add as features, such as `DE`; None for none.
    """

    target: tuple[str, ...] = ()
    past: tuple[str, ...] = ()
    future: tuple[str, ...] = ()
    calendar: bool | None = None
    static: tuple[str, ...] = ()
    holidays: str | None = None

    @property
    def any(self) -> bool:
        """Whether anything differs from the default, in which every column is a target."""
        return bool(self.target or self.past or self.future or self.calendar or self.static or self.holidays)

    @property
    def named(self) -> set[str]:
        """Names of all columns with a role."""
        return {*self.target, *self.past, *self.future, *self.static}

    def without(self, column: str | None) -> dict[str, Any]:
        """Arguments of `load_dataset` for the same roles without that of a column, None for those to leave out."""
        given = {argument: getattr(self, role) for role, argument in NAMED.items()}
        return {
            argument: [name for name in names if name != column] or None
            for argument, names in given.items()
            if column in names
        }

    @property
    def in_advance(self) -> bool:
        """Whether there are future covariates, calendar features or holidays."""
        return bool(self.future or self.calendar or self.holidays)

    def to_dict(self) -> dict[str, Any]:
        """Plain types for YAML; empty for the default."""
        own = {} if self.holidays is None else {"holidays": self.holidays}
        named = {key: list(getattr(self, key)) for key in NAMED if getattr(self, key)} | own
        return named if self.calendar is None else named | {"calendar": self.calendar}

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Roles:
        """The inverse of `to_dict`."""
        names = {key: tuple(record.get(key, ())) for key in NAMED}
        return cls(**names, calendar=record.get("calendar"), holidays=record.get("holidays"))

    def sorted_out(self, columns: Sequence[str], name: str) -> Roles:
        """The same roles with every target named, for a table `name` with these `columns`.

        Raises:
            UsageError: A column does not exist or has two roles, or no target is left.
        """
        self.refuse_static()
        seen = self.check(columns, f"'{name}'")
        targets = self.target or tuple(c for c in columns if c not in seen)
        if not targets:
            fewer = f"list fewer in {argument('past_covariates')} and {argument('future_covariates')}"
            raise UsageError(f"No column of '{quote(name)}' is left to forecast; {fewer}.")
        return replace(self, target=targets)

    def check(self, columns: Sequence[str], where: str, trained: bool = False) -> dict[str, str]:
        """Role of each named column; UsageError if a column does not exist or has two roles. With `trained`, the roles
        are those of the training data, so the table has to follow."""
        seen: dict[str, str] = {}
        for role, name in NAMED.items():
            given = list(getattr(self, role))
            for column in given:
                if column not in columns and trained:
                    text = f"{where} has no column '{quote(column)}', which the training data had; add it."
                    raise UsageError(text)
                if column not in columns:
                    meant = nearest(column, columns)
                    others = [each for each in given if each != column]
                    if meant is not None and meant not in self.named:
                        others.append(meant)
                    fault, advice = (
                        f"{where} has no column '{quote(column)}' for {argument(name)}",
                        suggest(column, columns),
                    )
                    raise TableFault(fault, advice, {name: others or None}, column, argument=name, value=given)
                if column in seen:
                    text = (
                        f"Column '{quote(column)}' is listed in both {arguments({NAMED[seen[column]]: [column]})} and "
                        f"{arguments({name: [column]})}; give it one role."
                    )
                    others = [each for each in given if each != column]
                    raise UsageError(text, argument=name, value=given, remedy={name: others or None})
                seen[column] = role
        return seen

    def refuse_static(self) -> None:
        """Raise UsageError if static covariates are named, which only panels can have."""
        if self.static:
            text = (
                f"A single series cannot have static covariates such as '{quote(self.static[0])}'; remove "
                f"{argument('static_covariates')}, or read a long table as a panel ({argument('panel=True')})."
            )
            remedy = {"static_covariates": None}
            raise UsageError(text, argument="static_covariates", value=list(self.static), remedy=remedy)


NO_ROLES = Roles()


def to_arguments(record: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the result of `Roles.to_dict` to arguments of `load_dataset`."""
    return {NAMED.get(key, key): value for key, value in record.items()}


def names_of(given: object, role: str) -> tuple[str, ...]:
    """Column names from a list or a single name; UsageError for anything else."""
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        text = f"Argument '{role}' is a {type(given).__name__}; give column names, as in {arguments({role: ['OT']})}."
        raise UsageError(text, argument=role, value=given)
    return tuple(names)


def check_holidays(value: object) -> str | None:
    """A country such as `DE`, or a part of one such as `DE-BY`; raise UsageError for anything else."""
    if value is None or (isinstance(value, str) and re.fullmatch(r"[A-Z]{2}(-[A-Z0-9]{1,3})?", value)):
        return value
    text = f"Holidays are those of a country such as 'DE' or of a part of it such as 'DE-BY', not '{quote(value)}'."
    raise UsageError(text, argument="holidays", value=value, remedy={"holidays": None})
