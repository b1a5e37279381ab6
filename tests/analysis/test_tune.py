"""Hyperparameter studies: selection, no use of test rows, and resuming."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from forks import Forked
from logged import logged
from small_tables import small_table

import femts
from femts.cli import main
from femts.data.synthetic import synthetic_frame
from femts.errors import UsageError
from femts.forecaster.saved_run import read_metrics
from femts.training.loop import Trainer
from femts.training.stopping import Interrupted

pytestmark = pytest.mark.slow
optuna = pytest.importorskip("optuna", reason="tuning needs Optuna, of pip install '.[tune]'")

SMALL: dict[str, Any] = {"model.n_layers": 1, "model.n_heads": 2, "training.max_steps": 16, "training.device": "cpu"}
SEARCH = {"seq_len": [24, 48], "model.d_model": "8,16", "training.lr": "1e-4..1e-1", "training.batch_size": "16,32"}
COMMAND = [
    *"tune --dataset small.csv --model fem_sm --horizon 12 --out study --set model.n_layers=1 --max-steps 16".split(),
    *"--set model.n_heads=2 --set model.d_model=8 --device cpu --search seq_len=24,48".split(),
    *"--search training.batch_size=16,32 --trials".split(),
]


def tune_small(data: Any = None, **changes: Any) -> Any:
    arguments = {"search": SEARCH, "settings": SMALL, **changes}
    return femts.tune(small_table(400) if data is None else data, "fem_sm", 12, **arguments)


def tune_ridge(**changes: Any) -> Any:
    search = {"seq_len": "24,48", "model.ridge": [0.3, 3]}
    return femts.tune(small_table(400), "ridge", 12, **{"search": search, **changes})


def assert_same_trials(one: pd.DataFrame, other: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(one.drop(columns="seconds"), other.drop(columns="seconds"))


def test_best_trial_and_default_trial() -> None:
    tuned = tune_small(trials=5)
    trials, drawn = tuned.trials, tuned.trials[1:]
    assert list(trials["trial"]) == list(range(5)) and set(trials["state"]) <= {"complete", "pruned"}
    assert tuned.score == trials["score"].min() <= tuned.default_score == trials["score"][0]
    first = femts.train(small_table(400), "fem_sm", 12, settings=SMALL)
    assert first.metrics["val"]["mse"] == tuned.default_score
    again = femts.train(small_table(400), "fem_sm", 12, seq_len=tuned.seq_len, settings=tuned.settings)
    assert again.metrics["val"]["mse"] == tuned.score
    assert drawn["training.lr"].between(1e-4, 1e-1).all() and drawn["training.lr"].nunique() == len(drawn)
    assert set(drawn["seq_len"]) <= {24, 48} and set(drawn["model.d_model"]) <= {8, 16}


def test_trials_depend_on_seed_but_not_test_rows() -> None:
    data = femts.load_dataset(small_table(400))
    values, start = data.values.copy(), int(data.split.test[0, 0])
    values[start:] = 1e6 * np.random.default_rng(0).normal(size=values[start:].shape)
    one, same, other = (
        tune_small(each, trials=4, seed=seed).trials
        for each, seed in ((data, 1), (replace(data, values=values), 1), (data, 2))
    )
    assert_same_trials(one, same)
    assert (one["training.lr"][1:] != other["training.lr"][1:]).all()


def test_trials_worse_than_the_median_are_pruned() -> None:
    search, settings = {"training.lr": "1e-7..1e-1"}, {**SMALL, "model.d_model": 8, "training.max_steps": 32}
    trials = tune_small(search=search, settings=settings, trials=9, seq_len=24).trials
    assert (trials["state"] == "pruned").any()
    assert trials["score"].isna().eq(trials["state"] == "pruned").all()


def test_study_ends_when_exhausted() -> None:
    with logged() as notes:
        trials = tune_ridge(trials=50).trials
    # The recipe as it is looks back further than the two that are searched.
    assert len(trials) == 5 and notes[-1] == "every combination has been tried"
    assert len(trials[["seq_len", "model.ridge"]].drop_duplicates()) == 5


def test_failed_trial_is_reported() -> None:
    trials = tune_small(search={"model.n_heads": [3]}, settings={"training.max_steps": 4}, seq_len=24, trials=2).trials
    assert list(trials["state"]) == ["complete", "failed"] and "n_heads" in trials["reason"][1]


def test_origins_are_averaged() -> None:
    one, two = (tune_ridge(origins=origins).trials for origins in (1, 2))
    assert list(two["origin_1"]) == list(one["score"])
    assert list(two[["origin_1", "origin_2"]].mean(axis=1)) == pytest.approx(list(two["score"]), rel=1e-12)


def test_tune_on_a_panel() -> None:
    wide = synthetic_frame(200)
    long = pd.concat(wide.iloc[:, [0, k + 1]].set_axis(["ds", "y"], axis=1).assign(unique_id=f"s{k}") for k in range(3))
    tuned = femts.tune(long, "ridge", 12, search={"model.ridge": "0.3,3"}, seq_len=24)
    again = femts.train(long, "ridge", 12, seq_len=24, settings=tuned.settings)
    assert again.metrics["val"]["mse"] == tuned.score


def test_recipe_reproduces_the_score(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    small_table(400).to_csv("small.csv", index=False)
    assert main([*COMMAND, "4"]) == 0
    out = capsys.readouterr().out
    assert "without tuning" in out and "recipe: study/recipe.yaml" in out
    assert sorted(os.listdir("study")) == ["recipe.yaml", "study.db", "trials.csv", "trials.png"]
    trials = pd.read_csv("study/trials.csv", float_precision="round_trip")
    assert main(["train", "--config", "study/recipe.yaml", "--out", "run"]) == 0
    assert read_metrics(Path("run"))["val"]["mse"] == trials["score"].min()
    assert yaml.safe_load(Path("study/recipe.yaml").read_text())["training"]["seed"] == 42
    assert optuna.load_study(study_name="tune", storage="sqlite:///study/study.db").best_value == trials["score"].min()
    assert main([*COMMAND, "4"]) == 0  # nothing is left to do
    pd.testing.assert_frame_equal(pd.read_csv("study/trials.csv", float_precision="round_trip"), trials)


def test_study_resumes_only_with_the_same_recipe(tmp_path: Path) -> None:
    asked = {"out": tmp_path / "study", "seq_len": 24, "search": {"model.ridge": [0.3, 3]}}
    score = tune_ridge(trials=1, **asked).score
    with pytest.raises(UsageError, match=r"started with model.season 24, not 12; use the same value"):
        tune_ridge(trials=2, settings={"model.season": 12}, **asked)
    again = tune_ridge(trials=2, settings={"model.season": 24}, **asked).trials  # said or not, it is the same
    assert again["score"][0] == score and len(again) == 2


KILLING = """
import itertools, os, signal, sys
from femts.cli import main
from femts.training.loop import Trainer
take, steps = Trainer.step, itertools.count(1)
def step(self):
    if next(steps) == int(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGKILL)
    take(self)
