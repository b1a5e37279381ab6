"""Resources that a process may lack: a standard output, an encoding for what it prints, and memory."""

from __future__ import annotations

import os
import resource
import sys

from femts.errors import RunFailure, UsageError

TORCH_TAKES = 1200 * 2**20  # bytes of addresses; given less, its import may end the process without a word


def check_streams() -> None:
    """Let text that the terminal's encoding lacks be printed by its escapes, and what goes to a closed stderr nowhere.

    Raises:
        UsageError: standard output is closed, and the first file that is opened would take what is printed.
    """
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    if sys.stdout is None:
        raise UsageError("Standard output is closed; keep it open, or redirect it with > FILE.")
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def check_memory() -> None:
    """RunFailure where the shell's limit (`ulimit -v`) leaves no room for torch."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit not in (resource.RLIM_INFINITY, -1) and limit < TORCH_TAKES:
        raise RunFailure(
            f"Out of memory: the limit of this shell is {limit >> 20} MiB (ulimit -v), but torch needs "
            f"{TORCH_TAKES >> 20} MiB; raise the limit."
        )
