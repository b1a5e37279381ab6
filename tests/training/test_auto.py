"""`train(model="auto")`: what it tries, takes, keeps and goes on with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from femts.training.choice import run as choice
from femts.training.choice import trial
from femts.training.choice.candidates import Candidate
from small_panels import P, panel_table

import femts
from femts.data.dataset import Dataset
from femts.data.loading import load_dataset
from femts.errors import RunFailure, UsageError
from femts.forecaster.forecaster import Forecaster
from femts.forecaster.run_folder import CANDIDATES
from femts.training.stopping import Interrupted
from femts.training.train import train

ROWS = 72


def months(rows: int = ROWS) -> pd.DataFrame:
    """A trend and a season of 12 months, with some noise."""
    rng, month = np.random.default_rng(0), np.arange(rows)
    values = 50 + 0.3 * month + 8 * np.sin(2 * np.pi * month / 12) + 3 * rng.normal(size=rows)
    return pd.DataFrame({"date": pd.date_range("2010-01-01", periods=rows, freq="MS"), "y": values})


@pytest.fixture(scope="module", autouse=True)
def quick() -> Any:
    """Without what takes seconds a fit; a small network in its place."""
    patch = pytest.MonkeyPatch()
    names = ("seasonal_naive", "ridge", "auto_theta")
    few = (*map(Candidate, names), Candidate("auto_arima", reason="slow"), Candidate("dlinear", learns=True))
    patch.setattr(choice, "shortlist", lambda *_: few)
    yield
    patch.undo()


@pytest.fixture(scope="module")
def made() -> Forecaster:
    return train(months(), "auto", 12, max_steps=5)


def test_several_models_are_taken_and_what_was_tried_is_kept(made: Forecaster) -> None:
    record = made.metrics["auto"]
    assert made.config.model == "mean"
    assert record["taken"] == [each.config.model for each in made.members]
    tried = {each["model"]: each for each in record["tried"]}
    assert tried["auto_arima"]["reason"] == "slow" and "error" not in tried["auto_arima"]
    assert record["error"] <= 1.1 * min(each["error"] for each in tried.values() if "error" in each)
    assert record["origins"] == 3
    assert made.metrics["naive"]["skill"] > 0


def test_the_forecast_is_the_mean_of_what_the_models_forecast_by_themselves(made: Forecaster) -> None:
    table = months()
    alone = [train(table, name, 12, max_steps=5).predict(table)["y"] for name in made.metrics["auto"]["taken"]]
    np.testing.assert_allclose(made.predict(table)["y"], np.mean(alone, axis=0), rtol=1e-5)


def test_the_test_part_has_no_say(made: Forecaster) -> None:
    """Rows of the test part change scores, and nothing of the choice or of the model."""
    table = months()
    data = load_dataset(table)
    values = data.values.copy()
    values[-12:] = 1e4 * np.random.default_rng(1).normal(size=(12, 1))
    assert isinstance(data, Dataset)
    other = train(replace(data, values=values), "auto", 12, max_steps=5)
    for name in ("taken", "error", "windows"):
        assert other.metrics["auto"][name] == made.metrics["auto"][name]
    assert other.metrics["val"] == made.metrics["val"]
    assert other.metrics["test"]["mse"] > 100 * made.metrics["test"]["mse"]
    for ours, theirs in zip(made.model.state_dict().values(), other.model.state_dict().values(), strict=True):
        assert ours.equal(theirs)


def test_twice_the_same(made: Forecaster) -> None:
    again = train(months(), "auto", 12, max_steps=5)
    assert again.metrics["test"] == made.metrics["test"]
    pd.testing.assert_frame_equal(again.predict(months(), level=[80]), made.predict(months(), level=[80]))


def test_a_single_model_is_an_ordinary_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(choice, "best_mean", lambda tried: tried[1:2])
    made = train(months(), "auto", 12, max_steps=5, out=tmp_path / "run")
    plain = train(months(), "ridge", 12, max_steps=5)
    assert made.config == plain.config
    assert made.metrics["test"] == plain.metrics["test"]
    loaded = femts.load(tmp_path / "run")
    assert loaded.metrics["auto"]["taken"] == ["ridge"]
    pd.testing.assert_frame_equal(loaded.predict(months()), plain.predict(months()))


def test_a_run_is_written_whole_and_loads(tmp_path: Path) -> None:
    made = train(months(), "auto", 12, max_steps=5, out=tmp_path / "run")
    assert not (tmp_path / "run" / CANDIDATES).exists()
    loaded = femts.load(tmp_path / "run")
    pd.testing.assert_frame_equal(loaded.predict(months(), level=[80]), made.predict(months(), level=[80]))
    assert loaded.metrics["auto"] == made.metrics["auto"]


def test_a_final_one_learns_from_all_rows_and_keeps_the_scores(made: Forecaster, tmp_path: Path) -> None:
    final = train(months(), "auto", 12, max_steps=5, final=True, out=tmp_path / "run")
    assert final.scored is not None
    assert final.metrics["test"] == made.metrics["test"]
    assert final.data["split"]["train"] == [0, ROWS]
    loaded = femts.load(tmp_path / "run")
    pd.testing.assert_frame_equal(loaded.predict(months()), final.predict(months()))
    assert not np.allclose(final.predict(months())["y"], made.predict(months())["y"])


def test_interrupted_and_resumed_it_is_the_same(
    made: Forecaster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def stopped(candidate: Candidate, *rest: Any) -> Any:
        if candidate.model == "dlinear":
            raise Interrupted("stopped")
        return try_candidate(candidate, *rest)

    try_candidate, run = choice.try_candidate, tmp_path / "run"
    monkeypatch.setattr(choice, "try_candidate", stopped)
    with pytest.raises(Interrupted, match="goes on with --resume"):
        train(months(), "auto", 12, max_steps=5, out=run)
    monkeypatch.undo()
    before = (run / CANDIDATES / "auto_theta" / "0" / "metrics.json").stat().st_mtime_ns
    with pytest.raises(UsageError, match="unfinished run"):
        train(months(), "auto", 12, max_steps=5, out=run)
    assert (run / CANDIDATES / "auto_theta" / "0" / "metrics.json").stat().st_mtime_ns == before
    again = train(months(), "auto", 12, max_steps=5, out=run, resume=True)
    assert again.metrics["test"] == made.metrics["test"]
    assert train(months(), "auto", 12, max_steps=5, out=run, resume=True).metrics == again.metrics


def test_a_panel_is_chosen_for_as_a_whole(tmp_path: Path) -> None:
    made = train(panel_table(), "auto", P, max_steps=5, out=tmp_path / "run")
    assert isinstance(made, Forecaster)
    assert made.metrics["auto"]["origins"] == 1
    loaded = femts.load(tmp_path / "run")
    pd.testing.assert_frame_equal(loaded.predict(panel_table()), made.predict(panel_table()))


def test_a_candidate_that_runs_out_of_memory_is_left_out_and_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def starved(order: Any, data: Any) -> Any:
        if order.model in short:
            raise MemoryError
        return carried_out(order, data)

    carried_out, short, said = trial.carry_out, ["ridge"], list[str]()
    monkeypatch.setattr(trial, "carry_out", starved)
    made = train(months(), "auto", 12, max_steps=5, say=said.append)
    tried = {each["model"]: each for each in made.metrics["auto"]["tried"]}
    assert "not enough memory" in tried["ridge"]["reason"] and "error" in tried["seasonal_naive"]
    assert any(note.startswith("ridge: not tried, as There is not enough memory") for note in said)
    short += tried
    with pytest.raises(RunFailure, match=r"No model could be tried\. There is not enough memory"):
        train(months(), "auto", 12, max_steps=5, out=tmp_path / "run")


def test_a_limit_of_time_is_written_as_it_was_given() -> None:
    made = train(months(), "auto", 12, max_time="2m", max_steps=5)
    assert made.config.training.max_time == "2m"
    assert all("error" in each for each in made.metrics["auto"]["tried"] if each["model"] != "auto_arima")


def test_where_nothing_can_be_tried_nothing_is_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(choice, "shortlist", lambda *_: (Candidate("seasonal_naive"), Candidate("ridge")))
    with pytest.raises(UsageError, match=r"No model could be tried\. A look-back of 500"):
        train(months(), "auto", 12, seq_len=500, out=tmp_path / "run")
    assert not list(tmp_path.glob("run/*"))


def test_what_is_of_one_model_is_refused(tmp_path: Path) -> None:
    for settings in ({"model.ridge": 0.1}, {"training.loss": "pinball"}):
        with pytest.raises(UsageError):
            train(months(), "auto", 12, settings=settings, out=tmp_path / "run")
    with pytest.raises(UsageError, match="chooses among the models"):
        femts.tune(months(), "auto", 12, trials=1)
    assert not (tmp_path / "run").exists()
