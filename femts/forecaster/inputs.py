"""Inputs of a forecast: the last rows of a user's table, checked and aligned to its step, and future covariates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.config.arguments import check_names, check_text
from femts.data.ahead import after_readings
from femts.data.categories import origins
from femts.data.closures import closed_ahead
from femts.data.column_names import ROW, ColumnNames
from femts.data.columns import is_table, to_frame
from femts.data.dataset import Dataset
from femts.data.describe import are, count, stamp
from femts.data.describe import names as listed
from femts.data.frequency import future_dates, past_date, steps_between
from femts.data.normalise import as_columns, table_rows, to_dataset
from femts.data.preprocess import Preprocess
from femts.data.recent import recent_data, recent_rows
from femts.data.roles import NO_ROLES
from femts.data.rows import Rows, refuse_repeats
from femts.data.wall_clock import instants
from femts.errors import AgeWarning, ForecastWarning, GapWarning, UnitsWarning, UsageError, suggest, warn
from femts.forecaster.run_folder import RunConfig
from femts.models.fem_zero import ZeroShot
from femts.text import Message, argument, arguments, marked, quote

if TYPE_CHECKING:
    from femts.forecaster.bounds import OddReading, SeriesForecasts
    from femts.forecaster.forecaster import Forecaster

Array = NDArray[np.float64]
MOST_ODD = 4  # readings listed in a message
UNIT = 50  # ratio of magnitudes beyond usual trends and jumps
KNOWN = "The table of future covariates"
SCENARIO = "scenario"  # column that distinguishes forecasts for several scenarios
Future: TypeAlias = pd.DataFrame | Mapping[str, pd.DataFrame]


@dataclass(frozen=True, eq=False)
class History:
    """Rows to forecast from.

    Attributes:
        data: for a single table the last steps, after rows that fill gaps at their start; otherwise all rows. Data
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
    forecaster: Forecaster,
    history: pd.DataFrame | Dataset,
    series: Sequence[str] | None = None,
    future: Future | None = None,
) -> History:
    """Read the rows of a user's `history`, of all or the given series, at the step of the training data.

    Rows after the last readings are read as the future of its covariates, unless `future` begins after them: then their
    readings are late.

    Raises:
        UsageError: The history cannot be used; the message says why.

    Warns:
        GapWarning: A wide table has missing values.
    """
    past = _read(forecaster, _table_of(history, "The history"), series, planned=True)
    if past.data.ahead is None:
        return past
    if future is not None and _goes_on(forecaster, future, past.data):
        return _read(forecaster, _table_of(history, "The history"), series, planned=False)
    if future is None and not isinstance(history, Dataset):  # which says so itself
        warn(f"In the history, {marked(past.data.ahead.note)}.", GapWarning)
    return past


def _goes_on(forecaster: Forecaster, future: Future, data: Dataset) -> bool:
    """Whether tables of future covariates begin after the rows of a history that follow its last readings."""
    assert data.ahead is not None
    schema, freq = forecaster.config.schema, forecaster.freq
    tables = [each for each in (scenarios(future) or {"": future}).values() if is_table(each)]
    if freq is None or schema.form.dates is not None or not tables:
        return False
    ends = table_rows(data.ahead.frame, schema, KNOWN, forecaster.columns, freq, schema.roles.future).stamps.max()
    first = [table_rows(each, schema, KNOWN, forecaster.columns, freq, schema.roles.future).stamps for each in tables]
    return all(len(each) and _on_clock(each, pd.Index([ends])).min() > ends for each in first)


def _read(forecaster: Forecaster, history: pd.DataFrame, series: Sequence[str] | None, planned: bool) -> History:
    """As `read_history`; `planned` as in `to_dataset`."""
    config, where = forecaster.config, "The history"
    if not config.schema.panel:
        if series is not None:
            text = f"This model was trained on a single table without series; omit {argument('series')}."
            raise UsageError(text, argument="series", value=series, remedy={"series": None})
        return _table_history(forecaster, history, planned)
    rows = table_rows(history, config.schema, where, forecaster.columns, forecaster.freq, series=forecaster.series)
    data = to_dataset(rows, "history", forecaster.columns, forecaster.freq, planned)
    if series is not None:
        chosen = check_names(series, "series")
        missing = next((name for name in chosen if name not in data.series), None)
        if missing is not None:
            text = f"The history has no series '{quote(missing)}'{suggest(missing, data.series)}"
            raise UsageError(text, argument="series", value=series, remedy={"series": None})
        data = data.take(np.array([data.series.index(name) for name in chosen]))
    return History(data, rows.time, wide=not rows.long)


