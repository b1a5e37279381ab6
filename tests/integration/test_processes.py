"""Forecasts in forked processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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
    train = "-m femts train --model fem_sm --horizon 12 --seq-len 96 --max-steps 2 --set model.d_model=128 --out run"
    command = [sys.executable, *train.split(), "--dataset", str(own / "past.csv")]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    subprocess.run([sys.executable, "-c", _POOL, tmp_path / "run", own / "past.csv"], check=True, timeout=120)
