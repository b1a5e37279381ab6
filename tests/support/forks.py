"""Python processes forked from one that has imported femts and Lightning, which would take seconds in each."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing import forkserver, process, reduction
from pathlib import Path
from tempfile import TemporaryFile
from types import SimpleNamespace
from typing import IO, Any
from unittest.mock import patch

from femts.experiments import runner

_HERE = Path(__file__).resolve().parent
_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(["preloaded"])


class Forked:
    """As `subprocess.Popen` of `python WORDS`, whose first word is `-m`, `-c` or a script.

    It reads `stdin`, nothing by default, and writes to `stderr`, a file of its own by default. A `session` of its own
    has its own group of processes.
    """

    def __init__(
        self,
        words: Sequence[object],
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        stdin: IO[bytes] | None = None,
        stderr: IO[bytes] | None = None,
        session: bool = False,
    ) -> None:
        self.args = [str(word) for word in words]
        self._streams = TemporaryFile(), stderr or TemporaryFile()  # noqa: SIM115
        path = os.pathsep.join([str(_HERE), str(_HERE.parents[1]), os.environ.get("PYTHONPATH", "")])
        with patch.dict(os.environ, {"PYTHONPATH": path}):
            forkserver.ensure_running()
        at = str(folder or Path.cwd()), dict(os.environ if environment is None else environment)
        read, *written = map(_Descriptor, (stdin or TemporaryFile(), *self._streams))  # noqa: SIM115
        self._process = _SERVER.Process(target=_run, args=(self.args, *at, read, *written, session))
        self._process.start()

    @property
    def returncode(self) -> int | None:
        """As of `subprocess.Popen`."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """Exit status of a process that has ended."""
        return self._process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    def wait(self, timeout: float = 900) -> int:
        """Exit status."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            self._process.kill()
            raise subprocess.TimeoutExpired(self.args, timeout)
        return self._process.exitcode

    def communicate(self, timeout: float = 900) -> tuple[str, str]:
        """Wait, and return what it printed on stdout and stderr."""
        self.wait(timeout)
        said = list[str]()
        for stream in self._streams:
            with stream:
                stream.seek(0)
                said.append(stream.read().decode())
        return said[0], said[1]

    def completed(self) -> subprocess.CompletedProcess[str]:
        """Wait; as `subprocess.run`."""
        out, err = self.communicate()
        return subprocess.CompletedProcess(self.args, self.wait(), out, err)


class ForkedCell(Forked):
    """As `subprocess.Popen` of a cell of a table."""

    def __init__(self, words: Sequence[str], stderr: IO[bytes], env: Mapping[str, str], **_: object) -> None:
        read, write = os.pipe()
        self.stdin = open(write, "wb")  # noqa: SIM115
        with open(read, "rb") as given:
            super().__init__(words[1:], None, env, given, stderr, session=True)

    @property
    def pid(self) -> int | None:
        """As of `subprocess.Popen`."""
        return self._process.pid

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)


@contextlib.contextmanager
def forked_cells() -> Iterator[list[ForkedCell]]:
    """Fork the cells of tables that run one cell at a time; the list is of those so far."""
    started = list[ForkedCell]()

    def start(words: Sequence[str], **how: Any) -> ForkedCell:
        started.append(ForkedCell(words, **how))
        return started[-1]

    names = {name: getattr(subprocess, name) for name in ("PIPE", "DEVNULL", "TimeoutExpired")}
    with patch.object(runner, "subprocess", SimpleNamespace(**names, Popen=start)):
        yield started


class _Descriptor:
    """The descriptor of an open file, which the process receives as its own."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def __reduce__(self) -> Any:
        return _detached, (reduction.DupFd(self._file.fileno()),)


def _detached(passed: Any) -> int:
    return int(passed.detach())


def _run(
    words: list[str], folder: str, environment: dict[str, str], given: int, out: int, err: int, session: bool
) -> None:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None  # the server has looked for its own
    for number, passed in enumerate([fcntl.fcntl(each, fcntl.F_DUPFD, 3) for each in (given, out, err)]):
        os.dup2(passed, number)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115  # which `multiprocessing` closes
    if session:
        os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell ignores in its background
    vars(process)["_parent_process"] = None  # it is no worker of a training
    sys.path[:0] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    try:
        if words[0] == "-c":
            sys.argv[:] = ["-c", *words[2:]]
            exec(compile(words[1], "<string>", "exec"), {"__name__": "__main__"})
        elif words[0] == "-m":
            sys.argv[:] = words[1:]
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv[:] = words
            runpy.run_path(words[0], run_name="__main__")
    finally:
        atexit._run_exitfuncs()  # `multiprocessing` leaves them out
