"""No files are left in the temporary folder or the user's cache, and trainings in Python print nothing."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from forks import Forked

pytestmark = pytest.mark.slow

SMALL = "--horizon 12 --seq-len 48 --set model.d_model=32 --set model.n_layers=1 --max-steps 100"
COMMANDS = "import sys; from femts.cli import main; sys.exit(max(main(line.split()) for line in sys.argv[1:]))"
SILENT = """
import sys, warnings

with warnings.catch_warnings(action="ignore"):
    import femts

    options = {"seq_len": 24, "max_steps": 2, "device": "cpu", "refit": False}
    femts.train("past.csv", "dlinear", 12, **options, out="silent", progress=True)
for stream in (sys.stdout, sys.stderr):
    print("trained", file=stream, flush=True)
"""
TRAIN = f"train --dataset past.csv --model fem_sm {SMALL} --out new"


@pytest.fixture
def place(own: Path, tmp_path: Path) -> Path:
    """A folder `work` with a run and its table, an empty home and an empty temporary folder."""
    for name in ("home", "tmp", "work"):
        (tmp_path / name).mkdir()
    (tmp_path / "work" / "run").symlink_to(own / "run")
    (tmp_path / "work" / "past.csv").symlink_to(own / "past.csv")
    return tmp_path


def _environment(place: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "TORCHINDUCTOR_", "MPL"))}
    return kept | {"HOME": str(place / "home"), "TMPDIR": str(place / "tmp"), "OMP_NUM_THREADS": "1"}


def _start(place: Path, *lines: str, before: str = "") -> subprocess.Popen[bytes]:
    """Run code and then commands, one after the other, in a subprocess, which imports all by itself, since imports may
    write files and print."""
    return subprocess.Popen(
        [sys.executable, "-c", before + COMMANDS, *lines],
        cwd=place / "work", env=_environment(place), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def _left(place: Path) -> list[str]:
    """Files in the home and temporary folders, and hidden or partial files in `work`."""
    beside = [
        path for path in (place / "work").rglob("*") if path.name.startswith(".") or path.suffix in (".part", ".tmp")
    ]
    return [
        str(path.relative_to(place)) for path in (*(place / "home").rglob("*"), *(place / "tmp").rglob("*"), *beside)
    ]


def test_silent_training_and_commands_leave_no_temporary_files(place: Path) -> None:
    lines = ["predict run past.csv -o next.csv", "report run -o report.html"]
    lines += ["export run -o model.onnx"] if importlib.util.find_spec("onnxruntime") else []
    process = _start(place, *lines, before=SILENT)
    printed, said = process.communicate()
    assert process.returncode == 0, said
    first, *further = said.splitlines()
    assert first == b"trained" and printed.startswith(b"trained\n"), "a training in Python says nothing"
    assert all(line.startswith((b"note: ", b"warning: ")) for line in further), said
    assert {path.name for path in (place / "work").iterdir()} >= {"silent", "next.csv", "report.html"}
    assert _left(place) == []


def test_killed_training_leaves_files_only_in_its_run(place: Path) -> None:
    """Partial files in the run folder are removed on resume."""
    process, run = Forked(["-c", COMMANDS, TRAIN], place / "work", _environment(place)), place / "work" / "new"
    while process.poll() is None and not (run / "checkpoints" / "last.ckpt").exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert [left for left in _left(place) if not left.startswith("work/new/")] == []
    assert {path.name for path in (place / "work").iterdir()} == {"new", "run", "past.csv"}
    for folder in (run, run / "checkpoints"):
        (folder / ".0123456789abcdef.part").write_bytes(b"half a file")
    assert Forked(["-c", COMMANDS, f"{TRAIN} --resume"], place / "work", _environment(place)).wait() == 0
    assert _left(place) == []
