"""Memory that is kept while a model trains or is scored on a CPU."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1  # of glibc's mallopt
_KEPT, _USUAL = 2**30, 2**25  # bytes; the latter is where glibc's own thresholds end
_lock, _keepers = Lock(), list[str]()


@contextmanager
def kept_memory(device: str) -> Iterator[None]:
    """On a CPU with glibc, have large blocks reused: otherwise each one is mapped anew and page by page set to zero.

    A step of large tensors spends up to two thirds of its time on that. In any thread but the main
    one glibc maps them all the same. When the last that keeps memory ends, what is free goes back
    to the system.
    """
    if device != "cpu" or platform.libc_ver()[0] != "glibc":
        yield
        return
    with _lock:
        if not _keepers:
            _reuse_blocks_up_to(_KEPT)
        _keepers.append(device)
    try:
        yield
    finally:
        with _lock:
            _keepers.pop()
            if not _keepers:
                _reuse_blocks_up_to(_USUAL)
                ctypes.CDLL(None).malloc_trim(0)


def _reuse_blocks_up_to(size: int) -> None:
    for threshold in (_MMAP_THRESHOLD, _TRIM_THRESHOLD):
        ctypes.CDLL(None).mallopt(threshold, size)
