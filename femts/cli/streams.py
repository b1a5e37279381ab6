"""Text for people on standard output and stderr, and checks of what a process may lack: these streams, and memory."""

from __future__ import annotations

import os
import resource
import sys

from femts.errors import RunFailure, UsageError
from femts.text import printable_lines, quote

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


def say(message: object = "", error: bool = False) -> None:
    """Print a message on standard output or stderr, before any later one on either, with control characters of the
    user's data as escapes."""
    print(printable_lines(message), file=sys.stderr if error else sys.stdout, flush=True)


def write_data(text: str) -> None:
    """Write machine-readable output to standard output: unchanged to a file or pipe, and to a terminal with control
    characters as escapes.

    Raises:
        UsageError: A character is not in the encoding of standard output; in data, it must not be replaced.
    """
    if sys.stdout.isatty():
        text = printable_lines(text)
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError as error:
        raise UsageError(
            f"Standard output is {encoding}, which cannot encode '{quote(text[error.start])}'; write to a file with "
            "-o, or set PYTHONIOENCODING=utf-8."
        ) from error
    sys.stdout.write(text)


def check_memory() -> None:
    """Raise RunFailure if the limit of the shell (`ulimit -v`) is too low for torch."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit not in (resource.RLIM_INFINITY, -1) and limit < TORCH_TAKES:
        raise RunFailure(
            f"Out of memory: the limit of this shell is {limit >> 20} MiB (ulimit -v), but torch needs "
            f"{TORCH_TAKES >> 20} MiB; raise the limit."
        )
