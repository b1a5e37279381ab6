"""A study: what it chooses, that it never sees the test part, and that being killed changes nothing of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from small_tables import small_table

import femts
from femts.cli import main
from femts.data.loading import load_dataset
from femts.data.synthetic import synthetic_frame
from femts.errors import UsageError
from femts.forecaster.saved_run import read_metrics
from femts.training.loop import Trainer
from femts.training.stopping import Interrupted

pytestmark = pytest.mark.slow

pytest.importorskip("optuna", reason="tuning needs Optuna, of pip install '.[tune]'")
ROOT = Path(__file__).resolve().parents[2]

SMALL: dict[str, Any] = {"model.n_layers": 1, "model.n_heads": 2, "training.max_steps": 16, "training.device": "cpu"}
SEARCH = {"seq_len": [24, 48], "model.d_model": "8,16", "training.lr": "1e-4..1e-1", "training.batch_size": "16,32"}
OWN = ("--search", "seq_len=24,48", "--search", "model.d_model=8,16", "--search", "training.lr=1e-4..1e-1")
COMMAND = [
    *("tune", "--dataset", "small.csv", "--model", "fem_sm", "--pred-len", "12", "--trials", "9", "--out", "study"),
    *("--set", "model.n_layers=1", "--set", "model.n_heads=2", "--max-steps", "16", "--device", "cpu", *OWN),
]


def small_study(data: Any = None, **changes: Any) -> Any:
    data = small_table(400) if data is None else data
    given = {"trials": 9, "search": SEARCH, "settings": SMALL, **changes}
    return femts.tune(data, "fem_sm", 12, **given)


def without_times(trials: pd.DataFrame) -> pd.DataFrame:
    return trials.drop(columns="seconds")


def test_the_best_is_the_lowest_and_the_first_is_the_recipe_as_it_is() -> None:
    tuned = small_study()
    trials = tuned.trials
    assert list(trials["trial"]) == list(range(9))
    assert tuned.score == trials["score"].min() <= tuned.default_score == trials["score"][0]
    best = trials.loc[trials["score"].idxmin()]
    assert tuned.seq_len == best["seq_len"]
    assert tuned.settings["training.lr"] == best["training.lr"]
    first = femts.train(small_table(400), "fem_sm", 12, settings=SMALL)
    assert first.metrics["val"]["mse"] == tuned.default_score
    again = femts.train(small_table(400), "fem_sm", 12, seq_len=tuned.seq_len, settings=tuned.settings)
    assert again.metrics["val"]["mse"] == tuned.score
    assert set(trials["state"]) <= {"complete", "pruned"}
    drawn = trials[1:]
    assert drawn["training.lr"].between(1e-4, 1e-1).all() and drawn["training.lr"].nunique() == len(drawn)
    assert set(drawn["seq_len"]) <= {24, 48} and set(drawn["model.d_model"]) <= {8, 16}


def test_the_test_part_has_no_say() -> None:
    data = load_dataset(small_table(400))
    values = data.values.copy()
    values[data.split.test[0] :] = 1e6 * np.random.default_rng(0).normal(size=values[data.split.test[0] :].shape)
    one, other = (small_study(each, trials=4) for each in (data, replace(data, values=values)))
    pd.testing.assert_frame_equal(without_times(one.trials), without_times(other.trials))


def test_the_seed_decides_the_trials() -> None:
    one, same, other = (small_study(trials=3, seed=seed) for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(without_times(one.trials), without_times(same.trials))
    assert (one.trials["training.lr"][1:] != other.trials["training.lr"][1:]).all()


def test_trials_that_are_worse_than_most_are_ended() -> None:
    settings = {**SMALL, "training.max_steps": 64}
    tuned = small_study(search={"training.lr": "1e-7..1e-1"}, settings=settings, trials=14, seq_len=24)
    assert (tuned.trials["state"] == "pruned").any()
    assert tuned.trials["score"].isna().eq(tuned.trials["state"] == "pruned").all()


def test_a_study_ends_when_every_combination_has_been_tried() -> None:
    said: list[str] = []
    search = {"seq_len": "24,48", "model.ridge": [0.3, 3]}
    tuned = femts.tune(small_table(400), "ridge", 12, search=search, trials=50, say=said.append)
    # The recipe as it is looks back further than the two that are searched.
    assert len(tuned.trials) == 5 and said[-1] == "every combination has been tried"
    assert len(tuned.trials[["seq_len", "model.ridge"]].drop_duplicates()) == 5


def test_origins_are_averaged_and_the_first_is_the_validation_part() -> None:
    given: dict[str, Any] = {"search": {"model.ridge": [0.3, 3]}, "seq_len": 24}
    one, two = (femts.tune(small_table(400), "ridge", 12, origins=origins, **given) for origins in (1, 2))
    assert list(two.trials["origin_1"]) == list(one.trials["score"])
    means = two.trials[["origin_1", "origin_2"]].mean(axis=1)
    assert list(means) == pytest.approx(list(two.trials["score"]), rel=1e-12)


def test_a_panel_is_tuned_as_one() -> None:
    long = pd.concat(
        synthetic_frame(200).iloc[:, [0, k + 1]].set_axis(["ds", "y"], axis=1).assign(unique_id=f"s{k}")
        for k in range(3)
    )
    panel = load_dataset_panel(long)
    tuned = femts.tune(panel, "ridge", 12, search={"model.ridge": "0.3,3"}, seq_len=24)
    again = femts.train(panel, "ridge", 12, seq_len=24, settings=tuned.settings)
    assert again.metrics["val"]["mse"] == tuned.score


def load_dataset_panel(frame: pd.DataFrame) -> Any:
    from femts.data.loading import load_dataset

    return load_dataset(frame, panel=True)


def test_the_command_leaves_a_recipe_that_repeats_the_score(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    small_table(400).to_csv("small.csv", index=False)
    assert main(COMMAND) == 0
    out = capsys.readouterr().out
    assert "without tuning" in out and "recipe: study/recipe.yaml" in out
    assert sorted(path.name for path in Path("study").iterdir()) == [
        *("recipe.yaml", "study.json", "trials.csv", "trials.png")
    ]
    trials = pd.read_csv("study/trials.csv", float_precision="round_trip")
    assert main(["train", "--config", "study/recipe.yaml", "--out", "run"]) == 0
    assert read_metrics(Path("run"))["val"]["mse"] == trials["score"].min()
    assert yaml.safe_load(Path("study/recipe.yaml").read_text())["training"]["seed"] == 42
    assert main(COMMAND) == 0  # nothing is left to do
    pd.testing.assert_frame_equal(pd.read_csv("study/trials.csv", float_precision="round_trip"), trials)


def test_a_study_goes_on_with_one_recipe_only(tmp_path: Path) -> None:
    """Also where it is a default that is another now: the scores before would not compare."""
    asked: dict[str, Any] = {"search": {"model.ridge": [0.3, 3]}, "seq_len": 24, "out": tmp_path / "study"}
    tuned = femts.tune(small_table(400), "ridge", 12, trials=1, **asked)
    path = tmp_path / "study" / "study.json"
    study = json.loads(path.read_text())
    default = study["question"]["model.season"]
    path.write_text(json.dumps({**study, "question": {**study["question"], "model.season": default + 1}}))
    with pytest.raises(UsageError, match=f"begun with model.season {default + 1}, not {default}; go on with"):
        femts.tune(small_table(400), "ridge", 12, trials=2, **asked)
    path.write_text(json.dumps(study))
    given = {"model.season": default}
    again = femts.tune(small_table(400), "ridge", 12, trials=2, settings=given, **asked)
    assert again.trials["score"][0] == tuned.score and len(again.trials) == 2


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


def test_a_study_that_is_killed_three_times_has_the_same_trials_in_the_end(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}

    def run(place: Path, step: int) -> int:
        place.mkdir(exist_ok=True)
        small_table(400).to_csv(place / "small.csv", index=False)
        command = [sys.executable, "-c", KILLING, str(step), *COMMAND]
        return subprocess.run(command, cwd=place, env=environment, capture_output=True, check=False).returncode

    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert run(whole, 10**6) == 0
    for step in (5, 43, 30):  # within the first trial, and within later ones
        assert run(broken, step) == -signal.SIGKILL
    assert run(broken, 10**6) == 0
    one, other = (pd.read_csv(place / "study" / "trials.csv") for place in (whole, broken))
    assert len(one) == 9
    pd.testing.assert_frame_equal(without_times(one), without_times(other))
    assert (whole / "study" / "recipe.yaml").read_text().replace(str(whole), "") == (
        broken / "study" / "recipe.yaml"
    ).read_text().replace(str(broken), "")
    assert not (broken / "study" / ".work").exists()


def test_a_signal_ends_a_study_and_the_next_call_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    take, steps = Trainer.step, iter(range(1, 10**6))

    def step(self: Trainer) -> None:
        if next(steps) == 24:
            os.kill(os.getpid(), signal.SIGINT)
        take(self)

    monkeypatch.setattr(Trainer, "step", step)
    with pytest.raises(Interrupted, match=r"interrupted after 1 trials; the same command goes on"):
        small_study(out=tmp_path / "study", trials=3)
    tuned = small_study(out=tmp_path / "study", trials=3)
    pd.testing.assert_frame_equal(without_times(tuned.trials), without_times(small_study(trials=3).trials))


def test_time_ends_a_study_in_the_middle_of_a_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    take = Trainer.step

    def step(self: Trainer) -> None:
        time.sleep(0.05)
        take(self)

    monkeypatch.setattr(Trainer, "step", step)
    started = time.monotonic()
    first = small_study(out=tmp_path / "study", trials=None, max_time="6s")
    assert time.monotonic() - started < 12
    assert 1 <= len(first.trials) < 9
    monkeypatch.setattr(Trainer, "step", take)
    second = small_study(out=tmp_path / "study", trials=9)
    pd.testing.assert_frame_equal(without_times(second.trials[: len(first.trials)]), without_times(first.trials))
    pd.testing.assert_frame_equal(without_times(second.trials), without_times(small_study().trials))
