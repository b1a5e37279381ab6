"""Batches of series to train and score on: synthetic ones, and real ones from files."""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from femts.errors import UsageError
from femts.models.parts.zero_shot import SeriesBatch
from femts.text import quote
from scripts.pretrain.series import Array, composite, from_synforecast, standardised

LONGEST_HORIZON = 192
HELD_OUT = 10  # every tenth series of the files is never trained on
LENGTHS = (64, 128, 256, 512, 1024, 2048)  # rows of history, at most, of a batch
SHORTEST = 16  # rows of a real series
FEWEST_AHEAD = 6  # rows of a short real series that are forecast, unless a third of it is more
ENOUGH = 20_000  # rows of real series of a season that allow for their whole share; fewer would be learned by heart
YOUNG = 0.3  # share of the batches in which most series begin later


class Season(NamedTuple):
    """What is drawn for a season.

    Attributes:
        second: steps of the second season, or of the season again.
        share: of the batches, relative to the other seasons.
        horizons: that series of this season are usually forecast for, in steps.
        longest: rows of history, at most; those of years, quarters and months are few.
        young: share of the batches in which most series begin later.
        grows: whether its series may be `growing`.
    """

    second: int
    share: float
    horizons: tuple[int, ...]
    longest: int = LENGTHS[-1]
    young: float = YOUNG
    grows: bool = False


SEASONS = {
    1: Season(1, 0.16, (8, 16, 24, 48), 512, 0.6, True),
    4: Season(4, 0.10, (8, 16), 128, 0.8, True),
    5: Season(260, 0.02, (8, 16, 32)),
    7: Season(364, 0.15, (16, 28, 48, 96)),
    12: Season(12, 0.14, (12, 24, 36), 512, 0.6, True),
    13: Season(13, 0.02, (13, 26), 256, 0.6, True),
    24: Season(168, 0.22, (24, 48, 96, 168, 192)),
    48: Season(336, 0.07, (48, 96, 192)),
    52: Season(52, 0.05, (16, 32, 52), 1024),
    96: Season(672, 0.10, (24, 96, 144, 192)),
    144: Season(1008, 0.07, (48, 144, 192)),
    288: Season(2016, 0.06, (48, 96, 192)),
}
NAMED = {
    "hourly": 24,
    "business": 5,
    "daily": 7,
    "weekly": 52,
    "monthly": 12,
    "quarterly": 4,
}  # seasons by words of file names
OTHER_SEASONS = 0.08  # share of batches of a season that no calendar has
OTHER_REAL = 0.05  # share of each season of real series that is not among `SEASONS`


def season_of(steps: int) -> Season:
    """The entry of `SEASONS`, or one like it for any other number of steps."""
    return SEASONS.get(steps, Season(steps, OTHER_REAL, (steps, 2 * steps, 16, 48)))


