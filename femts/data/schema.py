"""Schema of a table: how to read it, in one object that is stored with the data and the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, TypedDict

from femts.config.arguments import check_flag, check_text
from femts.config.values import check_plain, whole_number
from femts.data.column_names import USUAL, ColumnNames, Layout
from femts.data.domain import ANY, Domain
from femts.data.roles import NAMED, NO_ROLES, Roles, check_holidays, names_of, to_arguments
from femts.data.split_rule import USUAL_SPLIT, SplitRule
from femts.errors import UsageError, reads, suggest, unknown
from femts.text import argument, arguments, quote


class Reading(TypedDict, total=False):
    """Keywords that control how a table is read; see `Schema.of`."""

    na: Sequence[float | str] | float | str
    columns: Mapping[str, str]
    target: Sequence[str] | str
    past_covariates: Sequence[str] | str
    future_covariates: Sequence[str] | str
    static_covariates: Sequence[str] | str
    calendar: bool
    holidays: str
    split: Sequence[float] | str
    val_rows: int
    test_rows: int
    test_from: str
    min: float | str
    max: float
    transform: str
    outliers: str
    season: Sequence[int] | int
    freq: str | int
    aggregate: str
    panel: bool | None
    sheet: str
    skip_rows: int
    drop: Sequence[str] | str


OUTLIERS = ("missing", "keep")
AGGREGATES = ("mean", "sum", "median", "min", "max", "count")
COUNT = "count"  # how many rows a step has, and the column of these numbers


@dataclass(frozen=True)
class Schema:
    """How a table is read.

    Attributes:
        na: numbers that mean "missing", in addition to empty cells; None finds those of the training data.
        form: names of the columns with time stamps, series names and values, and where the table is in its file.
        roles: roles of the columns.
        split: requested training, validation and test splits.
        domain: bounds and transform of the targets.
        season: number of steps in each season, 1 for no season; empty if implied by the step between rows. The first is
            used by models, for look-backs, the seasonal naive forecast and MASE; `mstl` removes all of them.
        freq: step between time stamps, a pandas frequency or a number; None infers it. Rows with dates that do not keep
            it are averaged over such steps. 1 numbers the rows of each series in order of their dates.
        aggregate: what the targets of a step are, one of `AGGREGATES`, of which `count` is the number of rows, in a column
            of that name; None is the mean, and refuses repeated dates.
        outliers: what happens to readings far outside the usual range, `missing` or `keep`; None keeps those of the
            catalogue.
        panel: True trains one model on the separate series; False forecasts the series jointly, as columns. None means
            True for long tables and False for wide ones.
    """

    na: tuple[float, ...] | None = None
    form: ColumnNames = USUAL
    roles: Roles = NO_ROLES
    split: SplitRule = USUAL_SPLIT
    domain: Domain = ANY
    season: tuple[int, ...] = ()
    freq: str | None = None
    panel: bool | None = None
    aggregate: str | None = None
    outliers: str | None = None

    @classmethod
    def of(cls, **reading: Any) -> Schema:
        """Create a schema from keywords.

        Args:
            reading: `na`, numbers and words that mean "missing", or `none`; `columns`, column names by `time`, `series` and `value` if they
                differ from `date`, or `unique_id, ds, y`; `target`, `past_covariates`, `future_covariates` and
                `static_covariates`, column names by role, and `calendar` and `holidays`, as in `Roles`; `split`, `val_rows`,
                `test_rows` and `test_from` as in `SplitRule`; `min`, `max` and `transform` as in `Domain`; `season`,
                `freq`, `aggregate`, `outliers` and `panel` as above; `sheet`, `skip_rows` and `drop` as in `Layout`.

        Raises:
            UsageError: A keyword is unknown or its value is invalid.
        """
        names = list(Reading.__annotations__)
        unknown = next((name for name in reading if name not in names), None)
        if unknown is not None:
            text = f"Unknown argument '{quote(unknown)}' of the data{suggest(unknown, names)}"
            raise UsageError(text, argument=unknown, value=reading[unknown])
        if not reading:
            return PLAIN
        calendar = reading.get("calendar")
        calendar = None if calendar is None else check_flag(calendar, "calendar")
        given = {role: names_of(reading.get(argument, ()), argument) for role, argument in NAMED.items()}
        roles = Roles(**given, calendar=calendar, holidays=check_holidays(reading.get("holidays")))
        freq = _step(reading.get("freq"))
        form = ColumnNames.of({} if reading.get("columns") is None else reading["columns"])
        drop = reading.get("drop")
        layout = Layout.of(reading.get("sheet"), reading.get("skip_rows"), () if drop is None else drop)
        na, words = _sentinels(reading.get("na"))
        return cls(
            na,
            replace(form, layout=layout, missing=words),
            roles,
            SplitRule.of(*(reading.get(name) for name in ("split", "val_rows", "test_rows", "test_from"))),
            Domain.of(*(reading.get(name) for name in ("min", "max", "transform"))),
            _seasons(reading.get("season")),
            freq,
            None if reading.get("panel") is None else check_flag(reading["panel"], "panel"),
            _aggregate(reading.get("aggregate"), freq),
            check_outliers(reading.get("outliers")),
        )

    def reading(self) -> dict[str, Any]:
        """Keywords of `of` that differ from the defaults, in plain types."""
        given = {
            "na": self._na(),
            "columns": self.form.given(),
            **to_arguments(self.roles.to_dict()),
            "season": list(self.season),
            "freq": self.freq,
            "aggregate": self.aggregate,
            "outliers": self.outliers,
        }
        panel = {} if self.panel is None else {"panel": self.panel}
        return (
            {name: value for name, value in given.items() if value}
            | panel
            | self.split.to_dict()
            | self.domain.to_dict()
            | self.form.layout.to_dict()
        )

    def changed(self, reading: Mapping[str, Any]) -> Schema:
        """The schema of these keywords of `of` with those of `reading`, in which None stands for the default."""
        given = self.reading() | dict(reading)
        return Schema.of(**{name: value for name, value in given.items() if value is not None})

    def to_dict(self) -> dict[str, Any]:
        """Plain types for YAML."""
        further: dict[str, Any] = {"split": self.split.to_dict(), "domain": self.domain.to_dict()}
        further |= {"season": list(self.season), "freq": self.freq, "aggregate": self.aggregate, "panel": self.panel}
        further |= {"outliers": self.outliers}
        always = {"na": self._na(), "columns": self.form.named(), "roles": self.roles.to_dict()}
        given = {name: value for name, value in further.items() if value or value is False}
        return always | given | self.form.layout.to_dict()

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Schema:
        """The inverse of `to_dict`."""
        split, domain = SplitRule.from_dict(record.get("split", {})), Domain.from_dict(record.get("domain", {}))
        layout = Layout.of(record.get("sheet"), record.get("skip_rows"), record.get("drop", ()))
        na, words = _sentinels(record["na"] or None)
        form = replace(ColumnNames.of(record["columns"]), layout=layout, missing=words)
        read = na, form, Roles.of(record["roles"])
        freq = _step(record.get("freq"))
        aggregate = _aggregate(record.get("aggregate"), freq)
        season, panel, outliers = tuple(record.get("season", ())), record.get("panel"), record.get("outliers")
        return cls(*read, split, domain, season, freq, panel, aggregate, check_outliers(outliers))

    def _na(self) -> list[float | str] | str:
        """Numbers and words that mean "missing", as `of` takes them."""
        return "none" if self.na == () and not self.form.missing else [*(self.na or ()), *self.form.missing]

    def season_of(self, freq: str | None) -> int:
        """Number of steps in the season: the first one given by the user, or the one implied by the step `freq`."""
        from femts.data.frequency import season_of  # importing pandas is slow

        return self.season[0] if self.season else season_of(freq)

    def wide(self) -> Schema:
        """Schema of the same data as a wide table with usual names."""
        return replace(self, form=USUAL)


PLAIN = Schema()


def _step(freq: object) -> str | None:
    """As `femts.data.frequency.read_step`, but without the slow import of pandas if no step is given."""
    if freq is None:
        return None
    from femts.data.frequency import read_step

    return read_step(freq)


@reads("aggregate")
def _aggregate(name: object, freq: str | None) -> str | None:
    """A user's aggregate; UsageError if it is unknown, or if there are no steps of time to aggregate over."""
    if name is None:
        return None
    if check_text(name, "aggregate") not in AGGREGATES:
        raise unknown("aggregate", name, AGGREGATES, "aggregate")
    if freq is None or freq.isdecimal():
        raise UsageError(
            f"The {name} of each step needs the step as a time; add {arguments({'freq': 'D'})} or the like."
        )
    return str(name)


