"""Readings far outside the usual range: found among the rows around them, by distances learned from training rows.

A reading is compared with the medians of the readings before it and with that of the readings after it, and, in data
with a season, with the readings of the same phase (after Hampel, "The influence curve and its role in robust
estimation", JASA 1974; Pearson, "Outliers in process control and identification", IEEE TCST 2002). It is odd if it is
`FACTOR` times as far from all of these as any usual training reading. How far usual readings are is learned from each
column of each series, so promotions, heavy tails and the seasonal peaks of a column count as usual in it. A new level is
close to the readings after it, so it is odd only at the end of a look-back, and only in its first three readings. Where
many readings are odd, a column has begun to vary in another way, and they are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Numbers = NDArray[np.int64]

# Chosen on the validation rows of the tables in docs/measured/outliers.md, with odd readings put in.
FACTOR = 3.0  # distance of an odd reading, in largest usual distances

FEWEST = 30  # training readings by which to judge
TOLERATED, SHARE = 5, 0.005  # training readings that may be odd: a number, and a share
SLACK = 1.5  # roughness of a look-back, relative to the largest of the training rows, up to which intervals stay
STEPS = 13  # readings before with whose median a reading is compared
NEAREST = 5  # the nearest of these, whose median follows a new level sooner, and readings after
RECENT, MANY = 40, 10  # rows among which more than so many odd readings are another way to vary, not outliers
CELLS = 2**16  # cells that are sorted at a time, which stay in the cache
SEASONS = 3  # seasons before with whose median a reading is compared


class Found(NamedTuple):
    """What is odd in N rows of C columns.

    Attributes:
        settled: (N, C), odd by the readings before and after.
        recent: (N, C), odd by the readings before alone, as for the last `NEAREST` rows of a look-back.
        unlike: (2, N, C), factors of at least 1 on the widths of intervals, for how rough the rows up to each one are
            without settled ones, and without recent ones.
    """

    settled: Mask
    recent: Mask
    unlike: Array


@dataclass(frozen=True, eq=False)
class Outliers:
    """Largest usual distances of C columns of S series, in scaled units; infinite where readings are not judged.

    Attributes:
        near: (S, C, 2), from the medians before and after, of rows with both, and from the median before alone.
        phase: (S, C, 2), the same for the difference from the same phase of earlier seasons.
        level: (S, C), highest median; at higher levels, distances grow in proportion.
        rough: (S, C), largest mean distance over `span` rows from the median before.
        location: (S, C), mean of the scaler over its scale.
        season: steps of one season.
        keep: whether odd readings are kept, so that only intervals are affected.
    """

    near: Array
    phase: Array
    level: Array
    rough: Array
    location: Array
    season: int
    keep: bool = False

    @property
    def span(self) -> int:
        """Rows whose mean distance is the roughness of a look-back."""
        return max(NEAREST, self.season)

    @property
    def reach(self) -> int:
        """Rows before a look-back by which its first readings are judged."""
        return max(SEASONS * self.season, self.span) + STEPS + RECENT

    @classmethod
    def fit(
        cls,
        chunks: Iterable[tuple[Array, Numbers]],
        train: Numbers,
        stop: Numbers,
        location: Array,
        season: int,
        growing: bool,
        known: tuple[Outliers, Mask] | None = None,
    ) -> tuple[Outliers, tuple[Numbers, Numbers]]:
        """Learn the usual distances from training rows.

        A column in which more than `SHARE` of the later rows would be odd has begun to vary in another way; it is not
        judged.

        Args:
            chunks: scaled values (n, C) of consecutive series, NaN where missing, and the lengths of these series.
            train: (S,), number of training rows of each series.
            stop: (S,), number of training and validation rows.
            location: as in `Outliers`.
            season: steps of one season.
            growing: whether distances grow with the level, as those of untransformed values may.
            known: distances of the series, and for which of these, (S,), they are kept; see `like`.

        Returns:
            The distances, and row and column numbers of the training readings that are odd by them.
        """
        shape = location.shape
        made = cls(
            np.full((*shape, 2), np.inf),
            np.full((*shape, 2), np.inf),
            np.full(shape, np.inf),
            np.full(shape, np.inf),
            location,
            season,
        )
        begin, first, odd = 0, 0, list[tuple[Numbers, Numbers]]()
        for values, lengths in chunks:
            series = slice(begin, begin := begin + len(lengths))
            of = None if known is None else (known[0].take(np.arange(series.start, series.stop)), known[1][series])
            row, column = made._learn(series, values, lengths, train[series], stop[series], growing, of)
            odd.append((row + first, column))
            first += len(values)
        rows, columns = (np.concatenate(each) for each in zip(*odd, strict=True))
        return made if known is None else made.like(*known), (rows, columns)

    def _learn(
        self,
        series: slice,
        values: Array,
        lengths: Numbers,
        train: Numbers,
        stop: Numbers,
        growing: bool,
        known: tuple[Outliers, Mask] | None,
    ) -> tuple[Numbers, Numbers]:
        """Fill in the distances of consecutive `series`, and return which of their training readings are odd, as
        numbers of their rows and columns; see `fit`."""
        position = _positions(lengths)
        learned = (position < np.repeat(train, lengths))[:, None]
        seen = position < np.repeat(stop, lengths)
        values = np.where(seen[:, None], values, np.nan)
        measured = self._measure(values, lengths)
        isolated, firsts = np.zeros(values.shape, dtype=np.bool_), np.cumsum(lengths) - lengths
        for k in np.flatnonzero(train >= FEWEST).tolist():
            rows, number = slice(firsts[k], firsts[k] + train[k]), series.start + k
            for c in range(values.shape[1]):
                near = measured.before[rows, c], measured.after[rows, c]
                self.near[number, c], isolated[rows, c] = usual_distances(*near)
                if self.season > 1:
                    phase = measured.phase_before[rows, c], measured.phase_after[rows, c]
                    self.phase[number, c] = usual_distances(*phase)[0]
        if growing:
            location = np.repeat(self.location[series], lengths, axis=0)
            self.level[series] = _largest(np.where(learned, np.abs(measured.middle + location), np.nan), lengths)
        rough = self._roughness(np.where(learned & ~isolated, measured.before, np.nan), lengths)
        self.rough[series] = np.where(np.isinf(self.near[series, :, 1]), np.inf, _largest(rough, lengths))
        own = self.take(np.arange(series.start, series.stop))
        settled = own._judge(values, measured, lengths)[0]
        later = settled & ~learned
        ends = np.concatenate([[0], np.cumsum(lengths)])
        counts = np.diff(np.concatenate([np.zeros((1, later.shape[1])), later.cumsum(0)])[ends], axis=0)
        changed = counts > np.maximum(TOLERATED, SHARE * (stop - train))[:, None]
        self.near[series][changed] = self.phase[series][changed] = np.inf
        if known is not None:
            own = self.take(np.arange(series.start, series.stop)).like(*known)
            settled = own._judge(values, measured, lengths)[0]
        elif changed.any():
            settled &= ~np.repeat(changed, lengths, axis=0)
        row, column = np.nonzero(settled & learned)
        return row, column

    def find(self, values: Array, lengths: Numbers) -> Found | None:
        """Odd readings in scaled `values` (n, C) of consecutive series of these `lengths` (S,); None without any."""
        measured = self._measure(values, lengths)
        settled, recent = self._judge(values, measured, lengths)
        if self.keep:
            settled, recent = np.zeros_like(settled), np.zeros_like(recent)
        distance = measured.before / self._growth(measured.middle, lengths)
        most = SLACK * np.repeat(self.rough, lengths, axis=0)
        none = not settled.any() and not recent.any()
        rough = (self._roughness(np.where(odd, np.nan, distance), lengths) for odd in (settled, recent)[none:])
        unlike = np.stack([np.fmax(each / most, 1.0) for each in rough])
        if none and not (unlike > 1).any():
            return None
        return Found(settled, recent, np.broadcast_to(unlike, (2, *values.shape)))

    def _roughness(self, distances: Array, lengths: Numbers) -> Array:
        """Mean of the last `span` distances (n, C) up to each row of a series, NaN if there are fewer."""
        rolling = pd.DataFrame(distances).rolling(self.span, min_periods=(self.span + 1) // 2)
        means = np.array(rolling.mean().to_numpy())
        means[_positions(lengths) < self.span + STEPS - 1] = np.nan
        return means

    def _judge(self, values: Array, measured: _Measured, lengths: Numbers) -> tuple[Mask, Mask]:
        growth = self._growth(measured.middle, lengths)
        settled, recent = np.zeros((2, *growth.shape), dtype=np.bool_)
        kinds = (measured.before, measured.after, self.near), (measured.phase_before, measured.phase_after, self.phase)
        for before, after, usual in kinds:
            if not np.isfinite(usual).any():
                continue
            both, one = np.moveaxis(FACTOR * np.repeat(usual, lengths, axis=0), -1, 0) * growth
            nearest, alone = np.fmin(before, after), np.isnan(before) | np.isnan(after)
            odd, at_end = np.where(alone, nearest > one, nearest > both), before > one
            if usual is self.phase:
                echoes = self._echoes(values, odd | at_end, settled | odd, both)
                odd, at_end = odd & ~echoes, at_end & ~echoes
            settled, recent = settled | odd, recent | at_end
        return _few(settled, lengths), _few(recent, lengths)

    def _echoes(self, values: Array, odd: Mask, settled: Mask, most: Array) -> Mask:
        """Which of the `values` (n, C) are `odd` by their phase because those of earlier seasons were: within the distance
        `most` of the median of these without the `settled` ones, or without any to be compared with."""
        row, column = np.nonzero(odd)
        before = row - self.season * np.arange(1, SEASONS + 1)[:, None], column
        others = np.where(settled[before], np.nan, values[before])
        far = np.abs(values[row, column] - pd.DataFrame(others).median().to_numpy()) > most[row, column]
        made = np.zeros_like(odd)
        made[row, column] = settled[before].any(axis=0) & ~far
        return made

    def _growth(self, middle: Array, lengths: Numbers) -> Array:
        level = np.repeat(self.level, lengths, axis=0)
        return np.fmax(np.abs(middle + np.repeat(self.location, lengths, axis=0)) / level, 1.0)

    def _measure(self, values: Array, lengths: Numbers) -> _Measured:
        """Distances of each reading, and the medians before."""
        middle, near = _around(values, lengths)
        nothing = np.full(values.shape, np.nan)
        if self.season == 1 or len(values) <= SEASONS * self.season:
            return _Measured(*near, nothing, nothing, middle)
        a, b, c = (_moved(values, n * self.season) for n in range(1, SEASONS + 1))
        differences = values - np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))  # from the median
        differences[_positions(lengths) < SEASONS * self.season] = np.nan
        _, (before, after) = _around(differences, lengths)
        size = np.abs(differences)
        return _Measured(*near, np.fmin(size, before), np.minimum(size, after), middle)

    def take(self, series: NDArray[np.integer[Any]]) -> Outliers:
        """The same for some series by number; series with the number -1 are not judged."""
        made = {name: getattr(self, name)[series] for name in ("near", "phase", "level", "rough", "location")}
        for name in ("near", "phase", "level", "rough"):
            made[name][series < 0] = np.inf
        return replace(self, **made)

    def like(self, others: Outliers, some: Mask) -> Outliers:
        """The same with the distances of `others` for `some` of the series, (S,), by which odd readings are found, and
        the roughness of both, since rows that a model has learned from are not unlike its training rows."""
        made = {}
        for name in ("near", "phase", "level", "location"):
            one, other = getattr(self, name), getattr(others, name)
            made[name] = np.where(some.reshape(-1, *[1] * (one.ndim - 1)), other, one)
        rough = np.where(some[:, None], np.fmax(self.rough, others.rough), self.rough)
        return replace(self, **made, rough=rough)

    def to_dict(self) -> dict[str, Any]:
        """Plain types for JSON; infinite distances are null."""
        arrays = {name: getattr(self, name) for name in ("near", "phase", "level", "rough", "location")}
        finite = {name: each.astype(object) for name, each in arrays.items()}
        for name, each in arrays.items():
            finite[name][~np.isfinite(each)] = None
        return {**{name: each.tolist() for name, each in finite.items()}, "season": self.season}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Outliers:
        """The inverse of `to_dict`."""
        names = ("near", "phase", "level", "rough", "location")
        arrays = {name: np.array(record[name], dtype=np.float64) for name in names}
        near, phase, level, rough, location = (np.where(np.isnan(each), np.inf, each) for each in arrays.values())
        return cls(near, phase, level, rough, location, record["season"])


class _Measured(NamedTuple):
    """Distances (n, C) of readings from the medians before and after them, as they are and as differences from the
    same phase, and the medians before; NaN where there is none."""

    before: Array
    after: Array
    phase_before: Array
    phase_after: Array
    middle: Array


def usual_distances(before: Array, after: Array) -> tuple[tuple[float, float], Mask]:
    """Largest usual distance (n,) of one column by both medians and by the median before alone, and which readings are
    isolated.

    Distances are usual up to the first that is `FACTOR` times the one below it, among the largest `TOLERATED` or
    `SHARE`. Isolated readings, beyond these by both medians, are left out of the distances by the median before; those
    of a new level are not, so readings at the end are judged by the changes that a column has had. Columns that mostly
    repeat their values, such as intermittent demand, are not judged.
    """
    nearest = np.where(np.isnan(after), np.nan, np.fmin(before, after))
    ordered = np.sort(nearest[~np.isnan(nearest)])
    none = np.zeros(len(before), dtype=np.bool_)
    if len(ordered) < FEWEST or ordered[len(ordered) // 2] == 0:  # the median is 0 as well
        return (np.inf, np.inf), none
    last = len(ordered) - 1 - max(TOLERATED, int(SHARE * len(ordered)))
    while last + 1 < len(ordered) and ordered[last + 1] <= FACTOR * ordered[last]:
        last += 1
    both = float(ordered[last])
    isolated = nearest > FACTOR * both
    one = before[~isolated & ~np.isnan(after) & ~np.isnan(before)]
    return (both, max(both, float(one.max(initial=0.0)))), isolated


def _around(values: Array, lengths: Numbers) -> tuple[Array, tuple[Array, Array]]:
    """Medians before each of the values (n, C) of consecutive series, and the distances from the nearest of the medians
    before and from that after; NaN where there are too few rows."""
    position, last = _positions(lengths), np.repeat(lengths, lengths) - 1
    near, far = (_medians(values, steps) for steps in (NEAREST, STEPS))
    after = _moved(near, -NEAREST)
    after[last - position < NEAREST] = np.nan
    near, far = _moved(near, 1), _moved(far, 1)
    near[position < NEAREST], far[position < STEPS] = np.nan, np.nan
    before = np.fmin(np.abs(values - near), np.abs(values - far))
    return np.where(np.isnan(far), near, far), (before, np.abs(values - after))


def _medians(values: Array, steps: int) -> Array:
    """Medians of the values (n, C) in the last `steps` rows up to each row, NaN if more than half of them are missing."""
    made, before = np.empty(values.shape), np.full((steps - 1, values.shape[1]), np.nan)
    padded, rows = np.concatenate([before, values]), max(1, CELLS // (steps * values.shape[1]))
    for first in range(0, len(values), rows):
        windows = sliding_window_view(padded[first : first + rows + steps - 1], steps, axis=0)
        ordered = np.sort(windows)  # several times as fast as the medians of pandas; NaN is last
        made[first : first + rows] = ordered[..., steps // 2]
        gaps = np.isnan(ordered[..., -1])
        if gaps.any():
            some = ordered[gaps]
            count = steps - np.isnan(some).sum(axis=1)
            low, high = (np.take_along_axis(some, (place // 2)[:, None], axis=1)[:, 0] for place in (count - 1, count))
            made[first : first + rows][gaps] = np.where(2 * count > steps, (low + high) / 2, np.nan)
    return made


def _few(odd: Mask, lengths: Numbers) -> Mask:
    """The `odd` readings (n, C) of consecutive series without those that follow `MANY` of them within `RECENT` rows."""
    counts = np.concatenate([np.zeros((1, odd.shape[1]), dtype=np.int64), odd.cumsum(0)])
    rows = np.arange(len(odd))
    return np.asarray(odd & (counts[1:] - counts[rows - np.minimum(_positions(lengths), RECENT - 1)] <= MANY))


def _positions(lengths: Numbers) -> Numbers:
    """Row number within its series of each row."""
    return np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def _moved(values: Array, rows: int) -> Array:
    """`values` moved down by `rows`, or up if it is negative, with NaN at the end."""
    made = np.full(values.shape, np.nan)
    if abs(rows) >= len(values):
        return made
    if rows > 0:
        made[rows:] = values[:-rows]
    else:
        made[:rows] = values[-rows:]
    return made


def _largest(values: Array, lengths: Numbers) -> Array:
    """Largest of the values (n, C) of each series; infinite if it has none above 0."""
    made = np.full((len(lengths), values.shape[1]), np.nan)
    some = lengths > 0
    made[some] = np.fmax.reduceat(values, (np.cumsum(lengths) - lengths)[some], axis=0)
    return np.where(made > 0, made, np.inf)
