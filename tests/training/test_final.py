"""`final=True`: the forecaster learns from all rows, scores stay those of the one that did not, and both are kept."""

from __future__ import annotations

import json
import signal
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_runs import DATA, MODELS, essence, signal_at, small_run
from small_tables import small_table

import femts
from femts.data.loading import load_dataset
from femts.data.synthetic import synthetic_frame
from femts.errors import AgeWarning, UsageError
from femts.forecaster.forecaster import Forecaster
from femts.models.registry import model_names
from femts.training.refit import refit
from femts.training.state import TrainState
from femts.training.stopping import Interrupted
from femts.training.train import train

FRAME = synthetic_frame(2000)
STEPS = 33  # of the first training of `dlinear`
TINY = {"model.d_model": 16, "model.n_layers": 1, "model.n_heads": 2}

_KILLED = """
import signal, sys
import pandas as pd
import pytest
from small_runs import signal_at, small_run

signal_at(pytest.MonkeyPatch(), int(sys.argv[2]), signal.SIGKILL)
small_run(out=sys.argv[1], final=True)
"""


def both(forecaster: Forecaster) -> list[dict[str, Any]]:
    """All that equal runs share, of the forecaster and of the one that was scored."""
    assert forecaster.scored is not None
    return [essence(forecaster), essence(forecaster.scored)]


@pytest.fixture(scope="module")
def whole() -> Forecaster:
    return small_run(final=True)


def test_scores_are_those_of_a_run_without_it_and_the_forecaster_is_another(whole: Forecaster) -> None:
    plain = small_run()
    assert whole.scored is not None
    assert essence(whole.scored) == essence(plain)
    for name in ("val", "test", "kept_step", "steps", "intervals"):
        assert whole.metrics[name] == plain.metrics[name]
    assert whole.metrics["scored"] == {
        "folder": "scored",
        "train": [0, 1400],
        "val": [1400, 1600],
        "test": [1600, 2000],
    }
    assert whole.metrics["final"]["rows"] == 2000
    assert whole.metrics["final"]["steps"] == plain.metrics["kept_step"]
    assert whole.data["split"] == {"train": [0, 2000], "val": [2000, 2000], "test": [2000, 2000]}
    assert not np.allclose(whole.predict(FRAME)["s0"], plain.predict(FRAME)["s0"])
    assert "learned from: all 2000 rows; scores are of one on the first 1400" in repr(whole)


@pytest.mark.parametrize("model", ["dlinear", "ridge", "fem_sm_ridge"])
def test_the_last_rows_change_the_forecast_and_not_what_was_chosen(model: str) -> None:
    changed = FRAME.copy()
    changed.loc[1700:1900, "s0"] += 30  # of the test part, and in no look-back of the forecast
    one, other = (_on(data, model) for data in (FRAME, changed))
    assert one.scored is not None and other.scored is not None
    same = [one.scored, other.scored]
    assert essence(same[0])["weights"] == essence(same[1])["weights"]
    assert same[0].metrics["val"] == same[1].metrics["val"]
    assert same[0].metrics["kept_step"] == same[1].metrics["kept_step"]
    first, second = (run.predict(FRAME.tail(60), 600)["s0"] for run in (one, other))
    assert not np.allclose(first, second)
    first, second = (run.predict(FRAME.tail(60), 600)["s0"] for run in same)
    np.testing.assert_array_equal(first, second)


def _on(frame: Any, model: str, **changes: Any) -> Forecaster:
    usual = {"pred_len": 24, "seq_len": 48, "max_epochs": 1, "device": "cpu", "settings": MODELS.get(model, {})}
    data = changes.pop("dataset", None) or load_dataset(frame)
    return train(data, model, **{**usual, **changes}, final=True)


@pytest.mark.parametrize(
    ("model", "changes"),
    [
        ("dlinear", {"max_epochs": 8, "settings": {"training.lr": 0.05, "training.warm_up": 0.5}}),
        ("dlinear", {"settings": {"training.schedule": "exponential", "training.hold_epochs": 1}}),
        ("fem_sm", {}),
        ("fem_sm_ridge", {"max_epochs": 2}),
        ("ridge", {}),
    ],
    ids=["chosen before the end", "exponential", "dropout", "closed form and steps", "closed form"],
)
def test_on_the_training_rows_alone_a_refit_is_the_training_itself(model: str, changes: dict[str, Any]) -> None:
    scored = small_run(model, **changes)
    again = refit(scored, load_dataset(FRAME.iloc[:1400]))
    if changes.get("max_epochs") == 8:
        assert scored.metrics["kept_step"] < scored.metrics["steps"], "nothing was chosen: this run proves nothing"
    assert essence(again)["weights"] == essence(scored)["weights"]
    assert again.scored is scored and again.preprocess_record()["scaler"] == scored.preprocess_record()["scaler"]