def check_outliers(outliers: object) -> str | None:
    """What a user wants to happen to outliers; UsageError if it is unknown."""
    if outliers is None:
        return None
    if check_text(outliers, "outliers") not in OUTLIERS:
        raise unknown("treatment of outliers", outliers, OUTLIERS, "outliers")
    return str(outliers)


@reads("season")
def _seasons(season: object) -> tuple[int, ...]:
    """Number of steps in each season: a number, or several in a list or text."""
    check_plain(season, "Argument 'season'")
    given = season if isinstance(season, list | tuple) else [] if season is None else str(season).split(",")
    steps = tuple(whole_number(each, "Argument 'season'") for each in given)
    seasons = tuple(each for each in steps if each is not None and each >= 1)
    if len(set(seasons)) < len(given):
        fault = f"Season '{quote(season)}' is not a number of steps, nor a list of different ones"
        raise UsageError(f"{fault}; use {argument('season=24')} or {argument('season=[24, 168]')}, or 1 for no season.")
    return seasons


@reads("na")
def _sentinels(na: object) -> tuple[tuple[float, ...] | None, tuple[str, ...]]:
    """A user's numbers and words that mean "missing". There are no numbers for `none`, and None if they are to be found,
    also if only words are given."""
    if na is None:
        return None, ()
    check_plain(na, "Argument 'na'")
    given = na if isinstance(na, list | tuple) else [na]
    if [str(each).strip().lower() for each in given] == ["none"]:
        return (), ()
    numbers, words = list[float](), list[str]()
    for each in given:
        try:
            numbers.append(float(each))  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError) as error:
            if not isinstance(each, str) or not each.strip():
                raise UsageError(
                    f"The value '{quote(each)}' for missing data is neither a number nor a word; write "
                    f"{arguments({'na': [-9999, 'off']})}, or {arguments({'na': 'none'})}."
                ) from error
            words.append(each.strip())
    endless = next((number for number in numbers if not isfinite(number)), None)
    if endless is not None:
        raise UsageError(f"The value {endless:g} for missing data is not finite; leave such cells empty instead.")
    return tuple(numbers) or None, tuple(words)