def read_series(paths: Iterable[Path]) -> dict[str, tuple[Array, int]]:
    """Series and their seasons by name, from files with a series in each line: `name,value,value,...`, oldest first.

    Args:
        paths: files, `.csv` or `.csv.gz`. A file name with one of the words in `NAMED` says the season, and
            so does a series name that ends in `|300s`, the step in seconds; other series have none.

    Raises:
        UsageError: A file cannot be read, a value is not a number, or two series have the same name.
    """
    found: dict[str, tuple[Array, int]] = {}
    for path in paths:
        of_file = next((steps for word, steps in NAMED.items() if word in path.name), 1)
        try:
            with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
                rows = [line for line in csv.reader(lines) if line]
        except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
            raise UsageError(f"{path} cannot be read ({error}); give CSV files with a series in each line.") from error
        for name, *cells in rows:
            if name in found:
                raise UsageError(f"Series '{quote(name)}' of {path} occurs twice; give each series its own name.")
            step = re.search(r"\|([1-9]\d*)s$", name)
            season = max(86400 // int(step[1]), 1) if step else of_file
            found[name] = (np.array([_number(cell, name, path) for cell in cells]), season)
    return found


def _number(cell: str, name: str, path: Path) -> float:
    try:
        return float(cell or "nan")
    except ValueError:
        raise UsageError(
            f"Series '{quote(name)}' of {path} has the value '{quote(cell)}', which is not a number; leave missing "
            "values empty."
        ) from None


def by_season(series: Iterable[tuple[Array, int]]) -> dict[int, tuple[Array, ...]]:
    """Group series by season, at their own steps and averaged over longer ones, down to days for parts of a day."""
    groups: dict[int, list[Array]] = {}
    for values, season in series:
        for steps in _steps(season):
            mean = values[len(values) % steps :].reshape(-1, steps).mean(1) if steps > 1 else values
            own = 7 if steps == season > 1 else season // steps
            if len(mean) >= SHORTEST:
                groups.setdefault(own, []).append(mean)
                if own == 52:  # many weekly series have no season
                    groups.setdefault(1, []).append(mean)
    return {season: tuple(values) for season, values in groups.items()}


def _steps(season: int) -> list[int]:
    """Steps to average over, so that a season of readings becomes one of `SEASONS`, at steps of an hour or less, since
    months and quarters are not like parts of a day."""
    divisors = [steps for steps in range(2, season // 24 + 1) if season % steps == 0 and season // steps in SEASONS]
    return [1, *divisors, *([season] if season >= 24 and season != 52 else [])]


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
        share: of real series where there are `ENOUGH` rows of a season, and less in proportion.
        gaps: share of series with missing readings.
        lengths: longest histories to draw from.
        patch: horizons are multiples of it.
        size: series of a batch B.
        seed: of everything that is drawn.
        grown: share of synthetic series that are `growing`, of the seasons of which this is said.
    """

    real: dict[int, tuple[Array, ...]]
    share: float = 0.3
    gaps: float = 0.15
    lengths: tuple[int, ...] = LENGTHS
    patch: int = 16
    size: int = 48
    seed: int = 0
    grown: float = 0.0

    def batch(self, number: int) -> SeriesBatch:
        """The batch `number`."""
        rng = np.random.default_rng((self.seed, number))
        seasons = sorted(SEASONS.keys() | self.real.keys())
        shares = np.array([season_of(season).share for season in seasons])
        season = int(rng.choice(seasons, p=shares / shares.sum()))
        if rng.random() < OTHER_SEASONS:
            season = int(np.exp(rng.uniform(np.log(2), np.log(336))))
        most = max(min(season_of(season).longest, self.lengths[-1]), self.lengths[0])
        fitting = [length for length in self.lengths if min(2 * season, most) <= length <= most]
        odds = np.array([1.0] * (len(fitting) - 1) + [1.5])
        length = int(rng.choice(fitting, p=odds / odds.sum()))
        longest = min(LONGEST_HORIZON, max(length // 2, self.patch))
        horizon = min(int(rng.choice(season_of(season).horizons)), longest)
        steps = -(-horizon // self.patch) * self.patch
        return self.draw(rng, season, length, steps, season_of(season).young)

    def draw(
        self, rng: np.random.Generator, season: int, length: int, horizon: int, young: float = YOUNG
    ) -> SeriesBatch:
        """A batch of one shape.

        Args:
            rng: source of random numbers.
            season: steps of the season.
            length: rows of history, of which some series have fewer.
            horizon: steps to forecast.
            young: probability that most series begin later.
        """
        total, second = length + horizon, season_of(season).second
        real = self.real.get(season, ())
        enough = min(sum(map(len, real)) / ENOUGH, 1.0)
        n_real = int(rng.binomial(self.size, self.share * enough)) if real else 0
        n_synforecast = (self.size - n_real) // 4
        grown = self.grown * season_of(season).grows
        parts = [composite(rng, self.size - n_real - n_synforecast, total, season, second, grown)]
        for n in (n_synforecast - n_synforecast // 2, n_synforecast // 2):
            if n:
                parts.append(from_synforecast(rng, n, total, season))
        x = np.concatenate(parts)
        observed = np.ones(x.shape, bool)
        if n_real:
            values, seen = _windows(rng, real, n_real, total, horizon)
            x, observed = np.concatenate([x, values]), np.concatenate([observed, seen])
        self._shorten(rng, observed, length, young)
        self._puncture(rng, observed, length)
        x = np.where(observed, x, 0.0)
        x = standardised(x) * np.where(rng.random((self.size, 1)) < 0.15, -1, 1)
        return SeriesBatch(
            torch.from_numpy(x.astype(np.float32).T.copy()),
            torch.from_numpy(observed.T.copy()),
            season,
            second,
            horizon,
        )

    def _shorten(self, rng: np.random.Generator, observed: NDArray[np.bool_], length: int, young: float) -> None:
        """Start most series of a share `young` of the batches later; series of one length are faster."""
        if rng.random() < 1 - young:
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


def _windows(
    rng: np.random.Generator, values: Sequence[Array], n: int, total: int, horizon: int
) -> tuple[Array, NDArray[np.bool_]]:
    """n excerpts of `total` rows that end anywhere, some of them mixed from two, (n, total) each; short ones end within
    the horizon, so that most of their rows are history."""
    x, observed = np.zeros((n, total)), np.zeros((n, total), bool)
    for i in range(n):
        excerpts = [_excerpt(rng, values, total) for _ in range(1 + (rng.random() < 0.4))]
        rows = min(len(excerpt) for excerpt in excerpts)
        share = rng.beta(1.5, 1.5)
        mixed = sum(w * _scaled(e[-rows:]) for w, e in zip((share, 1 - share), excerpts, strict=False))
        unknown = min(max(horizon - max(rows // 3, FEWEST_AHEAD), 0), total - rows)
        at = slice(total - unknown - rows, total - unknown)
        x[i, at], observed[i, at] = np.nan_to_num(mixed), np.isfinite(mixed)
    return x, observed


def _excerpt(rng: np.random.Generator, values: Sequence[Array], total: int) -> Array:
    series = values[int(rng.integers(len(values)))]
    end = int(rng.integers(min(SHORTEST, len(series)), len(series) + 1))
    if len(series) > total and rng.random() < 0.8:
        end = int(rng.integers(total, len(series) + 1))
    return series[max(0, end - total) : end]


def _scaled(x: Array) -> Array:
    x = x - np.nanmean(x)
    deviation = np.nanstd(x)
    return x / deviation if deviation > 0 else x
