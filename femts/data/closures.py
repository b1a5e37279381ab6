"""Times of the day, week or year at which a series never has a value, such as nights, Sundays, or a closed season."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.tseries.frequencies import to_offset

from femts.data.dataset import Dataset
from femts.data.frequency import further_seasons, phases, season_of

FEWEST = 4  # times that a season has to repeat
CHANCE = 0.01  # largest probability of a time without values by chance
MOST_ROWS = 100_000  # last rows of a series that are read
Mask = NDArray[np.bool_]


def closures(data: Dataset, ahead: pd.Index) -> Mask:
    """Mask (S, P, T) of the steps `ahead` (S P,) after each series of `data`, at times at which it never has a value.

    Times are phases of a day, week or year. One counts if each of its at least four occurrences between the first and the
    last value is missing, which would not happen by chance with the share of missing values at all other times. Data that
    are coarser than their step, such as readings every third hour on an hourly grid, have no such times.
    """
    steps, targets = len(ahead) // len(data), data.n_targets
    closed = np.zeros((len(data), steps, targets), dtype=bool)
    cycles = _cycles(data.freq)
    if data.stamps is None or not cycles:
        return closed
    for s, (begin, stop) in enumerate(data.spans.tolist()):
        rows = slice(max(begin, stop - MOST_ROWS), stop)
        present = ~np.isnan(data.values[rows, :targets])
        if present.all():
            continue
        for cycle in cycles:
            before = phases(data.stamps[rows], data.freq, cycle)
            after = phases(ahead[s * steps : (s + 1) * steps], data.freq, cycle)
            assert before is not None
            for t in range(targets):
                closed[s, :, t] |= _never(present[:, t], before, cycle)[after]
    return closed


def _cycles(freq: str | None) -> tuple[int, ...]:
    """Numbers of steps in the seasons in which a time can be closed: a day and a week, or a year of months."""
    season = season_of(freq)
    if season == 1 or freq is None or freq.isdecimal() or to_offset(freq).rule_code.startswith("W"):
        return ()
    return (season, *further_seasons(freq))


def _never(present: Mask, phase: NDArray[np.int64], cycle: int) -> Mask:
    """Mask (cycle,) of the phases at which nothing is `present` (n,)."""
    nothing, seen = np.zeros(cycle, dtype=bool), np.flatnonzero(present)
    if not len(seen):
        return nothing
    whole = slice(seen[0], seen[-1] + 1)
    rows = np.bincount(phase[whole], minlength=cycle)
    values = np.bincount(phase[whole], present[whole], cycle)
    never, times = (values == 0) & (rows >= FEWEST), np.flatnonzero(values)
    missing = 1 - values.sum() / rows[times].sum()
    apart = np.diff(times, append=times[0] + cycle)
    return nothing if (apart == apart[0]).all() else never & (cycle * missing**rows < CHANCE)
