"""The table that records make: each horizon and their mean, over seeds, beside what is published."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from femts.data.protocols import HORIZONS
from femts.experiments.grid import Cell
from femts.experiments.published import published
from femts.experiments.scores import Score, best_scores
from femts.experiments.store import Store

NAIVE = "seasonal_naive"


@dataclass(frozen=True)
class Entry:
    """A dataset and a model at one horizon, or with `pred_len` None at the mean of all that were asked for.

    Attributes:
        look_backs: those of its horizons and seeds in steps, the shortest first.
        seeds: finished seeds; for the mean, those with all horizons.
        asked: seeds that were asked for.
        rolled: a model of a shorter horizon that was rolled out is among them.
        mse, mse_sd, mae: mean over the seeds, and the standard deviation of two and more; None while there is none.
        published_mse: None where nothing is published.
        failures: why cells crashed, by seed.
        chosen: what validation chose where there were models of several horizons, look-backs or settings, by seed.
        naive_mse: of the seasonal naive forecast on the same windows; from the cells of `seasonal_naive` where the
            records themselves do not say.
        mase: mean over the seeds.
        season: steps that this forecast repeats.
        windows: of the test part, that every seed scored, 0 while none has; of the mean the sum over its horizons.
        choices, missing: cells of a seed of which validation chooses, and how many of them have no record; of the seed
            and horizon that lacks most.
    """

    dataset: str
    model: str
    pred_len: int | None
    look_backs: tuple[int, ...]
    seeds: tuple[int, ...]
    asked: tuple[int, ...]
    rolled: bool
    mse: float | None
    mse_sd: float | None
    mae: float | None
    published_mse: float | None
    failures: Mapping[int, str]
    chosen: Mapping[int, str]
    naive_mse: float | None = None
    mase: float | None = None
    season: int = 1
    windows: int = 0
    choices: int = 1
    missing: int = 0

    @property
    def seq_len(self) -> int | None:
        """Look-back in steps, None where horizons or seeds differ in it."""
        return self.look_backs[0] if len(self.look_backs) == 1 else None

    @property
    def skill(self) -> float | None:
        """Part of the squared error of the seasonal naive forecast that is avoided."""
        return 1 - self.mse / self.naive_mse if self.mse is not None and self.naive_mse else None


def make_entries(cells: Sequence[Cell], store: Store, roll_out: Sequence[int] = ()) -> list[Entry]:
    """Make entries of what the store has of `cells`, horizon by horizon and then their mean, for
    each dataset and model; `roll_out` as in `best_scores`."""
    entries = []
    for dataset, model in dict.fromkeys((cell.dataset, cell.model) for cell in cells):
        own = [cell for cell in cells if (cell.dataset, cell.model) == (dataset, model)]
        theirs = own[0].own is None  # what is published is of the catalogue's data
        seeds = tuple(dict.fromkeys(cell.seed for cell in own))
        scores = best_scores(own, store, roll_out)
        pred_lens = list(scores)
        for pred_len in pred_lens:
            failures = {c.seed: why for c in own if c.pred_len == pred_len and (why := store.failure(c))}
            published_mse = published(dataset, model, pred_len) if theirs else None
            each = {seed: [score] for seed, score in scores[pred_len].items()}
            entries.append(_entry((dataset, model, pred_len), each, seeds, published_mse, failures))
        if len(pred_lens) > 1:
            whole = [seed for seed in seeds if all(seed in scores[pred_len] for pred_len in pred_lens)]
            means = {seed: [scores[pred_len][seed] for pred_len in pred_lens] for seed in whole}
            published_mse = published(dataset, model, None) if theirs and tuple(pred_lens) == HORIZONS else None
            entries.append(_entry((dataset, model, None), means, seeds, published_mse, {}))
    return [replace(e, naive_mse=_naive(e, entries)) for e in entries]


def _naive(entry: Entry, entries: Sequence[Entry]) -> float | None:
    """The error of the seasonal naive forecast on the windows of `entry`; None where no entry of its row has it.

    A look-back shorter than the season cannot repeat one, so what stands beside it is of the last value alone.
    """
    row = [e for e in entries if (e.dataset, e.pred_len) == (entry.dataset, entry.pred_len) and e.mse is not None]
    season = max([e.season for e in row if e.naive_mse is not None], default=1)
    if entry.naive_mse is not None and entry.season == season:
        return entry.naive_mse
    same = [e for e in row if e.windows == entry.windows]
    beside = [e.naive_mse for e in same if e.season == season and e.naive_mse is not None]
    return next(iter([*beside, *(e.mse for e in same if e.model == NAIVE)]), None)


def _whole_mean(values: Sequence[float | None]) -> float | None:
    """The mean of `values`; None where one is missing, or there is none."""
    numbers = [value for value in values if value is not None]
    return statistics.fmean(numbers) if numbers and len(numbers) == len(values) else None


def _entry(
    what: tuple[str, str, int | None],
    scores: Mapping[int, Sequence[Score]],
    asked: tuple[int, ...],
    published_mse: float | None,
    failures: Mapping[int, str],
) -> Entry:
    """The entry of what each seed has, one score or one for each horizon."""
    every = [score for own in scores.values() for score in own]
    mses, maes = (
        [statistics.fmean(getattr(score, name) for score in own) for own in scores.values()] for name in ("mse", "mae")
    )
    lacking = max(every, key=lambda score: score.missing, default=None)
    return Entry(
        *what,
        look_backs=tuple(sorted({score.seq_len for score in every})),
        seeds=tuple(scores),
        asked=asked,
        rolled=any(score.rolled for score in every),
        mse=statistics.fmean(mses) if mses else None,
        mse_sd=statistics.stdev(mses) if len(mses) > 1 else None,
        mae=statistics.fmean(maes) if maes else None,
        naive_mse=_whole_mean([score.naive_mse for score in every]),
        mase=_whole_mean([score.mase for score in every]),
        season=min((score.season for score in every), default=1),
        windows=min((sum(score.windows for score in own) for own in scores.values()), default=0),
        choices=lacking.asked if lacking else 1,
        missing=lacking.missing if lacking else 0,
        published_mse=published_mse,
        failures=failures,
        chosen={seed: own[0].chosen for seed, own in scores.items() if what[2] is not None and own[0].chosen},
    )
