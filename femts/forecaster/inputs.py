"""Inputs of a forecast: the last rows of a user's table, checked and aligned to its step, and future covariates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.config.arguments import check_names, check_text
from femts.data.aggregation import by_step
from femts.data.categories import origins
from femts.data.check import check_frame, check_unique, check_values
from femts.data.column_names import ROW, ColumnNames
from femts.data.columns import is_table, match_columns, to_frame
from femts.data.dataset import Dataset
from femts.data.describe import count
from femts.data.frequency import future_dates, past_date, steps_between
from femts.data.loading import read_series
from femts.data.long_table import number_series
from femts.data.preprocess import Preprocess
from femts.data.recent import last_steps, numbers, rows_before
from femts.data.schema import Schema
from femts.data.series_rows import from_rows
from femts.data.splits import Split
from femts.data.stamps import read_dates
from femts.errors import AgeWarning, GapWarning, UnitsWarning, UsageError, suggest, warn
from femts.forecaster.run_folder import RunConfig
from femts.text import quote

if TYPE_CHECKING:
    from femts.forecaster.forecaster import Forecaster

Array = NDArray[np.float64]
UNIT = 50  # ratio of magnitudes beyond usual trends and jumps
KNOWN = "The table of future covariates"
SCENARIO = "scenario"  # column that distinguishes forecasts for several scenarios
Future: TypeAlias = pd.DataFrame | Mapping[str, pd.DataFrame]


@dataclass(frozen=True, eq=False)
class History:
    """Rows to forecast from.

    Attributes:
        data: for a single wide table the last steps, after rows that fill gaps at their start; otherwise all rows. Data
            without time stamps have row numbers.
        time: name of the time column in the table.
        long: columns, in order, of a long table whose series are columns; empty for other tables.
        wide: whether the table has one column per series and no series names.
    """

    data: Dataset
    time: str
    long: tuple[str, ...] = ()
    wide: bool = False

    def named(self, forecast: pd.DataFrame, form: ColumnNames, targets: Sequence[str]) -> pd.DataFrame:
        """A wide `forecast` (`date` or `step` first, then `targets` with their bounds) in the form and with the names
        of the history."""
        if not self.long:
            return forecast if self.time == "date" else forecast.rename(columns={"date": self.time})
        long = form.to_long(forecast, targets)
        return long[[*self.long, *long.columns[3:]]]


def read_history(
    forecaster: Forecaster, history: pd.DataFrame | Dataset, series: Sequence[str] | None = None
) -> History:
    """Read the rows of a user's `history`, of all or the given series, at the step of the training data.

    Raises:
        UsageError: The history cannot be used; the message says why.

    Warns:
        GapWarning: A wide table has missing values.
    """
    schema, history = forecaster.config.schema, _table_of(history, "The history")
    if not schema.panel:
        if series is not None:
            raise UsageError("This model was trained on a single table without series; omit series.")
        return _table_history(history, forecaster.config, forecaster.columns, forecaster.freq)
    frame = to_frame(history, "The history", schema.form)
    long, form, _ = from_rows(frame, schema.form, "The history", schema.na)
    schema = replace(schema, form=form)
    data = read_series(by_step(long, schema, "The history")[0], "history", schema, "The history", forecaster.freq)
    if series is not None:
        chosen = check_names(series, "series")
        missing = next((name for name in chosen if name not in data.series), None)
        if missing is not None:
            raise UsageError(f"The history has no series '{quote(missing)}'{suggest(missing, data.series)}")
        data = data.take(np.array([data.series.index(name) for name in chosen]))
    wide = data.schema.form.series not in map(str, frame.columns)
    time = data.schema.form.time
    return History(data, time or ("date" if wide else "ds"), wide=wide)


def _table_of(given: pd.DataFrame | Dataset, where: str) -> pd.DataFrame:
    if isinstance(given, Dataset):
        return given.frame()
    if not is_table(given):
        raise UsageError(f"{where} is a {type(given).__name__}; give a DataFrame with the training columns.")
    return given


def _table_history(history: pd.DataFrame, config: RunConfig, columns: Sequence[str], freq: str | None) -> History:
    """The last `config.seq_len` steps of a wide table, or of a long one whose series are columns.

    The columns `config.schema.roles.future` are required, too; if training assigned roles, further columns are ignored.
    A shorter history is padded, except for a model that reads raw values.
    """
    needed, ahead = config.seq_len, config.schema.roles.future
    whole, schema = _as_trained(history, config.schema, freq, "The history")
    rows, of_rows = _last_rows(whole, schema, needed, freq)
    if config.schema.roles.any:
        rows = _only(rows, (*columns, *ahead), of_rows.form)
    if not len(rows):
        raise UsageError(f"The history has no rows, but this model needs {needed}; provide that many.")
    if len(rows) < needed and len(rows) < config.fewest_rows:
        season = schema.season_of(freq)
        filling = f"by repeating the first {season}" if 1 < season <= len(rows) else "with the training mean"
        warn(
            f"The history has {count(len(rows), 'row')}, but this model looks back {needed}; the missing rows are filled "
            f"{filling}, so expect larger errors than the scores indicate.",
            GapWarning,
        )
    needed = min(needed, len(rows))
    where = f"The recent history ({needed} rows)"
    values, when = _checked(rows, needed, (*columns, *ahead), of_rows, freq, where)
    read, covariates = values.iloc[:, : len(columns)], values.iloc[:, len(columns) :]
    lacking = [name for name, missing in zip(columns, np.isnan(read.to_numpy()[0]), strict=True) if missing]
    numbered = whole.set_axis(np.arange(len(whole)) + when[-1] + 1 - len(whole)) if freq is None else whole
    filling = rows_before(lambda: [numbered], when[0], lacking, freq, schema)
    earlier = numbers(filling, (*lacking, *ahead), schema)
    found, known = np.split(earlier.to_numpy(dtype=np.float64), [len(lacking)], axis=1)
    rule = "the last value before each is read instead"
    if np.isnan(found).all(axis=0).any() and not config.reads_raw:
        rule += " or, if there is none, with the training mean"
    _warn_gaps(read, where, rule)
    _warn_gaps(covariates, where, "the training mean is read instead")
    before = np.full((len(earlier), len(columns)), np.nan)
    before[:, np.isin(columns, lacking)] = found
    data = Dataset.of_one(
        "history",
        np.concatenate([before, read.to_numpy()]),
        earlier.index.append(when) if len(earlier) else when,
        columns,
        freq=freq,
        covariates=np.concatenate([known, covariates.to_numpy()]),
        schema=config.schema,
        split=Split.of((0, 0), (0, 0), (0, 0)),
    )
    form = schema.form
    long = [name for name in map(str, whole.columns) if name not in form.keys] if form.is_long(whole) else []
    return History(data, form.time_of(whole), tuple(long))


def read_wide(
    forecaster: Forecaster, table: pd.DataFrame | Dataset, where: str, columns: Sequence[str], steps: int | None = None
) -> pd.DataFrame:
    """The `columns` of a wide table, or of a long one whose series are columns, in order of time after their `date`
    (none for data without time stamps), NaN for missing values: all rows, or those of the last `steps`.

    Raises:
        UsageError: The table cannot be read; the message says why.
    """
    freq = forecaster.freq
    rows, schema = _as_trained(_table_of(table, where), forecaster.config.schema, freq, where)
    if steps is not None:
        rows, schema = _last_rows(rows, schema, steps, freq)
    if freq is None:
        return check_values(rows.tail(steps or len(rows)), columns, where, schema.na)
    if not schema.form.is_long(rows):
        rows = _only(rows, columns, schema.form)
    return check_frame(rows, schema, columns, freq, where)


def _last_rows(table: pd.DataFrame, schema: Schema, needed: int, freq: str | None) -> tuple[pd.DataFrame, Schema]:
    """The rows of a user's table that cover its last `needed` steps, in wide form, and their schema."""
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
    """The last `needed` of wide `rows`, after checking their cells, with `columns` in this order, and their time stamps
    or row numbers."""
    recent = rows.tail(needed)
    if freq is None:
        last = rows.index[-1]
        stop = int(last) + 1 if isinstance(last, (int, np.integer)) else len(rows)
        return check_values(recent, columns, where, schema.na), pd.RangeIndex(stop - needed, stop)
    values = check_frame(recent, schema, columns, freq, where).tail(needed)
    return values.iloc[:, 1:], pd.Index(values["date"])


