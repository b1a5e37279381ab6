"""Nothing is left behind in the temporary folder or in the user's cache, by a command that ends or
by one that is killed."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SMALL = "--horizon 12 --seq-len 48 --set model.d_model=32 --max-steps 200"
TRAIN = f"train --dataset past.csv --model fem_sm {SMALL} --out new"


@pytest.fixture
def place(own: Path, tmp_path: Path) -> Path:
    """A folder `work` with a run and its table beside an empty home and an empty temporary folder."""
    for name in ("home", "tmp", "work"):
        (tmp_path / name).mkdir()
    (tmp_path / "work" / "run").symlink_to(own / "run")
    (tmp_path / "work" / "past.csv").symlink_to(own / "past.csv")
    return tmp_path


def _start(place: Path, command: str) -> subprocess.Popen[bytes]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "TORCHINDUCTOR_", "MPL"))}
    environment |= {"HOME": str(place / "home"), "TMPDIR": str(place / "tmp"), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "femts", *command.split()],
        cwd=place / "work", env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def _left(place: Path) -> list[str]:
    """Everything in the home and the temporary folder, and what is hidden beside a run or a forecast."""
    beside = [
        path for path in (place / "work").rglob("*") if path.name.startswith(".") or path.suffix in (".part", ".tmp")
    ]
    return [
        str(path.relative_to(place)) for path in (*(place / "home").rglob("*"), *(place / "tmp").rglob("*"), *beside)
    ]


@pytest.mark.parametrize(
    "command",
    [
        TRAIN.replace("200", "5"),
        "predict run past.csv -o next.csv",
        "report run -o report.html",
        pytest.param(
            "export run -o model.onnx",
            marks=pytest.mark.skipif(not importlib.util.find_spec("onnxruntime"), reason="needs onnxruntime"),
        ),
    ],
    ids=lambda command: command.split()[0],
)
def test_a_command_leaves_nothing(place: Path, command: str) -> None:
    process = _start(place, command)
    said = process.communicate()[1]
    assert process.returncode == 0 and all(line.startswith((b"note: ", b"warning: ")) for line in said.splitlines()), (
        said
    )
    assert _left(place) == []


def test_a_killed_training_leaves_its_run_alone(place: Path) -> None:
    """A file that it was writing lies in its folder, and is gone once the training is resumed."""
    process, run = _start(place, TRAIN), place / "work" / "new"
    while process.poll() is None and not (run / "checkpoints" / "last.ckpt").exists():
        time.sleep(0.01)
    process.kill()
    process.communicate()
    assert [left for left in _left(place) if not left.startswith("work/new/")] == []
    assert {path.name for path in (place / "work").iterdir()} == {"new", "run", "past.csv"}
    for folder in (run, run / "checkpoints"):
        (folder / ".0123456789abcdef.part").write_bytes(b"half a file")
    assert _start(place, f"{TRAIN} --resume").wait() == 0
    assert _left(place) == []
