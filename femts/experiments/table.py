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
        seq_len: look-back in steps, None where horizons or seeds differ in it.
        seeds: finished seeds; for the mean, those with all horizons.
        asked: seeds that were asked for.
        rolled: a model of a shorter horizon that was rolled out is among them.
        mse, mse_sd, mae: mean over the seeds, and the standard deviation of two and more; None while there is none.
        published_mse: None where nothing is published.
        failures: why cells crashed, by seed.
        chosen: what validation chose where there were several look-backs or settings, by seed.
        naive_mse: of the seasonal naive forecast on the same windows; from the cells of `seasonal_naive` where the
            records themselves do not say.
        mase: mean over the seeds.
    """

    dataset: str
    model: str
    pred_len: int | None
    seq_len: int | None
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
            entries.append(_entry((dataset, model, pred_len), scores[pred_len], seeds, published_mse, failures))
        if len(pred_lens) > 1:
            whole = [seed for seed in seeds if all(seed in scores[pred_len] for pred_len in pred_lens)]
            means = {seed: _mean([scores[pred_len][seed] for pred_len in pred_lens]) for seed in whole}
            published_mse = published(dataset, model, None) if theirs and tuple(pred_lens) == HORIZONS else None
            entries.append(_entry((dataset, model, None), means, seeds, published_mse, {}))
    cells_of_naive = {(e.dataset, e.pred_len): e.mse for e in entries if e.model == NAIVE}
    return [
        replace(e, naive_mse=cells_of_naive.get((e.dataset, e.pred_len))) if e.naive_mse is None else e for e in entries
    ]


def _mean(scores: Sequence[Score]) -> Score:
    val_mse, mse, mae = (statistics.fmean(getattr(s, name) for s in scores) for name in ("val_mse", "mse", "mae"))
    look_backs = {score.seq_len for score in scores}
    look_back = look_backs.pop() if len(look_backs) == 1 else 0
    naive_mse, mase = _whole_mean([s.naive_mse for s in scores]), _whole_mean([s.mase for s in scores])
    return Score(val_mse, mse, mae, look_back, any(s.rolled for s in scores), naive_mse=naive_mse, mase=mase)


def _whole_mean(values: Sequence[float | None]) -> float | None:
    """The mean of `values`; None where one is missing, or there is none."""
    numbers = [value for value in values if value is not None]
    return statistics.fmean(numbers) if numbers and len(numbers) == len(values) else None


def _entry(
    what: tuple[str, str, int | None],
    scores: Mapping[int, Score],
    asked: tuple[int, ...],
    published_mse: float | None,
    failures: Mapping[int, str],
) -> Entry:
    mses, maes = [score.mse for score in scores.values()], [score.mae for score in scores.values()]
    look_backs = {score.seq_len for score in scores.values()}
    return Entry(
        *what,
        seq_len=(look_backs.pop() or None) if len(look_backs) == 1 else None,
        seeds=tuple(scores),
        asked=asked,
        rolled=any(score.rolled for score in scores.values()),
        mse=statistics.fmean(mses) if mses else None,
        mse_sd=statistics.stdev(mses) if len(mses) > 1 else None,
        mae=statistics.fmean(maes) if maes else None,
        naive_mse=_whole_mean([score.naive_mse for score in scores.values()]),
        mase=_whole_mean([score.mase for score in scores.values()]),
        published_mse=published_mse,
        failures=failures,
        chosen={seed: score.chosen for seed, score in scores.items() if score.chosen},
    )
