"""`auto` without a time limit depends on nothing but data and seed: not on the clock, and not on kills."""

from __future__ import annotations

import itertools
import signal
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from few_candidates import few_candidates
from forks import Forked

from femts.training.select import constants
from femts.training.select import plan as planning
from femts.training.select.constants import Allowance
from femts.training.train import train
from scripts.bench.auto import TRAIN, contents

pytestmark = pytest.mark.slow


def test_clock_has_no_influence_without_a_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    hours, rng = np.arange(900)[:, None], np.random.default_rng(0)
    values = 50 + 10 * np.sin(2 * np.pi * hours / 24 + np.arange(2)) + rng.normal(size=(900, 2))
    table = pd.DataFrame(values, columns=["a", "b"], index=pd.date_range("2024-01-01", periods=900, freq="h"))
    monkeypatch.setattr(planning, "OF_SMALL", Allowance(fits=3.0, beside=6.0, training=0.3))
    monkeypatch.setattr(constants, "FEWEST_STEPS", 2)
    kinds = ("seasonal_naive", "ridge", "dotm", "fem_zero", "boost", "nhits")  # one of each
    with few_candidates(*kinds):
        made = train(table, "auto", 6, out=tmp_path / "usual")
        assert all("error" in each for each in made.metrics["auto"]["tried"])
        assert {each["model"] for each in made.metrics["auto"]["tried"]} == set(kinds)
        ticks = itertools.count()
        with monkeypatch.context() as patch:
            patch.setattr(time, "monotonic", lambda: 50.0 * next(ticks))  # each look at the clock takes almost a minute
            train(table, "auto", 6, out=tmp_path / "slow")
    assert contents(tmp_path / "slow") == contents(tmp_path / "usual")


_FEW = """
import sys
from few_candidates import few_candidates
from femts.cli import main

with few_candidates("seasonal_naive", "ridge", "fem_zero", "dotm", "auto_ets"):
    sys.exit(main(sys.argv[1:]))
"""


def _started(table: Path, run: Path) -> Forked:
    return Forked(["-c", _FEW, *TRAIN.format(table, run).split(), "--resume"])


def test_killed_auto_resumes_bit_identically(tmp_path: Path) -> None:
    years, rng = np.arange(60), np.random.default_rng(0)
    values = 50 + 9 * np.sin(2 * np.pi * years / 9) + rng.normal(size=60)
    pd.DataFrame({"date": pd.date_range("1950", periods=60, freq="YS"), "y": values}).to_parquet(tmp_path / "years")
    table = (tmp_path / "years").rename(tmp_path / "years.parquet")
    for until in (2, 4):
        killed = _started(table, tmp_path / "killed")
        while len(list((tmp_path / "killed").glob("candidates/*/*/config.yaml"))) < until:
            assert killed.poll() is None
            time.sleep(0.02)
        killed.send_signal(signal.SIGKILL)
        assert killed.wait() == -signal.SIGKILL
    ends = [_started(table, tmp_path / name) for name in ("killed", "whole")]
    assert [each.wait() for each in ends] == [0, 0]
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")
