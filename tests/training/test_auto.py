"""`train(model="auto")`: candidates, selection and resuming."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from logged import logged
from small_panels import P, panel_table

import femts
from femts.data.loading import load_dataset
from femts.errors import RunFailure, UsageError
from femts.forecaster.forecaster import Forecaster
from femts.forecaster.run_folder import CANDIDATES
from femts.training.select import plan as planning
from femts.training.select import run as choice
from femts.training.select import trial
from femts.training.select.candidates import Candidate
from femts.training.select.constants import NAIVE_NAMES
from femts.training.select.rule import best_mean
from femts.training.select.trial import CandidateResult
from femts.training.stopping import Interrupted
from femts.training.train import train

ROWS = 72


def months(rows: int = ROWS) -> pd.DataFrame:
    """A trend and a yearly season with noise."""
    rng, month = np.random.default_rng(0), np.arange(rows)
    values = 50 + 0.3 * month + 8 * np.sin(2 * np.pi * month / 12) + 3 * rng.normal(size=rows)
    return pd.DataFrame({"date": pd.date_range("2010-01-01", periods=rows, freq="MS"), "y": values})


@pytest.fixture(scope="module", autouse=True)
def quick() -> Any:
    """Fast candidates only, and a small network."""
    patch = pytest.MonkeyPatch()
    quick = Candidate("seasonal_naive"), Candidate("ridge"), Candidate("auto_theta", slow=True)
    few = (*quick, Candidate("auto_arima", slow=True, reason="slow"), Candidate("dlinear", learns=True))
    patch.setattr(choice, "shortlist", lambda *_: few)
    patch.setattr(planning, "SMALL", 0)  # as a large table: several origins
    yield
    patch.undo()


@pytest.fixture(scope="module")
def made() -> Forecaster:
    return train(months(), "auto", 12, max_steps=5)


def test_models_are_averaged_and_candidates_recorded(made: Forecaster) -> None:
    record = made.metrics["auto"]
    assert made.config.model == "mean"
    assert record["taken"] == [each.config.model for each in made.members]
    tried = {each["model"]: each for each in record["tried"]}
    assert tried["auto_arima"]["reason"] == "slow" and "error" not in tried["auto_arima"]
    assert sum(record["weights"]) == pytest.approx(1.0)
    errors = [tried[name]["error"] for name in record["taken"]]
    assert record["error"] <= np.average(errors, weights=record["weights"])
    assert record["origins"] == 3


def test_forecast_is_the_mean_of_the_selected_models(made: Forecaster) -> None:
    table = months()
    record = made.metrics["auto"]
    alone = [train(table, name, 12, max_steps=5).predict(table)["y"] for name in record["taken"]]
    np.testing.assert_allclose(
        made.predict(table)["y"], np.average(alone, axis=0, weights=record["weights"]), rtol=1e-5
    )


def test_test_rows_do_not_affect_selection(made: Forecaster) -> None:
    table = months()
    data = load_dataset(table)
    values = data.values.copy()
    values[-12:] = 1e4 * np.random.default_rng(1).normal(size=(12, 1))
    other = train(replace(data, values=values), "auto", 12, max_steps=5)
    for name in ("taken", "error", "windows"):
        assert other.metrics["auto"][name] == made.metrics["auto"][name]
    assert other.metrics["val"] == made.metrics["val"]
    assert other.metrics["test"]["mse"] > 100 * made.metrics["test"]["mse"]
    for ours, theirs in zip(made.model.state_dict().values(), other.model.state_dict().values(), strict=True):
        assert ours.equal(theirs)


def test_single_selected_model_is_an_ordinary_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(choice, "best_mean", lambda tried: best_mean(tried[1:2]))
    made = train(months(), "auto", 12, max_steps=5, out=tmp_path / "run")
    plain = train(months(), "ridge", 12, max_steps=5)
    assert made.config == plain.config
    assert made.metrics["test"] == plain.metrics["test"]
    loaded = femts.load(tmp_path / "run")
    assert loaded.metrics["auto"]["taken"] == ["ridge"]
    pd.testing.assert_frame_equal(loaded.predict(months()), plain.predict(months()))


def test_candidates_scored_at_the_first_origin_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[str]()

    def too_late(candidate: Candidate, *_: Any) -> str:
        asked.append(candidate.model)
        return "no time was left" if asked.count(candidate.model) > 1 else ""

    monkeypatch.setattr(choice, "_too_late", too_late)
    made = train(months(), "auto", 12, max_steps=5)
    assert made.metrics["auto"]["origins"] == 3
    assert all("error" in each for each in made.metrics["auto"]["tried"] if each["model"] != "auto_arima")


def test_a_warning_says_that_only_naive_forecasts_were_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "_too_late", lambda each, *_: "" if each.model in NAIVE_NAMES else "no time was left")
    with pytest.warns(
        femts.AccuracyWarning, match="12 steps: only naive forecasts were tried, for lack of time; with a"
    ):
        train(months(), "auto", 12, max_steps=5)


def test_auto_run_roundtrip(tmp_path: Path) -> None:
    made = train(months(), "auto", 12, max_steps=5, out=tmp_path / "run")
    assert not (tmp_path / "run" / CANDIDATES).exists()
    loaded = femts.load(tmp_path / "run")
    pd.testing.assert_frame_equal(loaded.predict(months(), level=[80]), made.predict(months(), level=[80]))
    assert loaded.metrics["auto"] == made.metrics["auto"]


def test_auto_refit_keeps_the_scores(made: Forecaster, tmp_path: Path) -> None:
    final = train(months(), "auto", 12, max_steps=5, refit=True, out=tmp_path / "run")
    assert final.scored is not None
    assert final.metrics["test"] == made.metrics["test"]
    assert final.data["split"]["train"] == [0, ROWS]
    loaded = femts.load(tmp_path / "run")
    pd.testing.assert_frame_equal(loaded.predict(months()), final.predict(months()))
    assert not np.allclose(final.predict(months())["y"], made.predict(months())["y"])


def test_auto_on_a_panel(tmp_path: Path) -> None:
    made = train(panel_table(), "auto", P, max_steps=5, out=tmp_path / "run")
    assert made.metrics["auto"]["origins"] == 1
    loaded = femts.load(tmp_path / "run")
    pd.testing.assert_frame_equal(loaded.predict(panel_table()), made.predict(panel_table()))


def test_candidate_out_of_memory_is_skipped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def starved(request: Any, data: Any) -> Any:
        if request.model in short:
            raise MemoryError
        return fit(request, data)

    fit, short = trial.fit, ["ridge"]
    monkeypatch.setattr(trial, "fit", starved)
    with logged() as notes:
        made = train(months(), "auto", 12, max_steps=5)
    tried = {each["model"]: each for each in made.metrics["auto"]["tried"]}
    assert "Out of memory" in tried["ridge"]["reason"] and "error" in tried["seasonal_naive"]
    assert any(note.startswith("ridge: not tried, as Out of memory") for note in notes)
    short += tried
    with pytest.raises(RunFailure, match=r"No model could be tried\. Out of memory"):
        train(months(), "auto", 12, max_steps=5, out=tmp_path / "run")


def test_time_limit_uses_a_single_origin() -> None:
    made = train(months(), "auto", 12, time_limit="2m", max_steps=5)
    assert made.metrics["auto"]["origins"] == 1
    assert made.config.training.max_time == "2m"
    assert all("error" in each for each in made.metrics["auto"]["tried"] if each["model"] != "auto_arima")


def test_no_viable_candidate_writes_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(choice, "shortlist", lambda *_: (Candidate("seasonal_naive"), Candidate("ridge")))
    with pytest.raises(UsageError, match=r"No model could be tried\. A look-back of 500"):
        train(months(), "auto", 12, seq_len=500, out=tmp_path / "run")
    assert not list(tmp_path.glob("run/*"))


def test_model_settings_are_refused_for_auto(tmp_path: Path) -> None:
    for settings in ({"model.ridge": 0.1}, {"training.loss": "pinball"}):
        with pytest.raises(UsageError):
            train(months(), "auto", 12, settings=settings, out=tmp_path / "run")
    with pytest.raises(UsageError, match="selects a model during training"):
        femts.tune(months(), "auto", 12, trials=1)
    assert not (tmp_path / "run").exists()


def train_auto(dataset: Any = None, pred_len: int = 12, **how: Any) -> Forecaster:
    """`auto` with a few fast candidates."""
    return train(months() if dataset is None else dataset, "auto", pred_len, max_steps=5, **how)


def files(folder: Path) -> dict[str, bytes]:
    """Content of each file in `folder`."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def interrupted_at(model: str, run: Path) -> None:
    """Interrupt `auto` before it tries `model`."""

    def stopped(candidate: Candidate, *rest: Any) -> CandidateResult:
        if candidate.model == model:
            raise Interrupted("stopped")
        return try_candidate(candidate, *rest)

    try_candidate = trial.try_candidate
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Interrupted, match="continues with resume=True"):
        patch.setattr(choice, "try_candidate", stopped)
        train_auto(out=run)


