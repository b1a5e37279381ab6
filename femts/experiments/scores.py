"""Scores that records have of a model, of several recipes those that validation chose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple

from femts.config.model import AUTO
from femts.experiments.grid import Cell
from femts.experiments.newer_settings import with_newer_settings
from femts.experiments.store import Store
from femts.models.registry import model_card

Record = Mapping[str, Any]


class Score(NamedTuple):
    """Errors of one seed at one horizon.

    Attributes:
        val_mse, mse, mae: of the validation part, and of the test part.
        seq_len: look-back in steps.
        rolled: a model of a shorter horizon that was rolled out.
        chosen: what validation chose where there were models of several horizons, look-backs or settings.
        naive_mse, mase: beside the seasonal naive forecast.
        season: steps that this forecast repeats.
        windows: of the test part, scored.
        asked, missing: cells that may have this score, of which validation chooses, and those of them without a record.
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
    season: int = 1
    windows: int = 0
    asked: int = 1
    missing: int = 0
    record: Record = MappingProxyType({})


def best_scores(cells: Sequence[Cell], store: Store, roll_out: Sequence[int] = ()) -> dict[int, dict[int, Score]]:
    """Scores by horizon and seed of `cells`, which are of one data set and one model.

    At the horizons `roll_out`, models of shorter ones that were rolled out count, too; of all that
    a seed has at a horizon, the one of the lowest validation error is taken. A record that cannot
    be used counts as none.
    """
    seeds = tuple(dict.fromkeys(cell.seed for cell in cells))
    pred_lens = sorted({cell.pred_len for cell in cells} | set(roll_out))
    records = [(cell, store.readable(cell)) for cell in cells]
    varied, rolls = _varied(cells), any(_rolls_out(cell.model) for cell in cells[:1])
    scores = dict[int, dict[int, Score]]()
    for p in pred_lens:
        rolled = p in roll_out
        able = [each for each in records if each[0].pred_len == p or (rolled and rolls and each[0].pred_len < p)]
        own = {seed: [each for each in able if each[0].seed == seed] for seed in seeds}
        scores[p] = {seed: best for seed in seeds if (best := _best(own[seed], p, rolled, varied))}
    return scores


def scores_some(model: str) -> bool:
    """True where `model` scores some windows of a part alone, as its setting `windows` says."""
    return model != AUTO and "windows" in model_card(model).default_settings()


def _rolls_out(model: str) -> bool:
    return model == AUTO or model_card(model).model_class.supports.recursive


def _varied(cells: Sequence[Cell]) -> list[str]:
    """Keys that there is a choice of: `seq_len`, then those of settings, in which some of `cells` differ."""
    recipes = [{"seq_len": cell.seq_len, **{key: str(value) for key, value in cell.settings.items()}} for cell in cells]
    keys = dict.fromkeys(chain(*recipes))
    return [key for key in keys if len({recipe.get(key) for recipe in recipes}) > 1]


def _best(
    records: Sequence[tuple[Cell, Record | None]], pred_len: int, rolled: bool, varied: Sequence[str]
) -> Score | None:
    """The score of the lowest validation error, of equals the first, that `records` of one seed have at a horizon."""
    candidates, missing = [], sum(record is None for _, record in records)
    if len({cell.pred_len for cell, _ in records}) > 1:
        varied = ["pred_len", *varied]
    for cell, record in records:
        if record is None:
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
                chosen=_chosen(config, varied),
                naive_mse=naive.get("mse"),
                mase=naive.get("mase"),
                season=naive.get("season", 1),
                windows=test["windows"],
                asked=len(records),
                missing=missing,
                record=record,
            )
        )
    return min(candidates, key=lambda score: score.val_mse, default=None)


def _chosen(config: Mapping[str, Any], varied: Sequence[str]) -> str:
    whole = with_newer_settings(config) if varied else config
    parts = [(key, *key.partition(".")[::2]) for key in varied]
    return ", ".join(f"{key} {whole[part][name] if name else whole[key]}" for key, part, name in parts)
