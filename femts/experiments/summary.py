"""Summaries of records, as data frames: scores, tables of means, pairs of models, and published results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from femts.config.model import AUTO
from femts.data.protocols import HORIZONS
from femts.errors import UsageError
from femts.evaluation.block_bootstrap import mean_interval
from femts.evaluation.constants import BLOCK, FEWEST_BLOCKS
from femts.evaluation.metric import own_names
from femts.experiments.cell import Cell, with_newer_settings
from femts.experiments.grid import scores_some
from femts.experiments.results import Store
from femts.models.registry import has_seen, model_card
from femts.text import argument, arguments, quote

NAIVE = "seasonal_naive"
TABLE = {  # columns of a table and their dtypes
    **{"dataset": "object", "model": "object", "pred_len": "Int64", "seq_len": "Int64", "seeds": "object"},
    **dict.fromkeys(("mse", "mse_sd", "mae", "published_mse", "naive_mse", "skill", "mase", "wape", "bias"), "float64"),
    **{"windows": "int64", "missing": "int64", "chosen": "object", "seen": "bool"},
}
PAIRS = {
    **{"dataset": "object", "first": "object", "second": "object", "pred_len": "Int64", "seeds": "object"},
    **dict.fromkeys(("first_mse", "second_mse", "difference", "difference_sd", "low", "high"), "float64"),
    **{"why": "object", "seeds_lower": "Int64"},
    **dict.fromkeys(("windows_lower", "first_seconds", "second_seconds"), "float64"),
    **{"seen": "object"},
}
PUBLISHED = ["dataset", "model", "mse", "mse_sd", "seeds", "scored", "look_back", "source", "secondary", "seen"]
LITERATURE = Path(__file__).with_name("literature.csv")
ALL = "all"  # all windows of the test split were scored
SEEDS_ALONE, FEW_WINDOWS, FEW_SERIES = "seeds alone", "few windows", "few series"
_SCORES = ("val_mse", "mse", "mae", "naive_mse", "mase", "wape", "bias", "seconds")


def make_scores(cells: Sequence[Cell], store: Store, roll_out: Sequence[int] = ()) -> pd.DataFrame:
    """Scores of `cells` in the store: one row for each dataset, model, horizon and seed, NaN if there is no record.

    At the horizons `roll_out`, recursive forecasts of models with shorter horizons count, too; among all candidates of
    a seed at a horizon, the one with the lowest validation error is selected, the first in case of ties. Invalid
    records count as missing.

    Returns:
        `val_mse`, `mse` and `mae` on the validation and test split, `wape` and `bias` on the latter, `seq_len`, the
        number of scored `windows`, `rolled` (whether the forecast is recursive), what validation has `chosen`,
        `naive_mse`, `mase` and `season` of the seasonal naive forecast, the number of `choices` and of those `missing`,
        why the cell has `failed`, `seconds` and the `record`; `catalogue`, the dataset to which published results
        apply; and registered metrics.
    """
    rows, registered = [], own_names()
    for dataset, model in dict.fromkeys((cell.dataset, cell.model) for cell in cells):
        own = [cell for cell in cells if (cell.dataset, cell.model) == (dataset, model)]
        records = [(cell, store.readable(cell)) for cell in own]
        rolls = model == AUTO or model_card(model).model_class.supports.recursive
        for pred_len in sorted({cell.pred_len for cell in own} | set(roll_out)):
            rolled = pred_len in roll_out
            for seed in dict.fromkeys(cell.seed for cell in own):
                able = [
                    (cell, record)
                    for cell, record in records
                    if cell.seed == seed
                    and (cell.pred_len == pred_len or (rolled and rolls and cell.pred_len < pred_len))
                ]
                failed = [store.failure(cell) for cell, _ in able if cell.pred_len == pred_len]
                what = {"dataset": dataset, "model": model, "pred_len": pred_len, "seed": seed}
                more = {"catalogue": own[0].own is None, "failed": next(filter(None, failed), None)}
                rows.append({**what, **more, **_best(able, pred_len, rolled, _varied(own), registered)})
    numbers = (*_SCORES, *registered)
    empty = dict.fromkeys(("mse", "seq_len", "windows", "rolled", "season", "chosen", "record", *numbers))
    return pd.DataFrame([{**empty, **row} for row in rows]).astype(dict.fromkeys(numbers, "float64"))


def _varied(cells: Sequence[Cell]) -> list[str]:
    """Keys with several values in `cells`: `seq_len`, then those of settings."""
    recipes = [{"seq_len": cell.seq_len, **{key: str(value) for key, value in cell.settings.items()}} for cell in cells]
    keys = dict.fromkeys(chain(*recipes))
    return [key for key in keys if len({recipe.get(key) for recipe in recipes}) > 1]


def _best(
    records: Sequence[tuple[Cell, dict[str, Any] | None]],
    pred_len: int,
    rolled: bool,
    varied: list[str],
    registered: Sequence[str],
) -> dict[str, Any]:
    """The score with the lowest validation error among the `records` of one seed at a horizon, with metrics that are
    `registered`."""
    if len({cell.pred_len for cell, _ in records}) > 1:
        varied = ["pred_len", *varied]
    scores = []
    for cell, record in records:
        made = record
        # also for its own horizon, since its rivals are scored on these windows
        if record and rolled and str(pred_len) in record["rolled"]:
            made = record["rolled"][str(pred_len)]
        elif cell.pred_len != pred_len:
            made = None
        if record and made:
            test, naive = made["test"], made.get("naive") or {}
            scores.append(
                {
                    **{"val_mse": made["val"]["mse"], "rolled": cell.pred_len != pred_len, "record": record},
                    **{name: test.get(name) for name in ("mse", "mae", "windows", "wape", "bias", *registered)},
                    **{"naive_mse": naive.get("mse"), "mase": naive.get("mase"), "season": naive.get("season", 1)},
                    **{"seq_len": record["config"]["seq_len"], "seconds": record["seconds"]},
                    **{"chosen": _chosen(record["config"], varied), "choices": len(records)},
                    "missing": sum(each is None for _, each in records),
                }
            )
    return min(scores, key=lambda score: score["val_mse"], default={})


def _chosen(config: Mapping[str, Any], varied: Sequence[str]) -> str:
    whole = with_newer_settings(config) if varied else config
    parts = [(key, *key.partition(".")[::2]) for key in varied]
    return ", ".join(f"{key} {whole[part][name] if name else whole[key]}" for key, part, name in parts)


def make_table(scores: pd.DataFrame) -> pd.DataFrame:
    """Summarise `make_scores`: means over seeds by dataset, model and horizon, and then over all horizons.

    Returns:
        The columns of `TABLE`, with `pred_len` missing for the mean, and `seq_len` if it differs between horizons or
        seeds; `windows` of the test split that every seed scored, summed for the mean; finished `seeds`, for the mean
        at all horizons; whether the weights have `seen` the dataset in pretraining. In addition `look_backs`, the
        number of seeds `asked` for, `rolled`, `failures` and `chosen` by seed, `choices` and `missing` of the seed that
        lacks most, and the `season` of the naive forecast. Metrics in `own_columns` follow.
    """
    registered = own_columns(scores)
    rows, by_model = [], dict[tuple[str, str], list[dict[str, Any]]]()
    for row in scores.to_dict("records"):  # much faster than groups of data frames
        by_model.setdefault((row["dataset"], row["model"]), []).append(row)
    for (dataset, model), own in by_model.items():
        what, known = {"dataset": dataset, "model": model}, own[0]["catalogue"]
        horizons = tuple(sorted({row["pred_len"] for row in own}))
        for pred_len in horizons:
            each = [row for row in own if row["pred_len"] == pred_len]
            published = published_mse(dataset, model, pred_len) if known else None
            failures = {row["seed"]: row["failed"] for row in each if isinstance(row["failed"], str)}
            chosen = {row["seed"]: row["chosen"] for row in each if row["chosen"] and not math.isnan(row["mse"])}
            beside = {"published_mse": published, "failures": failures, "chosen": chosen}
            rows.append({**what, "pred_len": pred_len, **_over_seeds(each, registered), **beside})
        if len(horizons) > 1:
            published = published_mse(dataset, model, None) if known and horizons == HORIZONS else None
            beside = {"published_mse": published, "failures": {}, "chosen": {}}
            rows.append({**what, "pred_len": None, **_over_seeds(own, registered), **beside})
    for row in rows:
        row["naive_mse"] = _naive(row, rows)
    table = pd.DataFrame(rows).astype({name: kind for name, kind in TABLE.items() if name != "skill"})
    table["skill"] = 1 - table["mse"] / table["naive_mse"].where(table["naive_mse"] != 0)
    return table


def own_columns(scores: pd.DataFrame) -> list[str]:
    """Registered metrics of which `scores`, or a table of them, have values."""
    return [name for name in own_names() if name in scores.columns and scores[name].notna().any()]


def _over_seeds(rows: Sequence[dict[str, Any]], registered: Sequence[str]) -> dict[str, Any]:
    """Means over the seeds that have a score at each horizon in `rows` of `make_scores`."""
    by_seed: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        by_seed.setdefault(row["seed"], []).append(row)
    seeds = {seed: own for seed, own in by_seed.items() if not any(math.isnan(row["mse"]) for row in own)}
    done = list(chain(*seeds.values()))
    look_backs = tuple(sorted({int(row["seq_len"]) for row in done}))
    means = {
        name: np.array([np.mean([row[name] for row in own]) for own in seeds.values()])
        for name in ("mse", "mae", "naive_mse", "mase", "wape", "bias", *registered)
    }
    lacking = max(done, key=lambda row: row["missing"], default={"choices": 1, "missing": 0})
    return {
        "look_backs": look_backs,
        "seq_len": look_backs[0] if len(look_backs) == 1 else None,
        "seeds": tuple(seeds),
        "asked": tuple(by_seed),
        "rolled": any(row["rolled"] for row in done),
        "seen": any(_seen(row["dataset"], row["record"]) for row in done),
        **{name: each.mean() if len(seeds) else math.nan for name, each in means.items()},
        "mse_sd": means["mse"].std(ddof=1) if len(seeds) > 1 else math.nan,
        "season": min((row["season"] for row in done), default=1),
        "windows": int(min((sum(row["windows"] for row in own) for own in seeds.values()), default=0)),
        "choices": int(lacking["choices"]),
        "missing": int(lacking["missing"]),
    }


def _seen(dataset: str, record: Mapping[str, Any]) -> bool:
    return has_seen(record["config"]["model"], dataset)


def _naive(row: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> float:
    """Error of the seasonal naive forecast on the windows of `row`; NaN if no comparable row has it.

    With a look-back shorter than the season, the recorded naive forecast repeats only the last value.
    """
    beside = [
        each for each in rows if all(each[name] == row[name] for name in ("dataset", "pred_len")) and each["seeds"]
    ]
    season = max([each["season"] for each in beside if not math.isnan(each["naive_mse"])], default=1)
    if not math.isnan(row["naive_mse"]) and row["season"] == season:
        return float(row["naive_mse"])
    same = [each for each in beside if each["windows"] == row["windows"]]
    errors = [each["naive_mse"] for each in same if each["season"] == season and not math.isnan(each["naive_mse"])]
    return float(next(iter([*errors, *(each["mse"] for each in same if each["model"] == NAIVE)]), math.nan))


def parse_pairs(text: str) -> tuple[tuple[str, str], ...]:
    """Parse pairs of models such as `fem_sm:sm,fem_gla:gla`; raise UsageError for an invalid one."""
    return check_pairs([part.split(":") for part in text.split(",")])


def check_pairs(pairs: Sequence[object]) -> tuple[tuple[str, str], ...]:
    """Distinct pairs of two names each.

    Raises:
        UsageError: A pair is invalid, or its models do not score the same windows.
    """
    checked = []
    for pair in pairs:
        names = tuple(str(name).strip() for name in pair) if isinstance(pair, list | tuple) else (quote(pair),)
        if len(names) != 2 or not all(names):
            raise UsageError(
                f"Pair '{quote(':'.join(names))}' is not a pair of models; write FIRST:SECOND, such as fem_sm:sm."
            )
        if names[0] == names[1]:
            raise UsageError(f"Pair '{quote(':'.join(names))}' names the same model twice; write two different models.")
        some = [name for name in names if scores_some(name)]
        if len(some) == 1:
            raise UsageError(
                f"Pair '{':'.join(names)}' is not scored on the same windows, because '{some[0]}' scores only a "
                "subset; remove it, or pair two such models."
            )
        checked.append((names[0], names[1]))
    return tuple(dict.fromkeys(checked))


def make_pairs(pairs: Sequence[tuple[str, str]], scores: pd.DataFrame) -> pd.DataFrame:
    """Compare pairs of models by dataset and horizon, over the seeds of `make_scores` that both have.

    Returns:
        The columns of `PAIRS`: means of both over the `seeds`, their `difference` (first minus second) with its
        standard deviation over seeds; `low` and `high` of its 95 % interval over the windows (for a panel, over its
        series) for these seeds, or `why` there is none; `seeds_lower`, the number of seeds at which the first is lower,
        and `windows_lower`, the share of the thinned windows or series at which its mean is lower; mean training times
        in seconds; and which of both have `seen` the dataset in pretraining.

    Raises:
        UsageError: The models of a pair did not score the same windows.
    """
    rows = []
    for dataset, own in scores.groupby("dataset", sort=False):
        for first, second in pairs:
            both = own[own["model"] == first].merge(own[own["model"] == second], on=["pred_len", "seed"])
            for pred_len, seeds in both.groupby("pred_len"):
                what = {"dataset": dataset, "first": first, "second": second, "pred_len": pred_len}
                rows.append({**what, **_pair(seeds.dropna(subset=["mse_x", "mse_y"]), what)})
    return pd.DataFrame(rows, columns=list(PAIRS)).astype(PAIRS)


def _pair(both: pd.DataFrame, what: Mapping[str, Any]) -> dict[str, Any]:
    """Comparison of scores `_x` and `_y`, with one row per seed."""
    if both.empty:
        return {"seeds": (), "why": "not measured", "seen": ()}
    for row in both.itertuples():
        _check_windows(what, row)
    pred_len, differences = what["pred_len"], both["mse_x"] - both["mse_y"]
    errors, block, few = _errors(both, "window_errors", pred_len), 1, FEW_SERIES
    if len(errors):
        block, few = math.ceil(BLOCK * pred_len * len(errors) / both["windows_x"].iloc[0]), FEW_WINDOWS
    else:  # for a panel, series are resampled independently
        errors = _errors(both, "series_errors", pred_len)
    errors = errors[~np.isnan(errors)]
    why = SEEDS_ALONE if not len(errors) else few if len(errors) < FEWEST_BLOCKS * block else ""
    low, high = (None, None) if why else mean_interval(errors, block, differences.mean())
    return {
        "seeds": tuple(both["seed"].tolist()),
        "first_mse": both["mse_x"].mean(),
        "second_mse": both["mse_y"].mean(),
        "difference": differences.mean(),
        "difference_sd": differences.std(),
        "low": low,
        "high": high,
        "why": why,
        "seeds_lower": int((differences < 0).sum()),
        "windows_lower": (errors < 0).mean() if len(errors) else None,
        "first_seconds": both["seconds_x"].mean(),
        "second_seconds": both["seconds_y"].mean(),
        "seen": tuple(
            what[name]
            for name, records in (("first", "record_x"), ("second", "record_y"))
            if any(_seen(what["dataset"], record) for record in both[records])
        ),
    }


def _check_windows(what: Mapping[str, Any], pair: Any) -> None:
    """Raise UsageError if the models of a pair were scored on different windows."""
    one, other = (
        {**record["data"], "windows": n}
        for record, n in ((pair.record_x, pair.windows_x), (pair.record_y, pair.windows_y))
    )
    for name, words in (("sha256", "data of hash"), ("split", "the split"), ("windows", "a number of windows of")):
        if one[name] != other[name]:
            raise UsageError(
                f"Models '{what['first']}' and '{what['second']}' cannot be paired on {what['dataset']} at "
                f"{what['pred_len']} steps, seed {pair.seed}: they scored {words} {one[name]} and {other[name]}; pair "
                "models that score the same windows."
            )


def _errors(both: pd.DataFrame, field: str, pred_len: int) -> np.ndarray:
    """Differences (N,) of the thinned errors stored under `field`, averaged over the seeds, NaN for missing values;
    empty if a record has none."""
    errors = [
        [record.get(field, {}).get(str(pred_len), []) for record in both[name]] for name in ("record_x", "record_y")
    ]
    if len({len(each) for of_model in errors for each in of_model}) > 1:
        return np.empty(0)
    first, second = np.array(errors, dtype=np.float64).mean(1)
    return np.asarray(first - second)


@cache
def literature() -> pd.DataFrame:
    """Published test MSE in scaled units: `model`, `dataset`, `pred_len` (or `mean`, over 96, 192, 336 and 720), `mse`,
    which windows were `scored` (all, drop_last without those of the last batch, or as quoted), `look_back`, `source`,
    whether it was quoted from another paper (`secondary`), and for numbers that a model of femts is compared with its
    name (`femts_model`). Rows of forecasting tasks have the task in `dataset`, and `mase` and `sql` instead of
    `mse`."""
    rows = pd.read_csv(LITERATURE, keep_default_na=False)
    return rows.assign(**{name: pd.to_numeric(rows[name]) for name in ("mse", "mase", "sql")})


def task_publications() -> pd.DataFrame:
    """Published scores of forecasting tasks, from `literature`."""
    rows = literature()
    return rows[rows["mase"].notna() | rows["sql"].notna()].rename(columns={"dataset": "task"})


@cache
def published_mse(dataset: str, model: str, pred_len: int | None) -> float | None:
    """Published MSE of one of our models at a horizon, or for None the mean over all four; None if there is none."""
    rows = literature()
    at = "mean" if pred_len is None else str(pred_len)
    found = rows[(rows["femts_model"] == model) & (rows["dataset"] == dataset) & (rows["pred_len"] == at)]
    return float(found["mse"].iloc[0]) if len(found) else None


def publications() -> pd.DataFrame:
    """Published means of other models, from `literature`."""
    rows = literature()
    return rows[(rows["femts_model"] == "") & (rows["pred_len"] == "mean")].assign(secondary=rows["secondary"] == "yes")


def check_published(cells: Sequence[Cell], roll_out: Sequence[int] = ()) -> None:
    """Raise UsageError if `cells`, with the horizons `roll_out`, have no means that are comparable with published ones.

    Comparable means are over the horizons 96, 192, 336 and 720 on unmodified data of the catalogue.
    """
    known = list(publications()["dataset"].unique())
    for cell in cells:
        if cell.own is not None or cell.dataset not in known:
            fault = f"No comparable published results are known for '{quote(cell.dataset)}'"
            text = f"{fault}; leave {argument('published=True')} out, or take {', '.join(known)}."
            raise UsageError(text, argument="published", value=True, remedy={"published": None})
        if scores_some(cell.model):
            raise UsageError(
                f"Model '{cell.model}' scores only a subset of the windows, but published scores are over all; leave it out."
            )
    asked = sorted({cell.pred_len for cell in cells} | set(roll_out))
    if tuple(asked) != HORIZONS:
        fault = f"Published means are over {', '.join(map(str, HORIZONS))} steps, not over {', '.join(map(str, asked))}"
        text = f"{fault}; give {arguments({'pred_lens': 'all'})}, or {arguments({'pred_lens': 96, 'roll_out': 'all'})}."
        raise UsageError(text, argument="pred_lens", value=asked, remedy={"pred_lens": "all", "roll_out": None})


def make_published(table: pd.DataFrame) -> pd.DataFrame:
    """Means of a table and published means on its datasets: the columns of `PUBLISHED`, and those of the table."""
    ours = table[table["pred_len"].isna()]
    look_backs = [
        " to ".join(map(str, dict.fromkeys((own[0], own[-1])))) if own else None for own in ours["look_backs"]
    ]
    ours = ours.assign(scored=ALL, look_back=look_backs, source="records of femts", secondary=False, ours=True)
    theirs = publications()
    theirs = pd.concat([theirs[theirs["dataset"] == name] for name in ours["dataset"].unique()])
    return pd.concat([ours, theirs.assign(seeds=[()] * len(theirs), seen=False, ours=False)], ignore_index=True)
