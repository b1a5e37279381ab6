#!/usr/bin/env python
"""Put odd readings into the last season of real tables, and compare forecasts that keep them and read them as missing.

Writes one row for each table, model and number of odd readings, and prints the tables of docs/measured/outliers.md.

python scripts/outliers.py etth1=ETTh1.csv taxi=taxi.csv -o results/outliers/look-backs.csv      # trained on clean rows
python scripts/outliers.py etth1=ETTh1.csv --learn -o results/outliers/training.csv   # trained on the odd readings, too
python scripts/outliers.py --page results/outliers/look-backs.csv                     # print the tables only
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # this checkout, also where another one is installed

import femts  # noqa: E402
from femts.data.dataset import Dataset  # noqa: E402
from femts.data.preprocess import Preprocess  # noqa: E402
from femts.data.windows import resident  # noqa: E402
from femts.forecaster.forecaster import Forecaster  # noqa: E402
from femts.training.resolve import horizon  # noqa: E402

MODELS = "seasonal_naive", "ridge", "dlinear", "boost"
SETTINGS = {"dlinear": {"training.max_steps": 300}, "boost": {"model.rows": 10_000, "model.rounds": 100}}
NUMBERS = 0, 1, 5  # odd readings in the last season
ORIGINS = 5
ROWS, COLUMNS, SERIES = 2000, 2, 12  # of each table, to take minutes
LEAST = 12  # rows in which odd readings are put, if a season is shorter
FAR = 5.0, 15.0  # ranges of usual values by which an odd reading lies above the right one
FACTORS, TRIES = (1.5, 2.0, 3.0, 5.0), 10
TREATMENTS = "keep", "missing"
LEVEL = 80


def load(path: str) -> Dataset:
    """The last rows of a table, of its first columns or longest series."""
    data = femts.load_dataset(path)
    data = data.take(np.sort(np.argsort(-data.lengths, kind="stable")[:SERIES])) if len(data) > 1 else data
    data = data.recent(ROWS)
    if data.n_targets > COLUMNS:
        columns = data.columns[:COLUMNS]
        data = replace(data, values=data.values[:, :COLUMNS], columns=columns)
        data = replace(data, schema=replace(data.schema, roles=replace(data.schema.roles, target=columns)))
    return replace(data, source=None, sha256=data.fingerprint())


def up_to(data: Dataset, back: int) -> Dataset:
    """The rows before the last `back` of each series, as data of their own."""
    cut = data.take(np.arange(len(data)), data.lengths - back)
    split = cut.schema.split.split(cut.stamps, cut.spans, cut.name)
    return replace(cut, split=split, sha256=cut.fingerprint())


def with_odd(data: Dataset, number: int, seed: int) -> Dataset:
    """The data with `number` odd readings in the last season of each column of each series."""
    rng, values = np.random.default_rng(seed), data.values.copy()
    for first, stop in data.spans.tolist():
        last = min(max(data.season, LEAST), stop - first)
        for c in range(data.n_targets):
            low, high = np.nanquantile(data.values[first:stop, c], [0.05, 0.95])
            rows = stop - 1 - rng.choice(last, number, replace=False)
            values[rows, c] += rng.uniform(*FAR, number) * (high - low)
    return replace(data, values=values, sha256="")


def errors(
    forecaster: Forecaster, history: Dataset, clean: Dataset, actual: np.ndarray, treatment: str
) -> dict[str, float]:
    """Error relative to the training rows' change over a season, coverage and width of one forecast of every series."""
    steps = actual.shape[1]
    forecast = forecaster.predict(
        history, level=[LEVEL], outliers=treatment if forecaster.preprocess.outliers else None
    )
    names = list(forecaster.targets)
    made = [forecast[[f"{name}{end}" for name in names]].to_numpy() for end in ("", f"-lo-{LEVEL}", f"-hi-{LEVEL}")]
    point, low, high = (each.reshape(len(history), steps, -1) for each in made)
    scale = np.empty((len(history), 1, len(names)))
    for s, (first, stop) in enumerate(history.spans.tolist()):
        rows = clean.values[first:stop, : len(names)]
        season = history.season if history.season < len(rows) else 1
        scale[s, 0] = np.nanmean(np.abs(rows[season:] - rows[:-season]), axis=0)
    there = ~np.isnan(actual)
    return {
        "mase": float(np.nanmean(np.abs(point - actual) / scale)),
        "coverage": float(((low <= actual) & (actual <= high))[there].mean()),
        "width": float(np.nanmean((high - low) / scale)),
    }


