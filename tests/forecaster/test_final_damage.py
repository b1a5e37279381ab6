"""A run of two halves, one scored and one that learned from all rows: a half that is not its own is told."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from run_damage import edit, rebind, reseal
from small_runs import small_run

import femts
from femts.errors import UsageError


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("scored/model.safetensors", r"changed after it was saved: scored/model.safetensors does not match"),
        ("scored/config.yaml", r"changed after it was saved"),
        ("scored/metrics.json", r"changed after it was saved"),
        ("preprocess.json", r"changed after it was saved: preprocess.json does not match"),
    ],
)
def test_a_changed_or_missing_half_is_told(name: str, says: str, tmp_path: Path) -> None:
    small_run("ridge", out=tmp_path / "run", final=True)
    path = tmp_path / "run" / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(UsageError, match=says):
        femts.load(tmp_path / "run")
    path.unlink()
    with pytest.raises(UsageError):
        femts.load(tmp_path / "run")


def test_another_scored_run_is_not_taken_for_that_of_the_forecaster(tmp_path: Path) -> None:
    small_run("ridge", out=tmp_path / "run", final=True)
    small_run("ridge", out=tmp_path / "other", final=True, settings={"model.ridge": 0.9})
    shutil.rmtree(tmp_path / "run" / "scored")
    shutil.copytree(tmp_path / "other" / "scored", tmp_path / "run" / "scored")
    with pytest.raises(UsageError, match=r"scored/model.safetensors does not match"):
        femts.load(tmp_path / "run")
    reseal(tmp_path / "run")
    with pytest.raises(UsageError, match=r"scored/config.yaml is 'another one', not that of config.yaml"):
        femts.load(tmp_path / "run")


@pytest.mark.parametrize("stamp", ["never", "2020-01-01T00:00:00 and more", ""])
def test_a_stamp_that_is_none_is_told(stamp: str, tmp_path: Path) -> None:
    small_run("ridge", out=tmp_path / "run")
    edit(tmp_path / "run", "preprocess.json", lambda record: {**record, "until": stamp})
    rebind(tmp_path / "run")
    reseal(tmp_path / "run")
    with pytest.raises(UsageError, match=r"preprocess.json: until"):
        femts.load(tmp_path / "run")
