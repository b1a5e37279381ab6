"""Inputs of a forecast: the last rows of a user's table, checked, on their grid, and the way back into its form."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.data.check import check_frame, check_unique, check_values
from femts.data.column_names import ColumnNames
from femts.data.columns import is_table, match_columns, to_frame
from femts.data.frequency import steps_between
from femts.data.preprocess import Preprocess
from femts.data.recent import last_steps, numbers, rows_before
from femts.data.schema import Schema
from femts.data.stamps import read_dates
from femts.errors import AgeWarning, GapWarning, UnitsWarning, UsageError
from femts.forecaster.run_folder import RunConfig
from femts.text import shown

UNIT = 50  # between sizes, which no usual trend or jump makes


@dataclass(frozen=True)
class LookBack:
    """The L steps that a model reads, C channels, after `before` rows that fill gaps at their start.

    Attributes:
        values: (before + L, C) float64, raw units, NaN where a value is missing.
        when: stamps of these rows, or their numbers for data without stamps.
        time: what the table calls its stamps.
        long: the columns of a table in long form, in its order; empty for a wide one.
        covariates: (before + L, K) float64, raw units, the columns that are known for the steps to come as well.
        before: rows that hold the last value of a channel without one in the first step.
    """

    values: NDArray[np.float64]
    when: pd.Index
    time: str
    long: tuple[str, ...]
    covariates: NDArray[np.float64]
    before: int


def look_back(history: pd.DataFrame, config: RunConfig, columns: Sequence[str], freq: str | None) -> LookBack:
    """The last `config.seq_len` steps of `history`, which has `columns` at the step `freq` (None without stamps).

    It needs the columns `config.schema.roles.future`, too; where the training named roles, further
    columns do not matter.

    A model that reads raw values takes a history of fewer rows, too: those before it are missing, NaN, and have no
    known columns.

    Raises:
        UsageError: the history cannot be used; the text says why.

    Warns:
        GapWarning: values are missing.
    """
    if not is_table(history):
        raise UsageError(f"The history is a {type(history).__name__}; give a DataFrame with the training columns.")
    needed, ahead = config.seq_len, config.schema.roles.future
    whole, schema = _as_trained(history, config.schema, freq, "The history")
    rows, of_rows = _last_rows(whole, schema, needed, freq)
    if config.schema.roles.any:
        rows = _only(rows, (*columns, *ahead), of_rows.form)
    if len(rows):
        needed = min(needed, max(len(rows), config.fewest_rows))
    if len(rows) < needed:
        raise UsageError(f"The history has {len(rows)} rows, but this model looks back {needed}; give that many.")
    where = f"The recent history ({needed} rows)"
    values, when = _checked(rows, needed, (*columns, *ahead), of_rows, freq, where)
    read, covariates = values[list(columns)], values[list(ahead)]
    lacking = [name for name in columns if np.isnan(read[name].iloc[0])]
    numbered = whole.set_axis(np.arange(len(whole)) + when[-1] + 1 - len(whole)) if freq is None else whole
    filling = rows_before(lambda: [numbered], when[0], lacking, freq, schema)
    earlier = numbers(filling, (*lacking, *ahead), schema)
    rule = "the last value before each is read instead"
    if earlier[lacking].isna().all().any() and not config.reads_raw:
        rule += ", or where none came before the training mean"
    _tell_gaps(read, where, rule)
    _tell_gaps(covariates, where, "the training mean stands for each")
    if len(earlier):
        read, covariates = (pd.concat([earlier.reindex(columns=part.columns), part]) for part in (read, covariates))
        when = earlier.index.append(when)
    time, long = schema.form.time_of(whole), schema.form.is_long(whole)
    given = tuple(map(str, whole.columns)) if long else ()
    return LookBack(read.to_numpy(), when, time, given, covariates.to_numpy(), len(earlier))


def _last_rows(table: pd.DataFrame, schema: Schema, needed: int, freq: str | None) -> tuple[pd.DataFrame, Schema]:
    """The rows of a user's table that its last `needed` steps are in, made wide, and the schema of these."""
    form = schema.form
    if freq is None or form.time_of(table) not in map(str, table.columns):
        return table, schema
    rows = last_steps(table, needed, freq, form)
    if not form.is_long(table):
        return rows, schema
    return check_frame(rows, schema, None, freq, f"The recent history ({len(rows)} rows)"), schema.wide()


