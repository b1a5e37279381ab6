"""Batches of series to train and score on: synthetic ones, and real ones from files."""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from scripts.pretrain.series import Array, borrowed, composite, standardised

# Season, second season, share of the batches, and horizons that it is usually forecast for.
SEASONS: dict[int, tuple[int, float, tuple[int, ...]]] = {
    1: (1, 0.13, (8, 16, 24, 48)),
    4: (4, 0.04, (8, 16)),
    5: (5, 0.02, (8, 16, 32)),
    7: (7, 0.15, (16, 28, 48, 96)),
    12: (12, 0.09, (12, 24, 36)),
    13: (13, 0.02, (13, 26)),
    24: (168, 0.22, (24, 48, 96, 168, 192)),
    48: (336, 0.07, (48, 96, 192)),
    52: (52, 0.05, (16, 32, 52)),
    96: (672, 0.10, (24, 96, 144, 192)),
    144: (1008, 0.07, (48, 144, 192)),
    288: (2016, 0.06, (48, 96, 192)),
}
LONGEST_HORIZON = 192
HELD_OUT = 10  # every tenth series of a file is never trained on
LENGTHS = (64, 128, 256, 512, 1024, 2048)  # rows of history, at most, of a batch
# Steps that readings are averaged over, by the season of the readings.
STEPS = {288: (1, 2, 3, 6, 12, 24, 288), 144: (1, 3, 6, 12), 48: (1, 2, 4), 24: (1, 2, 6, 24), 52: (1, 4, 13)}


@dataclass(frozen=True)
class Batch:
    """Histories with what came after them.

    Attributes:
        x: values (T, B), the last `horizon` of which are to be forecast; each series has its own units.
        observed: which are observed, (T, B).
        season, second: steps of the seasons, 1 for none.
        horizon: steps to forecast H.
    """

    x: Tensor
    observed: Tensor
    season: int
    second: int
    horizon: int


@dataclass(frozen=True)
class RealSeries:
    """Series of one season.

    Attributes:
        values: of each series, oldest first.
        second: steps of the second season.
    """

    values: tuple[Array, ...]
    second: int


