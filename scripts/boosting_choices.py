#!/usr/bin/env python
"""Compare design choices of `boost` on validation windows: forms of its targets, look-back, and library.

python scripts/boosting_choices.py forms                    # six minutes on one core, with FEMTS_DATA
python scripts/boosting_choices.py forms --seq-len 70 --sets madrid
python scripts/boosting_choices.py library                  # five minutes; requires lightgbm
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this checkout, also where another one is installed

import femts
from femts.config.training import TrainingConfig
from femts.data.windows import Windows
from femts.models.boost import FORMS, LEAST, PATIENCE, RECURSIVE, SEASONAL, Boost, Rows
from femts.models.registry import build_model
from femts.training.data_module import DataModule, split_for
from femts.training.resolve import Lengths, resolve_run

DATA = Path(os.environ.get("FEMTS_DATA", ""))
TRAINING = TrainingConfig()
KNOWN = ["Temperature", "Holiday"]


def vic() -> femts.Dataset:
    """Hourly electricity demand of Victoria, with temperature, holidays and the calendar as future covariates."""
    table = pd.read_csv(DATA / "outside/vic_electricity.csv", parse_dates=["Time"]).set_index("Time")
    hours = table[["Demand", *KNOWN]].astype(float).resample("h").mean().reset_index()
    return femts.load_dataset(hours, target="Demand", future_covariates=KNOWN, calendar=True)


def tourism() -> femts.Dataset:
    """Trips in Australia by region and purpose."""
    table = pd.read_csv(DATA / "outside/tourism.csv")
    series = table["Region"] + "/" + table["State"] + "/" + table["Purpose"]
    return femts.load_dataset(pd.DataFrame({"unique_id": series, "ds": table["date_time"], "y": table["Trips"]}))


def outside(file: str) -> Callable[[], femts.Dataset]:
    """Return a function that loads a file without further arguments."""
    return lambda: femts.load_dataset(DATA / "outside" / file)


SETS: dict[str, tuple[Callable[[], femts.Dataset], int]] = {
    "h2o": (outside("h2o.csv"), 12),
    "wineind": (outside("wineind.csv"), 12),
    "us_gasoline": (outside("us_gasoline.csv"), 26),
    "m4_weekly": (outside("m4_weekly_60.csv"), 13),
    "tourism": (tourism, 8),
    "madrid": (outside("madrid.csv"), 28),
    "taxi": (outside("taxi.csv"), 48),
    "ETTh1": (lambda: femts.load_dataset(pd.read_csv(DATA / "ETTh1.csv")), 24),
    "vic_electricity": (vic, 48),
}


def forms_of(model: Boost) -> list[int]:
    """Forms that are possible for the seasons of the model."""
    return sorted(FORMS if model.config.seasons else FORMS - SEASONAL)


def forms(name: str, model: Boost, train: Windows, val: Windows) -> None:
    """Print the error of each form on sampled validation windows, and the seconds of training and of forecasting
    them."""
    for form in forms_of(model):
        model.form.fill_(form)
        began = time.process_time()
        model._grow(train, val, 40_000, TRAINING, [model.config.rounds])
        grown = time.process_time()
        error = model._error(val, TRAINING.seed)
        seconds = f"{grown - began:.1f} s to grow, {time.process_time() - grown:.1f} s to forecast"
        rounds = f"look-back {model.config.seq_len}, {int(model.trees[0].count)} trees"
        print(f"{name}: form {form}, MAE {error:.4f}, {rounds}, {seconds}", flush=True)


def library(name: str, model: Boost, train: Windows, val: Windows) -> None:
    """Print errors and seconds of both libraries on the same rows for each direct form."""
    for form in forms_of(model)[:RECURSIVE]:
        model.form.fill_(form)
        draws = torch.Generator().manual_seed(1)
        rows, held, other = (model.drawn(*each, draws) for each in ((train, 200_000), (val, 50_000), (val, 50_000)))
        for each in (by_scikit, by_lightgbm):
            began = time.process_time()
            made = each(rows, held, other.x)
            error, seconds = float(np.abs(made - other.y).mean()), time.process_time() - began
            print(f"{name}: form {form}, {each.__name__}, MAE {error:.4f}, {seconds:.1f} s", flush=True)


def by_scikit(rows: Rows, held: Rows, x: Any) -> Any:
    """Forecasts for `x` by scikit-learn with the default settings of `boost`."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    stop = {"max_iter": 400, "early_stopping": True, "n_iter_no_change": PATIENCE, "scoring": "loss"}
    grown = HistGradientBoostingRegressor(min_samples_leaf=LEAST, random_state=0, **stop)
    grown.fit(rows.x, rows.y, X_val=held.x, y_val=held.y)
    grown._predictors = grown._predictors[: max(1, int(np.argmax(grown.validation_score_)))]
    return grown.predict(x)


def by_lightgbm(rows: Rows, held: Rows, x: Any) -> Any:
    """Forecasts for `x` by LightGBM with the same settings."""
    import lightgbm

    options = {"num_leaves": 31, "min_data_in_leaf": LEAST, "num_threads": 1, "verbose": -1, "learning_rate": 0.1}
    learned = lightgbm.Dataset(rows.x, rows.y)
    validated = lightgbm.Dataset(held.x, held.y, reference=learned)
    stop = [lightgbm.early_stopping(PATIENCE, verbose=False)]
    return lightgbm.train(options, learned, 400, valid_sets=[validated], callbacks=stop).predict(x)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["forms", "library"])
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--seq-len", type=int)
    asked = parser.parse_args()
    for name in asked.sets.split(","):
        load, pred_len = SETS[name]
        data = split_for(load(), pred_len)
        config = resolve_run(data, "boost", Lengths(pred_len, asked.seq_len), {}, TRAINING)
        windows = DataModule.of(data, config, ("train", "val")).windows
        model = build_model("boost", config.model_config)
        assert isinstance(model, Boost)
        measure = forms if asked.what == "forms" else library
        measure(name, model, windows["train"], windows["val"].within_scale())


if __name__ == "__main__":
    main()
