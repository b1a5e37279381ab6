"""`overwrite=True`."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from small_runs import essence, signal_at
from small_tables import small_table

import femts
from femts.cli import main
from femts.errors import RunFailure, UsageError
from femts.forecaster.run_folder import NEW, REQUEST
from femts.training import fit as fitting
from femts.training.loop import Trainer
from femts.training.select import run as select
from femts.training.select.candidates import Candidate
from femts.training.stopping import Interrupted
from scripts.bench.kills.cases import leftovers

P, L = 12, 24


def trained(out: Path, model: str = "ridge", data: int = 0, **options: Any) -> None:
    """Train on a table, to whose values `data` is added."""
    table = small_table()
    table["load"] += data
    femts.train(table, model, **{"pred_len": P, "seq_len": L, "device": "cpu", "out": out, **options})


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def former(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("former") / "run"
    trained(folder)
    return folder


@pytest.fixture
def run(former: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(former, tmp_path / "run"))


def test_overwrite_replaces_only_the_run(run: Path, tmp_path: Path) -> None:
    (run / "notes.txt").write_text("mine")
    for out in (run, tmp_path / "new"):
        trained(out, "dlinear", overwrite=True, max_steps=4, refit=False)
    made, fresh = contents(run), contents(tmp_path / "new")
    assert made.pop("notes.txt") == b"mine"
    assert (
        len(made) == len(fresh) and not (run / "scored").exists()
    )  # the curves for TensorBoard have names of their own
    assert made["model.safetensors"] == fresh["model.safetensors"]
    assert femts.load(run).config.model == "dlinear"


WRONG = [{"pred_len": 0}, {"settings": {"training.seed": "x"}}, {"protocol": "none"}]


def test_invalid_arguments_keep_the_old_run(run: Path) -> None:
    cases: list[tuple[Any, ...]] = [
        ("ridge", {"seq_len": 5000}),
        *((model, each) for model in ("ridge", "auto") for each in WRONG),
    ]
    for model, wrong in cases:
        before = contents(run)
        with pytest.raises(UsageError):
            trained(run, model, overwrite=True, **wrong)
        assert contents(run) == before


def test_too_little_memory_keeps_the_old_run(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> None:
        raise RunFailure("There is too little memory.")

    before = contents(run)
    monkeypatch.setattr(fitting, "check_resources", refused)
    with pytest.raises(RunFailure, match="too little memory"):
        trained(run, "dlinear", overwrite=True, max_steps=4)
    assert contents(run) == before


def test_unfinished_run_is_overwritten(run: Path) -> None:
    (run / "metrics.json").unlink()
    trained(run, "naive", overwrite=True)
    assert femts.load(run).config.model == "naive"


@pytest.mark.parametrize("name", ["config.yaml", "metrics.json", "24/data.csv"])
def test_overwrite_refuses_folders_without_a_run(name: str, tmp_path: Path) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("model: mine\n")
    with pytest.raises(UsageError, match="files that are not a run and are never overwritten"):
        trained(tmp_path, overwrite=True)
    assert contents(tmp_path) == {name: b"model: mine\n"}


@pytest.fixture
def interrupted(run: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ridge run, whose replacement by six steps of another model was stopped before the fourth."""
    with monkeypatch.context() as patch:
        signal_at(patch, 4, signal.SIGINT)
        with pytest.raises(
            Interrupted, match="run is as before, and the same call with overwrite=True continues the new"
        ):
            trained(run, "dlinear", overwrite=True, max_steps=6)
    return run


def steps_of(made: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> int:
    """Number of optimiser steps."""
    take, count = Trainer.step, 0

    def step(self: Trainer) -> None:
        nonlocal count
        count += 1
        take(self)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "step", step)
        made()
    return count


