"""Devices: what is there is taken, what is not is refused."""

import pytest
import torch

from femts.config.training import TrainingConfig
from femts.errors import UsageError
from femts.training.accelerator import find_accelerator


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has CUDA")
def test_without_cuda_auto_is_the_cpu_in_float32_and_cuda_is_refused() -> None:
    place = find_accelerator(TrainingConfig())
    assert (place.device, place.precision) == ("cpu", "32")
    with pytest.raises(UsageError, match=r"Device 'cuda' is not there.*--device cpu or auto"):
        find_accelerator(TrainingConfig(device="cuda"))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_with_cuda_auto_is_cuda_in_bf16_where_native() -> None:
    place = find_accelerator(TrainingConfig())
    native = torch.cuda.is_bf16_supported(including_emulation=False)
    assert (place.device, place.precision) == ("cuda", "bf16" if native else "32")
    with pytest.raises(UsageError, match="there are"):
        find_accelerator(TrainingConfig(devices=torch.cuda.device_count() + 1))


@pytest.mark.skipif(torch.backends.mps.is_available(), reason="this machine has MPS")
def test_missing_mps_is_refused() -> None:
    with pytest.raises(UsageError, match="'mps' is not there"):
        find_accelerator(TrainingConfig(device="mps"))


def test_cpu_takes_precision_and_processes() -> None:
    place = find_accelerator(TrainingConfig(device="cpu", precision="bf16", devices=2))
    assert (place.device, place.precision, place.devices) == ("cpu", "bf16", 2)
