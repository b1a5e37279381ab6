"""Options for reading a table, shared by all commands that read one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any

import typer

from femts.cli.options import option, parts
from femts.data.roles import NAMED
from femts.errors import UsageError
from femts.text import quote


@dataclass(frozen=True)
class ReadingOptions:
    """Options for reading a table. Configuration files use the same names, with lists or mappings as well as text."""

    na: Annotated[
        str | None,
        option(
            "Numbers and words that encode a missing value, such as -9999 or off, or none.",
            "X[,X...]|none",
            default="found",
        ),
    ] = None
    columns: Annotated[
        str | None,
        option("Names of your columns, if not date, or unique_id, ds, y.", "time=NAME,series=NAME,value=NAME"),
    ] = None
    target: Annotated[
        str | None,
        option(
            "Columns to forecast; by default all that are not covariates. Quote names with a comma: '\"NAME, "
            "MORE\",NAME'.",
            "NAME[,NAME...]",
        ),
    ] = None
    past_covariates: Annotated[
        str | None, option("Covariates known only up to the forecast origin.", "NAME[,NAME...]")
    ] = None
    future_covariates: Annotated[
        str | None, option("Covariates also known over the forecast horizon.", "NAME[,NAME...]")
    ] = None
    static_covariates: Annotated[
        str | None, option("Covariates that are constant within each series of a panel.", "NAME[,NAME...]")
    ] = None
    calendar: Annotated[
        bool | None,
        typer.Option(
            "--calendar/--no-calendar",
            help="Add hour-of-week and time-of-year features; by default, only trees read them.",
        ),
    ] = None
    holidays: Annotated[
        str | None,
        option(
            "Add the public holidays of a country or a part of one, such as DE or DE-BY, or of the country of each series "
            "in a column.",
            "COUNTRY|NAME",
        ),
    ] = None
    split: Annotated[
        str | None, option("Fractions of the rows for training, validation and test.", "TRAIN,VAL,TEST")
    ] = None
    val_rows: Annotated[str | None, option("Number of validation rows, before the test rows.", "N")] = None
    test_rows: Annotated[str | None, option("Number of test rows at the end.", "N")] = None
    test_from: Annotated[str | None, option("First date of the test split.", "DATE")] = None
    min: Annotated[
        str | None, option("Lower bound of forecasts; by default 0 if no training value is negative.", "X|none")
    ] = None
    max: Annotated[str | None, option("Upper bound of forecasts.", "X")] = None
    transform: Annotated[str | None, option("Transform skewed targets before scaling.", "none|log1p|boxcox")] = None
    outliers: Annotated[
        str | None,
        option(
            "Whether values far outside the usual range are read as missing.",
            "missing|keep",
            default="missing; keep for the catalogue",
        ),
    ] = None
    season: Annotated[
        str | None,
        option(
            "Season length in steps; of several, mstl uses all and other models the first.",
            "N[,N...]",
            default="by the step",
        ),
    ] = None
    freq: Annotated[
        str | None,
        option(
            "Sampling frequency, such as 15min, h or MS. Off-grid rows are averaged; 1 numbers the rows by date.",
            "FREQ",
            default="inferred",
        ),
    ] = None
    aggregate: Annotated[
        str | None,
        option(
            "How to combine the rows of each step of --freq; dates may then repeat.",
            "mean|sum|count|median|min|max",
            default="mean, without repeated dates",
        ),
    ] = None
    panel: Annotated[
        bool | None,
        typer.Option(
            "--panel/--multivariate",
            help="One model for independent series, or all columns forecast jointly.",
            show_default="a long table is a panel",
        ),
    ] = None
    sheet: Annotated[
        str | None,
        option("Sheet of a workbook.", "NAME", default="the one that looks most like a table"),
    ] = None
    skip_rows: Annotated[
        str | None, option("Number of lines before the header of a file.", "N", default="as the file shows")
    ] = None
    drop: Annotated[str | None, option("Columns to leave out.", "NAME[,NAME...]")] = None

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> ReadingOptions:
        """Create from those of `values` that are options; None means not given."""
        return cls(**{name: values[name] for name in READING if values.get(name) is not None})

    def reading(self) -> dict[str, Any]:
        """Arguments of `load_dataset`, without those at their defaults.

        Raises:
            UsageError: An option cannot be parsed.
        """
        reading = {
            "na": _parse_na(self.na),
            "columns": _parse_columns(self.columns),
            **{argument: _parse_names(argument, getattr(self, argument)) for argument in NAMED.values()},
            "drop": _parse_names("drop", self.drop),
        }
        from femts.data.schema import Schema  # importing pandas is slow

        flags = ("calendar", "panel")
        further = [name for name in READING if name not in (*reading, *flags)]
        schema = Schema.of(
            **{name: value for name, value in reading.items() if value},
            **{k: getattr(self, k) for k in further},
            **{k: _check_flag(k, getattr(self, k)) for k in flags if getattr(self, k) is not None},
        )
        return schema.reading()


READING = tuple(field.name for field in fields(ReadingOptions))


def _parse_na(value: object) -> tuple[float | str, ...] | str | None:
    """Parse `-9999`, `-9999,off`, `[-9999]` or nothing as numbers and words; `none` stays as it is."""
    if value is None or str(value).strip().lower() == "none":
        return None if value is None else "none"
    return tuple(map(_number_or_word, value if isinstance(value, list | tuple) else parts(str(value))))


def _number_or_word(part: object) -> float | str:
    try:
        return float(str(part))
    except ValueError:
        return str(part).strip()


def _parse_columns(value: object) -> dict[str, str]:
    """Parse `time=when,value=sales`, a mapping, or nothing."""
    if isinstance(value, Mapping):
        found = ("categories", "units")  # of the data of a run
        return {str(key): str(name) for key, name in value.items() if name is not None and key not in found}
    pairs: dict[str, str] = {}
    for key, _, name in (part.partition("=") for part in ([] if value is None else parts(str(value)))):
        if key not in ("time", "series", "value") or not name or key in pairs:
            raise UsageError(
                f"Columns '{quote(value)}' cannot be read; write --columns time=NAME,series=NAME,value=NAME, each once."
            )
        pairs[key] = name
    return pairs


def _parse_names(argument: str, value: object) -> tuple[str, ...]:
    """Column names from a list or comma-separated text, in which quotes protect commas within a name."""
    given = value if isinstance(value, list | tuple) else [] if value is None else parts(str(value))
    names, option = tuple(str(part) for part in given), f"--{argument.replace('_', '-')}"
    if "" in names:
        raise UsageError(
            f"Columns '{quote(value)}' cannot be read; write {option} NAME, {option} NAME,NAME, or "
            f"{option} '\"NAME, WITH COMMA\",NAME'."
        )
    return names


def _check_flag(name: str, value: object) -> bool:
    """A command-line flag or a YAML boolean."""
    if not isinstance(value, bool):
        raise UsageError(f"Setting '{name}' takes true or false, not {quote(value)}.")
    return value
