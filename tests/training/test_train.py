"""Training from end to end on the built-in data: what is reported, kept, refused and left alone."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from run_damage import FILES
from small_runs import DATA, TEST, TRAIN, essence, small_run

import femts
from femts.errors import RunFailure, UsageError
from femts.models.dlinear import DLinear
from femts.training.checkpoint import TrainState
from femts.training.train import train


@pytest.mark.parametrize("model", ["fem_sm"])
def test_same_seed_gives_the_same_result(model: str) -> None:
    first = essence(small_run(model, max_epochs=2))
    torch.manual_seed(999)  # what the caller did before must not matter
    random.seed(999)
    assert essence(small_run(model, max_epochs=2)) == first
    assert essence(small_run(model, max_epochs=2, seed=43))["test"] != first["test"]


def test_early_stop_reports_the_test_score_at_the_best_validation(tmp_path: Path) -> None:
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


def test_scores_are_means_over_every_window() -> None:
    """Against numpy, on the scaled data, with a model whose forecast is known."""
    run = small_run("naive", settings={"training.eval_batch_size": 100})
    start, stop = DATA.split.test[0]
    train_rows = DATA.train_values
    scaled = (DATA.values - train_rows.mean(0)) / train_rows.std(0)
    origins = range(start, stop - 24 + 1)
    errors = np.stack([scaled[o : o + 24] - scaled[o - 1] for o in origins])
    assert run.metrics["test"]["windows"] == len(origins) == TEST
    assert run.metrics["test"]["mse"] == pytest.approx((errors**2).mean(), rel=1e-5)
    assert run.metrics["test"]["mae"] == pytest.approx(np.abs(errors).mean(), rel=1e-5)


@pytest.mark.parametrize("model", ["seasonal_naive"])
def test_models_without_parameters_make_a_run(model: str, tmp_path: Path) -> None:
    run = small_run(model, out=tmp_path / "run")
    assert run.metrics["steps"] == run.metrics["parameters"] == 0
    assert run.metrics["kept_step"] is run.metrics["stopped"] is None
    again = femts.load(tmp_path / "run")
    assert again.evaluate("test", dataset=DATA) == run.metrics["test"]
    assert essence(small_run(model, out=tmp_path / "run", resume=True)) == essence(run)


def test_closed_form_sees_the_training_rows_alone() -> None:
    frame = DATA.frame()
    later = frame.copy()
    later.loc[DATA.split.train[0, 1] :, list(DATA.columns)] = 1e6
    settings = {"model.longest": 48}
    weights = [train(f, "ridge", 24, seq_len=48, settings=settings).model.state_dict() for f in (frame, later)]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    assert weights[0]["linear.dense"].abs().max() > 0.01


def test_run_folder_has_its_files_and_nothing_else(tmp_path: Path) -> None:
    small_run(out=tmp_path / "run")
    found = {str(path.relative_to(tmp_path / "run")) for path in (tmp_path / "run").rglob("*") if path.is_file()}
    events = {name for name in found if name.startswith("tensorboard/events.out")}
    assert found - events == {*FILES, "checkpoints/last.ckpt"}
    lines = (tmp_path / "run" / "metrics.csv").read_text().splitlines()
    assert lines[0] == "step,train_loss,val_mse,val_mae,lr,seconds"
    assert len(lines) == 1 + 3


def test_without_out_nothing_stays_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    run = small_run(max_epochs=1)
    assert list(tmp_path.iterdir()) == []
    run.save(tmp_path / "kept")
    assert essence(femts.load(tmp_path / "kept"))["weights"] == essence(run)["weights"]


@pytest.mark.slow
def test_training_is_silent_and_leaves_no_lightning_logs(python: Any, tmp_path: Path) -> None:
    done = python(
        "import sys; from small_runs import small_run; small_run(max_epochs=1, out=sys.argv[1], progress=True)",
        tmp_path / "run",
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_random_state_of_the_caller_is_left_alone() -> None:
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    small_run(max_epochs=1)
    assert torch.equal(torch.rand(3), expected)


def test_accumulated_batches_equal_one_large_batch() -> None:
    """The last batch and the last step are both short."""
    assert TRAIN % 60 and -(-TRAIN // 60) % 4
    large = small_run(settings={"training.batch_size": 240})
    small = small_run(settings={"training.batch_size": 60, "training.accumulate": 4})
    for one, other in zip(large.validations, small.validations, strict=True):
        assert other["lr"] == one["lr"], "the schedule must move with optimiser steps, not with batches"
        assert other["val_mse"] == pytest.approx(one["val_mse"], rel=1e-5)
        assert other["train_loss"] == pytest.approx(one["train_loss"], rel=1e-5)


def test_gradients_are_clipped() -> None:
    """AdamW forgives any scale of the gradient but one far below its epsilon of 1e-8."""

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


def test_listed_parameters_do_not_decay(monkeypatch: pytest.MonkeyPatch) -> None:
    """At a learning rate whose steps vanish beside the decay, a listed parameter stays and the others shrink."""
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


def test_nan_loss_stops_training_and_never_becomes_best(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_exploding_loss_is_found_at_any_check(monkeypatch: pytest.MonkeyPatch) -> None:
    for every in [1, 50]:
        monkeypatch.setattr("femts.training.loop.CHECK_EVERY", every)
        with pytest.raises(RunFailure, match=r"loss became (inf|nan) at step [23];"):
            small_run(settings={"training.lr": 1e30})


def test_broken_weights_are_found_by_validation() -> None:
    """One batch an epoch: its loss is fine, the step it causes is not."""
    with pytest.raises(RunFailure, match=r"validation MSE became (inf|nan) after step 1;"):
        small_run(settings={"training.lr": 1e30, "training.batch_size": 5000})


def test_wrong_arguments_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    cases: list[tuple[Any, ...]] = [
        ({"model": "dlinaer"}, "Unknown model 'dlinaer'; did you mean 'dlinear'"),
        ({"pred_len": 5000}, "5000"),
        ({"seq_len": 3000}, "3000"),
        ({"protocol": "lookbak96"}, "did you mean 'lookback96'"),
        ({"device": "gpu"}, "'gpu'"),
        ({"precision": "16"}, "'16'"),
        ({"time_limit": "soon"}, "'soon'"),
        ({"max_epochs": 0}, "not 0"),
        ({"max_epochs": None, "max_steps": 0}, "not 0"),
        ({"max_steps": 5}, "set the same budget"),
        ({"settings": {"training.channels": 2}}, "does not support channel subsampling"),
        ({"settings": {"model.kernel_size": "wide"}}, "'wide'"),
        ({"model": "fem_sm", "settings": {"model.components": "CLX"}}, "X"),
        ({"model": "fem_sm", "settings": {"model.n_heads": "7"}}, "7"),
    ]
    for changes, message in cases:
        with pytest.raises(UsageError, match=message):
            small_run(**{"model": "dlinear", **changes}, out=tmp_path / "run")
        assert list(tmp_path.iterdir()) == []


def test_metrics_tell_the_circumstances() -> None:
    metrics = small_run(max_epochs=1).metrics
    assert metrics["dataset"] == "frame" and metrics["model"] == "dlinear"
    assert (metrics["seq_len"], metrics["pred_len"], metrics["protocol"], metrics["seed"]) == (48, 24, "seasons", 42)
    assert (metrics["device"], metrics["precision"], metrics["devices"]) == ("cpu", "32", 1)
    assert metrics["parameters"] == 2 * (48 * 24 + 24)
    assert set(metrics["versions"]) == {"femts", "torch", "python"}
    assert metrics["data_sha256"] == DATA.sha256
    assert metrics["seconds"] > 0
