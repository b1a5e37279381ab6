"""Full disks, closed pipes, Ctrl-C and non-finite losses."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from forks import Forked
from small_tables import small_table

from femts.cli import main

LIST = (sys.executable, "-m", "femts", "datasets", "list")


def assert_one_sentence(err: str, *words: str) -> None:
    assert err.startswith("femts: ") and err.count("\n") == 1 and all(word in err for word in words), err


# With files of at most 8 kB, as if the disk were full.
FULL_DISK = """
import resource, sys
from femts.cli import main

resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
sys.exit(main(sys.argv[1:]))
"""


def test_full_disk_while_predicting_writes_nothing(own: Path, tmp_path: Path) -> None:
    arguments = ("predict", own / "run", own / "past.csv", "--horizon", 900, "-o", tmp_path / "out.csv")
    result = Forked(["-c", FULL_DISK, *arguments]).completed()
    assert result.returncode == 1
    note, said = result.stderr.splitlines()
    assert note.startswith("note: The history ends ") and said.startswith("femts: ") and "out.csv" in said
    assert list(tmp_path.iterdir()) == []


def test_full_disk_while_training_leaves_no_finished_run(tmp_path: Path) -> None:
    run = tmp_path / "run"
    command = "train --dataset synthetic --model dlinear --horizon 24 --seq-len 96 --max-epochs 1 --out".split()
    result = Forked(["-c", FULL_DISK, *command, run]).completed()
    assert result.returncode == 1, result.stderr
    assert_one_sentence(result.stderr, str(run))
    assert not (run / "metrics.json").exists()
    assert not [path for path in run.rglob("*") if path.name.endswith((".part", ".tmp"))]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_full_stdout_is_reported() -> None:
    with open("/dev/full", "w") as full:
        result = subprocess.run([*LIST], stdout=full, stderr=subprocess.PIPE, text=True)
    said = (
        "femts: Could not write the output: No space left on device; free some disk space or choose another location.\n"
    )
    assert (result.returncode, result.stderr) == (1, said)


def test_closed_pipe_is_silent() -> None:
    read, write = os.pipe()
    os.close(read)
    result = subprocess.run([*LIST], stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    assert (result.returncode, result.stderr) == (1, b"")


def test_ctrl_c_ends_cleanly_and_can_be_resumed(tmp_path: Path) -> None:
    run = tmp_path / "run"
    command = "train --dataset synthetic --model dlinear --horizon 24 --seq-len 96 --out".split()
    command += [str(run), "--max-steps", "300", "--set", "training.val_every=50", "--set", "training.patience=100"]
    process = Forked(["-m", "femts", *command])
    while not (run / "metrics.csv").exists() and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert (process.returncode, out) == (130, ""), err
    assert_one_sentence(err, "--resume", str(run))
    assert not (run / "metrics.json").exists()

    assert main([*command, "--resume"]) == 0
    metrics = json.loads((run / "metrics.json").read_text())
    assert (metrics["steps"], metrics["stopped"]) == (300, "max_steps")


def test_nonfinite_loss_fails_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    table = small_table()
    table.loc[100, "load"] = 1e30  # finite, but its square is not in float32
    table.to_csv(tmp_path / "wild.csv", index=False)
    command = f"train --dataset {tmp_path / 'wild.csv'} --model dlinear --horizon 12 --seq-len 24 --out {run}".split()
    command += ["--set", "training.lr=1e38"]
    assert main(command) == 1
    out, err = capsys.readouterr()
    assert_one_sentence(err, "loss", "step")
    assert out == "" and not (run / "model.safetensors").exists() and not (run / "metrics.json").exists()
