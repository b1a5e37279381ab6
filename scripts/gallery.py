#!/usr/bin/env python
"""Write the reports of the gallery, three HTML pages on synthetic data.

python scripts/gallery.py                   # docs/gallery: all three, a minute on one core
python scripts/gallery.py --to DIR shops    # one of them, to another folder
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # this checkout, also where another one is installed

import femts  # noqa: E402

GALLERY = ROOT / "docs" / "gallery"


def hours() -> femts.Forecaster:
    """Three hourly columns that predict each other; a mixer compared with a linear model."""
    table = femts.load_dataset("synthetic").frame().iloc[:2000, :4]
    settings = {"model.n_layers": 1}
    data = replace(femts.load_dataset(table), name="hours")
    return femts.train(data, "fem_sm_ridge", 24, seq_len=168, max_steps=150, settings=settings, refit=False)


def load() -> femts.Forecaster:
    """A load that rises in cold weather and falls on holidays, both future covariates."""
    table = femts.load_dataset("synthetic").frame().iloc[:3000, :2]
    table.columns = ["date", "load"]
    rng = np.random.default_rng(0)
    table["cold"] = 10 + 3 * rng.normal(size=3000).cumsum() % 20
    table["holiday"] = np.repeat(rng.random(125) < 0.1, 24).astype(int)
    table["load"] += 0.6 * np.maximum(18 - table["cold"], 0) - 5 * table["holiday"]
    data = femts.load_dataset(table, target=["load"], future_covariates=["cold", "holiday"])
    return femts.train(replace(data, name="load"), "ridge", 24, seq_len=168, refit=False)


def shops() -> femts.Forecaster:
    """Monthly sales of forty shops of different size and length; one model for all."""
    rng = np.random.default_rng(0)
    tables = []
    for number in range(40):
        months = int(rng.integers(40, 160))
        wave = 1 + 0.5 * np.sin(np.arange(months) * np.pi / 6) + 0.1 * rng.normal(size=months)
        dates = pd.date_range("2010-01-01", periods=months, freq="MS")
        tables.append(pd.DataFrame({"unique_id": f"shop {number}", "ds": dates, "y": rng.lognormal(3) * wave}))
    panel = replace(femts.load_dataset(pd.concat(tables)), name="shops")
    return femts.train(panel, "fem_sm", 12, seq_len=24, max_steps=150, refit=False)


REPORTS: dict[str, Callable[[], femts.Forecaster]] = {"hours": hours, "load": load, "shops": shops}


def write_report(name: str, folder: Path) -> Path:
    """Train the model of report `name` and write its page to `folder`, which is created if missing."""
    folder.mkdir(parents=True, exist_ok=True)
    return femts.report(REPORTS[name](), folder / f"{name}.html")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"reports: {', '.join(REPORTS)}")
    parser.add_argument("--to", type=Path, default=GALLERY, metavar="DIR")
    asked = parser.parse_args()
    if unknown := [name for name in asked.names if name not in REPORTS]:
        parser.error(f"report '{unknown[0]}' does not exist; choose from {', '.join(REPORTS)}")
    for report in asked.names or REPORTS:
        print(write_report(report, asked.to))