def measure(name: str, path: str, models: list[str], learn: bool) -> list[dict[str, object]]:
    """Rows for one table."""
    data = load(path)
    steps = horizon(data, None).steps
    stride = max(1, steps // 4)
    clean = up_to(data, steps + (ORIGINS - 1) * stride)
    rows = list[dict[str, object]]()
    for model in models:
        for number in NUMBERS:
            learned = {t: clean if not learn else replace(with_odd(clean, number, 99), sha256="x") for t in TREATMENTS}
            if number == NUMBERS[0] or learn:
                begun = time.monotonic()
                # With clean training rows, one run makes all forecasts.
                asked = TREATMENTS if learn else ("missing",)
                runs = {t: train(learned[t], model, steps, t) for t in asked}
                seconds = time.monotonic() - begun
            for treatment in TREATMENTS:
                made = list[dict[str, float]]()
                for origin in range(ORIGINS if not learn else 1):
                    back = steps + (ORIGINS - 1 - origin) * stride
                    before = up_to(data, back)
                    ends = data.spans[:, 1:] - back + np.arange(steps)
                    history = learned[treatment] if learn else with_odd(before, number, origin)
                    run = runs.get(treatment, runs["missing"])
                    made.append(errors(run, history, before, data.values[ends], treatment))
                mean = pd.DataFrame(made).mean().to_dict()
                rows.append({"table": name, "model": model, "odd": number, "outliers": treatment, **mean})
                print(*rows[-1].values(), round(seconds, 1), flush=True)
    return rows


def choose(name: str, path: str) -> list[dict[str, object]]:
    """For each factor, the share of validation readings that are odd as they are, and of those put in that are found."""
    data, rows = up_to(load(path), 0), list[dict[str, object]]()
    (train, stop), first = data.split.val.T, data.spans[:, 0]
    for factor in FACTORS:
        with patch("femts.data.outliers.FACTOR", factor):
            preprocess = Preprocess.fit(data)
            usual = resident(data, preprocess).odd
            odd, put, found = 0, 0, 0
            for s in range(len(data)):
                places = slice(first[s] + train[s], first[s] + stop[s])
                odd += 0 if usual is None else int(usual.settled[places].sum())
            for seed in range(TRIES):
                rng, values = np.random.default_rng(seed), data.values.copy()
                where = first + train + (rng.uniform(size=len(data)) * (stop - train)).astype(int)
                low, high = np.nanquantile(values, [0.05, 0.95], axis=0)
                values[where] += rng.uniform(*FAR) * (high - low)
                made = resident(replace(data, values=values), preprocess).odd
                found += 0 if made is None else int(made.settled[where][:, : data.n_targets].sum())
                put += int((~np.isnan(values[where])).sum())
        readings = int((stop - train).sum()) * data.n_targets
        rows.append({"table": name, "factor": factor, "odd": odd, "readings": readings, "found": found / put})
        print(*rows[-1].values(), flush=True)
    return rows


def train(data: Dataset, model: str, steps: int, treatment: str) -> Forecaster:
    data = replace(data, schema=replace(data.schema, outliers=treatment))
    return femts.train(data, model, steps, settings=SETTINGS.get(model))


def page(table: pd.DataFrame) -> str:
    """Means over tables by model, and the ratio of each table's errors to those without odd readings, in Markdown."""
    clean = table[(table["odd"] == 0) & (table["outliers"] == "keep")].set_index(["table", "model"])
    ratio = table["mase"] / clean["mase"].loc[pd.MultiIndex.from_frame(table[["table", "model"]])].to_numpy()
    table = table.assign(ratio=ratio, log=np.log(ratio), column=table["odd"].astype(str) + " " + table["outliers"])
    order = [f"{number} {treatment}" for number in NUMBERS for treatment in TREATMENTS]
    parts = list[str]()
    for by, value in (("model", "log"), ("model", "coverage"), ("table", "log")):
        wide = table.pivot_table(index=by, columns="column", values=value, sort=False)[order]
        wide = np.exp(wide) if value == "log" else wide
        lines = [f"| {by} | " + " | ".join(order) + " |", "|---" * (1 + len(order)) + "|"]
        lines += [
            f"| {name} | " + " | ".join(f"{x:.2f}" for x in row) + " |"
            for name, row in zip(wide.index, wide.to_numpy(), strict=True)
        ]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", metavar="NAME=FILE")
    parser.add_argument("-o", "--out", type=Path)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--learn", action="store_true", help="put the odd readings into the training rows, too")
    parser.add_argument("--choose", action="store_true", help="compare factors on validation rows instead")
    parser.add_argument("--page", type=Path, help="print the tables of these results")
    given = parser.parse_args()
    if given.page is not None:
        print(page(pd.read_csv(given.page)))
        return
    warnings.simplefilter("ignore")
    rows = list[dict[str, object]]()
    for pair in given.tables:
        name, _, path = pair.partition("=")
        rows += choose(name, path) if given.choose else measure(name, path, given.models.split(","), given.learn)
        if given.out is not None:
            given.out.parent.mkdir(parents=True, exist_ok=True)
            pd.DataFrame(rows).to_csv(given.out, index=False, float_format="%.6g")
    if not given.choose:
        print(page(pd.DataFrame(rows)))


if __name__ == "__main__":
    main()
