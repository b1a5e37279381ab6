"""Forecasts of a panel in several files, in one process and on a Ray cluster whose workers and nodes die."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pages import ROOT
from small_panels import panel_table

from femts.cli import main

pytestmark = pytest.mark.slow

GOOD = ["one.csv", "two.parquet", "three.csv"]
# Imported by the workers of the cluster when they start: a file in the folder is a fault, which the first to find it has.
FAULTS = """
import os, pathlib, signal, sys

class Faults:
    def find_spec(self, name, path=None, target=None):
        if name == "femts" and has("absent"):
            raise ModuleNotFoundError("No module named 'femts'")
        if name == "femts.forecaster.forecaster" and (has("worker") or os.environ["NODE"] == "second" and has("node")):
            if not has("worker"):
                os.kill(os.getppid(), signal.SIGKILL)
            took = next(each for each in ("worker", "node") if has(each))
            (FOLDER / took).unlink()
            os._exit(1)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of a classical model, its panel in three files, and files that do not fit them."""
    pytest.importorskip("statsforecast")
    folder, table = tmp_path_factory.mktemp("partitions"), panel_table()
    table.to_csv(folder / "panel.csv", index=False)
    one, two, three = (table[table["unique_id"].isin(names)] for names in (["long"], ["short", "tiny"], ["young"]))
    one.to_csv(folder / "one.csv", index=False)
    two.to_parquet(folder / "two.parquet", index=False)
    three.to_csv(folder / "three.csv", index=False)
    new = three.assign(unique_id="new")
    new.drop(columns="y").to_csv(folder / "column.csv", index=False)
    new.assign(y="high").to_csv(folder / "text.csv", index=False)
    new.assign(ds=new["ds"].iloc[0] + 7 * (new["ds"] - new["ds"].iloc[0])).to_csv(folder / "weeks.csv", index=False)
    new.rename(columns={"ds": "day"}).to_csv(folder / "named.csv", index=False)
    new.assign(ds=new["ds"].dt.tz_localize("UTC")).to_parquet(folder / "zone.parquet", index=False)
    new[["ds", "y"]].to_csv(folder / "wide.csv", index=False)
    pd.concat([new, three]).to_csv(folder / "again.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main("train --dataset panel.csv --panel --model dotm --horizon 7 --seq-len 14 --out run".split()) == 0
    return folder


@pytest.fixture(autouse=True)
def in_place(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)


def predicted(files: list[str], *options: str) -> tuple[int, pd.DataFrame | None]:
    """Exit status and output of a prediction."""
    out = Path("forecast.parquet")
    status = main(["predict", "run", *files, "--level", "80", "-o", str(out), *options])
    if not out.exists():
        return status, None
    forecast = pd.read_parquet(out)
    out.unlink()
    return status, forecast