def _as_trained(table: pd.DataFrame, schema: Schema, freq: str | None, where: str) -> tuple[pd.DataFrame, Schema]:
    """A table of any library as a pandas frame, and the training schema with the names of this table."""
    if freq is None:
        return to_frame(table, where, None), schema
    frame = to_frame(table, where, schema.form)
    if schema.form.series in map(str, frame.columns):
        frame = from_rows(frame, schema.form, where, schema.na)[0]
    form = match_columns(frame, schema.form)
    check_unique([name for name in map(str, frame.columns) if name == form.time_of(frame)], where)
    schema = replace(schema, form=form)
    return by_step(frame, schema, where)[0], schema


def _only(table: pd.DataFrame, columns: Sequence[str], form: ColumnNames) -> pd.DataFrame:
    """The time stamps and those of `columns` that a wide table has."""
    return table[[name for name in table.columns if str(name) in (form.time_of(table), *columns)]]


def ends_of(data: Dataset) -> pd.Index:
    """The last time stamp of each series."""
    assert data.stamps is not None, "a history has stamps, or the numbers of its rows"
    return data.stamps[data.spans[:, 1] - 1]


def steps_ahead(data: Dataset, steps: int) -> pd.Index:
    """The time stamps of `steps` steps after the end of each series, (S steps,), series by series."""
    ends = ends_of(data)
    if data.freq is None:
        return pd.RangeIndex(int(ends[0]) + 1, int(ends[0]) + 1 + steps)
    if len(ends) == 1:
        return future_dates(ends[0], data.freq, steps)
    codes, unique = pd.factorize(ends)
    ahead = [future_dates(last, data.freq, steps) for last in unique]
    return ahead[0].append(ahead[1:])[(codes[:, None] * steps + np.arange(steps)).ravel()]