def _checked(
    rows: pd.DataFrame, needed: int, columns: Sequence[str], schema: Schema, freq: str | None, where: str
) -> tuple[pd.DataFrame, pd.Index]:
    """The last `needed` of wide `rows`, their cells checked, with `columns` in this order, and their stamps or
    numbers."""
    recent = rows.tail(needed)
    if freq is None:
        last = rows.index[-1]
        stop = int(last) + 1 if isinstance(last, (int, np.integer)) else len(rows)
        return check_values(recent, columns, where, schema.na), pd.RangeIndex(stop - needed, stop)
    values = check_frame(recent, schema, columns, freq, where).tail(needed)
    return values, pd.Index(values.pop("date"))


def known_ahead(
    future: pd.DataFrame | None, config: RunConfig, when: pd.Index, freq: str | None
) -> NDArray[np.float64]:
    """The columns known in advance at the steps `when`, (steps, K), from a user's table that has those steps, at least.

    Raises:
        UsageError: the table is missing or lacks one of these values, which nobody may guess; or it is not wanted.
    """
    names, schema = config.schema.roles.future, config.schema
    needed = f"{', '.join(map(shown, names))} for the {len(when)} steps from {when[0]} to {when[-1]}"
    future = check_known(future, names, needed)
    if future is None:
        return np.empty((len(when), 0))
    where = "The table of known columns"
    future, schema = _as_trained(future, schema, freq, where)
    given = len(future)
    future = future.head(len(when)) if freq is None else _at(future, schema.form, when, freq, where)
    rows = where if len(future) == given else f"{where} ({len(future)} rows for these steps)"
    if schema.form.is_long(future) and len(future):
        future, schema = check_frame(future, schema, freq=freq, where=rows), schema.wide()
    future = _only(future, names, schema.form)
    if freq is None:
        values = check_values(future, names, rows, schema.na).reset_index(drop=True).reindex(range(len(when)))
    elif len(future):
        values = check_frame(future, schema, names, freq, rows).set_index("date").reindex(when)
    else:
        values = pd.DataFrame(np.nan, index=when, columns=list(names))
    missing = np.argwhere(values.isna().to_numpy())
    if len(missing):
        step, column = missing[0]
        raise UsageError(f"{where} has no '{shown(names[column])}' at {when[step]}; give {needed}.")
    return values.to_numpy()


def check_known(future: pd.DataFrame | None, names: Sequence[str], needed: str) -> pd.DataFrame | None:
    """The table `future` where the training knew the columns `names` in advance, and None where it knew none.

    Raises:
        UsageError: the table is missing, and what is `needed` is said; or it is not wanted.
    """
    if names and not is_table(future):
        raise UsageError(
            f"This model was trained on columns known in advance; give {needed} (future=, or --future FILE)."
        )
    if future is not None and not names:
        raise UsageError("A table of known columns was given, but this model was trained without any; leave it out.")
    return future


def _at(future: pd.DataFrame, form: ColumnNames, when: pd.Index, freq: str, where: str) -> pd.DataFrame:
    """The rows of a user's table at the stamps `when`, these read; nothing is asked of the other rows."""
    time = form.time_of(future)
    if time not in map(str, future.columns):
        return future  # who checks it says so
    stamps = read_dates(future[time], where, freq)
    check_clock(stamps, when, where)
    return future.assign(**{time: stamps})[np.asarray(stamps.isin(when))]


def check_clock(stamps: pd.Index, when: pd.Index, where: str) -> None:
    """UsageError where the stamps of a table have a time zone and those to come, `when`, have none, or the other way
    round."""
    ours, theirs = (getattr(each, "tz", None) for each in (stamps, when))
    if len(stamps) and (ours is None) != (theirs is None):
        has, lacks = (where, "the history") if theirs is None else ("The history", where[0].lower() + where[1:])
        raise UsageError(
            f"{has} has stamps in the time zone {theirs or ours}, and {lacks} has stamps without one; write both alike."
        )


def _as_trained(table: pd.DataFrame, schema: Schema, freq: str | None, where: str) -> tuple[pd.DataFrame, Schema]:
    """A table of any library as a frame, and the schema of the training with the names that this table has."""
    if freq is None:
        return to_frame(table, where, None), schema
    frame = to_frame(table, where, schema.form)
    form = match_columns(frame, schema.form)
    check_unique([name for name in map(str, frame.columns) if name == form.time_of(frame)], where)
    return frame, replace(schema, form=form)