def _table_of(given: pd.DataFrame | Dataset, where: str) -> pd.DataFrame:
    if isinstance(given, Dataset):
        return given.frame() if given.ahead is None else pd.concat([given.frame(), given.ahead.frame])
    if not is_table(given):
        raise UsageError(f"{where} is a {type(given).__name__}; give a DataFrame with the training columns.")
    return given


def _table_history(forecaster: Forecaster, history: pd.DataFrame, planned: bool) -> History:
    """The last `config.seq_len` steps of a wide table, or of a long one whose series are columns.

    If training assigned roles, further columns are ignored. A shorter history is padded, except for a model that reads
    raw values.
    """
    config, columns, freq, needed = forecaster.config, forecaster.columns, forecaster.freq, forecaster.config.seq_len
    rows = _recent_rows(forecaster, history, "The history", needed)
    if not len(rows):
        raise UsageError(f"The history has no rows, but this model needs {needed}; provide that many.")
    try:
        data = recent_data(rows, needed + forecaster.preprocess.reach, "history", columns, freq, planned)
    except UsageError:  # rows before the look-back only help to judge its first readings
        data = recent_data(rows, needed, "history", columns, freq, planned)
    read = min(needed, data.rows)
    if read < needed and read < config.fewest_rows:
        season = config.schema.season_of(freq)
        filling = f"by repeating the first {season}" if 1 < season <= read else "with the training mean"
        warn(
            f"The history has {count(read, 'row')}, but this model looks back {needed}; the missing rows are filled "
            f"{filling}, so expect larger errors than the scores indicate.",
            GapWarning,
        )
    where, values = f"The recent history ({count(read, 'row')})", data.values
    recent, before, known = values[-read:].copy(), values[:-read], data.covariates[-read:].astype(np.float64)
    if data.stamps is not None:  # nothing is missing where there never is a value
        never = closed(forecaster, data, data.stamps[-read:])[0]
        recent[:, : data.n_targets][never] = 0.0
        recent[never.all(axis=1)], known[never.all(axis=1)] = 0.0, 0.0
    rule = "the last value before each is read instead"
    if isinstance(forecaster.model, ZeroShot):
        rule = "they are left out" if np.isnan(recent).sum() > 1 else "it is left out"
    if (np.isnan(recent[0]) & np.isnan(before).all(axis=0)).any() and not config.reads_raw:
        rule += ", or the training mean where there is none"
    _warn_gaps(recent, columns, where, rule)
    _warn_gaps(known, config.schema.roles.future, where, "the training mean is read instead")
    return History(data, rows.time, rows.given if rows.long else ())


def _recent_rows(forecaster: Forecaster, table: pd.DataFrame, where: str, steps: int | None) -> Rows:
    """Rows of a table given to a model of a single table. If time stamps before the last `steps` rows cannot be read,
    these rows are returned, because the others do not matter."""
    schema, freq = forecaster.config.schema, forecaster.freq
    try:
        return table_rows(table, schema, where, forecaster.columns, freq)
    except UsageError:
        if steps is None or freq is None:
            raise
        with suppress(UsageError):
            last = table_rows(to_frame(table, where, schema.form).tail(steps), schema, where, forecaster.columns, freq)
            if last.in_order() is None and not last.long:
                return last
        raise


def read_columns(
    forecaster: Forecaster, table: pd.DataFrame | Dataset, where: str, columns: Sequence[str], steps: int | None = None
) -> pd.DataFrame:
    """The `columns` of a table given to a model of a single table, in order of time after their `date` (none for data
    without time stamps), NaN for missing values: all rows, or those of the last `steps`.

    Raises:
        UsageError: The table cannot be read; the message says why.
    """
    freq = forecaster.freq
    rows = _recent_rows(forecaster, _table_of(table, where), where, steps)
    rows = as_columns(rows) if rows.long else rows
    rows = rows.take(~after_readings(rows, forecaster.columns)).only(columns)
    rows = replace(rows, schema=replace(rows.schema, roles=NO_ROLES))
    if steps is not None:
        rows = rows.take(recent_rows(rows, steps, columns)[0])
    data = to_dataset(rows, "table", columns, freq)
    made = pd.DataFrame(data.values, columns=list(columns))
    if freq is not None:
        made.insert(0, "date", data.stamps)
    return made


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


