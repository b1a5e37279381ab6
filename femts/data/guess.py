"""What a table could be forecast as: the columns that name its series, those worth forecasting, or how to aggregate its
rows first."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.tseries.frequencies import to_offset

from femts.data.categories import MOST_CATEGORIES
from femts.data.describe import quoted_names
from femts.data.kinds import Column, column_kinds, mark_running_totals
from femts.data.name_words import is_amount, is_attribute, is_bound, is_level, is_value
from femts.data.stamps import as_text
from femts.text import quote

MOST_KEYS, MOST_TRIED = 3, 12  # columns that name a series together, and columns tried
MOST_ROWS = 20_000  # rows on which combinations of columns are tried
MOST_IN_ORDER = 4000  # rows of a series in which running totals are looked for
BY_CHANCE = 3.0  # repetitions expected by chance from which on their absence tells that columns name series
FILLED, BALANCED = 0.05, 0.5  # least share of dates at which series have rows; for series that only numbers name
MISTAKES = 0.05  # share of rows that may repeat others in every cell
SHARED, ALWAYS = 0.25, 0.8  # share of rows whose date repeats, below which series have to have all their dates
LONG, ALIVE = 5, 0.3  # rows per series, and share of the dates between its first and last, that suffice otherwise
PER_SERIES = 2  # rows per series on the average
MOVED = 0.1  # share of series whose attribute, such as an altitude, may change once
STEADY = 0.5  # variance of the number of rows per step over its mean, below which rows are readings rather than events
FEWEST_STEPS = 8  # in the span of a table, if that can be
MOST_EMPTY = 10  # steps for each row
FEW = 1.5  # rows per step on the average, below which repeated rows are exceptions
_MONTHS = {"MS": 1, "QS": 3, "YS": 12}  # in a step
_SPANS = {"min": 60.0, "h": 3600.0, "D": 86_400.0, "W": 604_800.0}  # in seconds
_SPANS |= {step: 2_629_746.0 * months for step, months in _MONTHS.items()}


@dataclass(frozen=True)
class Advice:
    """What a table could be forecast as.

    Attributes:
        columns: what its columns are.
        keys: columns that name its series; None if dates repeat and no columns tell their rows apart, so that rows are to
            be aggregated.
        targets: columns worth forecasting, best first.
        aggregate: how to aggregate rows of the same step; None unless `keys` is None.
        freq: the step to aggregate by, a pandas frequency; None if `aggregate` is.
        by: columns that may name series once rows are aggregated, if `aggregate` is set.
        left_out: columns that are neither time stamps nor keys nor targets, with the reason.
    """

    columns: tuple[Column, ...]
    keys: tuple[str, ...] | None
    targets: tuple[str, ...]
    aggregate: Literal["sum", "mean", "count"] | None = None
    freq: str | None = None
    by: tuple[str, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()


def advice(frame: pd.DataFrame, time: str, stamps: pd.Index | None = None, keys: Sequence[str] | None = None) -> Advice:
    """What a table could be forecast as.

    Args:
        frame: the table, (N, columns).
        time: name of its time stamp column.
        stamps: its parsed time stamps, (N,).
        keys: columns that name its series; None finds them.
    """
    columns = column_kinds(frame, time, stamps)
    found = series_keys(frame, time, stamps, columns) if keys is None else tuple(keys)
    names = found or ()
    columns = mark_running_totals(frame, columns, _some_series(frame, time, stamps, names))
    static = _static(frame, columns, names)
    targets = target_columns(columns, time, names, static)
    made = Advice(columns, found, targets)
    if found is None:
        step = step_at_hand(stamps)
        how = _aggregate(targets, stamps, step)
        targets = () if how == "count" else tuple(name for name in targets if _suits(name, how))
        by = [each for each in columns if each.kind == "category"]
        almost = {each.name for each in by if each.missing <= MISTAKES and _are_almost_keys(frame, each.name, stamps)}
        by = [each for each in by if each.name in almost or (not each.missing and each.distinct <= MOST_CATEGORIES)]
        by.sort(key=lambda each: each.name not in almost)
        made = replace(made, targets=targets, aggregate=how, freq=step, by=tuple(each.name for each in by))
    return replace(made, left_out=_left_out(columns, time, names, made.targets, static))


def series_keys(
    frame: pd.DataFrame, time: str, stamps: pd.Index | None = None, columns: Sequence[Column] | None = None
) -> tuple[str, ...] | None:
    """The smallest set of at most `MOST_KEYS` columns that names the series of a table, so that each has a date once.

    They are categories without missing cells or, if these do not suffice, whole numbers that occur at most dates. Rows
    that repeat another row in every cell do not count. That no date repeats within a series has to be unlikely by
    chance, as it is for several transactions a day in many categories.

    Args:
        frame: the table, (N, columns).
        time: name of its time stamp column.
        stamps: its parsed time stamps, (N,).
        columns: what its columns are, from `column_kinds`; None looks.

    Returns:
        The columns, none if no date repeats; None if dates repeat and no columns tell their rows apart.
    """
    columns = column_kinds(frame, time, stamps) if columns is None else columns
    place = [each.name for each in columns].index(time)
    dates = _codes(frame.iloc[:, place] if stamps is None else pd.Series(stamps), sort=True)
    if not _any_twice([dates]):
        return ()
    varied = sorted(range(len(columns)), key=lambda n: -columns[n].distinct)
    rows = _whole_dates(dates)
    rows = rows[~_alike(frame.iloc[rows], dates[rows], varied)]
    if not _any_twice([dates[rows]]):
        alike = _alike(frame, dates, varied)
        if not _any_twice([dates[~alike]]) and _by_mistake(dates):
            return ()
    sure, unsure = _candidates(frame, columns, rows, int(dates.max()) + 1)
    most = int(np.bincount(dates[rows] + 1).max())
    for places, balanced in ((sure, False), ([*sure[: MOST_TRIED // 2], *unsure], True)):
        codes = {n: _codes(frame.iloc[rows, n]) for n in places}
        sizes = {n: int(each.max()) + 1 for n, each in codes.items()}
        choices = [
            each
            for size in range(1, MOST_KEYS + 1)
            for each in itertools.combinations(places, size)
            if math.prod(sizes[n] for n in each) >= most and not (balanced and set(each) <= set(sure))
        ]
        fitting = [each for each in choices if not _any_twice([dates[rows], *(codes[n] for n in each)])]
        fitting.sort(key=lambda each: (len(each), len(np.unique(_joined([codes[n] for n in each]))), each))
        for each in fitting[:5]:
            series = _joined([_codes(frame.iloc[:, n]) for n in each])
            each_date = _joined([dates, series])
            kept = ~_alike(frame, each_date, varied)
            again = _any_twice([each_date[kept]]) or not _by_mistake(each_date)
            if not again and _by_design(dates[kept], series[kept], balanced):
                return tuple(columns[n].name for n in sorted(each))
    return None


def _are_almost_keys(frame: pd.DataFrame, name: str, stamps: pd.Index | None) -> bool:
    """Whether a column names series but for a few rows."""
    if stamps is None or list(map(str, frame.columns)).count(name) > 1:
        return False
    dates, series = _codes(pd.Series(stamps), sort=True), _codes(frame[name].astype(object).fillna(""))
    again = pd.Series(_joined([dates, series])).duplicated().to_numpy()
    return bool(again.mean() <= MISTAKES) and _by_design(dates[~again], series[~again], balanced=False)


def _candidates(
    frame: pd.DataFrame, columns: Sequence[Column], rows: NDArray[np.intp], dates: int
) -> tuple[list[int], list[int]]:
    """Numbers of the columns that may name series: categories, and whole numbers, best first. Numbers repeat more often
    than by chance, or at each of the `dates`."""
    once = Counter(each.name for each in columns)
    whole = [n for n, each in enumerate(columns) if not each.missing and once[each.name] == 1]
    sure = [n for n in whole if columns[n].kind == "category"]
    unsure = [
        n
        for n in whole
        if columns[n].kind in ("number", "running number")
        and columns[n].whole
        and not is_value(columns[n].name)
        and (3 * columns[n].distinct <= len(frame) or dates * columns[n].distinct == len(frame))
    ]
    # names with the most values tell rows apart best; numbers that name series occur about equally often
    sure.sort(key=lambda n: -columns[n].distinct)
    unsure.sort(key=lambda n: _unevenness(frame.iloc[rows, n]))
    return sure[:MOST_TRIED], unsure[: MOST_TRIED // 2]


def _by_mistake(codes: NDArray[np.int64]) -> bool:
    """Whether codes repeat in few rows, or each as often as the others, as when a table is written twice; otherwise rows
    that are alike are events, such as sales of one piece."""
    counts = np.bincount(codes + 1)[1:]
    return int((counts - 1).sum()) <= MISTAKES * len(codes) or bool((counts == counts[0]).all())


def target_columns(
    columns: Sequence[Column], time: str | None, keys: Sequence[str] = (), static: Sequence[str] = ()
) -> tuple[str, ...]:
    """The columns worth forecasting, best first: numbers that vary, those with a usual name of a value before others, and
    bounds and attributes last. The only column beside time stamps and keys counts even if it numbers the rows or holds
    flags.

    Args:
        columns: what the columns of the table are, from `column_kinds` and `mark_running_totals`.
        time: name of the time stamp column.
        keys: columns that name series.
        static: columns that do not vary within any series.
    """
    once = Counter(each.name for each in columns)
    rest = [each for each in columns if each.name != time and each.name not in keys and once[each.name] == 1]
    numbers = [each for each in rest if each.kind == "number" and not each.words and each.name not in static]
    if not numbers:
        alone = [each for each in rest if each.kind not in ("constant", "empty")]
        if len(alone) == 1 and not alone[0].words and alone[0].kind in ("running number", "flag", "calendar"):
            return (alone[0].name,)
        totals = [each for each in rest if each.kind == "cumulated"]
        return tuple(each.name for each in totals)
    return tuple(each.name for each in sorted(numbers, key=_rank))


def _rank(column: Column) -> tuple[int, ...]:
    """Order of targets: smaller is better."""
    few = column.whole and column.distinct <= 10
    return (
        int(column.missing > 0.5),
        int(is_bound(column.name)),
        int(is_attribute(column.name)),
        int(few and not is_value(column.name)),
        int(not is_value(column.name)),
    )


def step_at_hand(stamps: pd.Index | None) -> str | None:
    """The step by which to aggregate rows, a pandas frequency; None for numbered rows.

    It is the usual distance between time stamps if that is below a day and not too short for the gaps. Otherwise it is
    the finest one of minutes, hours, days, weeks, months and years that is not below the resolution of the time stamps
    and of which at least half have rows.
    """
    if not isinstance(stamps, pd.DatetimeIndex) or not len(stamps):
        return None
    rows, stamps = len(stamps), stamps.unique()
    stamps = stamps if stamps.is_monotonic_increasing else stamps.sort_values()
    stamps = stamps.tz_localize(None) if stamps.tz is not None else stamps
    apart = stamps[1:] - stamps[:-1]
    if len(apart) >= FEWEST_STEPS:
        usual = apart[np.argsort(apart.to_numpy())[len(apart) // 2]]
        least = pd.Timedelta(1, "s" if rows < FEW * len(stamps) else "min")  # seconds for readings, but not for events
        steady = np.mean(apart == usual) >= 0.5 and usual % least == pd.Timedelta(0)
        steady &= MOST_EMPTY * len(stamps) >= (stamps[-1] - stamps[0]) / usual
        if steady and least <= usual < pd.Timedelta(days=1):
            return str(to_offset(usual).freqstr)
    steps, span = list(_SPANS), (stamps[-1] - stamps[0]).total_seconds()
    if (stamps.normalize() == stamps).all():
        steps = steps[2:]
        if (stamps.day == 1).all():
            steps = steps[4:] if (stamps.month == 1).all() else steps[2:]
    share = {step: len(np.unique(_steps(stamps, step))) / max(1.0, span / _SPANS[step]) for step in steps}
    several = [step for step in steps if span / _SPANS[step] >= FEWEST_STEPS] or steps[:1]
    fullest = max(several, key=share.__getitem__)
    several = several if MOST_EMPTY * share[fullest] >= 1 else steps
    return next((step for step in several if 2 * share[step] >= 1), max(several, key=share.__getitem__))


def _steps(stamps: pd.DatetimeIndex, step: str) -> NDArray[np.int64]:
    """Number of the step in which each time stamp falls, (N,)."""
    if step in _MONTHS:
        return np.asarray(stamps.year * 12 + stamps.month - 1, dtype=np.int64) // _MONTHS[step]
    seconds = _SPANS[step] if step in _SPANS else pd.Timedelta(to_offset(step)).total_seconds()
    return stamps.as_unit("s").asi8 // int(seconds)


def _aggregate(targets: Sequence[str], stamps: pd.Index | None, step: str | None) -> Literal["sum", "mean", "count"]:
    """How to aggregate rows: readings, of which steps have about the same number, by their mean; events by the sum of an
    amount, if there is one."""
    named = [name for name in targets if is_level(name) and not is_attribute(name)]
    amounts = [name for name in targets if is_amount(name) and not is_attribute(name)]
    rows = _rows_per_step(stamps, step)
    readings = len(rows) > 2 and float(np.var(rows)) < STEADY * float(np.mean(rows))
    if readings and targets and np.mean(rows) < FEW:  # a few steps repeat
        return "mean"
    if amounts:
        return "sum"
    if named or (readings and targets):
        return "mean"
    values = [name for name in targets if is_value(name)]
    return "sum" if values else "count"


def _rows_per_step(stamps: pd.Index | None, step: str | None) -> NDArray[np.int64]:
    if step is None or not isinstance(stamps, pd.DatetimeIndex):
        return np.zeros(0, dtype=np.int64)
    return np.unique(_steps(stamps.tz_localize(None), step), return_counts=True)[1]


def _suits(name: str, how: str) -> bool:
    """Whether a target can be aggregated so."""
    return not is_attribute(name) and not (how == "sum" and is_level(name))


def _codes(cells: pd.Series, sort: bool = False) -> NDArray[np.int64]:
    """Numbers of the distinct cells of a column, (N,), -1 for missing ones."""
    try:
        return np.asarray(pd.factorize(cells, sort=sort)[0], dtype=np.int64)
    except TypeError:  # cells that cannot be compared, such as lists
        return np.asarray(pd.factorize(as_text(cells), sort=sort)[0], dtype=np.int64)


def _unevenness(cells: pd.Series) -> float:
    """How unequal the frequencies of distinct cells are: their standard deviation over their mean."""
    counts = np.bincount(_codes(cells) + 1)[1:]
    return float(counts.std() / counts.mean()) if len(counts) else np.inf


def _joined(codes: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Numbers of the distinct combinations of codes, (N,)."""
    joined = codes[0]
    for each in codes[1:]:
        joined = pd.factorize(joined * (int(each.max(initial=0)) + 2) + each + 1)[0].astype(np.int64)
    return joined


