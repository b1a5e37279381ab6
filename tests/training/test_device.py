"""Devices: what is there is taken, what is not is refused."""

import platform
import resource
import subprocess
from collections.abc import Callable

import pytest
import torch

from femts.config.training import TrainingConfig
from femts.errors import UsageError
from femts.training.device import resolve_place


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has CUDA")
def test_without_cuda_auto_is_the_cpu_in_float32_and_cuda_is_refused() -> None:
    place = resolve_place(TrainingConfig())
    assert (place.device, place.precision) == ("cpu", "32")
    with pytest.raises(UsageError, match=r"Device 'cuda' is not there.*--device cpu or auto"):
        resolve_place(TrainingConfig(device="cuda"))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_with_cuda_auto_is_cuda_in_bf16_where_native() -> None:
    place = resolve_place(TrainingConfig())
    native = torch.cuda.is_bf16_supported(including_emulation=False)
    assert (place.device, place.precision) == ("cuda", "bf16" if native else "32")
    with pytest.raises(UsageError, match="there are"):
        resolve_place(TrainingConfig(devices=torch.cuda.device_count() + 1))


@pytest.mark.skipif(torch.backends.mps.is_available(), reason="this machine has MPS")
def test_mps_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="'mps' is not there"):
        resolve_place(TrainingConfig(device="mps"))


def test_the_cpu_takes_what_it_is_asked_for() -> None:
    place = resolve_place(TrainingConfig(device="cpu", precision="bf16", devices=2))
    assert (place.device, place.precision, place.devices) == ("cpu", "bf16", 2)


_PAGES = """
import resource
import subprocess
from collections.abc import Callable
import torch
from femts.training.device import kept_memory

def touched() -> int:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        torch.ones(16 * 2**20)  # 64 MiB
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

with kept_memory("cuda"):
    print(touched())
with kept_memory("cpu"):
    for _ in range(4):  # until the heap has grown to what is asked of it at a time
        touched()
    print(touched())
print(touched())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is told to keep memory")
def test_large_blocks_are_reused_while_memory_is_kept(python: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    """In a process of its own: glibc keeps large blocks of the main thread alone."""
    usual, kept, after = map(int, python(_PAGES).stdout.split())
    pages = 64 * 2**20 // resource.getpagesize()
    assert kept < pages / 4 < min(usual, after)
