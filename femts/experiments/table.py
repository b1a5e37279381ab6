"""The table that records make: each horizon and their mean, over seeds, beside what is published."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from femts.experiments.grid import Cell
from femts.experiments.published import ALL, published
from femts.experiments.store import Store


@dataclass(frozen=True)
class Entry:
    """A dataset and a model at one horizon, or with `pred_len` None at the mean of all that were asked for.

    Attributes:
        seq_len: look-back in steps, None where horizons or seeds differ in it.
        seeds: finished seeds; for the mean, those with all horizons.
        mse, mse_sd, mae: mean over the seeds, and the standard deviation of two and more; None while there is none.
        published_mse: None where nothing is published.
        failures: why cells crashed, by seed.
    """

    dataset: str
    model: str
    pred_len: int | None
    seq_len: int | None
    seeds: tuple[int, ...]
    mse: float | None
    mse_sd: float | None
    mae: float | None
    published_mse: float | None
    failures: Mapping[int, str]


def make_entries(cells: Sequence[Cell], store: Store) -> list[Entry]:
    """What the store has of `cells`, horizon by horizon and then their mean, for each dataset and model."""
    entries = []
    for dataset, model in dict.fromkeys((cell.dataset, cell.model) for cell in cells):
        own = [cell for cell in cells if (cell.dataset, cell.model) == (dataset, model)]
        records = {(cell.pred_len, cell.seed): record for cell in own if (record := store.record(cell))}
        failures = {(cell.pred_len, cell.seed): why for cell in own if (why := store.failure(cell))}
        pred_lens, seeds = (tuple(dict.fromkeys(getattr(cell, name) for cell in own)) for name in ("pred_len", "seed"))
        for pred_len in pred_lens:
            scores = {seed: records[pred_len, seed] for seed in seeds if (pred_len, seed) in records}
            look_backs = {record["config"]["seq_len"] for record in scores.values()}
            entries.append(
                _entry(
                    (dataset, model, pred_len, look_backs.pop() if len(look_backs) == 1 else None),
                    {seed: (record["test"]["mse"], record["test"]["mae"]) for seed, record in scores.items()},
                    published(dataset, model, pred_len),
                    {seed: failures[pred_len, seed] for seed in seeds if (pred_len, seed) in failures},
                )
            )
        if len(pred_lens) > 1:
            means = {}
            for seed in seeds:
                tests = [records[pred_len, seed]["test"] for pred_len in pred_lens if (pred_len, seed) in records]
                if len(tests) == len(pred_lens):
                    means[seed] = (statistics.fmean(t["mse"] for t in tests), statistics.fmean(t["mae"] for t in tests))
            known = published(dataset, model, None) if set(pred_lens) == set(ALL) else None
            entries.append(_entry((dataset, model, None, None), means, known, {}))
    return entries


def _entry(
    what: tuple[str, str, int | None, int | None],
    scores: Mapping[int, tuple[float, float]],
    known: float | None,
    failures: Mapping[int, str],
) -> Entry:
    mses, maes = [mse for mse, _ in scores.values()], [mae for _, mae in scores.values()]
    deviation = statistics.stdev(mses) if len(mses) > 1 else None
    mse, mae = (statistics.fmean(values) if values else None for values in (mses, maes))
    return Entry(*what, tuple(scores), mse, deviation, mae, known, failures)
