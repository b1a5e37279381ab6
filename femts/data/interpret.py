"""What the user left open about a table to train on: which columns name series, which are forecast, and which numbers
stand for missing values. Each decision is a note."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from femts.data.check import MISSING, parsed, words_of
from femts.data.column_names import bounded
from femts.data.columns import with_keys
from femts.data.describe import count, names
from femts.data.frequency import is_set_back, order_of, round_step, step_of
from femts.data.guess import Advice, advice, reasons_in_words
from femts.data.name_words import is_amount, is_level
from femts.data.near_steps import WEEKDAYS
from femts.data.rows import Rows, as_numbers, number_series
from femts.data.schema import COUNT
from femts.data.sentinels import may_have_sentinels, sentinels_by_column
from femts.data.stamp_parts import is_clock
from femts.data.stamps import as_text, whole_numbers
from femts.data.units import SCALED, measured
from femts.errors import TableFault, UsageError
from femts.text import Blank, Message, argument, arguments, quote

_SERIES = "femts.series"  # a column that no table has
MOST_LISTED, MOST_LOOKED = 12, 2000  # columns in a remedy, and columns that are looked at one by one
MOST_AGREEING = 0.1  # share of rows whose date repeats by mistake, unless these are as good as all different
EVEN = 0.99  # share of distances that are the usual one where only some rows have values
FEWEST, STEADY = 50, 0.8  # rows at uneven distances that are averaged, and share of distances near the usual one


def interpreted(rows: Rows) -> Rows:
    """Rows to train on, with what the user left open decided and noted.

    Raises:
        UsageError: Dates repeat and no columns name series, or no column can be forecast; the message names a remedy.
    """
    rows = _counted(rows) if rows.schema.aggregate == COUNT else _with_targets(_set_back(_with_series(rows)))
    return _with_step(_with_sentinels(_with_units(rows)))


def _counted(rows: Rows) -> Rows:
    """The rows of a table whose rows are counted, with nothing but that number as target."""
    roles = rows.schema.roles
    if roles.target not in ((), (COUNT,)) or roles.past:
        fault = f"Rows are counted, so '{quote((*roles.target, *roles.past)[0])}' cannot be a target or past covariate"
        text = f"{fault}; remove it, or use {arguments({'aggregate': 'sum'})}."
        raise UsageError(text, argument="aggregate", value="count", remedy={"aggregate": "sum"})
    kept = {*roles.future, *roles.constant}
    counted = replace(rows.only(kept - {COUNT}), schema=replace(rows.schema, roles=replace(roles, target=(COUNT,))))
    return replace(counted, frame=counted.frame.assign(**{COUNT: 1.0}))


def _looked_at(rows: Rows) -> Advice:
    """Advice on a table that has its time stamps first."""
    time = rows.time
    while time in rows.columns:
        time += "_"
    first: dict[str, Any] = {time: rows.stamps}
    if rows.long:
        first[_SERIES] = pd.Categorical.from_codes(rows.codes, list(rows.series))
    frame = pd.concat([pd.DataFrame(first, index=rows.frame.index), rows.frame], axis=1)
    return advice(frame, time, rows.stamps, (_SERIES,) if rows.long else None)


def _with_series(rows: Rows) -> Rows:
    """The rows of a table whose dates repeat, by the columns that name its series."""
    schema = rows.schema
    if rows.long or schema.aggregate is not None or not rows.stamps.has_duplicates or _agree(rows):
        return rows
    if is_set_back(rows.stamps, rows.stamps.duplicated()):
        return rows
    found = _looked_at(rows)
    if found.keys is None or any(map(is_clock, found.keys)):  # clocks that could not be read
        raise _repeated(rows, found)
    if not found.keys:
        return rows
    targets = schema.roles.target or _in_order(rows, found.targets) or _numbers(rows, found)
    form = replace(schema.form, time=rows.time, series="+".join(found.keys))
    if schema.panel is False:
        if len(targets) != 1:
            one = arguments({"target": targets[0] if targets else Blank("NAME")})
            fault = (
                f"{rows.where} has series named by {_quoted(found.keys)} and {count(len(targets), 'column')} of values"
            )
            text = f"{fault}; name the one to forecast with {one}, or remove {argument('panel=False')}."
            raise UsageError(text, argument="panel", value=False, remedy={"panel": None})
        form = replace(form, value=targets[0])
    keyed = with_keys(rows.frame, form)
    codes, series = number_series(keyed[form.series], len(keyed), rows.where)
    note = f"{_quoted(found.keys)} name{'s' * (len(found.keys) == 1)} its {len(series)} series"
    return replace(
        rows,
        frame=keyed.drop(columns=list({form.series, *found.keys})),
        codes=codes,
        series=series,
        schema=replace(schema, form=form, panel=schema.panel is not False),
        long=True,
        given=(form.series, *(name for name in rows.given if name not in found.keys)),
        notes=(*rows.notes, note),
    )


def _set_back(rows: Rows) -> Rows:
    """The rows with the step over which to average them if clocks show some of their hours twice."""
    if rows.schema.freq is not None or rows.schema.aggregate is not None or not len(rows):
        return rows
    stamps = rows.stamps[rows.codes == np.argmax(np.bincount(rows.codes))] if len(rows.series) > 1 else rows.stamps
    again = stamps.duplicated()
    if not again.any() or not isinstance(stamps, pd.DatetimeIndex):
        return rows
    hour, apart = pd.Timedelta(1, "h"), stamps[1:] - stamps[:-1]
    in_order = (apart >= -hour).all() or (apart <= hour).all()  # others may be readings of another day
    if in_order and is_set_back(stamps, again) and not _agree(rows):
        with suppress(UsageError):  # refused later
            step = step_of(stamps[~again].sort_values(), rows.where)
            return replace(rows, schema=replace(rows.schema, freq=step))
    return rows


def _agree(rows: Rows) -> bool:
    """Whether rows of the same date hold the same values, as far as they have any, and are few, or hold so many different
    ones that they are the same readings."""
    again = rows.stamps.duplicated(keep=False)
    try:
        cells = rows.frame[again].groupby(rows.stamps[again])
        if again.mean() > MOST_AGREEING and 2 * len(rows.frame[again].drop_duplicates()) < len(cells):
            return False
        return bool((cells.nunique() <= 1).to_numpy().all())
    except TypeError:  # cells that cannot be compared, such as lists
        return False


def _with_targets(rows: Rows) -> Rows:
    """The rows without the columns that are neither forecast nor covariates, unless the user named targets."""
    roles, value = rows.schema.roles, rows.schema.form.value
    further = {*roles.past, *roles.future, *roles.constant}
    if roles.target or further >= set(rows.columns) or not len(rows) or (rows.schema.panel is False and rows.long):
        return rows
    if rows.long and value in rows.columns:
        chosen: tuple[str, ...] = (value,)
        reasons = [(name, "has no role") for name in rows.columns if name not in further]
    elif len(rows.columns) > MOST_LOOKED:  # such tables hold one quantity in every column
        text = [name for name in rows.columns if not pd.api.types.is_numeric_dtype(rows.frame[name])]
        reasons = [(name, "contains text") for name in words_of(rows.frame[text]) if name not in further]
        chosen = tuple(name for name in rows.columns if name not in {*further, *(name for name, _ in reasons)})
    else:
        found = _looked_at(rows.only(name for name in rows.columns if name not in further))
        chosen, reasons = _in_order(rows, found.targets), list(found.left_out)
        if not chosen and rows.schema.aggregate is not None:
            fault = (
                f"{rows.where} has no column whose {rows.schema.aggregate} could be forecast: {reasons_in_words(reasons)}; "
                f"name one with {argument('target=NAME')}, or count the rows with {arguments({'aggregate': 'count'})}."
            )
            raise UsageError(fault, argument="aggregate", value=rows.schema.aggregate, remedy={"aggregate": "count"})
        chosen = chosen or _numbers(rows, found)
    if not chosen:
        raise UsageError(
            f"{rows.where} has no column of numbers that could be forecast: {reasons_in_words(reasons)}; name one with "
            f"{argument('target=NAME')}, or give another table."
        )
    out = [(name, reason) for name, reason in reasons if name in rows.columns and name not in (*chosen, *further)]
    if not out and not (rows.long and chosen != (value,)):
        return rows
    kept = tuple(name for name in rows.columns if name in {*chosen, *further})
    notes = rows.notes
    bounds = tuple(name for name, reason in out if bounded(name, chosen))
    out = [(name, reason) for name, reason in out if name not in bounds]
    if bounds:
        notes += (f"{names(bounds)} are bounds of forecasts and are left out",)
    if out:
        notes += (f"left out: {reasons_in_words(out)}; to use them, name them as target or covariates",)
    schema = replace(rows.schema, roles=replace(roles, target=chosen))
    return replace(rows.only(kept), schema=schema, notes=notes)


def _numbers(rows: Rows, found: Advice) -> tuple[str, ...]:
    """Columns of numbers although none is worth forecasting: those that vary, or else all."""
    numbers = [
        each
        for each in found.columns
        if each.name in rows.columns
        and each.name not in (found.keys or ())
        and each.kind != "empty"
        and (each.kind != "identifier" or each.words or each.detail == "coordinate")
        and (not each.words or parsed(rows.frame[each.name])[1] is None)
    ]
    varied = [each for each in numbers if each.kind != "constant"]
    return tuple(each.name for each in varied or numbers)


def _used(rows: Rows) -> list[str]:
    """Names of the columns whose numbers are used."""
    roles = rows.schema.roles
    columns, there = roles.target or ((rows.schema.form.value,) if rows.long else rows.columns), set(rows.columns)
    return [name for name in dict.fromkeys((*columns, *roles.past, *roles.future)) if name in there]


def _with_units(rows: Rows) -> Rows:
    """The rows with numbers in columns whose cells have a unit, which is noted in the names of their columns."""
    made, units = dict[str, pd.Series](), dict[str, str]()
    for name in _used(rows):
        column = rows.frame[name]
        if pd.api.types.is_numeric_dtype(column):
            continue
        text = as_text(column).where(column.notna(), "").str.strip()
        text = text[~text.str.lower().isin(MISSING)]
        found = measured(text)
        if found is not None:
            units[name], made[name] = found.unit, pd.Series(found.numbers, text.index).reindex(column.index)
    if not units:
        return rows
    by_unit = {unit: names(tuple(name for name in units if units[name] == unit)) for unit in units.values()}
    scaled = by_unit.pop(SCALED, None)
    notes = list(rows.notes)
    if by_unit:
        listed = [f"'{quote(unit)}' in {of}" for unit, of in by_unit.items()]
        notes.append(f"units within cells are left out: {', '.join(listed)}")
    if scaled:
        notes.append(f"K, M and B behind numbers of {scaled} are read as thousands, millions and billions")
    form = replace(rows.schema.form, units=tuple(units.items()))
    frame, schema = rows.frame.assign(**made), replace(rows.schema, form=form)
    return replace(rows, frame=frame, schema=schema, notes=tuple(notes))


def _with_sentinels(rows: Rows) -> Rows:
    """The rows with the numbers that stand for missing values in their schema, unless the user said which do."""
    if rows.schema.na is not None:
        _check_flags(rows, rows.schema.na)
        return rows
    listed = _used(rows)
    # One column at a time: few tables have any, and the numbers of all columns take more memory than most tables do.
    if not any(may_have_sentinels(parsed(rows.frame[name])[0]) for name in listed):
        return rows
    values = {name: parsed(rows.frame[name])[0] for name in listed}
    found = sentinels_by_column(values)
    numbers = sorted({number for each in found.values() for number in each})
    # A schema has one list for all columns, so a number that is real elsewhere is not in it.
    lawful = [n for n in numbers if any(n not in found.get(name, ()) and (values[name] == n).any() for name in values)]
    chosen = tuple(number for number in numbers if number not in lawful)
    if not chosen:
        return rows
    cells = sum(int(np.isin(each, chosen).sum()) for each in values.values())
    where = names(tuple(name for name in found if set(found[name]) & set(chosen)))
    listed_numbers = ", ".join(f"{number:g}" for number in chosen)
    read = f"{listed_numbers} in {where} is read as missing ({count(cells, 'value')})"
    note = Message(f"{read}; keep such numbers with {arguments({'na': 'none'})}")
    return replace(rows, schema=replace(rows.schema, na=chosen), notes=(*rows.notes, note))


def _check_flags(rows: Rows, na: Sequence[float]) -> None:
    """Raise UsageError if the numbers `na` of the user leave a flag with one value, since they count in all columns."""
    for number in {0.0, 1.0}.intersection(na):
        for name in _used(rows):
            values = parsed(rows.frame[name])[0]
            if set(np.unique(values[~np.isnan(values)])) == {0.0, 1.0}:
                raise UsageError(
                    f"{argument(f'na={number:g}')} would also read {number:g} in column '{quote(name)}' as missing, which has "
                    "only 0 and 1; empty the cells that have no value instead.",
                    argument="na",
                    value=na,
                    remedy={"na": None},
                )


def _with_step(rows: Rows) -> Rows:
    """The rows with the step over which to average readings at uneven distances, unless their step is known or clear."""
    if rows.schema.freq is not None or not isinstance(rows.stamps, pd.DatetimeIndex) or not len(rows):
        return rows
    step = _step_of_values(rows)
    if step is not None:
        only = f"only its rows at steps of '{step}' have values, so that is the step"
        note = Message(f"{only}; another one is set with {argument('freq=STEP')}")
        return replace(rows, schema=replace(rows.schema, freq=step), notes=(*rows.notes, note))
    longest = rows.stamps[rows.codes == np.argmax(np.bincount(rows.codes))].unique().sort_values()
    if len(longest) < FEWEST or np.ptp(np.diff(as_numbers(longest))) == 0:
        return rows
    try:
        step_of(longest, rows.where)
    except UsageError:
        order = np.lexsort((as_numbers(rows.stamps), rows.codes))
        steps = pd.TimedeltaIndex((rows.stamps[order][1:] - rows.stamps[order][:-1])[np.diff(rows.codes[order]) == 0])
        steps = steps[steps > pd.Timedelta(0)]
        usual = steps.to_series().median()
        near = ((steps >= usual / 3) & (steps <= 3 * usual)).mean()
        if near < STEADY or (steps % usual == pd.Timedelta(0)).all():  # events, or even steps with long gaps
            return rows
        freq = round_step(steps)
        if freq == "W":
            freq = f"W-{WEEKDAYS[int(np.bincount(rows.stamps.day_of_week).argmax())]}"
        apart = f"its rows are about {_spoken(usual)} apart, so the step is '{freq}'"
        note = Message(f"{apart}; another one is set with {argument('freq=STEP')}")
        return replace(rows, schema=replace(rows.schema, freq=freq), notes=(*rows.notes, note))
    return rows


def _step_of_values(rows: Rows) -> str | None:
    """The step of the rows that have any value, if these are evenly spaced and all others have none, as half-hourly values
    in a row for each quarter of an hour; None otherwise."""
    listed = [name for name in _used(rows) if name not in rows.schema.roles.future]
    if len(rows) < FEWEST or len(rows.series) > 1 or len(listed) > MOST_LOOKED or not listed:
        return None
    begin = rows.take(np.arange(FEWEST)).readable(listed)
    if 2 * np.isfinite(begin).any(axis=1).sum() > FEWEST + 2:  # as in most tables
        return None
    there = np.isfinite(rows.readable(listed)).any(axis=1)
    every, valued = np.diff(np.sort(rows.stamps.asi8)), np.diff(np.sort(rows.stamps[there].asi8))
    if len(valued) < FEWEST // 4 or np.mean(valued == np.median(valued)) < EVEN or every.min() < 1:
        return None
    usual, step = int(np.median(every)), int(np.median(valued))
    if step < 2 * usual or step % usual or np.mean(every == usual) < EVEN:
        return None
    try:
        return step_of(rows.stamps[there].sort_values(), rows.where)
    except UsageError:
        return None


def _spoken(distance: pd.Timedelta) -> str:
    """A distance in its largest unit, such as 2.5 minutes."""
    for unit, seconds in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if distance.total_seconds() >= 2 * seconds:
            return f"{distance.total_seconds() / seconds:.2g} {unit}"
    return f"{distance.total_seconds():.2g} seconds"


def _repeated(rows: Rows, found: Advice) -> UsageError:
    """Error for a table whose dates repeat without columns that name series."""
    again = rows.stamps.duplicated()
    if found.aggregate is None or found.freq is None or is_set_back(rows.stamps, again):
        order_of(rows.stamps, rows.where)  # raises, and tells what to do about clocks that were set back
    given = rows.schema.roles.target
    targets = given or _in_order(rows, found.targets)
    how = found.aggregate
    if given and how == COUNT:  # rows as irregular as these are events rather than readings
        how = "mean" if any(map(is_level, given)) else "sum"
    remedy: dict[str, Any] = {"freq": rows.schema.freq or found.freq, "aggregate": how}
    if not given and targets and found.aggregate != "count":
        remedy["target"] = list(targets[:MOST_LISTED])
    # others may repeat as well
    others = tuple(each.name for each in found.columns[1:] if each.kind == "dates" and each.distinct == len(rows))
    held = f" in '{quote(rows.time)}'" * bool(others)
    choose = ""
    if others:
        another = arguments({"columns": {"time": Blank("NAME") if others[1:] else others[0]}})
        choose = f"use the dates in {_quoted(others)} with {another}, or "
    by = ""
    if how != COUNT and not any(map(is_amount if how == "sum" else is_level, targets)):  # no name tells which it is
        other, of = ("mean", "readings") if how == "sum" else ("sum", "amounts")
        by = f", or with {arguments({'aggregate': other})} if they are {of}"
    if found.by:
        by += f", and {arguments({'columns': {'time': rows.time, 'series': found.by[0]}})} for one series for each"
    if again.mean() <= MOST_AGREEING:
        row = int(np.argmax(again))
        fault = (
            f"{rows.where} repeats {count(int(again.sum()), 'date')}{held}, the first {rows.stamps[row]} at data row {row + 1}, "
            "and no columns name series"
        )
        advice = f"; keep one row per date, {choose or 'or '}aggregate them with {arguments(remedy)}{by}."
    else:
        fault = f"{rows.where} has {count(len(rows), 'row')} at {rows.stamps.nunique()} dates{held}, and no columns that name series"
        advice = f"; {choose}aggregate them with {arguments(remedy)}{by}."
    if _are_inseparable(rows):
        return TableFault(fault, advice, remedy)
    return UsageError(fault + advice, remedy=remedy)


def _are_inseparable(rows: Rows) -> bool:
    """Whether two rows of the same date differ, but in no column that could name their series, so that no further rows
    can tell which series they are of."""
    whole = [name for name in rows.columns if _may_name(rows.frame[name])]
    try:
        codes = [pd.factorize(rows.frame[name])[0] for name in whole]
    except TypeError:  # cells that cannot be compared, such as lists
        return False
    groups = pd.MultiIndex.from_arrays([rows.stamps, *codes]) if codes else rows.stamps
    others = rows.frame[[name for name in rows.columns if name not in whole]].select_dtypes("number")
    again = groups.duplicated(keep=False)
    return bool((others[again].groupby(groups[again]).nunique() > 1).to_numpy().any())


def _may_name(column: pd.Series) -> bool:
    """Whether a column may name series: it has no empty cells and no fractions."""
    if column.isna().any():
        return False
    return not pd.api.types.is_numeric_dtype(column) or whole_numbers(column) is not None


def _in_order(rows: Rows, columns: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in rows.columns if name in set(columns))


def _quoted(columns: Sequence[str]) -> str:
    *others, last = (f"'{quote(name)}'" for name in columns)
    return f"{', '.join(others)} and {last}" if others else last