@pytest.mark.parametrize("model", model_names())
def test_every_model_can_and_is_loaded_again(model: str, tmp_path: Path) -> None:
    card = {key: value for key, value in TINY.items() if key[6:] in _settings(model)}
    made = train(
        small_table(), model, 12, seq_len=24, max_steps=3, device="cpu", final=True, settings=card, out=tmp_path / "run"
    )
    again = femts.load(tmp_path / "run")
    assert both(again) == both(made)
    again.save(tmp_path / "copy")
    assert both(femts.load(tmp_path / "copy")) == both(made)


def _settings(model: str) -> set[str]:
    return {str(name).removeprefix("model.") for name in femts.models(model)["setting"]}


def test_intervals_come_from_the_errors_of_the_scored_model_on_validation_and_test_rows(whole: Forecaster) -> None:
    assert whole.scored is not None and whole.intervals is not None
    held_out = replace(DATA, split=replace(DATA.split, val=(1400, 2000)))
    assert essence(replace(whole.scored, intervals=whole.scored.calibrate(dataset=held_out)))["intervals"] == (
        whole.intervals.to_bytes().hex()
    )
    whole.scored.calibrate(dataset=DATA)
    assert whole.intervals.windows == 600 - 24 + 1


def test_all_scores_in_python_are_of_the_scored_one(whole: Forecaster) -> None:
    plain = small_run()
    assert whole.evaluate(dataset=DATA) == plain.metrics["test"]
    assert whole.scores(by="step", level=[80], dataset=DATA).equals(plain.scores(by="step", level=[80], dataset=DATA))
    assert whole.coverage(dataset=DATA).equals(plain.coverage(dataset=DATA))
    assert not femts.audit(whole, DATA).failed
    longer = small_run(final=True)
    assert longer.calibrate(36, dataset=DATA).steps == 36
    assert longer.scored is not None and longer.scored.intervals is not None
    assert (longer.scored.intervals.steps, longer.scored.intervals.windows) == (36, 200 - 36 + 1)
    assert set(longer.scores(pred_len=36, level=[80], dataset=DATA)["windows"]) == {400 - 36 + 1}


def test_quantiles_known_columns_and_transforms_go_through(tmp_path: Path) -> None:
    table = small_table(columns=("load", "heat", "open"))
    table[["load", "heat"]] = np.exp(table[["load", "heat"]] / 10)
    data = load_dataset(table, target=["load"], past=["heat"], future=["open"], calendar=True, transform="log1p", min=0)
    settings = {"training.loss": "pinball", **TINY}
    made = train(
        data, "fem_sm", 12, seq_len=24, max_steps=4, device="cpu", final=True, settings=settings, out=tmp_path / "r"
    )
    again = femts.load(tmp_path / "r")
    future = table.tail(12).assign(date=lambda t: t["date"] + (t["date"].iloc[-1] - t["date"].iloc[0]) + _step(table))
    forecast = again.predict(table, level=[80], future=future)
    assert forecast.equals(made.predict(table, level=[80], future=future))
    assert (forecast.drop(columns="date") >= 0).all(axis=None)
    assert again.scored is not None
    assert again.preprocess.scaler.mean[0] == again.scored.preprocess.scaler.mean[0], "units stay"
    effects = again.preprocess.effects, again.scored.preprocess.effects
    assert effects[0] is not None and effects[1] is not None
    assert effects[0].to_dict() != effects[1].to_dict(), "and effects are those of all rows"


def _step(table: Any) -> Any:
    return table["date"].iloc[1] - table["date"].iloc[0]


