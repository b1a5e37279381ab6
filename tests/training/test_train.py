"""End-to-end training on small data."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from run_damage import FILES
from small_runs import DATA, TRAIN, essence, small_run
from small_tables import small_table

import femts
from femts.errors import RunFailure, UsageError
from femts.models.dlinear import DLinear
from femts.training.checkpoint import TrainState
from femts.training.train import train


def test_same_seed_gives_the_same_result() -> None:
    first = essence(small_run("fem_sm", max_epochs=2))
    torch.manual_seed(999)  # what the caller did before must not matter
    random.seed(999)
    assert essence(small_run("fem_sm", max_epochs=2)) == first
    assert essence(small_run("fem_sm", max_epochs=2, seed=43))["test"] != first["test"]


def test_early_stopping_scores_the_best_weights(tmp_path: Path) -> None:
    settings = {"training.lr": 0.02, "training.warm_up": 0.3, "training.patience": 3, "training.val_windows": None}
    run = small_run(out=tmp_path / "run", max_epochs=40, settings=settings)
    metrics, history = run.metrics, run.validations
    val = [row["val_mse"] for row in history]
    best = int(np.argmin(val))
    assert metrics["kept_step"] == history[best]["step"]
    assert best + 1 < len(history), "the last validation is the best: this run proves nothing"
    assert metrics["stopped"] == "early"
    assert metrics["steps"] == history[-1]["step"] and len(history) == best + 1 + 3
    # The weights in the forecaster and on disk are really those of that step, not the last ones.
    for forecaster in (run, femts.load(tmp_path / "run")):
        assert forecaster.evaluate("val", dataset=DATA)["mse"] == min(val) == metrics["val"]["mse"]
        assert forecaster.evaluate("test", dataset=DATA) == metrics["test"]
    last = TrainState.load(tmp_path / "run" / "checkpoints" / "last.ckpt").model
    assert not torch.equal(last["trend.weight"], run.model.state_dict()["trend.weight"])


def test_parameter_free_model_makes_a_run(tmp_path: Path) -> None:
    run = small_run("seasonal_naive", out=tmp_path / "run")
    assert run.metrics["steps"] == run.metrics["parameters"] == 0
    assert run.metrics["kept_step"] is run.metrics["stopped"] is None
    again = femts.load(tmp_path / "run")
    assert again.evaluate("test", dataset=DATA) == run.metrics["test"]
    assert essence(small_run("seasonal_naive", out=tmp_path / "run", resume=True)) == essence(run)


def test_closed_form_uses_training_rows_only() -> None:
    frame = DATA.frame()
    later = frame.copy()
    later.loc[DATA.split.train[0, 1] :, list(DATA.columns)] = 1e6
    settings = {"model.longest": 48}
    weights = [train(f, "ridge", 24, seq_len=48, settings=settings).model.state_dict() for f in (frame, later)]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    assert weights[0]["linear.dense"].abs().max() > 0.01


def test_run_folder_contents(tmp_path: Path) -> None:
    small_run(out=tmp_path / "run")
    found = {str(path.relative_to(tmp_path / "run")) for path in (tmp_path / "run").rglob("*") if path.is_file()}
    events = {name for name in found if name.startswith("tensorboard/events.out")}
    assert found - events == {*FILES, "checkpoints/last.ckpt"}
    lines = (tmp_path / "run" / "metrics.csv").read_text().splitlines()
    assert lines[0] == "step,train_loss,val_mse,val_mae,lr,seconds"
    assert len(lines) == 1 + 3


def test_run_without_out_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    run = small_run(max_epochs=1)
    assert list(tmp_path.iterdir()) == []
    run.save(tmp_path / "kept")
    assert essence(femts.load(tmp_path / "kept"))["weights"] == essence(run)["weights"]


def test_global_random_state_is_unchanged() -> None:
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    small_run(max_epochs=1)
    assert torch.equal(torch.rand(3), expected)


def test_gradient_accumulation_equals_a_large_batch() -> None:
    """The last batch and the last step are incomplete."""
    assert TRAIN % 60 and -(-TRAIN // 60) % 4
    large = small_run(settings={"training.batch_size": 240})
    small = small_run(settings={"training.batch_size": 60, "training.accumulate": 4})
    for one, other in zip(large.validations, small.validations, strict=True):
        assert other["lr"] == one["lr"], "the schedule must move with optimiser steps, not with batches"
        assert other["val_mse"] == pytest.approx(one["val_mse"], rel=1e-5)
        assert other["train_loss"] == pytest.approx(one["train_loss"], rel=1e-5)


def test_gradients_are_clipped() -> None:
    """AdamW is invariant to gradient scale unless it is far below its epsilon of 1e-8."""

    def moved(clip: float) -> float:
        settings = {"training.clip": clip, "training.weight_decay": 0.0}
        still: Any = small_run(max_epochs=1, settings={**settings, "training.lr": 1e-12}).model
        model: Any = small_run(max_epochs=1, settings=settings).model
        return float((model.trend.weight.detach() - still.trend.weight.detach()).abs().max())

    assert moved(1e-12) < 1e-3 * moved(1.0)


def test_bf16_trains_and_scores_in_float32(tmp_path: Path) -> None:
    run = small_run("fem_sm", precision="bf16", out=tmp_path / "run", max_epochs=1)
    assert run.metrics["precision"] == "bf16"
    assert all(p.dtype == torch.float32 for p in run.model.parameters())
    assert run.validations[0]["train_loss"] != small_run("fem_sm", max_epochs=1).validations[0]["train_loss"]
    assert femts.load(tmp_path / "run").evaluate("val", dataset=DATA) == run.metrics["val"]


def test_no_weight_decay_parameters_do_not_decay(monkeypatch: pytest.MonkeyPatch) -> None:
    build = DLinear.__init__

    def init(self: Any, config: Any) -> None:
        build(self, config)
        self.initial = {name: p.detach().abs().sum().item() for name, p in self.named_parameters()}

    monkeypatch.setattr(DLinear, "__init__", init)
    monkeypatch.setattr(DLinear, "NO_WEIGHT_DECAY", ("trend.weight", "trend.bias"), raising=False)
    run = small_run(max_epochs=1, settings={"training.lr": 1e-6, "training.weight_decay": 1e5, "training.patience": 1})
    model: Any = run.model
    shrunk = {name: p.abs().sum().item() / model.initial[name] for name, p in model.named_parameters()}
    assert shrunk["trend.weight"] == pytest.approx(1, abs=1e-2)
    assert shrunk["remainder.weight"] < 0.95


def test_nan_loss_stops_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loss, calls, out = DLinear.loss, 0, tmp_path / "run"

    def poisoned(self: DLinear, *batch: Any) -> torch.Tensor:
        nonlocal calls
        calls += self.training
        return loss(self, *batch) * (float("nan") if calls == 11 + 4 else 1.0)

    monkeypatch.setattr(DLinear, "loss", poisoned)
    with pytest.raises(RunFailure, match=r"loss became nan at step 15; lower training\.lr \(it is 0\.001\)"):
        small_run(out=out)
    state = TrainState.load(out / "checkpoints" / "last.ckpt")
    assert (state.step, state.best_step) == (11, 11)
    assert all(value.isfinite().all() for value in [*state.best.values(), *state.model.values()])
    with pytest.raises(UsageError, match="unfinished"):
        femts.load(out)
    monkeypatch.undo()
    assert essence(small_run(out=out, resume=True)) == essence(small_run())


def test_exploding_loss_stops_training(monkeypatch: pytest.MonkeyPatch) -> None:
    for every in [1, 50]:
        monkeypatch.setattr("femts.training.step.CHECK_EVERY", every)
        with pytest.raises(RunFailure, match=r"loss became (inf|nan) at step [23];"):
            small_run(settings={"training.lr": 1e30})


def test_non_finite_validation_stops_training() -> None:
    with pytest.raises(RunFailure, match=r"validation MSE became (inf|nan) after step 1;"):
        small_run(settings={"training.lr": 1e30, "training.batch_size": 5000})


def test_metrics_record_the_configuration() -> None:
    metrics = small_run(max_epochs=1).metrics
    assert metrics["dataset"] == "frame" and metrics["model"] == "dlinear"
    assert (metrics["seq_len"], metrics["pred_len"], metrics["protocol"], metrics["seed"]) == (48, 24, "seasons", 42)
    assert (metrics["device"], metrics["precision"], metrics["devices"]) == ("cpu", "32", 1)
    assert metrics["parameters"] == 2 * (48 * 24 + 24)
    assert set(metrics["versions"]) == {"femts", "torch", "python"}
    assert metrics["data_sha256"] == DATA.sha256
    assert metrics["seconds"] > 0


def test_tables_are_read_with_the_keywords_of_load_dataset() -> None:
    table = small_table().rename(columns={"date": "when"})
    reading: Any = {"columns": {"time": "when"}, "target": "load", "future_covariates": "heat"}
    trained = femts.train(table, "ridge", 12, seq_len=24, **reading)
    again = femts.train(femts.load_dataset(table, **reading), "ridge", 12, seq_len=24)
    assert trained.metrics["test"] == again.metrics["test"] and trained.config.schema == again.config.schema
    for given, says in (
        ({"lr": 1e-3}, r"^Unknown argument 'lr'; pass it as settings=\{'training\.lr': 0\.001\}\.$"),
        ({"max_step": 3}, "^Unknown argument 'max_step'; did you mean 'max_steps'"),
        ({"horizon": 6}, "^Unknown argument 'horizon'; pass it as pred_len=6"),
        ({"futur_covariates": "heat"}, "did you mean 'future_covariates'"),
        ({"target": "nothing"}, "has no column 'nothing'"),
    ):
        with pytest.raises(UsageError, match=says):
            femts.train(table, "ridge", 12, **{"columns": {"time": "when"}, **given})  # type: ignore[arg-type]
    with pytest.raises(
        UsageError, match=r"^Argument 'target' says .* already loaded; give it to femts\.load_dataset\.$"
    ):
        femts.train(femts.load_dataset("synthetic"), "ridge", 12, target="s0")


def test_trainings_in_threads_equal_those_in_turn() -> None:
    alone = small_run("tide", max_epochs=1)
    with ThreadPoolExecutor(2) as pool:
        for other in pool.map(lambda _: small_run("tide", max_epochs=1), range(2)):
            assert other.metrics["test"] == alone.metrics["test"]