def _only(table: pd.DataFrame, columns: Sequence[str], form: ColumnNames) -> pd.DataFrame:
    """The time stamps and `columns` of a wide table, as far as it has them."""
    return table[[name for name in table.columns if str(name) in (form.time_of(table), *columns)]]


def in_form_of(forecast: pd.DataFrame, past: LookBack, form: ColumnNames, columns: Sequence[str]) -> pd.DataFrame:
    """A wide `forecast` (`date` or `step` first, then `columns`, each with its bounds) as the
    history was, under its names."""
    if not past.long:
        return forecast.rename(columns={"date": past.time})
    long = form.to_long(forecast, columns)
    return long[[*past.long, *long.columns[3:]]]


def _tell_gaps(values: pd.DataFrame, where: str, rule: str) -> None:
    """Warn of missing values and say by which `rule` they are filled; refuse a table without any value."""
    missing = values.isna()
    if len(values.columns) and missing.all(axis=None):
        raise UsageError(f"{where} has no value at all; at least one is needed to forecast from.")
    if missing.to_numpy().any():
        first, count = shown(values.columns[missing.any()][0]), int(missing.to_numpy().sum())
        warnings.warn(
            f"{where} lacks {count} of {values.size} values, the first in column '{first}'; {rule}.",
            GapWarning,
            stacklevel=6,
        )


def tell_age(last: object, until: str | None, freq: str | None, config: RunConfig) -> None:
    """Warn of a history that ends with the stamp `last`, more than a horizon after the last row
    learned from, `until`."""
    if until is None or freq is None:
        return
    distance = steps_between(until, last, freq)
    if distance is None:
        text = (
            f"The age of the history is not known: it ends {last}, and the last row learned from was {until}; "
            "write both with a time zone, or both without."
        )
    elif distance > config.pred_len:
        learn = "train with --final (final=True) to learn from all rows"
        remedy = "train again on the rows since" if config.final else learn
        text = f"The history ends {distance} steps after the last row learned from ({until}); {remedy}."
    else:
        return
    warnings.warn(text, AgeWarning, stacklevel=5)


def tell_units(recent: Iterable[tuple[str, Preprocess, NDArray[np.float64]]], targets: Sequence[str]) -> None:
    """Warn of values of another size than those of the training rows, as in another unit: `UNIT` times as large, or as
    small where those were never near 0. A trend or a jump does less.

    Args:
        recent: for each series, or for a table whose name is empty, its preprocessing and last rows (L, C), raw units.
        targets: names of the first T columns.
    """
    odd, ends = list[tuple[str, float]](), np.repeat([[0.0], [-1.0], [1.0]], len(targets), axis=1)
    for series, preprocess, values in recent:
        mean, low, high = preprocess.restore(ends)
        sizes = np.hypot(mean, (high - low) / 2)
        for column, (name, size) in enumerate(zip(targets, sizes, strict=True)):
            some = np.abs(values[~np.isnan(values[:, column]), column])
            if not len(some) or not preprocess.scaler.own[column]:
                continue
            most, away = some.max(), abs(mean[column]) > 0.95 * size  # three deviations from 0
            if most > UNIT * size or (away and 0 < most < size / UNIT):
                odd.append((series or name, float(np.median(some)) / size))
    odd = [(name, level) for name, level in odd if level > UNIT or 0 < level < 1 / UNIT]  # not for a single value
    if odd:
        name, level = odd[0]
        times = "large" if level > 1 else "small"
        more = f" and {len(odd) - 1} more" * (len(odd) > 1)
        text = (
            f"The recent history is some {float(f'{max(level, 1 / level):.0e}'):,.0f} times as {times} as the training "
            f"rows in '{shown(name)}'{more}; check its units."
        )
        warnings.warn(text, UnitsWarning, stacklevel=4)


def tell_ended(names: Sequence[str], steps: int) -> None:
    """Warn of targets that have no value in the last `steps` steps."""
    some = ", ".join(f"'{shown(name)}'" for name in names[:6]) + f" and {len(names) - 6} more" * (len(names) > 6)
    warnings.warn(f"{some}: no value in the last {steps} steps, so none in the forecast.", GapWarning, stacklevel=5)
