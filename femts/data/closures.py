"""Times of the day, week or year at which a series never has a value, such as nights, Sundays, or a closed season."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.tseries.frequencies import to_offset

from femts.data.dataset import Dataset
from femts.data.frequency import further_seasons, phases, season_of

FEWEST = 4  # times that a season has to repeat
CHANCE = 0.01  # largest probability of a time without values by chance
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Closures:
    """Times at which S series of T targets never have a value.

    Times are phases of a day, a week, or a year of months. A series is closed at one if it recurred at least four times
    between the first and the last value, always without a value, which would not happen by chance with the share of missing
    values at all other times. Data that are coarser than their step, such as readings every third hour on an hourly grid,
    have no such times.

    Attributes:
        freq: step of the series.
        never: mask (S, cycle, T) of the phases of each cycle, by its number of steps.
    """

    freq: str
    never: Mapping[int, Mask]

    @classmethod
    def fit(cls, data: Dataset, spans: NDArray[np.int64] | None = None) -> Closures | None:
        """Find those of the rows `spans` (S, 2) of each series, by default of all; None if no series has any."""
        season, stamps = season_of(data.freq), data.stamps
        if data.freq is None or stamps is None or season == 1 or data.freq.isdecimal():
            return None
        if to_offset(data.freq).rule_code.startswith("W"):
            return None
        cycles = (season, *further_seasons(data.freq))
        never = {cycle: np.zeros((len(data), cycle, data.n_targets), dtype=bool) for cycle in cycles}
        for s, (begin, stop) in enumerate((data.spans if spans is None else spans).tolist()):
            present = ~np.isnan(data.values[begin:stop, : data.n_targets])
            for cycle in cycles if not present.all() else ():
                phase = phases(stamps[begin:stop], data.freq, cycle)
                assert phase is not None
                for t in range(data.n_targets):
                    never[cycle][s, :, t] = _never(present[:, t], phase, cycle)
        return cls(data.freq, never) if any(each.any() for each in never.values()) else None

    def take(self, series: NDArray[np.integer[Any]]) -> Closures:
        """Those of the series with these numbers."""
        return replace(self, never={cycle: each[series] for cycle, each in self.never.items()})

    def opened(self, data: Dataset) -> Closures:
        """Without the times at which the same series have a value in `data`."""
        made = {cycle: each.copy() for cycle, each in self.never.items()}
        for cycle, each in made.items():
            for s in np.flatnonzero(each.any(axis=(1, 2))).tolist():
                rows = slice(*data.spans[s])
                phase = phases(None if data.stamps is None else data.stamps[rows], self.freq, cycle)
                assert phase is not None
                row, target = np.nonzero(~np.isnan(data.values[rows, : each.shape[2]]))
                each[s, phase[row], target] = False
        return replace(self, never=made)

    def at(self, stamps: pd.Index) -> Mask:
        """Mask (S, P, T) of the `stamps` (S P,) of each series."""
        made = list[Mask]()
        for cycle, each in self.never.items():
            phase = phases(stamps, self.freq, cycle)
            assert phase is not None
            made.append(each[np.arange(len(each))[:, None], phase.reshape(len(each), -1)])
        return np.logical_or.reduce(made)

    def to_dict(self) -> dict[str, Any]:
        """Plain types for JSON: for each cycle, the distinct masks (cycle, T) as texts of 0 and 1, and the number of that of
        each series."""
        return {"freq": self.freq, "never": {str(cycle): _packed(each) for cycle, each in self.never.items()}}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Closures:
        """The inverse of `to_dict`."""
        return cls(record["freq"], dict(_unpacked(record["never"])))


def closed_ahead(fitted: Closures | None, places: NDArray[np.integer[Any]], data: Dataset, ahead: pd.Index) -> Mask:
    """Mask (S, P, T) of the steps `ahead` (S P,) after each series of `data` at which it is closed.

    Args:
        fitted: those of the training rows; None if there were none.
        places: number of each series in training (S,), -1 for new ones, whose own rows are judged.
        data: the series up to their forecast origins.
        ahead: time stamps of the same number of steps after each, series by series.
    """
    steps = np.arange(len(ahead)).reshape(len(data), -1)
    closed = np.zeros((*steps.shape, data.n_targets), dtype=bool)
    known, new = np.flatnonzero(places >= 0), np.flatnonzero(places < 0)
    own = None if fitted is None or not len(known) else fitted.take(places[known]).opened(data.take(known))
    of_new = Closures.fit(data.take(new)) if len(new) else None
    for some, each in ((known, own), (new, of_new)):
        if each is not None:
            closed[some] = each.at(ahead[steps[some].ravel()])
    return closed


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


def _packed(never: Mask) -> dict[str, Any]:
    series, *size = never.shape
    masks, numbers = np.unique(never.reshape(series, -1), axis=0, return_inverse=True)
    return {
        "size": size,
        "masks": ["".join(map(str, mask.astype(int).tolist())) for mask in masks],
        "of_series": numbers.ravel().tolist(),
    }


def _unpacked(record: Mapping[str, Any]) -> Iterator[tuple[int, Mask]]:
    for cycle, each in record.items():
        masks = np.array([[digit == "1" for digit in mask] for mask in each["masks"]])
        yield int(cycle), masks[each["of_series"]].reshape(-1, *each["size"])
