"""Killed and interrupted runs resume bit-identically."""

from __future__ import annotations

import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from logged import logged
from run_damage import flipped
from small_runs import MODELS, essence, signal_at, small_run

import femts
from femts.errors import UsageError
from femts.training import fit
from femts.training.checkpoint import TrainState
from femts.training.stopping import Interrupted

_KILLED = """
import signal, sys
import pytest
from small_runs import signal_at, small_run

signal_at(pytest.MonkeyPatch(), int(sys.argv[3]), signal.SIGKILL)
small_run(sys.argv[1], out=sys.argv[2])
"""


@pytest.fixture(scope="module")
def uninterrupted() -> dict[str, dict[str, Any]]:
    """Results of uninterrupted runs."""
    return {model: essence(small_run(model)) for model in ("dlinear", "fem_sm")}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "call", "epochs"),
    [("fem_sm", 5 + 2, 1), ("dlinear", 3, 0)],
    ids=["fem_sm-with-dropout", "before-any-checkpoint"],
)
def test_killed_run_resumes_bit_identically(
    model: str, call: int, epochs: int, uninterrupted: dict[str, Any], python: Any, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    killed = python(_KILLED, model, out, call)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    if epochs:
        assert TrainState.load(out / "checkpoints" / "last.ckpt").step == epochs * {"dlinear": 11, "fem_sm": 5}[model]
    with pytest.raises(UsageError, match=r"unfinished.*--resume"):
        femts.load(out)
    assert essence(small_run(model, out=out, resume=True)) == uninterrupted[model]
    assert essence(femts.load(out)) == uninterrupted[model]


@pytest.mark.parametrize(
    ("model", "call", "loss", "number"),
    [
        ("dlinear", 11 + 4, "mse", signal.SIGTERM),
        ("fem_sm_ridge", 3, "mse", signal.SIGINT),
        ("dlinear", 7, "pinball", signal.SIGINT),
        ("fem_sm", 7, "mae", signal.SIGTERM),
    ],
)
def test_interrupted_run_resumes_from_the_same_step(
    model: str, call: int, loss: str, number: signal.Signals, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    handler, make = signal.getsignal(number), partial(small_run, model, settings={"training.loss": loss})
    with monkeypatch.context() as patch:
        signal_at(patch, call, number)
        with pytest.raises(Interrupted, match=r"interrupted; progress is saved in .*run; continue it with resume=True"):
            make(out=tmp_path / "run")
    assert signal.getsignal(number) is handler
    state = TrainState.load(tmp_path / "run" / "checkpoints" / "last.ckpt")
    assert state.stopped == "interrupted"
    assert state.step == call and len(state.losses) == call % {"dlinear": 11}.get(model, 5)
    assert essence(make(out=tmp_path / "run", resume=True)) == essence(make())


def test_interrupted_run_without_out_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    signal_at(monkeypatch, 2, signal.SIGINT)
    with pytest.raises(Interrupted, match="nothing was kept"):
        small_run()


def test_interrupt_waits_for_accumulated_batches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    settings = {"training.batch_size": 63, "training.accumulate": 4}
    straight = essence(small_run(settings=settings))
    with monkeypatch.context() as patch:
        signal_at(patch, 2, signal.SIGINT)
        with pytest.raises(Interrupted):
            small_run(out=tmp_path / "run", settings=settings)
    assert TrainState.load(tmp_path / "run" / "checkpoints" / "last.ckpt").step == 2
    assert essence(small_run(out=tmp_path / "run", settings=settings, resume=True)) == straight


def test_twice_interrupted_run_resumes_bit_identically(
    uninterrupted: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for call in (4, 3):
        with monkeypatch.context() as patch:
            signal_at(patch, call, signal.SIGINT)
            with pytest.raises(Interrupted):
                small_run(out=tmp_path / "run", resume=(tmp_path / "run").exists())
    assert TrainState.load(tmp_path / "run" / "checkpoints" / "last.ckpt").step == 7
    assert essence(small_run(out=tmp_path / "run", resume=True)) == uninterrupted["dlinear"]


def test_run_killed_before_scoring_resumes(uninterrupted: dict[str, Any], tmp_path: Path) -> None:
    small_run(out=tmp_path / "run")
    (tmp_path / "run" / "metrics.json").unlink()
    (tmp_path / "run" / "model.safetensors").unlink()
    assert essence(small_run(out=tmp_path / "run", resume=True)) == uninterrupted["dlinear"]


def test_resume_of_a_finished_run_changes_nothing(tmp_path: Path) -> None:
    made = small_run(out=tmp_path / "run")
    before = (tmp_path / "run" / "metrics.json").read_bytes()
    with logged() as notes:
        again = small_run(out=tmp_path / "run", resume=True)
    assert notes == [f"run {tmp_path / 'run'} is already finished"]
    assert essence(again) == essence(made) and again.evaluate("test") == made.evaluate("test")
    with pytest.raises(UsageError, match=r"started with training\.seed=42, not 7"):
        small_run(out=tmp_path / "run", resume=True, seed=7)
    with pytest.raises(UsageError, match=r"already holds a finished run"):
        small_run(out=tmp_path / "run")
    assert (tmp_path / "run" / "metrics.json").read_bytes() == before


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    with monkeypatch.context() as patch:
        signal_at(patch, 11 + 2, signal.SIGINT)
        with pytest.raises(Interrupted):
            small_run(out=tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": 43}, r"started with training\.seed=42, not 43"),
        ({"pred_len": 12}, r"started with model\.pred_len=24, not 12"),
        ({"model": "naive"}, r"started with model\.name=dlinear, not naive"),
        ({"precision": "bf16"}, r"started with training\.precision=auto, not bf16"),
    ],
    ids=str,
)
def test_resume_with_other_settings_is_refused(interrupted: Path, changes: dict[str, Any], message: str) -> None:
    settings = {**MODELS["dlinear"], **changes.pop("settings", {})} if changes.get("model") != "naive" else {}
    with pytest.raises(UsageError, match=message):
        small_run(changes.pop("model", "dlinear"), out=interrupted, resume=True, settings=settings, **changes)


def test_unfinished_run_is_not_overwritten(interrupted: Path) -> None:
    with pytest.raises(UsageError, match="holds an unfinished run; continue it with resume=True"):
        small_run(out=interrupted)


def test_changed_data_are_refused(interrupted: Path) -> None:
    path = interrupted / "preprocess.json"
    path.write_text(path.read_text().replace('"sha256": "', '"sha256": "0'))
    with pytest.raises(UsageError, match="data 'frame' changed since"):
        small_run(out=interrupted, resume=True)


@pytest.mark.parametrize("left", [(), (".0.part", "candidates/.0.part")])
def test_resume_without_a_run_starts_one(uninterrupted: dict[str, Any], left: tuple[str, ...], tmp_path: Path) -> None:
    for name in left:
        (tmp_path / "run" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "run" / name).touch() if name else (tmp_path / "run").mkdir()
    assert essence(small_run(out=tmp_path / "run", resume=True)) == uninterrupted["dlinear"]


def test_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(UsageError, match="contains files that are not a run"):
        small_run(out=tmp_path, resume=True)
    with pytest.raises(UsageError, match="is a file"):
        small_run(out=tmp_path / "notes.txt", resume=True)
    with pytest.raises(UsageError, match="name the run folder"):
        small_run(resume=True)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_partial_files_are_removed_on_resume(interrupted: Path) -> None:
    left = [interrupted / ".config.yaml.1.part", interrupted / "checkpoints" / ".last.ckpt.1.part"]
    for path in left:
        path.write_bytes(b"half")
    small_run(out=interrupted, resume=True)
    assert not any(path.exists() for path in left)


@pytest.mark.parametrize("name", ["config.yaml", "preprocess.json"])
def test_flipped_bit_beside_a_checkpoint_is_detected_or_harmless(
    interrupted: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_state, found = fit.find_state, list[TrainState]()

    def stopped(*arguments: Any) -> TrainState:
        found.append(find_state(*arguments))
        raise Interrupted("found")

    monkeypatch.setattr(fit, "find_state", stopped)
    path, wanted = interrupted / name, TrainState.load(interrupted / "checkpoints" / "last.ckpt")
    for changed in flipped(path.read_bytes(), 40):
        path.write_bytes(changed)
        with pytest.raises((UsageError, Interrupted)) as caught:
            small_run(out=interrupted, resume=True)
        assert caught.type is Interrupted or ("\n" not in str(caught.value) and str(interrupted) in str(caught.value))
    assert all((each.step, each.validations) == (wanted.step, wanted.validations) for each in found)
