"""Training by processes that torchrun or srun started."""

from __future__ import annotations

import math
import os
import re
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from forks import Forked
from small_grid import small_grid
from small_runs import essence, small_run

import femts
from femts.environment import Nodes, launched_nodes
from femts.errors import UsageError
from femts.experiments.results import Store
from femts.experiments.runner import Work, run_process
from femts.training.accelerator import named_accelerator
from femts.training.checkpoint import TrainState
from femts.training.nodes import take_part

ROOT = Path(__file__).resolve().parents[2]

Launched: TypeAlias = tuple[Path, subprocess.CompletedProcess[str], subprocess.CompletedProcess[str]]

_TRAINING = """
import os, signal, sys
import pytest
from small_runs import signal_at, small_run

if len(sys.argv) > 2 and os.environ["RANK"] == "1":
    signal_at(pytest.MonkeyPatch(), int(sys.argv[2]), signal.SIGKILL)
small_run("fem_sm", out=sys.argv[1], resume=True)
print("after")
"""

_SEVERAL = f"""{_TRAINING}
from femts.cli import main
from femts.errors import RunFailure

small_run("dlinear", refit=True)
try:
    small_run("dlinear", settings={{"training.lr": 1e30}})
except RunFailure as error:
    print(error)
print(small_run("dlinear").metrics["steps"])
sys.exit(main("train --dataset synthetic --model dlinear --horizon 24 --seq-len 1000000 --out refused".split()))
"""


_STARTED = """
from small_runs import forked_workers, small_run

with forked_workers():
    small_run("fem_sm", out="run", settings={"training.devices": 2})
"""


def _port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _variables(launcher: str, rank: int, port: int) -> dict[str, str]:
    """What the launcher tells the process of `rank`, the only one on its node."""
    own = {"MASTER_PORT": str(port)}
    if launcher == "torchrun":
        names = {"RANK": rank, "GROUP_RANK": rank, "LOCAL_RANK": 0, "WORLD_SIZE": 2, "LOCAL_WORLD_SIZE": 1}
        own |= {"TORCHELASTIC_RUN_ID": "1", "MASTER_ADDR": "127.0.0.1"}
    else:
        names = {"SLURM_PROCID": rank, "SLURM_NODEID": rank, "SLURM_LOCALID": 0, "SLURM_NTASKS": 2}
        names |= {"SLURM_STEP_NUM_TASKS": 2, "SLURM_STEP_NUM_NODES": 2, "SLURM_NNODES": 2, "SLURM_NTASKS_PER_NODE": 1}
        own |= {"SLURM_NODELIST": "127.0.0.1", "SLURM_JOB_ID": "7", "SLURM_JOB_NAME": "training"}
    return own | {name: str(value) for name, value in names.items()}


def _python(command: Sequence[object], folder: Path, **variables: str) -> Forked:
    path = os.pathsep.join([str(ROOT / "tests" / "support"), str(ROOT)])
    return Forked(command, folder, {**os.environ, "PYTHONPATH": path, **variables})


