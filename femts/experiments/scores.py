"""Scores that records have of a model, of several recipes those that validation chose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple

from femts.experiments.grid import Cell
from femts.experiments.store import Store

Record = Mapping[str, Any]


class Score(NamedTuple):
    """Errors of one seed at one horizon; a mean over horizons has none of the fields with defaults but the naive ones.

    Attributes:
        val_mse, mse, mae: of the validation part, and of the test part.
        seq_len: look-back in steps.
        rolled: a model of a shorter horizon that was rolled out.
        chosen: what validation chose where there were several look-backs or settings.
        naive_mse, mase: beside the seasonal naive forecast.
        windows: of the test part, scored.
        record: the whole record.
    """

    val_mse: float
    mse: float
    mae: float
    seq_len: int
    rolled: bool
    chosen: str = ""
    naive_mse: float | None = None
    mase: float | None = None
    windows: int = 0
    record: Record = MappingProxyType({})


def best_scores(cells: Sequence[Cell], store: Store, roll_out: Sequence[int] = ()) -> dict[int, dict[int, Score]]:
    """Scores by horizon and seed of `cells`, which are of one data set and one model.

    At the horizons `roll_out`, models of shorter ones that were rolled out count, too; of all that
    a seed has at a horizon, the one of the lowest validation error is taken. A record that cannot
    be used counts as none.
    """
    seeds = tuple(dict.fromkeys(cell.seed for cell in cells))
    pred_lens = sorted({cell.pred_len for cell in cells} | set(roll_out))
    records = [(cell, record) for cell in cells if (record := store.readable(cell))]
    varied = _varied(cells)
    return {p: {s: best for s in seeds if (best := _best(records, p, s, p in roll_out, varied))} for p in pred_lens}


def _varied(cells: Sequence[Cell]) -> list[str]:
    """Keys that there is a choice of: `seq_len`, then those of settings, in which some of `cells` differ."""
    recipes = [{"seq_len": cell.seq_len, **{key: str(value) for key, value in cell.settings.items()}} for cell in cells]
    keys = dict.fromkeys(chain(*recipes))
    return [key for key in keys if len({recipe.get(key) for recipe in recipes}) > 1]


def _best(
    records: Sequence[tuple[Cell, Record]], pred_len: int, seed: int, rolled: bool, varied: Sequence[str]
) -> Score | None:
    """Of what `records` have for a horizon and a seed, the score of the lowest validation error."""
    candidates = []
    for cell, record in records:
        if cell.seed != seed:
            continue
        if rolled and str(pred_len) in record["rolled"]:  # its own, too: rivals are validated on the same windows
            scores = record["rolled"][str(pred_len)]
        elif cell.pred_len == pred_len:
            scores = record
        else:
            continue
        test, config, naive = scores["test"], record["config"], scores.get("naive", {})
        candidates.append(
            Score(
                val_mse=scores["val"]["mse"],
                mse=test["mse"],
                mae=test["mae"],
                seq_len=config["seq_len"],
                rolled=cell.pred_len != pred_len,
                chosen=", ".join(f"{key} {_setting(config, key)}" for key in varied),
                naive_mse=naive.get("mse"),
                mase=naive.get("mase"),
                windows=test["windows"],
                record=record,
            )
        )
    return min(candidates, key=lambda score: score[:6], default=None)


def _setting(config: Mapping[str, Any], key: str) -> Any:
    part, _, name = key.partition(".")
    return config[part][name] if name else config[key]