@pytest.fixture(scope="module")
def interrupted_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("begun") / "run"
    interrupted_at("auto_theta", run)
    return run


@pytest.fixture
def interrupted(interrupted_once: Path, tmp_path: Path) -> Path:
    """A copy of a run that was interrupted after its second candidate."""
    return Path(shutil.copytree(interrupted_once, tmp_path / "run"))


OTHERS = [
    ({"dataset": months(60)}, "data 'frame' changed since run .* was started; train again in a new folder"),
    ({"pred_len": 6}, "started with pred_len=12, not 6"),
    ({"seq_len": 24}, "started with seq_len=auto, not 24"),
    ({"protocol": "lookback96"}, "started with protocol=seasons, not lookback96"),
    ({"seed": 7}, r"started with training\.seed=42, not 7"),
    ({"refit": True}, "started with refit=False, not refit=True"),
    ({"dataset": load_dataset(months(), calendar=True)}, r"started with dataset\.roles\.target=None, not \['y'\]"),
    ({"dataset": load_dataset(months(), min=1)}, r"started with dataset\.domain\.min=None, not 1"),
    (
        {"dataset": load_dataset(months(), transform="log1p")},
        r"started with dataset\.domain\.transform=None, not log1p",
    ),
]


@pytest.mark.parametrize(("changes", "message"), OTHERS, ids=[message[-30:] for _, message in OTHERS])
def test_resume_with_other_arguments_is_refused(interrupted: Path, changes: dict[str, Any], message: str) -> None:
    before = files(interrupted)
    with pytest.raises(UsageError, match="unfinished run"):
        train_auto(out=interrupted)
    with pytest.raises(UsageError, match=message), logged() as notes:
        train_auto(out=interrupted, resume=True, **changes)
    assert files(interrupted) == before and not notes


