"""Pairs of models: their difference seed by seed and window by window (of a panel, series), and what each costs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from femts.errors import UsageError
from femts.evaluation.block_bootstrap import mean_interval
from femts.experiments.grid import Cell
from femts.experiments.scores import Score, best_scores, scores_some
from femts.experiments.store import Store
from femts.text import shown

Names = tuple[str, str]
BLOCK = 2  # in horizons; blocks of one held 89 % of simulated errors, and blocks of two 93 %
FEWEST_BLOCKS = 3
SEEDS_ALONE, FEW_WINDOWS, FEW_SERIES = "seeds alone", "few windows", "few series"


@dataclass(frozen=True)
class Pair:
    """Two models on a data set at one horizon, over the seeds that both have.

    Attributes:
        seeds: seeds that both have finished; without any, the rest is None.
        mse: of both, means over the seeds.
        difference: of the first less the second, mean over the seeds.
        deviation: standard deviation of that over two and more seeds.
        interval: 95 % of the difference over the windows, of a panel over its series, for these seeds; None as `why`
            says.
        why: reason why there is no interval; empty where there is one.
        seeds_lower: number of seeds at which the first is lower.
        windows_lower: part of the thinned windows, or series, at which the mean over seeds of the first is lower.
        seconds: of both, mean time of a training.
    """

    dataset: str
    models: Names
    pred_len: int
    seeds: tuple[int, ...] = ()
    mse: tuple[float, float] | None = None
    difference: float | None = None
    deviation: float | None = None
    interval: tuple[float, float] | None = None
    why: str = ""
    seeds_lower: int | None = None
    windows_lower: float | None = None
    seconds: tuple[float, float] | None = None


def parse_pairs(text: str) -> tuple[Names, ...]:
    """Pairs of models in `fem_sm:sm,fem_gla:gla`; UsageError for what is none."""
    return check_pairs([part.split(":") for part in text.split(",")])


def check_pairs(pairs: Sequence[object]) -> tuple[Names, ...]:
    """Pairs of two names each, every one once; UsageError for what is none."""
    checked = []
    for pair in pairs:
        names = tuple(str(name).strip() for name in pair) if isinstance(pair, list | tuple) else (shown(pair),)
        if len(names) != 2 or not all(names):
            raise UsageError(
                f"Pair '{shown(':'.join(names))}' is none; write two models as FIRST:SECOND, such as fem_sm:sm."
            )
        if names[0] == names[1]:
            raise UsageError(f"Pair '{shown(':'.join(names))}' is one model beside itself; write two models.")
        checked.append((names[0], names[1]))
    return tuple(dict.fromkeys(checked))


def check_windows(pairs: Sequence[Names]) -> None:
    """UsageError for a pair of models that do not score the same windows."""
    for names in pairs:
        some = [name for name in names if scores_some(name)]
        if len(some) == 1:
            raise UsageError(
                f"Pair '{':'.join(names)}' is not scored on the same windows, for '{some[0]}' scores some alone; "
                "leave it out, or name two such models."
            )


def make_pairs(pairs: Sequence[Names], cells: Sequence[Cell], store: Store, roll_out: Sequence[int] = ()) -> list[Pair]:
    """Make a `Pair` for each data set, pair of models and horizon of `cells`; `roll_out` as in `best_scores`.

    Raises:
        UsageError: the models of a pair did not score the same windows.
    """
    made = []
    for dataset in dict.fromkeys(cell.dataset for cell in cells):
        scores = {
            model: best_scores([c for c in cells if (c.dataset, c.model) == (dataset, model)], store, roll_out)
            for model in dict.fromkeys(name for pair in pairs for name in pair)
        }
        for first, second in pairs:
            for pred_len, own in scores[first].items():
                made.append(_pair(dataset, (first, second), pred_len, (own, scores[second][pred_len])))
    return made


def _pair(dataset: str, models: Names, pred_len: int, scores: tuple[Mapping[int, Score], Mapping[int, Score]]) -> Pair:
    seeds = tuple(seed for seed in scores[0] if seed in scores[1])
    if not seeds:
        return Pair(dataset, models, pred_len, why="not measured")
    both = [(scores[0][seed], scores[1][seed]) for seed in seeds]
    for seed, pair in zip(seeds, both, strict=True):
        _check_windows(f"on {dataset} at {pred_len} steps, seed {seed}", models, pair)
    differences = [first.mse - second.mse for first, second in both]
    difference = statistics.fmean(differences)
    errors, block, few = _errors(both, "window_errors", pred_len), 1, FEW_SERIES
    if len(errors):
        block, few = math.ceil(BLOCK * pred_len * len(errors) / both[0][0].windows), FEW_WINDOWS
    else:  # of a panel, whose series are drawn one by one
        errors = _errors(both, "series_errors", pred_len)
    errors = errors[~np.isnan(errors)]
    why = SEEDS_ALONE if not len(errors) else few if len(errors) < FEWEST_BLOCKS * block else ""
    return Pair(
        dataset,
        models,
        pred_len,
        seeds,
        mse=_means([(first.mse, second.mse) for first, second in both]),
        difference=difference,
        deviation=statistics.stdev(differences) if len(seeds) > 1 else None,
        interval=None if why else mean_interval(errors, block, difference),
        why=why,
        seeds_lower=sum(each < 0 for each in differences),
        windows_lower=float((errors < 0).mean()) if len(errors) else None,
        seconds=_means([(first.record["seconds"], second.record["seconds"]) for first, second in both]),
    )


def _check_windows(at: str, models: Names, pair: tuple[Score, Score]) -> None:
    """UsageError where the scores of a pair are of different windows."""
    data = [{**score.record["data"], "windows": score.windows} for score in pair]
    for name, what in (("sha256", "data of hash"), ("split", "the split"), ("windows", "a number of windows of")):
        one, other = (each[name] for each in data)
        if one != other:
            raise UsageError(
                f"Models '{models[0]}' and '{models[1]}' are no pair {at}: they scored {what} {one} and {other}; "
                "pair models that score the same windows."
            )


def _means(values: Sequence[tuple[float, float]]) -> tuple[float, float]:
    first, second = (statistics.fmean(column) for column in zip(*values, strict=True))
    return first, second


def _errors(both: Sequence[tuple[Score, Score]], field: str, pred_len: int) -> NDArray[np.float64]:
    """Differences (N,) of the thinned errors that records have under `field`, means over the seeds, NaN where there is
    no value; none where a record has none."""
    errors = [[score.record.get(field, {}).get(str(pred_len), []) for score in pair] for pair in both]
    if len({len(each) for pair in errors for each in pair}) > 1:
        return np.empty(0)
    first, second = np.array(errors, dtype=np.float64).mean(0)
    difference: NDArray[np.float64] = first - second
    return difference