def future_values(
    forecaster: Forecaster, data: Dataset, future: pd.DataFrame | None, ahead: pd.Index, first: int, scenario: str = ""
) -> Array:
    """Future covariates at the stamps `ahead` of each series, (S, steps, K), from a user's table that covers at least
    the first `first` of these steps, except at times at which a series never has a value; other steps repeat the row before.

    Raises:
        UsageError: The table is missing, lacks a required value, or is not expected.

    Warns:
        UnitsWarning: Values are perhaps in another unit than those of the training rows.
    """
    schema = forecaster.config.schema
    names, steps = schema.roles.future, len(ahead) // len(data)
    listed, after = ", ".join(map(quote, origins(names, schema.form))), "the end of each series"
    span = f"after {after}" if schema.panel else f"from {ahead[0]} to {ahead[first - 1]}"
    needed = f"{listed} for the {count(first, 'step')} {span}"
    planned, where = data.ahead is not None and future is None, KNOWN
    if data.ahead is not None and future is None:
        future, where = data.ahead.frame, "The history"
    if names and not is_table(future):
        text = f"This model was trained with future covariates; provide {needed}, as {argument('future=TABLE')}."
        raise UsageError(text, argument="future", value=future)
    check_expected(future, names)
    if future is None:
        return np.empty((len(data), steps, 0))
    if schema.form.dates is not None and ROW not in map(str, to_frame(future, KNOWN, None).columns):
        raise UsageError(
            f"{KNOWN} has no column '{ROW}', but this history has row numbers instead of dates; add the column, "
            f"starting at {ahead[0]} for the first forecast step."
        )
    values = _known(forecaster, future, data, ahead)
    within = np.arange(len(ahead)) % steps
    lacking = np.isnan(values) & (within < first)[:, None]
    if lacking.any():  # no forecast is left where the series are closed
        lacking &= ~closed(forecaster, data, ahead).all(axis=2).ravel()[:, None]
    missing = np.argwhere(lacking)
    if len(missing):
        row, column = missing[0]
        series = f" of series '{quote(data.series[row // steps])}'" if schema.panel else ""
        name = origins(names[column : column + 1], schema.form)[0]
        there = int(row % steps)
        if planned and there:
            text = (
                f"The history has '{quote(name)}'{series} for {count(there, 'step')} after its last reading, but {first} "
                f"are forecast; use {arguments({'horizon': there})}, or give {needed}."
            )
            raise UsageError(text, argument="horizon", value=first, remedy={"horizon": there})
        raise UsageError(f"{where} has no '{quote(name)}'{series} at {ahead[row]}; give {needed}.")
    of_series = np.arange(len(ahead)) // steps
    filled = pd.DataFrame(values).groupby(of_series).ffill().groupby(of_series).bfill()
    made = filled.to_numpy(dtype=np.float64).reshape(len(data), steps, len(names))
    _warn_unusual(forecaster, data, made[:, :first], f" of scenario '{quote(scenario)}'" if scenario else "")
    return made


def check_expected(future: Future | None, names: Sequence[str]) -> None:
    """Raise UsageError for a table of future covariates if a model reads none of these `names`."""
    if future is not None and not names:
        named = argument("future_covariates=NAME")
        text = (
            f"Future covariates were given, but no column was named as one; name them, as {named}, or leave them out."
        )
        raise UsageError(text, argument="future", value=future, remedy={"future": None})


def closed(forecaster: Forecaster, data: Dataset, ahead: pd.Index) -> NDArray[np.bool_]:
    """Mask (S, P, T) of the steps `ahead` (S P,) after each series of `data` at times at which it never has a value."""
    preprocess = forecaster.preprocess
    return closed_ahead(preprocess.closures, preprocess.places(data.series), data, ahead)


