"""Printed scores, comparison with the naive forecast, and colored warnings."""

from __future__ import annotations

import io
import sys

import numpy as np
import pandas as pd
import pytest
from terminal import Terminal

from femts.cli.commands.evaluate import _misses
from femts.cli.output import judgements, mean_scores, say_warnings, scores_table
from femts.evaluation.verdict import judge
from femts.training.evaluate import accuracy_notes

NAIVE = {"seasonal_naive": {"mse": 0.5, "mae": 0.4}, "mean": {"mse": 2.0, "mae": 1.0}}
SCORES = {
    p: {"mse": p / 10, "mae": 0.3, "windows": 9, "wape": 0.2, "bias": -p / 100}
    | {"season": 3, "skill": 1 - p / 5, "mase": p / 5, "baselines": NAIVE}
    for p in (4, 6)
}
for one in SCORES.values():
    judged = judge(one)
    assert judged is not None
    one |= {"verdict": judged.words, "worse": judged.worse}


def test_worse_horizons_are_listed_separately() -> None:
    worse, others = judgements(SCORES)
    assert len(worse) == len(others) == 1
    assert worse[0].startswith("6 steps: by its squared error worse than the seasonal naive forecast")
    assert others[0].startswith("4 steps: better than the seasonal naive forecast")


def test_poor_coverage_warns() -> None:
    test = {"80": {"coverage": 0.5}, "95": {"coverage": 0.9}, "99": {"coverage": None}}
    poor, narrow = accuracy_notes({"test": SCORES[6], "intervals": {"test": test}})
    assert poor.startswith("by its squared error worse than")
    assert narrow == "intervals of 80 % cover 50.0 % of the test split, so they are too narrow"


def test_mean_over_horizons() -> None:
    mean = mean_scores(SCORES)
    assert mean["mse"] == 0.5 and mean["mase"] == 1.0 and mean["skill"] == 0.0
    assert mean["baselines"] == NAIVE
    assert scores_table(SCORES).splitlines()[-1].split() == [
        *("mean", "0.5000", "0.3000", "-", "0.5000", "0.4000", "0.0000", "1.0000", "0.2000", "-0.0500")
    ]
    unknown = {p: {**one, "wape": None} for p, one in SCORES.items()}
    assert np.isnan(mean_scores(unknown)["wape"])


def test_coverage_warning_is_weighted_by_windows() -> None:
    frame = pd.DataFrame({"series": ["a", "b", "c"], "windows": [99, 1, 7], "coverage-80": [0.8, 0.0, np.nan]})
    frame["skill"] = 0.5
    assert list(_misses({24: frame}, [80], "test")) == []
    (warning,) = _misses({24: frame.assign(windows=1)}, [80], "test")
    assert warning == "intervals of 80 % cover 40.0 % of the test split, so they are too narrow"


def test_color_only_on_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    for no_color in [None, "1"]:
        for terminal in [False, True]:
            for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
                monkeypatch.delenv(name, raising=False)
            monkeypatch.setenv("TERM", "xterm-256color")
            if no_color is not None:
                monkeypatch.setenv("NO_COLOR", no_color)
            stream = Terminal() if terminal else io.StringIO()
            monkeypatch.setattr(sys, "stderr", stream)
            long = "worse than [bold]the naive[/bold] :warning: " + 30 * "forecast "
            say_warnings([long])
            plain = f"warning: {long}\n"
            assert stream.getvalue() == (
                f"\x1b[31m{plain.rstrip(chr(10))}\x1b[0m\n" if terminal and no_color is None else plain
            )