Trainer.step = step
sys.exit(main(sys.argv[2:]))
"""


def start(folder: Path, kill_at: int, trials: int) -> Forked:
    folder.mkdir(exist_ok=True)
    small_table(400).to_csv(folder / "small.csv", index=False)
    return Forked(["-c", KILLING, kill_at, *COMMAND, trials], folder)


def test_killed_study_resumes_with_identical_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert start(broken, 21, 3).wait() == -signal.SIGKILL  # within the second trial
    for folder in (whole, broken):
        folder.mkdir(exist_ok=True)
        small_table(400).to_csv(folder / "small.csv", index=False)
        monkeypatch.chdir(folder)
        assert main([*COMMAND, "3"]) == 0
    assert_same_trials(*(pd.read_csv(folder / "study" / "trials.csv") for folder in (whole, broken)))
    assert not (broken / "study" / ".work").exists()


def test_processes_share_a_study(tmp_path: Path) -> None:
    processes = [start(tmp_path, 0, 4), start(tmp_path, 0, 4)]
    assert [process.wait() for process in processes] == [0, 0]
    trials = pd.read_csv(tmp_path / "study" / "trials.csv")
    assert list(trials["trial"]) == list(range(4)) and trials["score"].notna().sum() > 1
    assert trials["training.lr"].nunique() == 4


def test_study_resumes_after_a_signal_or_time_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    take, taken = Trainer.step, 0

    def step(self: Trainer) -> None:
        nonlocal taken
        taken += 1
        if taken == 24:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.03 * (taken > 24))
        take(self)

    monkeypatch.setattr(Trainer, "step", step)
    with pytest.raises(Interrupted, match=r"interrupted after 1 trial; run the same command again"):
        tune_small(out=tmp_path / "study", trials=5)
    late = tune_small(out=tmp_path / "study", trials=None, time_limit="1.2s").trials
    assert 1 <= len(late) < 5
    monkeypatch.setattr(Trainer, "step", take)
    trials = tune_small(out=tmp_path / "study", trials=5).trials
    assert_same_trials(trials[: len(late)], late)
    assert_same_trials(trials, tune_small(trials=5).trials)
