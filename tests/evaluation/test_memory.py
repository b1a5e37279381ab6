"""Reuse of large memory blocks."""

from __future__ import annotations

import platform
import resource
import subprocess
import sys

import pytest

_PAGES = """
import resource
import torch
from femts.evaluation.memory import kept_memory

def touched() -> int:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        torch.ones(16 * 2**20)  # 64 MiB
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

with kept_memory("cuda"):
    print(touched())
with kept_memory("cpu"):
    with kept_memory("cpu"):
        pass
    for _ in range(4):  # until the heap has grown to what is asked of it at a time
        touched()
    print(touched())
print(touched())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is told to keep memory")
def test_kept_memory_reuses_large_blocks() -> None:
    usual, kept, after = map(int, subprocess.check_output([sys.executable, "-c", _PAGES]).split())
    pages = 64 * 2**20 // resource.getpagesize()
    assert kept < pages / 4 < min(usual, after)
