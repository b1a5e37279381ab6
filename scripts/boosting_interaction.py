#!/usr/bin/env python
"""Train boost and ridge on a panel with an interaction: a promotion or a fair lifts sales, but not both together, and
only in stores of one category.

python scripts/boosting_interaction.py     # 3,000 series of 200 days, three minutes on one core
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this checkout, also where another one is installed

import femts

DAYS, HORIZON, LIFT, NOISE = 200, 14, 8.0, 1.0
KNOWN, STATIC = ("promotion", "fair"), ("category", "region")


def panel(stores: int, seed: int = 0) -> pd.DataFrame:
    """A long table of `stores` series. In the category food, half of all, sales are higher by LIFT if there is either a
    promotion or a fair; the region has no effect. The noise, with standard deviation NOISE, is unpredictable."""
    draws, days = np.random.default_rng(seed), np.arange(DAYS)
    promotion, fair = draws.random((2, stores, DAYS)) < 0.3
    category, region = (draws.choice(words, stores) for words in (["food", "toys"], ["north", "south"]))
    level, phase = draws.uniform(30, 60, (stores, 1)), draws.uniform(0, 7, (stores, 1))
    sales = level + 3 * np.sin(2 * np.pi * (days + phase) / 7) + NOISE * draws.normal(size=(stores, DAYS))
    sales += LIFT * (promotion ^ fair) * (category == "food")[:, None]
    columns = {"y": sales, "promotion": promotion.astype(float), "fair": fair.astype(float)}
    long = {name: values.ravel() for name, values in columns.items()}
    dates = np.tile(pd.date_range("2024-01-01", periods=DAYS), stores)
    of_store = {"unique_id": [f"s{number:04d}" for number in range(stores)], "category": category, "region": region}
    return pd.DataFrame({"ds": dates, **{name: np.repeat(each, DAYS) for name, each in of_store.items()}, **long})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stores", type=int, default=3000)
    table = panel(parser.parse_args().stores)
    last = table["ds"] > table["ds"].max() - pd.Timedelta(days=HORIZON)
    for model, dropped in (("ridge", STATIC), ("boost", STATIC), ("boost", ())):
        began, columns = time.process_time(), table.drop(columns=list(dropped))
        history, ahead = columns[~last], columns[last].drop(columns="y")
        words: dict[str, Any] = {} if dropped else {"static_covariates": list(STATIC)}
        data = femts.load_dataset(history, future_covariates=list(KNOWN), **words)
        settings = {"training.covariates": "model"} if model == "boost" else {}
        run = femts.train(data, model, HORIZON, settings=settings, refit=False)
        forecast = run.predict(history, future=ahead)
        both = forecast.merge(table, on=["unique_id", "ds"], suffixes=("_forecast", ""))
        mae = (both["y_forecast"] - both["y"]).abs().mean()
        seconds, peak = time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        named = model + ", with category and region" * (not dropped)
        print(f"{named}: MAE {mae:.3f}, {seconds:.0f} s of processor time, peak so far {peak:.0f} MiB", flush=True)
    print(f"noise alone: {NOISE * np.sqrt(2 / np.pi):.3f}")


if __name__ == "__main__":
    main()
