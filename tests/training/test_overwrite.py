"""`overwrite=True`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from small_tables import small_table

import femts
from femts.cli import main
from femts.errors import RunFailure, UsageError
from femts.training import fit as fitting

P, L = 12, 24


def trained(out: Path, model: str = "ridge", **options: Any) -> None:
    femts.train(small_table(), model, **{"pred_len": P, "seq_len": L, "device": "cpu", "out": out, **options})


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


WRONG = [{"pred_len": 5000}, {"settings": {"training.seed": "x"}}, {"protocol": "none"}]


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
    assert main([*command, "--horizon", "6,5000", "--out", "runs/x", "--overwrite"]) == 2
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
