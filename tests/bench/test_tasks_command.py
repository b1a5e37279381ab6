"""The command `femts bench tasks`: tables, resumption to the bit, and refusals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from orphans import marked, wait_for_workers

from femts.bench.tasks.table import Entry
from femts.cli import main

pytestmark = pytest.mark.slow

COMMAND = (
    "bench tasks --tasks fetch,recall --mixers fem_sm,sm --seeds 1 --jobs 1 --set steps=4 --set batch=4"
    " --set scored=8 --set width=16 --set heads=2"
).split()


def records(folder: Path) -> dict[str, dict[str, Any]]:
    """Records by path, without the time that they took."""
    paths = sorted(folder.glob("*/*.json"))
    return {
        str(path.relative_to(folder)): {k: v for k, v in json.loads(path.read_text()).items() if k != "seconds"}
        for path in paths
    }


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tasks")
    assert main([*COMMAND, "--out", str(folder)]) == 0
    return folder


def test_killed_and_started_again_it_ends_equal_to_the_bit(finished: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "femts", *COMMAND, "--out", str(tmp_path)]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, env=marked(tmp_path), **quiet)
    deadline = time.monotonic() + 120
    while not records(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.1)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/*.json")}
    assert 0 < len(before) < 4
    wait_for_workers(tmp_path)
    continued = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert continued.returncode == 0, continued.stderr
    assert records(tmp_path) == records(finished) and len(records(tmp_path)) == 4
    assert all(path.stat().st_mtime_ns == written for path, written in before.items())


def test_tables_have_a_row_a_task_and_a_column_a_mixer(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMMAND, "--show", "--out", str(finished)]) == 0
    out, err = capsys.readouterr()
    scores, costs = out.split("\n\n")
    assert scores.split("\n")[0].split() == ["task", "measure", "seeds", "fem_sm", "sm"]
    assert [line.split()[0] for line in scores.split("\n")[1:]] == ["fetch", "recall"]
    assert costs.startswith("weights, seconds") and err == ""
    assert main([*COMMAND, "--show", "--format", "md", "--seeds", "1,7", "--out", str(finished)]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("| task | measure | seeds | fem_sm | sm |\n| --- |")
    assert "4 of 8 cells are not finished" in err
    assert out.split("\n")[2].startswith("| fetch | error | 2 |") and out.count("(1 of 2 seeds)") == 4
    assert main([*COMMAND, "--show", "--seeds", "1,01,1", "--out", str(finished)]) == 0
    assert capsys.readouterr() == (f"{scores}\n\n{costs}", "")


def test_a_score_of_several_seeds_has_their_deviation() -> None:
    errors: tuple[dict[str, Any], ...] = ({"score": 0.1}, {"score": 0.3})
    assert Entry("fetch", "sm", errors, 2).score == "0.200 ±0.141"
    assert Entry("recall", "sm", errors, 2).score == "20.0 ±14.1" and Entry("recall", "sm", (), 2).score == "-"


def test_a_score_that_lacks_seeds_says_so() -> None:
    errors: tuple[dict[str, Any], ...] = ({"score": 0.1}, {"score": 0.3})
    entries = [Entry("fetch", "sm", errors, 3), Entry("fetch", "gla", errors[:1], 3), Entry("fetch", "aft", (), 3)]
    assert [entry.score for entry in entries] == ["0.200 ±0.141 (2 of 3 seeds)", "0.100 (1 of 3 seeds)", "-"]


def test_a_record_of_other_sources_is_told(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = next(finished.glob("fetch*/sm-seed1.json"))
    text = path.read_text()
    try:
        path.write_text(json.dumps({**json.loads(text), "code": "0" * 64}))
        assert main([*COMMAND, "--show", "--out", str(finished)]) == 0
        assert "1 of 4 records were made by other sources" in capsys.readouterr().err
    finally:
        path.write_text(text)


@pytest.mark.parametrize(
    ("change", "message"),
    [({"score": -1.0}, "score is -1.0"), ({"format": 1}, "no record of format tasks 1"), ({"cell": {}}, "cell.task")],
)
def test_a_damaged_record_is_refused_before_anything_is_run(
    change: dict[str, Any], message: str, finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = next(finished.glob("recall*/sm-seed1.json"))
    text = path.read_text()
    try:
        path.write_text(json.dumps({**json.loads(text), **change}))
        assert main([*COMMAND, "--out", str(finished)]) == 2
        err = capsys.readouterr().err
        assert message in err and "'femts bench tasks' wrote" in err and err.count("\n") == 1
        assert main([*COMMAND, "--show", "--out", str(finished)]) == 1
        out, err = capsys.readouterr()
        assert message in err and out.split("\n")[2].split()[:3] == ["recall", "accuracy", "%"]
    finally:
        path.write_text(text)


def test_a_cell_that_crashes_is_told_and_tried_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [*COMMAND, "--tasks", "fetch", "--mixers", "sm", "--seeds", "1", "--set", "rate=1e30"]
    assert main([*command, "--out", str(tmp_path)]) == 1
    out, err = capsys.readouterr()
    assert "try a smaller rate" in err and out.split("\n")[1].split() == ["fetch", "error", "1", "-"]
    assert len(list(tmp_path.rglob("*.failed.json"))) == 1


def test_sizes_that_cannot_be_are_refused_before_anything_is_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["bench", "tasks", "--mixers", "sm", "--seeds", "1", "--tasks", "fetch,selective_copy"]
    assert main([*command, "--set", "copied=80", "--out", str(tmp_path / "new")]) == 2
    out, err = capsys.readouterr()
    assert "'task.copied' of selective_copy takes at most 31 at length=64, " in err and "not 80; change it" in err
    assert err.count("\n") == 1 and out == "" and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ([*COMMAND, "--set", "steps=5", "--out", "new"], "--set 'steps' is given twice, as 4 and as 5; give it once."),
        ("bench train --set model.n_layers=1 --set model.n_layers=2".split(), "as 1 and as 2; give it once."),
    ],
)
def test_a_size_that_is_given_twice_is_refused(
    command: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(command) == 2
    assert message in capsys.readouterr().err and not list(tmp_path.iterdir())
