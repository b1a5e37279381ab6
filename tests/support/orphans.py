"""Workers that outlive an engine which was killed."""

from __future__ import annotations

import os
import time
from pathlib import Path

_MARK = "FEMTS_TEST_ENGINE"


def marked(folder: Path) -> dict[str, str]:
    """Environment by which `wait_for_workers` finds the workers."""
    return {**os.environ, _MARK: str(folder)}


def wait_for_workers(folder: Path, seconds: float = 120) -> None:
    """Wait until the workers have noticed and ended. A lock does not tell of one that is still starting."""
    deadline, mark = time.monotonic() + seconds, f"{_MARK}={folder}".encode()
    while any(mark in _environment(process) for process in Path("/proc").glob("[0-9]*")):
        assert time.monotonic() < deadline, "a worker goes on without its engine"
        time.sleep(0.1)


def _environment(process: Path) -> list[bytes]:
    try:
        return (process / "environ").read_bytes().split(b"\0")
    except OSError:  # it has ended, or is somebody else's
        return []
