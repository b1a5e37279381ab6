"""Devices: what is there is taken, what is not is refused."""

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
