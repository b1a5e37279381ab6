"""Reuse of memory during training and scoring on a CPU."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1  # parameters of glibc's mallopt
_KEPT, _USUAL = 2**30, 2**25  # bytes; the latter is the maximum of glibc's dynamic thresholds
_lock, _keepers = Lock(), list[str]()


@contextmanager
def kept_memory(device: str) -> Iterator[None]:
    """Make glibc reuse large blocks on a CPU instead of mapping and zeroing the pages of each one anew.

    That takes up to two thirds of the time of a step with large tensors. It has no effect in threads other than the
    main one. When the last user ends, free memory is returned to the system.
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
