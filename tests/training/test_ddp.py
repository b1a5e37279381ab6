"""Two processes on the CPU give what one gives; only the first writes; failures and Ctrl-C reach the caller."""

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


@pytest.mark.parametrize(("model", "loss"), [("fem_mamba", "mse"), ("fem_sm", "pinball")])
def test_two_processes_equal_one_at_the_same_global_batch(
    model: str, loss: str, python: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last batch has a single window, so one of the two processes has none, and the last step is short.

    The weights of `fem_gla` would differ by 1e-3 and its scores by 1e-7, also in one process that
    halves its batches: its features, relu + 1e-6, are so steep where they are 0 that 15 steps make
    1e-5 of a rounding of 1e-16, in float64. The gradients of a step agree
    (tests/mixers/test_batch_independence.py).
    """
    settings = {"training.batch_size": 166, "training.accumulate": 2, "model.dropout": 0.0, "training.loss": loss}
    assert TRAIN % 166 == 1 and -(-TRAIN // 166) % 2
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    done = python(_EQUAL, tmp_path, model, json.dumps(settings))
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


_FAILING = """
import sys
from small_runs import small_run
from femts.errors import RunFailure

if __name__ == "__main__":
    try:
        small_run(out=sys.argv[1], settings={"training.lr": 1e30, "training.devices": 2})
    except RunFailure as error:
        print(error)
"""


def test_a_failure_in_the_workers_is_one_sentence(python: Any, tmp_path: Path) -> None:
    done = python(_FAILING, tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("The training loss became ")
    assert "at step" in done.stdout and len(done.stdout.splitlines()) == 1


_INTERRUPTED = """
import os, signal, sys, threading, time
from pathlib import Path
from small_runs import essence, small_run
from femts.training.stopping import Interrupted

def interrupt(checkpoint):
    while not checkpoint.exists():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)

if __name__ == "__main__":
    out = Path(sys.argv[1])
    watch = threading.Thread(target=interrupt, args=(out / "checkpoints" / "last.ckpt",), daemon=True)
    watch.start()
    try:
        small_run(out=out, max_epochs=60, settings={"training.devices": 2, "training.patience": 60})
    except Interrupted as error:
        print(error)
"""


def test_ctrl_c_reaches_the_workers_and_leaves_a_resumable_run(python: Any, tmp_path: Path) -> None:
    done = python(_INTERRUPTED, tmp_path / "run")
    assert (done.returncode, done.stderr) == (0, "")
    assert "continue it with --resume" in done.stdout
    state = TrainState.load(tmp_path / "run" / "checkpoints" / "last.ckpt")
    assert state.stopped == "interrupted" and state.validations


def test_missing_main_guard_is_named(python: Any, tmp_path: Path) -> None:
    done = python(
        "import sys; from small_runs import small_run; small_run(out=sys.argv[1], settings={'training.devices': 2})",
        tmp_path / "run",
    )
    assert done.returncode != 0
    assert "must guard its code with `if __name__ == '__main__':`" in done.stderr