def _warn_unusual(forecaster: Forecaster, data: Dataset, ahead: Array, of: str) -> None:
    """Warn about future covariates (S, steps, K) that are perhaps in another unit than in training."""
    usual, schema = forecaster.preprocess.usual, forecaster.config.schema
    if usual is None:
        return
    odd = usual.odd(data.known(data.spans[:, 1] - 1), ahead)
    for k in np.flatnonzero(odd.any(axis=0)).tolist():
        some = np.flatnonzero(odd[:, k])
        others = f" and {len(some) - 1} more series" * (len(some) > 1)
        where = f" in '{quote(data.series[some[0]])}'{others}" if schema.panel else ""
        future, trained = ahead[some, :, k], f"{usual.low[k]:.6g} to {usual.high[k]:.6g}"
        warn(
            f"The future '{quote(schema.roles.future[k])}'{of} is {future.min():.6g} to {future.max():.6g}{where}, but was "
            f"{trained} in training; check its unit.",
            UnitsWarning,
        )


def _known(forecaster: Forecaster, future: pd.DataFrame, data: Dataset, ahead: pd.Index) -> Array:
    """The future covariates of a user's table at the stamps `ahead` of each series, (S steps, K), NaN where there are
    none; other rows are not checked."""
    schema, freq = forecaster.config.schema, forecaster.freq
    names = schema.roles.future
    rows = table_rows(future, schema, KNOWN, forecaster.columns, freq, names)
    if schema.panel and not rows.long:
        lacking = next(name for name in (schema.form.series, *names) if name not in rows.columns)
        listed = ", ".join((schema.form.series, rows.time, *names))
        raise UsageError(f"{KNOWN} has no column '{quote(lacking)}'; give {listed}.")
    stamps = ahead[: len(rows)] if freq is None else _on_clock(rows.stamps, ahead)
    rows = replace(rows.take(np.arange(len(stamps))), stamps=stamps)
    places = pd.Index(data.series).get_indexer(pd.Index(rows.series)) if schema.panel else np.zeros(1, dtype=np.intp)
    series = np.repeat(np.arange(len(data)), len(ahead) // len(data))
    needed = pd.MultiIndex.from_arrays([series, ahead])
    codes = places[rows.codes] if schema.panel else np.zeros(len(rows), dtype=np.intp)
    there = np.asarray(pd.MultiIndex.from_arrays([codes, rows.stamps]).isin(needed))
    where = KNOWN if there.all() else f"{KNOWN} ({int(there.sum())} rows for these steps)"
    rows = replace(rows.take(there), where=where)
    if rows.long and not schema.panel:
        rows = as_columns(rows)
    elif len(rows):
        refuse_repeats(rows.stamps, rows.codes, rows.series, where, several=rows.long)
    values = rows.only(names).values(names) if len(rows) else np.empty((0, len(names)))
    codes = places[rows.codes] if schema.panel else np.zeros(len(rows), dtype=np.intp)
    found = pd.MultiIndex.from_arrays([codes, rows.stamps]).get_indexer(needed)
    made = np.full((len(ahead), len(names)), np.nan)
    made[found >= 0] = values[found[found >= 0]]
    return made


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
        return instants(pd.DatetimeIndex(stamps).tz_localize(None), theirs)
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


def _warn_gaps(values: Array, columns: Sequence[str], where: str, rule: str) -> None:
    """Warn about missing `values` (rows, C) and how they are filled (`rule`); raise UsageError if all are missing."""
    missing = np.isnan(values)
    if len(columns) and missing.all():
        raise UsageError(f"{where} has no value; provide at least one.")
    if missing.any():
        first, lacking = quote(columns[int(missing.any(axis=0).argmax())]), int(missing.sum())
        warn(
            f"{where} lacks {lacking} of {count(values.size, 'value')}, the first in column '{first}'; {rule}.",
            GapWarning,
        )


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
        learn = f"refit on all rows ({argument('refit=True')})"
        remedy = "train again on recent rows" if config.refit else learn
        text = f"The history ends {count(distance, 'step')} after the last training row ({until}); {remedy}."
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
            f"{len(stopped)} of {len(ends)} series ended more than {count(most, 'step')} before {last}, the first "
            f"'{quote(data.series[stopped[0]])}' at {ends[stopped[0]]}; a forecast begins where its series ends.",
            AgeWarning,
        )