def read_series(paths: Iterable[Path], season: int = 1) -> dict[str, tuple[Array, int]]:
    """Series and their seasons by name, from files with a series in each line: `name,value,value,...`, oldest first.

    Args:
        paths: files, `.csv` or `.csv.gz`. A file name with `hourly`, `daily`, `weekly` or `monthly` says the season, and
            so does a name that ends in `|300s`, the step in seconds.
        season: of the other series.

    Raises:
        ValueError: A value is not a number.
    """
    named = {"hourly": 24, "daily": 7, "weekly": 52, "monthly": 12}
    found = {}
    for path in paths:
        of_file = next((steps for word, steps in named.items() if word in path.name), season)
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
            for line in csv.reader(lines):
                step = re.search(r"\|(\d+)s$", line[0])
                values = np.array([float(value or "nan") for value in line[1:]])
                found[line[0]] = (values, max(86400 // int(step[1]), 1) if step else of_file)
    return found


def by_season(series: Iterable[tuple[Array, int]], shortest: int = 40) -> dict[int, RealSeries]:
    """Group series by season, at their own steps and averaged over longer ones."""
    groups: dict[int, list[Array]] = {}
    for values, season in series:
        for step in STEPS.get(season, (1,)):
            mean = values[len(values) % step :].reshape(-1, step).mean(1) if step > 1 else values
            own = season // step if step < season else 7
            if len(mean) >= shortest:
                groups.setdefault(own, []).append(mean)
                if own == 52:  # many weekly series have no season
                    groups.setdefault(1, []).append(mean)
    return {s: RealSeries(tuple(values), SEASONS.get(s, (s,))[0]) for s, values in groups.items()}


def split(series: dict[str, tuple[Array, int]], without: Sequence[str] = ()) -> tuple[list[tuple[Array, int]], ...]:
    """The series to train on and those held out, which are every tenth of a sorted list; `without` names are in
    neither."""
    kept = [value for name, value in sorted(series.items()) if name.partition("|")[0] not in without]
    return [v for i, v in enumerate(kept) if i % HELD_OUT], kept[::HELD_OUT]


@dataclass(frozen=True)
class Corpus:
    """Batches by number; a batch depends on the arguments and its number only.

    Args:
        real: real series by season.
        share: of real series where there are some of a season.
        gaps: share of series with missing readings.
        lengths: longest histories to draw from.
        patch: horizons are multiples of it.
        size: series of a batch B.
        seed: of everything that is drawn.
    """

    real: dict[int, RealSeries]
    share: float = 0.3
    gaps: float = 0.15
    lengths: tuple[int, ...] = LENGTHS
    patch: int = 16
    size: int = 48
    seed: int = 0

    def batch(self, number: int) -> Batch:
        """The batch `number`."""
        rng = np.random.default_rng((self.seed, number))
        seasons = list(SEASONS)
        shares = np.array([SEASONS[season][1] for season in seasons])
        season = int(rng.choice(seasons, p=shares / shares.sum()))
        if rng.random() < 0.08:  # seasons that no calendar has
            season = int(np.exp(rng.uniform(np.log(2), np.log(336))))
        second, _, horizons = SEASONS.get(season, (season, 0.0, (season, 2 * season, 16, 48)))
        fitting = [length for length in self.lengths if length >= min(2 * season, self.lengths[-1])]
        odds = np.array([1.0] * (len(fitting) - 1) + [1.5])
        length = int(rng.choice(fitting, p=odds / odds.sum()))
        longest = min(LONGEST_HORIZON, max(length // 2, self.patch))
        horizon = min(int(rng.choice(horizons)), longest)
        return self.draw(rng, season, second, length, -(-horizon // self.patch) * self.patch)

    def draw(self, rng: np.random.Generator, season: int, second: int, length: int, horizon: int) -> Batch:
        """A batch of one shape.

        Args:
            rng: source of random numbers.
            season, second: steps of the seasons.
            length: rows of history, of which some series have fewer.
            horizon: steps to forecast.
        """
        total = length + horizon
        real = self.real.get(season)
        n_real = int(rng.binomial(self.size, self.share)) if real is not None else 0
        n_borrowed = (self.size - n_real) // 4
        parts = [composite(rng, self.size - n_real - n_borrowed, total, season, second)]
        for n in (n_borrowed - n_borrowed // 2, n_borrowed // 2):
            if n:
                parts.append(borrowed(rng, n, total, season))
        x = np.concatenate(parts)
        observed = np.ones(x.shape, bool)
        if real is not None and n_real:
            values, seen = _windows(rng, real.values, n_real, total)
            x, observed = np.concatenate([x, values]), np.concatenate([observed, seen])
        self._shorten(rng, observed, length)
        self._puncture(rng, observed, length)
        x = np.where(observed, x, 0.0)
        x = standardised(x) * np.where(rng.random((self.size, 1)) < 0.15, -1, 1)
        return Batch(
            torch.from_numpy(x.astype(np.float32).T.copy()),
            torch.from_numpy(observed.T.copy()),
            season,
            second,
            horizon,
        )

    def _shorten(self, rng: np.random.Generator, observed: NDArray[np.bool_], length: int) -> None:
        """Start most series of some batches later; series of one length are faster."""
        if rng.random() < 0.7:
            return
        least = min(max(length // 4, 12), length)
        for row in np.flatnonzero(rng.random(len(observed)) < 0.8):
            observed[row, : length - int(np.exp(rng.uniform(np.log(least), np.log(length))))] = False

    def _puncture(self, rng: np.random.Generator, observed: NDArray[np.bool_], length: int) -> None:
        """Remove single readings or spans."""
        for i in np.flatnonzero(rng.random(len(observed)) < self.gaps):
            row = observed[i]
            if rng.random() < 0.5:
                row &= rng.random(row.size) > rng.uniform(0, 0.3)
            else:
                for start in rng.integers(0, length, rng.integers(1, 4)):
                    row[start : start + int(rng.integers(1, max(2, length // 8)))] = False


def _windows(rng: np.random.Generator, values: Sequence[Array], n: int, total: int) -> tuple[Array, NDArray[np.bool_]]:
    """n excerpts of `total` rows that end anywhere, some of them mixed from two; (n, total) each."""
    x, observed = np.zeros((n, total)), np.zeros((n, total), bool)
    for i in range(n):
        excerpts = [_excerpt(rng, values, total) for _ in range(1 + (rng.random() < 0.4))]
        rows = min(len(excerpt) for excerpt in excerpts)
        share = rng.beta(1.5, 1.5)
        mixed = sum(w * _scaled(e[-rows:]) for w, e in zip((share, 1 - share), excerpts, strict=False))
        x[i, -rows:], observed[i, -rows:] = np.nan_to_num(mixed), np.isfinite(mixed)
    return x, observed


def _excerpt(rng: np.random.Generator, values: Sequence[Array], total: int) -> Array:
    series = values[int(rng.integers(len(values)))]
    end = int(rng.integers(min(40, len(series)), len(series) + 1))
    if len(series) > total and rng.random() < 0.8:
        end = int(rng.integers(total, len(series) + 1))
    return series[max(0, end - total) : end]


def _scaled(x: Array) -> Array:
    x = x - np.nanmean(x)
    deviation = np.nanstd(x)
    return x / deviation if deviation > 0 else x
