"""Distributed training on CPU processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from small_runs import TRAIN

from femts.training.checkpoint import TrainState

pytestmark = pytest.mark.slow

_EQUAL = """
import atexit, json, sys
from pathlib import Path
from small_runs import essence, small_run

def check_threads():
    names = [task.joinpath("comm").read_text().strip() for task in Path("/proc/self/task").glob("*")]
    assert not [name for name in names if "gloo" in name], names

atexit.register(check_threads)  # in the workers, too, which import this file

if __name__ == "__main__":
    out = Path(sys.argv[1])
    settings = json.loads(sys.argv[3])
    one = essence(small_run(sys.argv[2], out=out / "one", settings=settings))
    two = essence(small_run(sys.argv[2], out=out / "two", settings={**settings, "training.devices": 2}))
    print(json.dumps([one, two]))
"""


def test_two_processes_equal_one(python: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last batch has a single window, so one of the two processes has none, and the last step is short.

    The weights of `fem_gla` would differ by 1e-3 and its scores by 1e-7, also in one process that
    halves its batches: its features, relu + 1e-6, are so steep where they are 0 that 15 steps make
    1e-5 of a rounding of 1e-16, in float64. The gradients of a step agree
    (tests/mixers/test_batch_independence.py).
    """
    settings = {"training.batch_size": 166, "training.accumulate": 2, "model.dropout": 0.0, "training.loss": "pinball"}
    assert TRAIN % 166 == 1 and -(-TRAIN // 166) % 2
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    done = python(_EQUAL, tmp_path, "fem_mamba", json.dumps(settings))
    assert (done.returncode, done.stderr) == (0, "")
    assert list(temporary.iterdir()) == []
    one, two = json.loads(done.stdout)
    for part in ("val", "test"):
        assert two[part]["windows"] == one[part]["windows"]
        for score in ("mse", "mae"):
            assert two[part][score] == pytest.approx(one[part][score], rel=1e-5)
    for name, weights in one["weights"].items():
        torch.testing.assert_close(torch.tensor(two["weights"][name]), torch.tensor(weights), rtol=1e-5, atol=5e-7)
    for row, other in zip(one["history"], two["history"], strict=True):
        assert other == pytest.approx(row, rel=1e-5)
    assert len(list((tmp_path / "two" / "tensorboard").iterdir())) == 1


_FAILING_AND_INTERRUPTED = """
import os, signal, sys, threading, time
from pathlib import Path
from small_runs import forked_workers, small_run
from femts.errors import RunFailure
from femts.training.stopping import Interrupted

def interrupt(checkpoint):
    while not checkpoint.exists():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)

with forked_workers():
    out = Path(sys.argv[1])
    try:
        small_run(out=out / "failed", settings={"training.lr": 1e30, "training.devices": 2})
    except RunFailure as error:
        print(error)
    checkpoint = out / "interrupted" / "checkpoints" / "last.ckpt"
    threading.Thread(target=interrupt, args=(checkpoint,), daemon=True).start()
    try:
        small_run(
            out=out / "interrupted", max_epochs=60, settings={"training.devices": 2, "training.patience": 60}
        )
    except Interrupted as error:
        print(error)
"""


def test_worker_failure_and_ctrl_c_reach_the_caller(python: Any, tmp_path: Path) -> None:
    done = python(_FAILING_AND_INTERRUPTED, tmp_path)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    failed, interrupted = done.stdout.splitlines()
    assert failed.startswith("The training loss became ") and "at step" in failed
    assert "continue it with resume=True" in interrupted
    state = TrainState.load(tmp_path / "interrupted" / "checkpoints" / "last.ckpt")
    assert state.stopped == "interrupted" and state.validations


def test_missing_main_guard_is_named(python: Any, tmp_path: Path) -> None:
    done = python(
        "import sys; from small_runs import small_run; small_run(out=sys.argv[1], settings={'training.devices': 2})",
        tmp_path / "run",
    )
    assert done.returncode != 0
    assert "must guard its code with `if __name__ == '__main__':`" in done.stderr
