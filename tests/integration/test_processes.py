"""Forecasts in forked processes."""

from __future__ import annotations

from pathlib import Path

from forks import Forked

import femts

_POOL = """
import multiprocessing, sys
import pandas as pd
import torch
import femts

torch.set_num_threads(2)
forecaster, history = femts.load(sys.argv[1]), pd.read_csv(sys.argv[2])

def total(_):
    return float(forecaster.predict(history).iloc[:, 1:].to_numpy().sum())

first = total(0)
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(total, range(4)) == [first] * 4
assert torch.get_num_threads() == 2
"""


def test_forked_pool_can_forecast(own: Path, tmp_path: Path) -> None:
    """OpenMP threads do not survive a fork, which used to deadlock."""
    wide = {"model.d_model": 128}
    femts.train(own / "past.csv", "fem_sm", 12, seq_len=96, max_steps=2, settings=wide, out=tmp_path / "run")
    (tmp_path / "pool.py").write_text(_POOL)
    assert Forked([tmp_path / "pool.py", tmp_path / "run", own / "past.csv"]).wait(600) == 0