def test_interrupted_auto_resumes_bit_identically(interrupted: Path, made: Forecaster) -> None:
    done = interrupted / CANDIDATES / "seasonal_naive" / "0" / "metrics.json"
    before, seen = done.read_bytes(), list[str]()
    with logged(also=lambda: seen.append(done.read_bytes().hex())):
        again = train_auto(out=interrupted, resume=True)
    assert set(seen) == {before.hex()}
    assert again.metrics["test"] == made.metrics["test"]


def test_auto_interrupted_before_the_first_candidate_resumes(tmp_path: Path, made: Forecaster) -> None:
    interrupted_at("seasonal_naive", tmp_path / "run")
    again = train_auto(out=tmp_path / "run", resume=True)
    assert again.metrics["test"] == made.metrics["test"]


def test_failed_resume_keeps_the_folder(interrupted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = files(interrupted)
    late = CandidateResult("any", reason="it is late")
    monkeypatch.setattr(choice, "try_candidate", lambda candidate, *_: replace(late, model=candidate.model))
    with pytest.raises(UsageError, match=r"No model could be tried\. it is late"):
        train_auto(out=interrupted, resume=True)
    assert files(interrupted) == before


def test_damaged_request_is_refused(interrupted: Path) -> None:
    for content in ("[1]", "{", "7"):
        (interrupted / CANDIDATES / "request.json").write_text(content)
        before = files(interrupted)
        with pytest.raises(UsageError, match=r"request\.json was changed and cannot be resumed; train again"):
            train_auto(out=interrupted, resume=True)
        assert files(interrupted) == before


def test_finished_auto_run_refuses_other_arguments(tmp_path: Path) -> None:
    run = tmp_path / "run"
    made = train_auto(out=run, refit=True)
    before = files(run)
    with logged() as notes:
        again = train_auto(out=run, resume=True, refit=True)
    assert notes == [f"run {run} is already finished"]
    assert again.metrics == made.metrics and again.scored is not None
    with pytest.raises(UsageError, match=r"started with model\.name=auto, not ridge"):
        train(months(), "ridge", 12, out=run, resume=True)
    with pytest.raises(UsageError, match="started with refit=True, not refit=False"):
        train_auto(out=run, resume=True)
    with pytest.raises(UsageError, match="data 'frame' changed since"):
        train_auto(months(60), out=run, resume=True, refit=True)
    assert files(run) == before


def test_resume_of_a_named_model_as_auto_is_refused(tmp_path: Path) -> None:
    train(months(), "naive", 12, out=tmp_path / "run")
    with pytest.raises(UsageError, match=r"started with model\.name=naive, not auto"):
        train_auto(out=tmp_path / "run", resume=True)