@pytest.mark.slow
@pytest.mark.parametrize("call", [11 + 5, STEPS + 11 + 5, STEPS + 3], ids=["first", "second", "second-before-a-state"])
def test_killed_in_either_training_and_resumed(call: int, whole: Forecaster, python: Any, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert python(_KILLED, out, call).returncode == -signal.SIGKILL
    assert (out / "scored" / "metrics.json").is_file() == (call > STEPS)
    with pytest.raises(UsageError, match=r"unfinished.*--resume"):
        femts.load(out)
    with pytest.raises(UsageError, match="holds an unfinished run; continue it with --resume"):
        small_run(out=out, final=True)
    assert both(small_run(out=out, final=True, resume=True)) == both(whole)
    assert both(femts.load(out)) == both(whole)


@pytest.mark.parametrize("call", [4, STEPS + 4])
def test_interrupted_and_resumed_from_that_very_step(
    call: int, whole: Forecaster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as patch:
        signal_at(patch, call, signal.SIGINT)
        with pytest.raises(Interrupted, match="continue it with --resume"):
            small_run(out=tmp_path / "run", final=True)
    inner = tmp_path / "run" / "scored" if call < STEPS else tmp_path / "run"
    assert TrainState.load(inner / "checkpoints" / "last.ckpt").step == 4
    with pytest.raises(UsageError, match="begun with final=True, not False"):
        small_run(out=tmp_path / "run", resume=True)
    assert both(small_run(out=tmp_path / "run", final=True, resume=True)) == both(whole)


def test_data_that_changed_between_the_trainings_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with monkeypatch.context() as patch:
        signal_at(patch, STEPS + 1, signal.SIGINT)
        with pytest.raises(Interrupted):
            small_run(out=tmp_path / "run", final=True)
    (tmp_path / "run" / "checkpoints" / "last.ckpt").unlink()
    for name in ("metrics.json", "preprocess.json"):
        assert (tmp_path / "run" / "scored" / name).is_file()
    other = load_dataset(FRAME.assign(s0=FRAME["s0"] + 1))
    with pytest.raises(UsageError, match=r"changed since run .*scored began"):
        _on(None, "dlinear", dataset=other, out=tmp_path / "run", resume=True, max_epochs=3)


def test_a_finished_one_says_so(tmp_path: Path) -> None:
    small_run("ridge", out=tmp_path / "run", final=True)
    said = list[str]()
    small_run("ridge", out=tmp_path / "run", final=True, resume=True, say=said.append)
    assert said[-1].endswith("run is finished; nothing is left to do")
    assert json.loads((tmp_path / "run" / "metrics.json").read_text())["final"]["steps"] == 0


def test_time_is_shared_by_both_trainings(monkeypatch: pytest.MonkeyPatch) -> None:
    patient = {"training.patience": 100_000}  # a fast machine would stop early
    made = small_run(max_epochs=None, max_steps=10**6, max_time="6s", final=True, settings=patient)
    assert made.scored is not None and made.scored.metrics["stopped"] == "max_time"
    assert made.scored.metrics["seconds"] < 5
    schedule = made.metrics["schedule"]["steps"]
    assert made.metrics["kept_step"] <= schedule <= made.metrics["steps"] + 1
    assert 0 < made.metrics["final"]["steps"] <= made.metrics["kept_step"]


def test_the_age_of_what_was_learned_is_said_beyond_a_horizon(whole: Forecaster) -> None:
    plain = small_run()
    with pytest.warns(
        AgeWarning, match=r"ends 600 steps after the last row learned from \(2020-03-04 07:00:00\); train "
    ):
        plain.predict(FRAME)
    longer = synthetic_frame(2100)
    with pytest.warns(AgeWarning, match=r"ends 25 steps after .*; train again on the rows since"):
        whole.predict(longer.iloc[:2025])
    zoned = FRAME.assign(date=FRAME["date"].dt.tz_localize("UTC"))
    with pytest.warns(
        AgeWarning, match=r"age .* not known: it ends .*\+00:00, .* both with a time zone, or both without"
    ):
        plain.predict(zoned)
    with warnings.catch_warnings(action="error"):
        whole.predict(FRAME)
        whole.predict(longer.iloc[:2024])
        plain.predict(FRAME.iloc[:1400])
        plain.predict(FRAME.iloc[:800])
        femts.backtest(plain, DATA, femts.Cutoffs(windows=2, step=24))


def test_what_cannot_be_is_refused_in_a_sentence(whole: Forecaster) -> None:
    with pytest.raises(UsageError, match="Argument 'final' is"):
        small_run(final="yes")
    bare = Forecaster(**{**vars(small_run()), "metrics": {}})
    with pytest.raises(UsageError, match="does not say by which steps it was trained"):
        refit(bare, DATA)
    with pytest.raises(UsageError, match=r"does not fit .* of 'The frame, before row 48'"):
        femts.backtest(whole, FRAME.iloc[:72], femts.Cutoffs(windows=1, step=1), refit=True)
