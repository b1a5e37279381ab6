"""Checks of resources that a process may lack: standard output, an encoding for its text, and memory."""

from __future__ import annotations

import os
import resource
import sys

from femts.errors import RunFailure, UsageError

TORCH_TAKES = 1200 * 2**20  # bytes of address space; with less, importing torch may kill the process silently


def check_streams() -> None:
    """Print characters missing from the terminal's encoding as escapes, and discard output to a closed stderr.

    Raises:
        UsageError: Standard output is closed, so that the first file opened would receive the output.
    """
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    if sys.stdout is None:
        raise UsageError("Standard output is closed; keep it open, or redirect it with > FILE.")
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def check_memory() -> None:
    """Raise RunFailure if the limit of the shell (`ulimit -v`) is too low for torch."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit not in (resource.RLIM_INFINITY, -1) and limit < TORCH_TAKES:
        raise RunFailure(
            f"Out of memory: the limit of this shell is {limit >> 20} MiB (ulimit -v), but torch needs "
            f"{TORCH_TAKES >> 20} MiB; raise the limit."
        )
