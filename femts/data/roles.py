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
        holidays: whose public holidays to add as features: a country such as `DE`, or the column with the country of each
            series of a panel; None for none.
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
        return {*self.target, *self.past, *self.future, *self.constant}

    @property
    def country_column(self) -> str | None:
        """Column with the country whose holidays each series has; None if all have the same ones, or none."""
        return None if self.holidays is None or is_country(self.holidays) else self.holidays

    @property
    def constant(self) -> tuple[str, ...]:
        """Columns with one value for each series of a panel: static covariates and countries."""
        countries = () if self.country_column is None else (self.country_column,)
        return tuple(dict.fromkeys((*self.static, *countries)))

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
        countries = self.country_column
        if countries is not None and countries not in columns:
            if trained:
                raise UsageError(f"{where} has no column '{quote(countries)}', which the training data had; add it.")
            text = f"{where} has no column '{quote(countries)}' for {argument('holidays')}"
            remedy = "give a country such as 'DE', a part of one such as 'DE-BY', or a column of countries."
            raise UsageError(f"{text}; {remedy}", argument="holidays", value=countries, remedy={"holidays": None})
        return seen if countries is None else {countries: "holidays"} | seen

    def refuse_static(self) -> None:
        """Raise UsageError if columns are named that are constant within each series, which only panels can have."""
        if self.country_column is not None:
            text = (
                f"A single series has the holidays of a country such as 'DE' or of a part of one such as 'DE-BY', not "
                f"'{quote(self.country_column)}'; give one, or read a long table as a panel ({argument('panel=True')})."
            )
            raise UsageError(text, argument="holidays", value=self.holidays, remedy={"holidays": None})
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


def is_country(value: object) -> bool:
    """Whether a value has the form of a country such as `DE`, or of a part of one such as `DE-BY`."""
    return isinstance(value, str) and re.fullmatch(r"[A-Z]{2}(-[A-Z0-9]{1,3})?", value) is not None


def check_holidays(value: object) -> str | None:
    """A country, or the name of a column of countries; raise UsageError for anything else."""
    if value is None or isinstance(value, str):
        return value
    text = f"Holidays are those of a country such as 'DE', or of a column of countries, not '{quote(value)}'."
    raise UsageError(text, argument="holidays", value=value, remedy={"holidays": None})
