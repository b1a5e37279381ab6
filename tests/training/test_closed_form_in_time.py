"""Fits in closed form are measured on a part before they are started within a time limit."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

import femts
from femts.data.dataset import Dataset
from femts.data.loading import load_dataset
from femts.models import ridge, ridge_fit
from femts.models.ridge import LinearForecast
from femts.training.request import FitRequest
from femts.training.resolve import Lengths
from femts.training.select import closed_form, run
from femts.training.select.candidates import Candidate, ridges
from femts.training.select.closed_form import in_time


def walk(rows: int = 400) -> pd.DataFrame:
    values = np.random.default_rng(0).normal(size=rows).cumsum()
    return pd.DataFrame({"date": pd.date_range("2020-01-01", periods=rows, freq="D"), "y": values})


def table() -> Dataset:
    return load_dataset(walk(), min="none").for_horizon(7)


REQUEST = replace(FitRequest.of("auto", {}, {}, 0.0), lengths=Lengths(7))


@pytest.mark.parametrize(("channels", "by_channel"), [(1, False), (3, True), (40, False)])
def test_parts_of_a_fit_are_counted(monkeypatch: pytest.MonkeyPatch, channels: int, by_channel: bool) -> None:
    made = {"moments": 0, "maps": 0}

    def counted(name: str, call: object) -> object:
        def counting(*given: object) -> object:
            made[name] += 1
            return call(*given)  # type: ignore[operator]

        return counting

    monkeypatch.setattr(ridge_fit.TrainingRows, "moments", counted("moments", ridge_fit.TrainingRows.moments))
    for module in (ridge, ridge_fit):
        monkeypatch.setattr(module, "maps", counted("maps", ridge_fit.maps))
    linear = LinearForecast(6, 3, 1, channels)
    linear.fit(torch.randn(300, channels), 0.3)
    moments, maps = ridge_fit.parts_of_fit(channels, by_channel)
    assert made["moments"] <= moments <= 1.5 * made["moments"] and made["maps"] == maps


def test_slow_closed_form_is_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    data, measured = table(), list[int]()

    def seconds(candidate: Candidate, *_: object) -> float:
        measured.append(candidate.seq_len or 0)
        return 1e-4 * measured[-1] ** 2

    monkeypatch.setattr(closed_form, "_seconds", seconds)
    candidates = ridges(data, REQUEST.lengths)
    backs = sorted(each.seq_len or 0 for each in candidates)
    room = 1e-4 * sum(back**2 for back in backs[:2]) + 1e-6
    fitting, late = in_time(candidates, REQUEST, data, room)
    assert list(fitting) == [f"ridge-{back}" for back in backs[:2]] and measured == backs[:2]
    assert set(late) == {f"ridge-{back}" for back in backs[2:]}
    assert all("there is not enough time" in each for each in late.values())


def test_short_time_limit_leaves_long_look_backs_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closed_form, "_seconds", lambda each, *_: 0.1 if (each.seq_len or 0) < 50 else 1e3)
    data = load_dataset(walk(), min="none")
    monkeypatch.setattr(run, "shortlist", lambda data, lengths, *_: (Candidate("naive"), *ridges(data, lengths)))
    made = femts.train(data, "auto", 7, time_limit="5m", refit=False)
    rows = {each["seq_len"]: each for each in made.metrics["auto"]["tried"] if each["model"] == "ridge"}
    assert {back for back, each in rows.items() if "error" in each} == {back for back in rows if back < 50}
    assert femts.train(data, "ridge", 7, time_limit="5m", refit=False).config.seq_len < 50


def test_command_began_with_its_process() -> None:
    code = "import time; time.sleep(0.5)\nfrom femts.environment import process_began\nprint(time.monotonic() - process_began())"
    age = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout
    assert 0.5 <= float(age) < 60