def _run(launcher: str, folder: Path, *command: object) -> list[subprocess.CompletedProcess[str]]:
    """Run a command as two processes, each on a node of its own."""
    port = _port()
    running = [_python(command, folder, **_variables(launcher, rank, port)) for rank in range(2)]
    return [process.completed() for process in running]


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "training.py"
    path.write_text(_TRAINING)
    return path


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Results of the same training by two processes that femts starts."""
    folder = tmp_path_factory.mktemp("started")
    (folder / "started.py").write_text(_STARTED)
    assert _python(["started.py"], folder).wait() == 0
    return essence(femts.load(folder / "run"))


@pytest.fixture(scope="module")
def launched(tmp_path_factory: pytest.TempPathFactory) -> Launched:
    """Two launched processes that train, train again, fail, and are given invalid input."""
    folder = tmp_path_factory.mktemp("launched")
    (folder / "several.py").write_text(_SEVERAL)
    first, second = _run("torchrun", folder, "several.py", "run")
    return folder, first, second


@pytest.mark.slow
def test_launched_processes_equal_started_ones(launched: Launched, started: dict[str, Any]) -> None:
    folder, first, second = launched
    assert first.stdout.startswith("after\n"), first.stderr
    assert (second.returncode, second.stdout, second.stderr) == (0, "", "")
    loaded = femts.load(folder / "run")
    assert loaded.metrics["devices"] == 2
    assert essence(loaded) == started


@pytest.mark.slow
def test_processes_go_on_after_a_training_that_diverged(launched: Launched) -> None:
    _, diverged, steps = launched[1].stdout.splitlines()
    assert diverged.startswith("The training loss became ") and int(steps) > 0


@pytest.mark.slow
def test_bad_input_ends_all_processes(launched: Launched) -> None:
    folder, first, _ = launched
    assert first.returncode == 2 and not (folder / "refused").exists()
    (refused,) = first.stderr.splitlines()
    assert refused.startswith("femts: ") and "does not fit" in refused


@pytest.mark.slow
def test_a_process_that_dies_costs_the_steps_since_the_last_checkpoint(
    script: Path, tmp_path: Path, started: dict[str, Any]
) -> None:
    first, second = _run("torchrun", tmp_path, script, tmp_path / "run", 5 + 2)
    assert second.returncode == -signal.SIGKILL
    assert first.returncode == 1 and first.stdout == ""
    assert "A process of this training ended early" in first.stderr
    assert TrainState.load(tmp_path / "run" / "checkpoints" / "last.ckpt").step == 5
    first, _ = _run("srun", tmp_path, script, tmp_path / "run")
    assert (first.returncode, first.stderr) == (0, "")
    assert essence(femts.load(tmp_path / "run")) == started


def _launched(monkeypatch: pytest.MonkeyPatch, variables: Mapping[str, str]) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


def test_launchers_are_recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    assert launched_nodes() is None
    _launched(monkeypatch, {"SLURM_NTASKS": "4", "SLURM_PROCID": "0"})  # a batch script without srun
    assert launched_nodes() is None
    _launched(monkeypatch, {"SLURM_STEP_NUM_TASKS": "4", "SLURM_STEP_NUM_NODES": "2"})
    found = launched_nodes()
    assert found is not None and (found.rank, found.processes, found.nodes, found.per_node) == (0, 4, 2, 2)
    with pytest.raises(UsageError, match=re.escape("without --ntasks-per-node") + ".*add --ntasks-per-node=2"):
        take_part(print)


def test_other_numbers_of_devices_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("femts.training.accelerator.joined_nodes", lambda: Nodes(0, 2, 2, slurm=False))
    with pytest.raises(UsageError, match=r"requests 3 processes, but 2 were launched; remove it"):
        small_run(settings={"training.devices": 3})


def test_processes_that_do_not_train_keep_one_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several tasks of srun may each forecast, or run a table, on a node with fewer GPUs than tasks."""
    _launched(monkeypatch, _variables("srun", 0, 1))
    assert named_accelerator("cpu").devices == 1


@pytest.mark.parametrize("launcher", ["torchrun", "srun"])
def test_cells_of_a_table_are_processes_of_their_own(
    launcher: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A launcher may start several tables, which share their cells; a cell must not wait for the others."""
    _launched(monkeypatch, _variables(launcher, 0, 1))
    assert launched_nodes() is not None
    started = dict[str, str]()

    def start(*command: object, env: dict[str, str], **further: object) -> None:
        started.update(env)
        raise InterruptedError

    monkeypatch.setattr(subprocess, "Popen", start)
    with pytest.raises(InterruptedError):
        run_process(Work(small_grid()[0], Store(tmp_path), 1, "cpu", None, math.inf, ()))
    monkeypatch.setattr(os, "environ", started)
    assert launched_nodes() is None