def test_interrupted_overwrite_keeps_the_old_run_and_continues(
    interrupted: Path, former: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert essence(femts.load(interrupted)) == essence(femts.load(former))
    with pytest.raises(UsageError, match="already holds a finished run"):
        trained(interrupted, "dlinear", max_steps=6)
    made = partial(trained, interrupted, "dlinear", overwrite=True, max_steps=6)
    assert steps_of(made, monkeypatch) == 6 - 4 and steps_of(made, monkeypatch) == 6
    trained(tmp_path / "fresh", "dlinear", max_steps=6)
    assert essence(femts.load(interrupted)) == essence(femts.load(tmp_path / "fresh"))
    assert leftovers(interrupted) == []


@pytest.mark.parametrize("other", [{"seed": 7}, {"refit": True}, {"data": 1}], ids=str)
def test_interrupted_overwrite_is_not_continued_by_another(
    interrupted: Path, other: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for out in (interrupted, tmp_path / "fresh"):
        made = partial(trained, out, "dlinear", **{"overwrite": True, "max_steps": 6, **other})
        assert steps_of(made, monkeypatch) >= 6
    assert essence(femts.load(interrupted)) == essence(femts.load(tmp_path / "fresh"))
    assert leftovers(interrupted) == [] and (interrupted / "scored").exists() == ("refit" in other)


def test_refused_overwrite_keeps_an_interrupted_one(interrupted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError):
        trained(interrupted, "dlinear", overwrite=True, max_steps=6, seq_len=5000)
    made = partial(trained, interrupted, "dlinear", overwrite=True, max_steps=6)
    assert steps_of(made, monkeypatch) == 2


def test_auto_that_tries_nothing_keeps_the_old_run(run: Path) -> None:
    before, table = contents(run), small_table()
    table.loc[200:, ["load", "heat"]] = np.nan
    with pytest.raises(UsageError, match="No model could be tried"):
        femts.train(table, "auto", P, out=run, overwrite=True, device="cpu")
    assert contents(run) == before


def test_trials_of_other_data_are_not_used(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the request that tells is missing."""
    monkeypatch.setattr(select, "shortlist", lambda *_: (Candidate("naive"), Candidate("ridge")))
    with monkeypatch.context() as patch:
        patch.setattr(select, "_taken", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(Interrupted):
            trained(run, "auto", overwrite=True)
    assert (run / NEW / REQUEST).is_file()
    (run / NEW / REQUEST).unlink()
    for out in (run, tmp_path / "fresh"):
        trained(out, "auto", overwrite=True, data=1)
    assert essence(femts.load(run)) == essence(femts.load(tmp_path / "fresh")) and leftovers(run) == []


def test_interrupted_overwrite_of_several_horizons_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    small_table().to_csv("mine.csv", index=False)
    command = ["train", "--dataset", "mine.csv", "--seq-len", f"{L}", "--max-steps", "6", "--overwrite", "--out", "x"]
    assert main([*command, "--model", "naive", "--horizon", "6,12"]) == 0
    command += ["--model", "dlinear", "--horizon"]
    with monkeypatch.context() as patch:
        signal_at(patch, 6 + 4, signal.SIGINT)
        assert main([*command, "8,6"]) == 130
    assert "the run in x is as before" in capsys.readouterr().err
    assert femts.load("x/6").config.model == femts.load("x/12").config.model == "naive"
    assert steps_of(lambda: print(main([*command, "8,6"])), monkeypatch) == 2
    assert sorted(path.name for path in Path("x").iterdir()) == ["6", "8", "metrics.json"]
    with monkeypatch.context() as patch:
        signal_at(patch, 6 + 4, signal.SIGINT)
        assert main([*command, "8,6"]) == 130
    assert steps_of(lambda: print(main([*command, "6,10", "--seed", "7"])), monkeypatch) == 12
    assert sorted(path.name for path in Path("x").iterdir()) == ["10", "6", "metrics.json"]
    assert leftovers(tmp_path) == []


def test_overwrite_needs_out_and_excludes_resume(run: Path) -> None:
    with pytest.raises(UsageError, match="name its folder with out=FOLDER"):
        femts.train(small_table(), "naive", P, overwrite=True)
    with pytest.raises(UsageError, match="resume=True and overwrite=True cannot be combined"):
        trained(run, overwrite=True, resume=True)


def test_overwrite_with_several_horizons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    small_table().to_csv("mine.csv", index=False)
    command = ["train", "--dataset", "mine.csv", "--model", "naive", "--seq-len", f"{L}"]
    assert main([*command, "--horizon", "6,12", "--out", "runs/x"]) == 0
    assert main([*command, "--horizon", "6,8", "--out", "runs/x"]) == 2
    assert main([*command, "--horizon", "6,0", "--out", "runs/x", "--overwrite"]) == 2
    assert femts.load("runs/x/12").config.pred_len == 12
    assert main([*command, "--horizon", "6,8", "--out", "runs/x", "--overwrite"]) == 0
    assert sorted(path.name for path in Path("runs/x").iterdir()) == ["6", "8", "metrics.json"]
    assert main([*command, "--horizon", "8", "--out", "runs/x", "--overwrite"]) == 0
    assert femts.load("runs/x").config.pred_len == 8 and not Path("runs/x/6").exists()


def test_overwrite_of_the_default_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    small_table().to_csv("mine.csv", index=False)
    command = ["train", "--dataset", "mine.csv", "--model", "naive", "--seq-len", f"{L}", "--horizon", "6"]
    assert [main(each) for each in (command, [*command, "--overwrite"])] == [0, 0]
    assert [path.name for path in Path("runs").iterdir()] == ["mine-naive-6"]