def _any_twice(codes: Sequence[NDArray[np.int64]]) -> bool:
    return bool(pd.Series(_joined(codes)).duplicated().any())


def _alike(frame: pd.DataFrame, codes: NDArray[np.int64], places: Sequence[int]) -> NDArray[np.bool_]:
    """Mask of the rows that repeat an earlier row in every cell, (N,); `codes` number distinct cells of some columns, and
    `places` are those of all columns, best the most varied first."""
    mask = np.zeros(len(frame), dtype=bool)
    some = np.flatnonzero(pd.Series(codes).duplicated(keep=False))
    joined = codes[some]
    for place in places:
        twice = pd.Series(joined).duplicated(keep=False).to_numpy()
        if not twice.any():
            return mask
        some, joined = some[twice], joined[twice]
        joined = _joined([joined, _codes(frame.iloc[some, place])])
    mask[some[pd.Series(joined).duplicated().to_numpy()]] = True
    return mask


def _whole_dates(dates: NDArray[np.int64]) -> NDArray[np.intp]:
    """Numbers of about `MOST_ROWS` rows, all those of some dates."""
    rows = np.arange(len(dates))
    if len(rows) <= MOST_ROWS:
        return rows
    count = int(dates.max()) + 1
    chosen = np.zeros(count, dtype=bool)
    chosen[np.linspace(0, count - 1, max(3, count * MOST_ROWS // len(rows))).astype(np.intp)] = True
    return rows[chosen[dates]][: 5 * MOST_ROWS]


def _by_design(dates: NDArray[np.int64], series: NDArray[np.int64], balanced: bool) -> bool:
    """Whether series are such that people record, not customers who come by chance: it is unlikely by chance that none
    has a date twice, and they have rows at enough of the dates, at more of them if `balanced`."""
    rows = len(series)
    counts = np.bincount(series)
    counts = counts[counts > 0]
    if len(counts) * PER_SERIES > rows:
        return False
    per_date = np.bincount(dates + 1).astype(np.float64)
    grid = len(counts) * np.count_nonzero(per_date)
    order = np.lexsort((dates, series))  # codes of dates are in order of time
    starts = np.flatnonzero(np.diff(series[order], prepend=-2))
    ends = np.append(starts[1:], rows) - 1
    alive = rows / float((dates[order][ends] - dates[order][starts] + 1).sum())
    if rows < (BALANCED if balanced else FILLED) * grid and (balanced or rows < LONG * len(counts) or alive < ALIVE):
        return False
    if float(per_date[per_date > 1].sum()) < SHARED * rows and alive < ALWAYS:
        return False
    pairs = float((per_date * (per_date - 1)).sum()) / 2
    return pairs * float(((counts / rows) ** 2).sum()) >= BY_CHANCE or rows == grid


def _some_series(
    frame: pd.DataFrame, time: str, stamps: pd.Index | None, keys: Sequence[str]
) -> list[NDArray[np.intp]]:
    """Row numbers of up to three series, each in order of time and of `MOST_IN_ORDER` rows at most."""
    n = len(frame)
    if not n:
        return []
    masks = [np.ones(n, dtype=bool)]
    if keys:
        places = [list(map(str, frame.columns)).index(key) for key in keys]
        masks = []
        for row in sorted({0, n // 2, n - 1}):
            mask = np.ones(n, dtype=bool)
            for place in places:
                mask &= (frame.iloc[:, place] == frame.iloc[row, place]).to_numpy(dtype=bool, na_value=False)
            masks.append(mask)
    chosen = []
    for mask in masks:
        rows = np.flatnonzero(mask)
        if stamps is not None and len(stamps) == n and not stamps[rows].is_monotonic_increasing:
            rows = rows[np.argsort(np.asarray(stamps[rows]), kind="stable")]
        chosen.append(rows[:MOST_IN_ORDER])
    return chosen


def _static(frame: pd.DataFrame, columns: Sequence[Column], keys: Sequence[str]) -> tuple[str, ...]:
    """Columns of numbers that do not vary within any series."""
    if not keys:
        return ()
    names = [each.name for each in columns]
    rows = np.arange(min(len(frame), MOST_ROWS))
    if len(frame) > MOST_ROWS:
        rows = np.linspace(0, len(frame) - 1, MOST_ROWS).astype(np.intp)
    series = _joined([_codes(frame.iloc[rows, names.index(key)]) for key in keys])
    found = []
    for place, each in enumerate(columns):
        if each.kind != "number":
            continue
        codes = _codes(frame.iloc[rows, place])
        there = codes >= 0
        pairs = len(np.unique(_joined([series[there], codes[there]])))
        if there.sum() > 2 * pairs and pairs <= (1 + MOVED) * len(np.unique(series[there])):
            found.append(each.name)
    return tuple(found)


_REASONS = {
    "dates": "contains dates",
    "clock times": "contains times of day",
    "constant": "is constant",
    "empty": "is empty, or almost",
    "identifier": "contains codes or text of single rows",
    "running number": "numbers the rows",
    "cumulated": "is a running total",
    "flag": "contains flags",
    "calendar": "follows from the date",
    "category": "contains categories",
    "number": "cannot be aggregated so",
}


def _left_out(
    columns: Sequence[Column], time: str, keys: Sequence[str], targets: Sequence[str], static: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    out, once = [], Counter(each.name for each in columns)
    for each in columns:
        if each.name == time or each.name in keys or each.name in targets:
            continue
        reason = "does not vary within a series" if each.name in static else _REASONS[each.kind]
        if once[each.name] > 1:
            reason = "has a name that occurs twice"
        if each.kind in ("category", "identifier") and each.detail.startswith("numbers and"):
            reason = f"contains {each.detail}"
        if each.kind == "cumulated" and each.detail:
            reason = f"is the running total of '{quote(each.detail)}'"
        out.append((each.name, reason))
    return tuple(out)


def reasons_in_words(left_out: Sequence[tuple[str, str]]) -> str:
    """One phrase that names the columns left out, grouped by their reason."""
    groups = dict[str, list[str]]()
    for name, reason in left_out:
        groups.setdefault(reason, []).append(name)
    return "; ".join(f"{quoted_names(names)} ({reason})" for reason, names in groups.items())