def scenarios(future: Future | None) -> dict[str, pd.DataFrame] | None:
    """Tables of future covariates by scenario name; None if one table or none is given.

    Raises:
        UsageError: The mapping is empty, or a name is not text.
    """
    if not isinstance(future, Mapping):
        return None
    if not future:
        raise UsageError("No future covariates are given; pass one table, or a mapping from scenario names to tables.")
    return {check_text(name, "future"): table for name, table in future.items()}


def known_ahead(
    forecaster: Forecaster, data: Dataset, future: pd.DataFrame | None, ahead: pd.Index, first: int
) -> Array:
    """Future covariates at the stamps `ahead` of each series, (S, steps, K), from a user's table that covers at least
    the first `first` of these steps; later ones repeat its last row.

    Raises:
        UsageError: The table is missing, lacks a required value, or is not expected.
    """
    schema, freq = forecaster.config.schema, forecaster.freq
    names, steps = schema.roles.future, len(ahead) // len(data)
    listed, after = ", ".join(map(quote, origins(names, schema.form))), "the end of each series"
    span = f"after {after}" if schema.panel else f"from {ahead[0]} to {ahead[first - 1]}"
    needed = f"{listed} for the {first} steps {span}"
    if names and not is_table(future):
        raise UsageError(f"This model was trained with future covariates; provide {needed}, as future=TABLE.")
    if future is not None and not names:
        raise UsageError("Future covariates were given, but this model was trained without any; leave them out.")
    if future is None:
        return np.empty((len(data), steps, 0))
    if schema.form.dates is not None and ROW not in map(str, to_frame(future, KNOWN, None).columns):
        raise UsageError(
            f"{KNOWN} has no column '{ROW}', but this history has row numbers instead of dates; add the column, "
            f"starting at {ahead[0]} for the first forecast step."
        )
    if schema.panel:
        index = pd.MultiIndex.from_arrays([np.repeat(np.array(data.series, dtype=object), steps), ahead])
        values = _known_of_series(future, schema, freq, index).reindex(index)
    else:
        values = _known_of_table(future, schema, freq, ahead)
    within = np.arange(len(ahead)) % steps
    missing = np.argwhere(values.isna().to_numpy() & (within < first)[:, None])
    if len(missing):
        row, column = missing[0]
        series = f" of series '{quote(values.index[row][0])}'" if schema.panel else ""
        name = origins(names[column : column + 1], schema.form)[0]
        raise UsageError(f"{KNOWN} has no '{quote(name)}'{series} at {ahead[row]}; give {needed}.")
    values = values.groupby(np.arange(len(ahead)) // steps).ffill()
    return values.to_numpy(dtype=np.float64).reshape(len(data), steps, len(names))


def _known_of_table(future: pd.DataFrame, schema: Schema, freq: str | None, when: pd.Index) -> pd.DataFrame:
    """The future covariates at the stamps `when`; other rows are not checked."""
    names = schema.roles.future
    future, schema = _as_trained(future, schema, freq, KNOWN)
    given = len(future)
    if freq is None:
        future = future.head(len(when))
    else:
        time = schema.form.time_of(future)
        if time in map(str, future.columns):  # otherwise the check below reports it
            stamps = _on_clock(read_dates(future[time], KNOWN, freq), when)
            future = future.assign(**{time: stamps})[np.asarray(stamps.isin(when))]
    rows = KNOWN if len(future) == given else f"{KNOWN} ({len(future)} rows for these steps)"
    if schema.form.is_long(future) and len(future):
        future, schema = check_frame(future, schema, freq=freq, where=rows), schema.wide()
    future = _only(future, names, schema.form)
    if freq is None:
        return check_values(future, names, rows, schema.na).reset_index(drop=True).reindex(range(len(when)))
    if len(future):
        return check_frame(future, schema, names, freq, rows).set_index("date").reindex(when)
    return pd.DataFrame(np.nan, index=when, columns=list(names))


def _known_of_series(future: pd.DataFrame, schema: Schema, freq: str | None, needed: pd.MultiIndex) -> pd.DataFrame:
    """The future covariates by series and time stamp, for the `needed` ones; other rows are not checked."""
    form, names = schema.form, schema.roles.future
    frame = by_step(to_frame(future, KNOWN, form), schema, KNOWN)[0]
    check_unique(frame.columns, KNOWN)
    time = form.time or "ds"
    lacking = next((name for name in (form.series, time, *names) if name not in frame.columns), None)
    if lacking is not None:
        raise UsageError(f"{KNOWN} has no column '{quote(lacking)}'; give {form.series}, {time}, {', '.join(names)}.")
    codes, series = number_series(frame[form.series], KNOWN)
    dates = _on_clock(read_dates(frame[time], KNOWN, freq), needed.levels[1])
    keys = np.array(series, dtype=object)[codes] if series else np.empty(0, dtype=object)
    stamped = pd.MultiIndex.from_arrays([keys, dates])
    rows = np.asarray(stamped.isin(needed))
    where = KNOWN if rows.all() else f"{KNOWN} ({int(rows.sum())} rows for these steps)"
    values = check_values(frame.loc[rows, list(names)], names, where, schema.na)
    table = values.set_axis(stamped[rows], axis=0)
    again = table.index.duplicated()
    if again.any():
        row = int(np.argmax(again))
        key, stamp = table.index[row]
        raise UsageError(
            f"{where} has series '{quote(key)}' twice at {stamp} (data row {row + 1}); keep one of the rows."
        )
    return table


def _on_clock(stamps: pd.Index, when: pd.Index) -> pd.Index:
    """The time `stamps` of a table in a form comparable with `when`: as instants, or if all are local midnights, as
    days, because days are an hour shorter or longer when the clock changes.

    Raises:
        UsageError: Only one of them has a time zone.
    """
    ours, theirs = (getattr(each, "tz", None) for each in (stamps, when))
    if ours == theirs or not len(stamps):
        return stamps
    if all(isinstance(each, pd.DatetimeIndex) and _are_days(each) for each in (stamps, when)):
        return pd.DatetimeIndex(stamps).tz_localize(None).tz_localize(theirs, ambiguous="NaT", nonexistent="NaT")
    if (ours is None) != (theirs is None):
        has, lacks = (KNOWN, "the history") if theirs is None else ("The history", KNOWN[0].lower() + KNOWN[1:])
        raise UsageError(
            f"{has} has stamps in the time zone {theirs or ours}, but {lacks} has stamps without one; "
            "use a time zone in both or in neither."
        )
    return stamps


def _are_days(stamps: pd.DatetimeIndex) -> bool:
    """Return whether all time stamps are midnights in their time zone."""
    return bool((stamps.tz_localize(None).normalize() == stamps.tz_localize(None)).all())


def _warn_gaps(values: pd.DataFrame, where: str, rule: str) -> None:
    """Warn about missing values and how they are filled (`rule`); raise UsageError for a table without any value."""
    missing = np.isnan(values.to_numpy())
    if len(values.columns) and missing.all():
        raise UsageError(f"{where} has no value; provide at least one.")
    if missing.any():
        first, count = quote(values.columns[missing.any(axis=0)][0]), int(missing.sum())
        warn(f"{where} lacks {count} of {values.size} values, the first in column '{first}'; {rule}.", GapWarning)


def warn_age(last: object, until: str | None, freq: str | None, config: RunConfig) -> None:
    """Warn if a history ends, at `last`, more than one horizon after the last training row, `until`."""
    if until is None or freq is None:
        return
    distance = steps_between(until, last, freq)
    if distance is None:
        text = (
            f"The age of the history is unknown: it ends {last}, and the last training row was {until}; "
            "use a time zone in both or in neither."
        )
    elif distance > config.pred_len:
        learn = "refit on all rows (refit=True)"
        remedy = "train again on recent rows" if config.refit else learn
        text = f"The history ends {distance} steps after the last training row ({until}); {remedy}."
    else:
        return
    warn(text, AgeWarning)


def warn_stopped(data: Dataset, most: int) -> None:
    """Warn about series that end more than `most` steps before the last one does, since their forecasts start in the
    past."""
    ends = ends_of(data)
    if len(data) == 1 or data.freq is None or data.schema.form.time == ROW:  # row numbers do not denote time
        return
    last = ends.max()
    stopped = np.flatnonzero(ends < past_date(last, data.freq, most))
    if len(stopped):
        warn(
            f"{len(stopped)} of {len(ends)} series ended more than {most} steps before {last}, the first "
            f"'{quote(data.series[stopped[0]])}' at {ends[stopped[0]]}; a forecast begins where its series ends.",
            AgeWarning,
        )


def warn_short_series(data: Dataset, known: NDArray[np.bool_], length: int) -> None:
    """Warn about series that are shorter than intervals assume: `known` ones (S,) with less than a season, and new
    ones, which are scaled by their own rows, with less than the look-back `length`."""
    short = np.flatnonzero(data.lengths < np.where(known, min(length, data.season), length))
    if data.schema.panel and len(short):
        warn(
            f"{len(short)} of {len(data)} series are too short for reliable intervals, the first "
            f"'{quote(data.series[short[0]])}' of {data.lengths[short[0]]} rows; intervals are too narrow for series "
            f"of up to {length} rows.",
            GapWarning,
        )


def warn_new_series(series: Sequence[str], known: NDArray[np.bool_]) -> None:
    """Warn about series that are not `known` (S,)."""
    new = np.flatnonzero(~known)
    if len(new):
        warn(
            f"{len(new)} of {len(series)} series are new, the first '{quote(series[new[0]])}'; each is scaled by its "
            "own rows.",
            GapWarning,
        )


def warn_units(preprocess: Preprocess, series: Sequence[str], recent: Array, targets: Sequence[str]) -> None:
    """Warn about values whose magnitude differs from that of the training rows as if in another unit: `UNIT` times
    larger, or smaller if the training values were never near 0. Trends and jumps are rarely that large.

    Args:
        preprocess: preprocessing of the S series.
        series: their names; empty for a table.
        recent: last rows (S, L, C) in raw units, NaN for missing values.
        targets: names of the first T columns.
    """
    if not len(series):
        return
    ends = np.broadcast_to(np.array([[0.0], [-1.0], [1.0]]), (len(series), 3, len(targets)))
    mean, low, high = preprocess.restore(ends).transpose(1, 0, 2)
    size = np.hypot(mean, (high - low) / 2)
    values = np.abs(recent[..., : len(targets)])
    most = np.where(np.isnan(values), 0.0, values).max(axis=1)
    away = np.abs(mean) > 0.95 * size  # three deviations from 0
    odd = (most > UNIT * size) | (away & (most > 0) & (most < size / UNIT))
    named = list[tuple[str, float]]()
    for s, c in np.argwhere(odd & preprocess.scaler.own[:, : len(targets)]):
        level = float(np.nanmedian(values[s, :, c])) / size[s, c]
        if level > UNIT or 0 < level < 1 / UNIT:  # not for a single value
            named.append((series[s] or targets[c], level))
    if named:
        name, level = named[0]
        times = "large" if level > 1 else "small"
        more = f" and {len(named) - 1} more" * (len(named) > 1)
        warn(
            f"The recent history is some {float(f'{max(level, 1 / level):.0e}'):,.0f} times as {times} as the training "
            f"rows in '{quote(name)}'{more}; check its units.",
            UnitsWarning,
        )


def warn_ended(names: Sequence[str], steps: int) -> None:
    """Warn about targets without any value in the last `steps` steps."""
    if names:
        warn(f"{ended_note(names, steps)}.", GapWarning)


def ended_note(names: Sequence[str], steps: int) -> str:
    """Sentence about targets `names` without any value in the last `steps` steps."""
    some = ", ".join(f"'{quote(name)}'" for name in names[:6]) + f" and {len(names) - 6} more" * (len(names) > 6)
    return f"{some}: no value in the last {steps} steps, so no forecast"
