"""Closed streams, output encodings and out-of-memory errors."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from bad_cases import OWN
from forks import Forked
from pages import ROOT
from small_tables import small_table

from femts.cli import main
from femts.errors import out_of_memory


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with a non-ASCII column name, and a run on it."""
    folder = tmp_path_factory.mktemp("streams")
    small_table(columns=("été", "heat")).to_csv(folder / "été.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(f"{OWN} été.csv --out run".split()) == 0
    return folder


def _run(place: Path, command: str, shell: str, **variables: str) -> subprocess.CompletedProcess[str]:
    line = shell.format(f"{sys.executable} -m femts {command}")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **variables}
    return subprocess.run(["sh", "-c", line], cwd=place, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("command", ["models", "predict run été.csv"])
def test_closed_stdout_is_refused(place: Path, command: str) -> None:
    done = _run(place, command, "{} >&-")
    assert done.returncode == 2
    assert done.stderr == "femts: Standard output is closed; keep it open, or redirect it with > FILE.\n"


def test_closed_stderr_does_not_pollute_stdout(place: Path) -> None:
    done = _run(place, "predict none été.csv", "{} 2>&-")
    assert (done.returncode, done.stdout) == (2, "")


def test_output_data_ignore_the_terminal_encoding(place: Path) -> None:
    done = _run(place, "predict run été.csv", "{}", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1] + "\n" == (
        "femts: Standard output is ascii, which cannot encode '\\xe9'; write to a file with -o, or set PYTHONIOENCODING=utf-8.\n"
    )


def test_messages_are_escaped_for_the_encoding(place: Path) -> None:
    done = _run(place, "evaluate run --by channel", "{}", PYTHONIOENCODING="ascii")
    assert done.returncode == 0 and r"\xe9t\xe9" in done.stdout
    assert done.stderr.startswith("warning: worse than") and r"channel \xe9t\xe9, heat" in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="ulimit -v limits memory on Linux")
def test_out_of_memory_is_one_sentence(place: Path) -> None:
    done = _run(place, f"{OWN} été.csv --out small", "ulimit -v 300000; {}", MALLOC_ARENA_MAX="1")
    few = ": the limit of this shell is 292 MiB (ulimit -v), but torch needs 1200 MiB; raise the limit."
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"femts: Out of memory{few}") and done.stderr.count("\n") == 1


IN_PYTHON = """
import resource
import numpy as np, pandas as pd, femts
values = pd.DataFrame(np.random.default_rng(0).normal(size=(2000, 300)), columns=[f"c{i}" for i in range(300)])
values.insert(0, "date", pd.date_range("2024", periods=2000, freq="h"))
naive = femts.train(values.iloc[:, :3], "naive", 24, seq_len=48)
many = np.zeros((20_000, 48, 2))
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**23,) * 2)
for call in (lambda: femts.train(values, "fem_sm", 24, seq_len=48, max_steps=1), lambda: naive.predict_array(many)):
    try:
        call()
    except femts.RunFailure as error:
        print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_AS limits memory on Linux")
def test_out_of_memory_in_python() -> None:
    done = Forked(["-c", IN_PYTHON], ROOT).completed()
    assert done.returncode == 0, done.stderr
    assert [line.partition(";")[0] for line in done.stdout.splitlines()] == ["Out of memory"] * 2


def test_out_of_memory_errors_are_recognized() -> None:
    for error in [
        MemoryError(),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 99 bytes."),
        RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"),
        ImportError("libtorch.so: failed to map segment from shared object"),
    ]:
        assert out_of_memory(error)
        assert not out_of_memory(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
