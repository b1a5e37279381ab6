"""Budgets of steps, epochs and time."""

from __future__ import annotations

import math
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_runs import DATA, MODELS, TEST, TRAIN, VAL, essence, small_run

import femts
from femts.cli import main
from femts.errors import RunFailure
from femts.training import evaluate, fit, loop
from femts.training.constants import FEWEST_SCORED, VALIDATION_TIMED
from femts.training.loop import Trainer


def test_learning_rate_ends_at_zero() -> None:
    by_epochs = small_run(max_epochs=2)
    assert by_epochs.metrics["steps"] == 2 * math.ceil(TRAIN / 125)
    by_steps = small_run(max_epochs=None, max_steps=50)
    assert (
        by_steps.metrics["steps"] == by_steps.metrics["kept_step"] == 50 and by_steps.metrics["stopped"] == "max_steps"
    )
    assert len(by_steps.validations) == 8, "an eighth of the budget between two validations"
    for run in (by_epochs, by_steps):
        assert run.validations[-1]["lr"] == 0.0 < run.validations[-2]["lr"]


def test_keep_last_or_best_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("femts.training.checkpoint.MARGIN", 1.0)  # the last validation is worse, but not by so much
    settings = {"training.lr": 0.05, "training.warm_up": 0.5, "training.val_windows": None}
    last, best = (small_run(max_epochs=8, settings={**settings, "training.keep": keep}) for keep in ("last", "best"))
    val = [row["val_mse"] for row in best.validations]
    assert min(val) < val[-1], "the last validation is the best: this run proves nothing"
    assert (last.metrics["kept_step"], last.metrics["val"]["mse"]) == (last.validations[-1]["step"], val[-1])
    assert (best.metrics["kept_step"], best.metrics["val"]["mse"]) == (
        best.validations[int(np.argmin(val))]["step"],
        min(val),
    )


def test_validation_is_subsampled_but_final_scores_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    run = small_run(settings={"training.val_windows": 50, "training.val_every": 4})
    assert [row["step"] for row in run.validations] == [4, 8, 12, 16, 20, 24, 28, 32, 33]
    assert run.metrics["val"]["windows"] == VAL
    assert run.validations[-1]["val_mse"] != run.metrics["val"]["mse"] == run.evaluate("val", dataset=DATA)["mse"]


def test_channel_subsampling_is_seeded() -> None:
    model = "fem_sm"
    changes: dict[str, Any] = {"max_epochs": 1, "settings": {**MODELS.get(model, {}), "training.channels": 2}}
    run = small_run(model, **changes)
    assert run.config.training.channels == 2
    assert essence(small_run(model, **changes)) == essence(run)
    assert essence(small_run(model, max_epochs=1))["test"] != essence(run)["test"]
    as_many = small_run(model, max_epochs=1, settings={"training.channels": len(DATA.columns)})
    assert as_many.config.training.channels is None and essence(as_many) == essence(small_run(model, max_epochs=1))


def test_single_slow_step_does_not_stop_training(monkeypatch: pytest.MonkeyPatch) -> None:
    take, calls = Trainer.step, 0

    def step(self: Trainer) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            time.sleep(2)  # by this step alone, the scores would seem to need minutes
        take(self)

    monkeypatch.setattr(Trainer, "step", step)
    run = small_run(max_epochs=1, time_limit="40s", settings={"training.batch_size": 8})
    assert run.metrics["stopped"] == "max_steps"


def test_time_limit_stops_and_scores(tmp_path: Path) -> None:
    changes: dict[str, Any] = {"max_epochs": 100_000, "time_limit": "1.5s", "settings": {"training.patience": 100_000}}
    run = small_run(out=tmp_path / "run", **changes)
    assert run.metrics["stopped"] == "max_time" and run.metrics["steps"] > 10
    assert run.validations[-1]["lr"] == 0.0 and run.validations[-1]["step"] == run.metrics["steps"]
    assert femts.load(tmp_path / "run").evaluate("val", dataset=DATA) == run.metrics["val"]
    again = small_run(out=tmp_path / "run", **changes, resume=True)
    assert again.metrics == run.metrics


def test_expired_time_limit_takes_one_step() -> None:
    run = small_run(time_limit="0.001s")
    assert (run.metrics["stopped"], run.metrics["steps"]) == ("max_time", 1)
    assert run.metrics["val"]["windows"] == VAL and math.isfinite(run.metrics["test"]["mse"])


@pytest.mark.parametrize(("model", "refit"), [("ridge", True), ("fem_sm", False)])
def test_expired_time_limit_scores_fewer_windows(
    model: str, refit: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(evaluate, "GRACE", 0.0)
    run = small_run(model, time_limit="0.001s", refit=refit, out=tmp_path / "run")
    some = FEWEST_SCORED
    assert run.metrics["thinned"] == {"val": VAL, "test": TEST}
    assert run.metrics["val"]["windows"] == run.metrics["test"]["windows"] == some
    assert run.intervals is not None and run.intervals.windows == (2 * some if refit else some)
    assert run.evaluate("test")["windows"] == TEST, "only the training is short of time"
    assert femts.load(tmp_path / "run").metrics["thinned"] == run.metrics["thinned"]


def test_summary_notes_subsampled_scores(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    within = fit.scores_within
    monkeypatch.setattr(evaluate, "GRACE", 0.0)
    monkeypatch.setattr(fit, "scores_within", lambda deadline, *rest: within(deadline and 0.0, *rest))
    monkeypatch.chdir(tmp_path)
    command = ["train", "--dataset", "synthetic", "--model", "naive", "--horizon", "24", "--time-limit"]
    assert main([*command, "1m", "--out", "short"]) == 0
    assert re.search(
        r"note: short scored 16 of \d+ val and 16 of \d+ test windows, evenly spaced, within the time limit",
        capsys.readouterr().err,
    )
    monkeypatch.setattr(fit, "scores_within", within)
    assert main([*command, "10m", "--out", "long"]) == main([*command[:-1], "--out", "whole"]) == 0
    assert "within the time limit" not in capsys.readouterr().err
    metrics = [femts.load(name).metrics for name in ("long", "whole")]
    assert metrics[0]["test"] == metrics[1]["test"] and metrics[0]["intervals"] == metrics[1]["intervals"]


def test_training_beyond_memory_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("femts.training.resources.available_memory", lambda: 2**20)
    with pytest.raises(
        RunFailure, match=r"Out of memory: this training needs about [\d,]+ MiB, but only 1 MiB are free"
    ):
        small_run("fem_sm", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_slow_validation_uses_fewer_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    scored = list[int]()

    def slow(*arguments: Any, **options: Any) -> Any:
        found = scored_by(*arguments, **options)
        scored.append(int(found["windows"]))
        time.sleep(0.02 * found["windows"])
        return found

    scored_by = loop.evaluate
    monkeypatch.setattr(loop, "evaluate", slow)
    small_run(time_limit="10s")
    first, *others = scored
    assert first == VALIDATION_TIMED and len(set(others)) == 1 and others[0] <= 0.03 * 10 / 0.02 < VAL