def warn_without_effect(forecaster: Forecaster) -> None:
    """Warn about future covariates on which the forecast does not depend, whatever the values of a scenario are."""
    schema, targets = forecaster.config.schema, len(forecaster.targets)
    if not schema.roles.future or forecaster.config.reads.columns:
        return
    without = forecaster.preprocess.without_effect(schema.roles.future, schema.form, targets)
    if without:
        them = "it" if len(without) == 1 else "them"
        warn(
            f"The forecast does not depend on {listed(without)}, of which the training rows show too little effect, so "
            f"scenarios of {them} do not differ; train a model that reads {them}, such as fem_sm or tide, or train "
            f"without {them}.",
            ForecastWarning,
        )


def warn_short_series(data: Dataset, known: NDArray[np.bool_], length: int) -> None:
    """Warn about series that are shorter than intervals assume: `known` ones (S,) with less than a season, and new
    ones, which are scaled by their own rows, with less than the look-back `length`."""
    short = np.flatnonzero(data.lengths < np.where(known, min(length, data.season), length))
    if data.schema.panel and len(short):
        warn(
            f"{len(short)} of {len(data)} series {are(len(short))} too short for reliable intervals, the first "
            f"'{quote(data.series[short[0]])}' of {data.lengths[short[0]]} rows; intervals are too narrow for series "
            f"of up to {count(length, 'row')}.",
            GapWarning,
        )


def warn_new_series(series: Sequence[str], known: NDArray[np.bool_]) -> None:
    """Warn about series that are not `known` (S,)."""
    new = np.flatnonzero(~known)
    if len(new):
        warn(
            f"{len(new)} of {len(series)} series {are(len(new))} new, the first '{quote(series[new[0]])}'; each is scaled by its "
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


def odd_note(odd: Sequence[OddReading]) -> str:
    """Sentence about readings far outside the usual range."""
    listed = [
        f"{each.value:.6g} in '{quote(each.column)}'"
        + f" of '{quote(each.series)}'" * bool(each.series)
        + f" at {stamp(each.stamp)}"
        for each in odd[:MOST_ODD]
    ]
    more = f" and {len(odd) - MOST_ODD} more" * (len(odd) > MOST_ODD)
    are = "lies far outside the usual range and is" if len(odd) == 1 else "lie far outside the usual range and are"
    keep = f"keep such values with {arguments({'outliers': 'keep'})}"
    return Message(f"{', '.join(listed)}{more} {are} read as missing; {keep}")


NOTICEABLE = 1.05  # factor on the width of an interval, as printed


def warn_unlike(made: SeriesForecasts) -> None:
    """Warn about intervals that are wider than those that were scored."""
    if made.unlike is None:
        return
    factors = made.unlike[:, 0].numpy()
    if factors.max() < NOTICEABLE:
        return
    series, target = np.argwhere(factors == factors.max())[0].tolist()
    name = made.series[series] or made.preprocess.columns[target]
    more = int((factors > 1).sum()) - 1
    warn(
        f"The recent history of '{quote(name)}'{f' and {more} more' * (more > 0)} varies more than any training rows or "
        f"lacks readings, so intervals are up to {factors.max():.1f} times as wide.",
        GapWarning,
    )


def warn_closed(made: SeriesForecasts) -> None:
    """Warn about steps without a forecast, at times at which a series never has a value."""
    if made.closed is None or not made.closed.any():
        return
    many, first = int(made.closed.sum()), made.stamps[int(made.closed.any(axis=2).argmax())]
    of = count(made.closed.size, "step" if made.targets == 1 else "value")
    them = "it" if many == 1 else "them"
    warn(
        f"{many} of {of} {are(many)} at times of the day, week or year that never have a value, the first at {first}; the "
        f"forecast leaves {them} out.",
        GapWarning,
    )


def ended_note(names: Sequence[str], steps: int) -> str:
    """Sentence about targets `names` without any value in the last `steps` steps."""
    some = ", ".join(f"'{quote(name)}'" for name in names[:6]) + f" and {len(names) - 6} more" * (len(names) > 6)
    return f"{some}: no value in the last {count(steps, 'step')}, so no forecast"
