"""Devices, precision and `training.compile`."""

from __future__ import annotations

import pytest
import torch
from small_runs import small_run

from femts.config.settings import apply_settings
from femts.config.training import TrainingConfig
from femts.data.batch import Batch
from femts.errors import UsageError
from femts.models.registry import build_config, build_model
from femts.training import accelerator
from femts.training.accelerator import find_accelerator, missing_compiler

needs_compiler = pytest.mark.skipif(missing_compiler("cpu") is not None, reason=f"{missing_compiler('cpu')}")


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has CUDA")
def test_auto_without_cuda_is_cpu_float32() -> None:
    found = find_accelerator(TrainingConfig())
    assert (found.device, found.precision) == ("cpu", "32")
    with pytest.raises(UsageError, match=r"CUDA is not available.*device='cpu' or leave it at auto"):
        find_accelerator(TrainingConfig(device="cuda"))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_auto_with_cuda_is_bf16() -> None:
    found = find_accelerator(TrainingConfig())
    native = torch.cuda.is_bf16_supported(including_emulation=False)
    assert (found.device, found.precision) == ("cuda", "bf16" if native else "32")
    with pytest.raises(UsageError, match="are available"):
        find_accelerator(TrainingConfig(devices=torch.cuda.device_count() + 1))


@pytest.mark.skipif(torch.backends.mps.is_available(), reason="this machine has an Apple GPU")
def test_missing_mps_is_refused() -> None:
    with pytest.raises(UsageError, match="MPS is not available"):
        find_accelerator(TrainingConfig(device="mps"))


def test_cpu_supports_precision_and_devices() -> None:
    found = find_accelerator(TrainingConfig(device="cpu", precision="bf16", devices=2))
    assert (found.device, found.precision, found.devices) == ("cpu", "bf16", 2)


def test_compile_without_a_compiler_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(UsageError, match=r"training.compile.*no C\+\+ compiler.*leave it at false"):
        find_accelerator(TrainingConfig(device="cpu", compile=True))
    assert find_accelerator(TrainingConfig(device="cpu")).device == "cpu"
    with pytest.raises(UsageError, match="requires precision 32"):
        find_accelerator(TrainingConfig(device="cpu", compile=True, precision="bf16"))


def test_compiled_loss_and_gradients_match_eager() -> None:
    torch.manual_seed(0)
    settings = {"d_model": 16, "n_layers": 1, "n_heads": 2, "dropout": 0.0}
    model = build_model(
        "fem_sm", build_config("fem_sm", seq_len=8, pred_len=8, n_channels=2, settings=settings)
    ).double()
    batch = Batch(torch.randn(3, 8, 2).double(), future=torch.randn(3, 8, 2).double())
    compiled_loss = torch.compile(model.loss, backend="aot_eager", dynamic=False, fullgraph=True)
    losses = [loss(batch) for loss in (model.loss, compiled_loss)]
    torch.testing.assert_close(losses[1], losses[0], rtol=1e-12, atol=0)
    plain, compiled = (torch.autograd.grad(loss, list(model.parameters())) for loss in losses)
    for one, other in zip(compiled, plain, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)


def test_graph_needs_cuda_and_is_off_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not find_accelerator(TrainingConfig(device="cpu")).graph
    assert not find_accelerator(TrainingConfig(device="cpu", graph="off")).graph
    with pytest.raises(UsageError, match=r"'training.graph=on' requires a CUDA device, not 'cpu'; leave it") as caught:
        find_accelerator(TrainingConfig(device="cpu", graph="on"))
    assert (caught.value.argument, caught.value.value) == ("training.graph", "on")
    assert caught.value.remedy == {"settings": {"training.graph": "auto"}}
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert find_accelerator(TrainingConfig(device="cuda", graph="on")).graph
    assert not find_accelerator(TrainingConfig(device="cuda")).graph
    with pytest.raises(UsageError, match=r"requires a single process, not 2; leave it at auto"):
        find_accelerator(TrainingConfig(device="cuda", graph="on", devices=2))
    monkeypatch.setattr(accelerator, "missing_compiler", lambda device: None)
    with pytest.raises(UsageError, match=r"requires training.compile=false; leave it at auto"):
        find_accelerator(TrainingConfig(device="cuda", graph="on", compile=True))


@pytest.mark.parametrize(("given", "graph"), [("on", "on"), (True, "on"), ("False", "off"), ("auto", "auto")])
def test_graph_may_be_what_yaml_reads(given: object, graph: str) -> None:
    assert apply_settings(TrainingConfig(), {"graph": given}, "training").graph == graph


@needs_compiler
def test_compiled_run_scores_match_eager() -> None:
    from torch._inductor import config  # takes seconds

    # Vector instructions are tried in a process that imports torch, and take longer to compile.
    with config.patch({"cpp.vec_isa_ok": False}):
        plain, compiled = (small_run(max_epochs=1, settings={"training.compile": on}) for on in (False, True))
    assert compiled.metrics["test"]["mse"] == pytest.approx(plain.metrics["test"]["mse"], rel=1e-5)
    assert compiled.config.training.compile is True
